// The year, quarter, month, fiscal month, week or day of an instant in a time zone, and its label.
package import Base

/// A span of days that a report groups by. Periods of one granularity sort by time; within the years 0000 to
/// 9999, their labels sort the same way, byte by byte.
package struct Period: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The length of a period.
  package enum Granularity: String, CaseIterable, Sendable {
    case year, quarter, month
    case fiscalMonth = "fiscal-month"
    case week, day
  }

  package let granularity: Granularity
  /// Years, quarters, months or fiscal months since year 0, or weeks or days since 1970.
  package let ordinal: Int

  /// The period that contains a day.
  /// - Parameter dayNumber: days since 1970-01-01 in the zone's local time.
  package init(_ granularity: Granularity, containing dayNumber: Int) {
    self.granularity = granularity
    switch granularity {
    case .day: ordinal = dayNumber
    case .week: ordinal = CivilDate.weekIndex(dayNumber: dayNumber)
    case .year: ordinal = CivilDate(dayNumber: dayNumber).year
    case .quarter:
      let date = CivilDate(dayNumber: dayNumber)
      ordinal = date.year * 4 + (date.month - 1) / 3
    case .month:
      let date = CivilDate(dayNumber: dayNumber)
      ordinal = date.year * 12 + date.month - 1
    case .fiscalMonth: ordinal = FiscalMonth(containing: dayNumber).ordinal
    }
  }

  /// The period with this number: years, quarters, months or fiscal months since year 0, or weeks or days since 1970.
  package init(_ granularity: Granularity, ordinal: Int) {
    (self.granularity, self.ordinal) = (granularity, ordinal)
  }

  /// The first day of a month, in days since 1970-01-01.
  /// - Parameter ordinal: months since year 0.
  package static func firstDay(ofMonth ordinal: Int) -> Int {
    let year = floorDivide(ordinal, 12)
    return CivilDate.dayNumber(year: year, month: ordinal - year * 12 + 1, day: 1)
  }

  /// Appends `2026`, `2026-Q1`, `2026-03`, `FY2026-P06`, `2026-W09` or `2026-03-14`.
  package func append(to output: inout [UInt8]) {
    switch granularity {
    case .year: appendYear(ordinal, to: &output)
    case .quarter:
      let year = floorDivide(ordinal, 4)
      appendYear(year, to: &output)
      output.append(contentsOf: "-Q".utf8)
      output.append(UInt8(ascii: "1") + UInt8(ordinal - year * 4))
    case .month:
      let year = floorDivide(ordinal, 12)
      appendYear(year, to: &output)
      output.append(UInt8(ascii: "-"))
      appendTwoDigits(ordinal - year * 12 + 1, to: &output)
    case .fiscalMonth:
      let year = floorDivide(ordinal, 12)
      output.append(contentsOf: "FY".utf8)
      appendYear(year, to: &output)
      output.append(contentsOf: "-P".utf8)
      appendTwoDigits(ordinal - year * 12 + 1, to: &output)
    case .week:
      let (year, week) = CivilDate.isoWeek(index: ordinal)
      appendYear(year, to: &output)
      output.append(contentsOf: "-W".utf8)
      appendTwoDigits(week, to: &output)
    case .day: CivilDate(dayNumber: ordinal).append(to: &output)
    }
  }

  /// The label, such as `2026-03`.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  package static func < (left: Period, right: Period) -> Bool {
    (left.granularity.order, left.ordinal) < (right.granularity.order, right.ordinal)
  }
}

extension Period.Granularity {
  fileprivate var order: Int {
    switch self {
    case .year: 0
    case .quarter: 1
    case .month: 2
    case .fiscalMonth: 3
    case .week: 4
    case .day: 5
    }
  }
}

/// Finds the days and periods of instants in one zone; optimized for many instants close together.
package struct PeriodCalendar: Sendable {
  package let granularity: Period.Granularity
  package let zone: TimeZoneTable
  private var span: TimeZoneTable.Span
  private var lastDayNumber: Int
  private var lastPeriod: Period

  /// Creates a calendar that has not cached any instant yet.
  package init(_ granularity: Period.Granularity, in zone: TimeZoneTable) {
    self.granularity = granularity
    self.zone = zone
    span = zone.span(containing: 0)
    lastDayNumber = 0
    lastPeriod = Period(granularity, containing: 0)
  }

  /// Days since 1970-01-01 in the zone's local time, for any instant in epoch milliseconds.
  package mutating func dayNumber(atMs ms: Int64) -> Int {
    let seconds = floorDivide(ms, 1000)
    if seconds < span.fromSeconds || seconds > span.throughSeconds {
      span = zone.span(containing: seconds)
    }
    return Int(floorDivide(seconds + Int64(span.offsetSeconds), 86_400))
  }

  /// The period of an instant in epoch milliseconds.
  package mutating func period(atMs ms: Int64) -> Period {
    let dayNumber = dayNumber(atMs: ms)
    if dayNumber != lastDayNumber {
      lastDayNumber = dayNumber
      lastPeriod = Period(granularity, containing: dayNumber)
    }
    return lastPeriod
  }
}
