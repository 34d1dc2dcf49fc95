// Who sells where, and from when (settlement rule S17); and the arithmetic of payments (S13).
import Base
import Revenue
import TestSupport
import Testing

@Suite struct SellerTests {
  @Test(
    "a seller follows from country and day; in the month of the change, without days, from the region",
    arguments: [
      ("US", "FY2026-P01", "EU", "Apple Inc."), ("CA", "FY2021-P01", "CA", "Apple Canada Inc."),
      ("NZ", "FY2026-P01", "AU", "Apple Pty Limited"), ("JP", "FY2026-P01", "JP", "iTunes K.K."),
      ("BR", "FY2026-P01", "BR", "Apple Services LATAM LLC"),
      ("DE", "FY2026-P01", "EU", "Apple Distribution International Ltd."),
      ("KR", "FY2024-P12", "WW", "Apple Distribution International Ltd."),
      ("KR", "FY2025-P01", "WW", nil), ("KR", "FY2025-P01", "AP", "Apple Services Pte. Ltd."),
      ("KR", "FY2025-P02", "WW", "Apple Services Pte. Ltd."), ("AQ", "FY2026-P01", "WW", nil),
      ("US", "FY2020-P12", "US", nil), ("AQ", "FY2026-P01", "AP", nil),
      ("KR", "FY2020-P12", "AP", nil),
    ] as [(String, String, String, String?)])
  func seller(_ country: String, _ month: String, _ region: String, _ expected: String?) throws {
    let month = try #require(FiscalMonth(parsing: month))
    let seller = withText(country) { Seller(country: $0, month: month, region: region) }
    expectEqual(seller?.rawValue, expected)
  }

  @Test("with a day, the seller changes on 26 October 2024")
  func day() throws {
    let month = try #require(FiscalMonth(parsing: "FY2025-P01"))
    let day = CivilDate.dayNumber(year: 2024, month: 10, day: 26)
    withText("KR") { korea in
      expectEqual(Seller(country: korea, month: month, day: day - 1), .international)
      expectEqual(Seller(country: korea, month: month, day: day), .asia)
    }
  }

  @Test(
    "minor units that remain go to the largest remainders, of equal ones to the first",
    arguments: [
      (1000, [1764, 529], [769, 231]), (100, [1, 1, 1], [34, 33, 33]),
      (100, [-1, 3], [-50, 150]), (-100, [1, 1, 1], [-33, -33, -34]), (0, [5, 7], [0, 0]),
      (100, [-1, -1, -1], [34, 33, 33]), (7, [0, 1], [0, 7]),
    ] as [(Int, [Int], [Int])])
  func parts(_ cents: Int, _ weights: [Int], _ expected: [Int]) throws {
    let euro = try #require(Currency.parse("EUR"))
    let parts = PaymentAllocation.parts(
      of: Int128(cents) * 10_000, euro, by: weights.map { Int128($0) },
      total: Int128(weights.reduce(0, +)))
    expectEqual(parts, expected.map { Int128($0) * 10_000 })
  }

  @Test("what is no whole number of minor units is not split")
  func fraction() throws {
    let yen = try #require(Currency.parse("JPY"))
    expectEqual(PaymentAllocation.parts(of: 500_000, yen, by: [1], total: 1), nil)
  }

  @Test(
    arguments: [
      (26_530_000, 33_150_000, "0.800301659"), (1, 2_000_000_000, "0.000000000"),
      (3, 2_000_000_000, "0.000000002"), (-1_160_000, 142_000_000, "-0.008169014"),
      (5, 1, "5.000000000"),
    ] as [(Int64, Int64, String)])
  func effectiveRate(_ proceeds: Int64, _ owed: Int64, _ expected: String) {
    expectEqual(PaymentAllocation.effectiveRate(proceeds: proceeds, owed: owed), expected)
  }
}
