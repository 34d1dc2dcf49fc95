// Apple's fiscal calendar: settlement rule S7.
import Base
import Revenue
import TestSupport
import Testing

@Suite struct FiscalMonthTests {
  private static func text(_ day: Int) -> String { CivilDate(dayNumber: day).description }

  @Test func sixYearsUntil2034Have53Weeks() {
    let long = (2006...2034).filter { year in
      FiscalMonth.months(ofYear: year).reduce(0) { $0 + $1.weekCount } == 53
    }
    expectEqual(long, [2006, 2012, 2017, 2023, 2028, 2034])
  }

  @Test func monthsLieWithoutGapsAndContainTheirDays() {
    var next = FiscalMonth.months(ofYear: 2006)[0].firstDay
    for year in 2006...2099 {
      let months = FiscalMonth.months(ofYear: year)
      let weeks = months.map(\.weekCount)
      let isLong = weeks.reduce(0, +) == 53
      expectEqual(weeks, [5, 4, isLong ? 5 : 4, 5, 4, 4, 5, 4, 4, 5, 4, 4])
      for month in months {
        expectEqual(month.firstDay, next)
        expectEqual(FiscalMonth(containing: month.firstDay), month)
        expectEqual(FiscalMonth(containing: month.lastDay), month)
        next = month.lastDay + 1
      }
    }
  }

  @Test(arguments: [
    // A year that ends on the last day of September.
    (2023, 1, "2022-09-25", "2022-10-29", 2022 * 12 + 9, "2022-12-01", "2022-12-13"),
    (2023, 3, "2022-11-27", "2022-12-31", 2022 * 12 + 11, "2023-02-02", "2023-02-14"),
    (2023, 12, "2023-09-03", "2023-09-30", 2023 * 12 + 8, "2023-11-02", "2023-11-14"),
    (2014, 12, "2014-08-31", "2014-09-27", 2014 * 12 + 8, "2014-10-30", "2014-11-11"),
    (2026, 1, "2025-09-28", "2025-11-01", 2025 * 12 + 9, "2025-12-04", "2025-12-16"),
  ])
  func aMonthHasItsDaysItsNameAndItsPayments(
    year: Int, month: Int, first: String, last: String, namesake: Int, expected: String,
    latest: String
  ) {
    let found = FiscalMonth.months(ofYear: year)[month - 1]
    expectEqual(Self.text(found.firstDay), first)
    expectEqual(Self.text(found.lastDay), last)
    expectEqual(found.namesakeOrdinal, namesake)
    expectEqual(Self.text(found.expectedPaymentDay), expected)
    expectEqual(Self.text(found.latestPaymentDay), latest)
  }

  @Test func aMonthIsFoundAgainByItsNameDaysAndNamesake() {
    for year in FiscalMonth.years {
      for month in FiscalMonth.months(ofYear: year) {
        expectEqual(FiscalMonth(parsing: month.name), month)
        expectEqual(FiscalMonth(firstDay: month.firstDay, lastDay: month.lastDay), month)
        expectEqual(FiscalMonth(namesakeOrdinal: month.namesakeOrdinal), month)
        expectEqual(FiscalMonth(firstDay: month.firstDay, lastDay: month.lastDay + 7), nil)
        expectEqual(FiscalMonth(firstDay: month.firstDay + 7, lastDay: month.lastDay), nil)
      }
    }
  }

  @Test(arguments: [
    "", "FY2026", "FY2026-P00", "FY2026-P13", "FY2026-P1", "FY2026-P001", "FY2006-P12",
    "FY2100-P01",
    "fy2026-p01", "2026-P01", "FY2026-P0\u{661}", "FY+026-P01", "FY2026 P01", "FY2026-P01 ",
  ])
  func anotherNameIsNoMonth(_ text: String) {
    expectEqual(FiscalMonth(parsing: text), nil)
  }

  @Test(arguments: [Int.min, -1, 0, 2006 * 12 + 8, 2099 * 12 + 9, Int.max])
  func outsideTheKnownYearsThereIsNoMonth(number: Int) {
    expectEqual(FiscalMonth(namesakeOrdinal: number), nil)
    expectEqual(FiscalMonth(firstDay: number, lastDay: number), nil)
  }
}
