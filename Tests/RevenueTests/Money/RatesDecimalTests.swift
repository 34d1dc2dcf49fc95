// Rates as exact decimals: what is read, what is refused and why.
import Revenue
import TestSupport
import Testing

@Suite struct RatesDecimalTests {
  @Test(
    arguments: [
      ("1", 1, 0, "1"), ("1.0854", 10_854, 4, "1.0854"), ("1.0850", 1085, 3, "1.085"),
      ("0001.50", 15, 1, "1.5"), ("0.000000000001", 1, 12, "0.000000000001"),
      ("999999999999999999", 999_999_999_999_999_999, 0, "999999999999999999"),
      ("999999.999999999999", 999_999_999_999_999_999, 12, "999999.999999999999"),
      ("100", 100, 0, "100"), ("100.0", 100, 0, "100"), ("10.05", 1005, 2, "10.05"),
      ("1.0000000000000000000000", 1, 0, "1"), ("0.50", 5, 1, "0.5"),
      ("00000000000000000000001.1", 11, 1, "1.1"),
    ] as [(String, UInt64, Int, String)])
  func decimalIsRead(text: String, mantissa: UInt64, scale: Int, shortest: String) throws {
    let decimal = try Decimal18(parsing: text)
    expectEqual(decimal.mantissa, mantissa)
    expectEqual(decimal.scale, scale)
    expectEqual(decimal.description, shortest)
    expectEqual(Decimal18(mantissa: mantissa, scale: scale), decimal)
    try expectEqual(Decimal18(parsing: decimal.description), decimal)
  }

  @Test(
    arguments: [
      ("", .notDecimal), (".", .notDecimal), ("1.", .notDecimal), (".5", .notDecimal),
      ("-1", .notDecimal), ("+1", .notDecimal), ("1e3", .notDecimal), ("1,5", .notDecimal),
      ("1.2.3", .notDecimal), (" 1", .notDecimal), ("N/A", .notDecimal), ("1..2", .notDecimal),
      ("0", .zero), ("0.000", .zero), ("0.0000000000000000", .zero),
      ("1000000000000000000", .tooManyDigits), ("1234567.123456789012", .tooManyDigits),
      ("0.0000000000001", .tooManyDecimals), ("1.1234567890123", .tooManyDecimals),
      ("99999999999999999999999999999999999999999", .tooManyDigits),
    ] as [(String, DecimalError)])
  func otherTextIsRefused(text: String, error: DecimalError) {
    #expect(throws: error) { try Decimal18(parsing: text) }
  }

  @Test(
    arguments: [
      (.notDecimal, "not a decimal number such as 1.0854 (digits, and a point between digits)"),
      (.zero, "not above 0"), (.tooManyDigits, "more than 18 significant digits"),
      (.tooManyDecimals, "more than 12 decimals"),
    ] as [(DecimalError, String)])
  func errorSaysWhy(error: DecimalError, text: String) {
    expectEqual(error.description, text)
  }

  @Test(
    arguments: [
      (0, 0), (1, -1), (1, 13), (1_000_000_000_000_000_001, 0), (UInt64.max, 12),
    ] as [(UInt64, Int)])
  func partsOutOfRangeAreNoDecimal(mantissa: UInt64, scale: Int) {
    #expect(Decimal18(mantissa: mantissa, scale: scale) == nil)
  }

  @Test func zerosAtTheEndOfPartsAreTakenOff() throws {
    try expectEqual(Decimal18(mantissa: 1500, scale: 3), Decimal18(parsing: "1.5"))
    try expectEqual(Decimal18(mantissa: 1000, scale: 2), Decimal18(parsing: "10"))
  }
}
