// Apple's fiscal calendar: by its months Apple reports and pays (settlement rule S7).
import Base

/// A month of Apple's fiscal calendar. A fiscal year ends on the last Saturday of September and has 52 or 53 weeks.
package struct FiscalMonth: Equatable, Sendable {
  /// The years whose calendar is known to hold.
  package static let years = 2007...2099
  private static let weekCounts = [5, 4, 4, 5, 4, 4, 5, 4, 4, 5, 4, 4]
  /// The month that has a fifth week in a year of 53 weeks: P03.
  private static let longMonth = 3
  /// Days from a month's end to its expected payment, and to the latest.
  private static let (paymentDays, latestPaymentDays) = (33, 45)

  package let year: Int
  /// From 1.
  package let month: Int
  /// Days since 1970-01-01.
  package let firstDay: Int
  package let weekCount: Int

  /// Months since year 0.
  package var ordinal: Int { year * 12 + month - 1 }
  package var lastDay: Int { firstDay + 7 * weekCount - 1 }
  package var expectedPaymentDay: Int { lastDay + Self.paymentDays }
  package var latestPaymentDay: Int { lastDay + Self.latestPaymentDays }
  /// The calendar month by which Apple names it, in months since year 0: P01 is October of the year before.
  package var namesakeOrdinal: Int { year * 12 + month - 4 }

  /// The months of a fiscal year.
  package static func months(ofYear year: Int) -> [FiscalMonth] {
    var firstDay = lastDay(ofYear: year - 1) + 1
    let isLong = lastDay(ofYear: year) - firstDay + 1 > 52 * 7
    return weekCounts.enumerated().map { index, usual in
      let weekCount = isLong && index + 1 == longMonth ? usual + 1 : usual
      defer { firstDay += 7 * weekCount }
      return FiscalMonth(year: year, month: index + 1, firstDay: firstDay, weekCount: weekCount)
    }
  }

  /// The fiscal year of a day, in days since 1970-01-01.
  package static func year(containing dayNumber: Int) -> Int {
    let year = CivilDate(dayNumber: dayNumber).year
    return dayNumber > lastDay(ofYear: year) ? year + 1 : year
  }

  /// The month that contains a day, in days since 1970-01-01.
  package init(containing dayNumber: Int) {
    let months = Self.months(ofYear: Self.year(containing: dayNumber))
    guard let month = months.last(where: { $0.firstDay <= dayNumber }) else {
      preconditionFailure("a fiscal year begins after a day that it contains")
    }
    self = month
  }

  /// The month that has just these days, in days since 1970-01-01; nil if none has, or its year is not in `years`.
  package init?(firstDay: Int, lastDay: Int) {
    guard Self.holds(firstDay) else { return nil }
    let month = FiscalMonth(containing: firstDay)
    guard month.firstDay == firstDay, month.lastDay == lastDay else { return nil }
    self = month
  }

  /// The month that Apple calls by a calendar month, in months since year 0; nil if its year is not in `years`.
  package init?(namesakeOrdinal: Int) {
    // Far from the limits: the year comes from a text.
    guard namesakeOrdinal.magnitude < 1_000_000 else { return nil }
    let ordinal = namesakeOrdinal + 3
    let year = floorDivide(ordinal, 12)
    guard Self.years.contains(year) else { return nil }
    self = Self.months(ofYear: year)[ordinal - year * 12]
  }

  /// Reads `FY2026-P01`; nil unless there is such a month in one of the `years`.
  package init?(parsing text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 10, text.hasPrefix("FY"), bytes[6...7].elementsEqual("-P".utf8),
      let year = Self.number(bytes[2...5]), let month = Self.number(bytes[8...9]),
      Self.years.contains(year), (1...12).contains(month)
    else { return nil }
    self = Self.months(ofYear: year)[month - 1]
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    var value = 0
    for byte in digits {
      guard let digit = digitValue(byte) else { return nil }
      value = value * 10 + Int(digit)
    }
    return value
  }

  /// `FY2026-P01`.
  package var name: String { Period(.fiscalMonth, ordinal: ordinal).description }

  private static func holds(_ day: Int) -> Bool {
    day > lastDay(ofYear: years.lowerBound - 1) && day <= lastDay(ofYear: years.upperBound)
  }

  private init(year: Int, month: Int, firstDay: Int, weekCount: Int) {
    (self.year, self.month, self.firstDay, self.weekCount) = (year, month, firstDay, weekCount)
  }

  /// The last Saturday of September. 1970-01-03 was a Saturday.
  private static func lastDay(ofYear year: Int) -> Int {
    let last = CivilDate.dayNumber(year: year, month: 9, day: 30)
    return last - ((last - 2) % 7 + 7) % 7
  }
}
