// Periods: labels of instants in a time zone, their order, and days for filters.
import Base
import Revenue
import TestSupport
import Testing

@Suite struct PeriodTests {
  @Test(arguments: [
    (
      "2026-03-14T12:00:00Z",
      ["2026", "2026-Q1", "2026-03", "FY2026-P06", "2026-W11", "2026-03-14"]
    ),
    (
      "2025-12-31T23:59:59.999Z",
      ["2025", "2025-Q4", "2025-12", "FY2026-P04", "2026-W01", "2025-12-31"]
    ),
    (
      "2026-01-01T00:00:00Z",
      ["2026", "2026-Q1", "2026-01", "FY2026-P04", "2026-W01", "2026-01-01"]
    ),
    (
      "2021-01-01T00:00:00Z",
      ["2021", "2021-Q1", "2021-01", "FY2021-P04", "2020-W53", "2021-01-01"]
    ),
    (
      "1969-12-31T23:59:59.999Z",
      ["1969", "1969-Q4", "1969-12", "FY1970-P04", "1970-W01", "1969-12-31"]
    ),
    (
      "0001-01-01T00:00:00Z",
      ["0001", "0001-Q1", "0001-01", "FY0001-P04", "0001-W01", "0001-01-01"]
    ),
    (
      "9999-12-31T23:59:59Z",
      ["9999", "9999-Q4", "9999-12", "FY+010000-P03", "9999-W52", "9999-12-31"]
    ),
    (
      "2026-06-30T23:59:59Z",
      ["2026", "2026-Q2", "2026-06", "FY2026-P10", "2026-W27", "2026-06-30"]
    ),
    (
      "2026-07-01T00:00:00Z",
      ["2026", "2026-Q3", "2026-07", "FY2026-P10", "2026-W27", "2026-07-01"]
    ),
  ])
  func labelsInUTC(text: String, labels: [String]) throws {
    let ms = try Timestamp.parse(text)
    let found = Period.Granularity.allCases.map { granularity in
      var calendar = PeriodCalendar(granularity, in: .utc)
      return calendar.period(atMs: ms).description
    }
    expectEqual(found, labels)
  }

  @Test(arguments: [
    ("Europe/Berlin", "2025-12-31T22:59:59Z", "2025-12-31"),
    ("Europe/Berlin", "2025-12-31T23:00:00Z", "2026-01-01"),
    ("Europe/Berlin", "2025-07-31T21:59:59.999Z", "2025-07-31"),
    ("Europe/Berlin", "2025-07-31T22:00:00Z", "2025-08-01"),
    ("America/New_York", "2026-01-01T04:59:59Z", "2025-12-31"),
    ("America/New_York", "2026-01-01T05:00:00Z", "2026-01-01"),
    // Samoa skipped 2011-12-30.
    ("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31"),
    ("Asia/Kathmandu", "2026-03-13T18:14:59Z", "2026-03-13"),
    ("Asia/Kathmandu", "2026-03-13T18:15:00Z", "2026-03-14"),
  ])
  func dayIsThatOfTheZone(zone: String, text: String, day: String) throws {
    var calendar = PeriodCalendar(.day, in: try TimeZoneTable(zone))
    let ms = try Timestamp.parse(text)
    expectEqual(calendar.period(atMs: ms).description, day)
    expectEqual(calendar.dayNumber(atMs: ms), (try CivilDate(parsing: day).dayNumber))
  }

  @Test(arguments: [Int64.min, Int64.max, -62_135_596_800_001, 253_402_300_800_000])
  func instantBeyondTheYearsStillHasAPeriod(ms: Int64) throws {
    for zone in [TimeZoneTable.utc, try TimeZoneTable("Europe/Berlin")] {
      for granularity in Period.Granularity.allCases {
        var calendar = PeriodCalendar(granularity, in: zone)
        #expect(!calendar.period(atMs: ms).description.isEmpty)
      }
    }
  }

  @Test func granularitiesBearTheOptionsNames() {
    expectEqual(
      Period.Granularity.allCases.map(\.rawValue),
      ["year", "quarter", "month", "fiscal-month", "week", "day"])
  }

  /// One calendar for instants in any order, against a fresh one for each: its cache must not show.
  /// And labels sort like periods.
  @Test(arguments: [UInt64(31), 32])
  func rememberedDaysDoNotShow(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let zone = try TimeZoneTable("Australia/Lord_Howe")
    for granularity in Period.Granularity.allCases {
      var calendar = PeriodCalendar(granularity, in: zone)
      var periods: [Period] = []
      var ms = try Timestamp.parse("2026-04-04T00:00:00Z")
      for _ in 0..<500 {
        ms +=
          Bool.random(using: &random)
          ? Int64.random(in: -90_000_000...90_000_000, using: &random)
          : Int64.random(in: -90_000_000_000...90_000_000_000, using: &random)
        let period = calendar.period(atMs: ms)
        var fresh = PeriodCalendar(granularity, in: zone)
        expectEqual(fresh.period(atMs: ms), period, "seed \(seed): \(ms)")
        let localMs = ms + Int64(zone.offsetSeconds(atMs: ms)) * 1000
        expectEqual(
          Period(granularity, containing: Timestamp.utcDay(ms: localMs)), period,
          "seed \(seed): \(ms)")
        periods.append(period)
      }
      expectEqual(periods.sorted().map(\.description), periods.map(\.description).sorted())
    }
  }
}
