// The days of a page, and the days with which they are compared.
import Base
import Revenue
import TestSupport
import Testing

import ReportDocuments

@Suite struct PagePeriodTests {
  private static func period(_ from: String, _ to: String) throws -> PagePeriod {
    try #require(PagePeriod(from: CivilDate(parsing: from), to: CivilDate(parsing: to)))
  }

  @Test(arguments: [
    ("2026-06-01", "2026-06-30", "June 2026", "2026-05-01", "2026-05-31"),
    ("2026-03-01", "2026-03-31", "March 2026", "2026-02-01", "2026-02-28"),
    ("2024-01-01", "2024-01-31", "January 2024", "2023-12-01", "2023-12-31"),
    ("2026-01-01", "2026-12-31", "1 January 2026 to 31 December 2026", "2025-01-01", "2025-12-31"),
    ("2026-04-01", "2026-06-30", "1 April 2026 to 30 June 2026", "2026-01-01", "2026-03-31"),
    ("2026-06-10", "2026-06-16", "10 June 2026 to 16 June 2026", "2026-06-03", "2026-06-09"),
    ("2026-06-10", "2026-06-10", "10 June 2026", "2026-06-09", "2026-06-09"),
    ("2026-02-01", "2026-02-27", "1 February 2026 to 27 February 2026", "2026-01-05", "2026-01-31"),
  ])
  func `Whole months are compared with as many months, other days with as many days`(
    from: String, to: String, title: String, beforeFrom: String, beforeTo: String
  ) throws {
    let period = try Self.period(from, to)
    expectEqual(period.title, title)
    expectEqual("\(period.before.first)", beforeFrom)
    expectEqual("\(period.before.last)", beforeTo)
  }

  @Test func `The year before ends with the page's days`() throws {
    let period = try Self.period("2026-06-01", "2026-06-15")
    expectEqual("\(period.year.first)", "2025-06-01")
    expectEqual("\(period.year.last)", "2026-06-15")
  }

  @Test(arguments: [
    ("2026-06-01", "2026-06-30", Period.Granularity.day, 30),
    ("2026-01-01", "2026-12-31", .week, 53), ("2020-01-01", "2026-12-31", .month, 84),
    ("1990-01-01", "2026-12-31", .year, 37),
  ])
  func `Steps are as long as a chart has room for`(
    from: String, to: String, granularity: Period.Granularity, count: Int
  ) throws {
    let period = try Self.period(from, to)
    expectEqual(period.granularity, granularity)
    expectEqual(period.steps.count, count)
  }

  @Test func `Days in the wrong order, and more than a century, are refused`() throws {
    let day = try CivilDate(parsing: "2026-06-01")
    #expect(PagePeriod(from: day, to: CivilDate(dayNumber: day.dayNumber - 1)) == nil)
    #expect(PagePeriod(from: day, to: CivilDate(dayNumber: day.dayNumber + 36_525)) == nil)
    #expect(PagePeriod(from: day, to: CivilDate(dayNumber: day.dayNumber + 36_524)) != nil)
  }

  @Test(arguments: ["2026-6", "2026-13", "2026", "2026-06-01", "", "juni-26", "0000-01"])
  func `What is no month is not read as one`(text: String) {
    #expect(PagePeriod(parsingMonth: text) == nil)
  }

  @Test func `An instant falls into the month of its zone`() throws {
    // 2026-06-30T23:00:00Z
    let atMs: Int64 = 1_782_860_400_000
    expectEqual(PagePeriod(monthAtMs: atMs, in: .utc).monthText, "2026-06")
    expectEqual(
      PagePeriod(monthAtMs: atMs, in: try TimeZoneTable("Europe/Berlin")).monthText, "2026-07")
  }
}
