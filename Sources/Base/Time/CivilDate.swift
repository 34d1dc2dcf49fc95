// Days of the proleptic Gregorian calendar and their day numbers.

/// A day of the proleptic Gregorian calendar.
package struct CivilDate: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let year: Int
  /// 1 to 12.
  package let month: Int
  /// 1 to 31.
  package let day: Int

  /// Years that can be written with four digits, without year 0, which no calendar in use has.
  package static let years = 1...9999

  /// A date from its parts.
  /// - Returns: nil if the day does not exist or its year is not 0001 to 9999.
  package init?(year: Int, month: Int, day: Int) {
    guard Self.years.contains(year), (1...12).contains(month),
      (1...Self.dayCount(year: year, month: month)).contains(day)
    else { return nil }
    self.year = year
    self.month = month
    self.day = day
  }

  /// The date of a day number.
  /// - Parameter dayNumber: days since 1970-01-01, at most 2⁵³ in either direction. Years with more than four digits
  ///   are allowed.
  package init(dayNumber: Int) {
    precondition(dayNumber.magnitude <= 1 << 53, "a day number out of range")
    // Years start in March here, so that the leap day is the last day of a year. 146,097 days are 400 years.
    let shifted = dayNumber + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// Reads `YYYY-MM-DD`, a day that exists in the years 0001 to 9999.
  package init(parsing text: UnsafeRawBufferPointer) throws(DateError) {
    guard text.count == 10, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      let year = decimalValue(text, 0..<4), let month = decimalValue(text, 5..<7),
      let day = decimalValue(text, 8..<10)
    else { throw .notDate }
    guard let date = CivilDate(year: year, month: month, day: day) else { throw .noSuchDay }
    self = date
  }

  /// Reads `YYYY-MM-DD` from a string, by the same rules as for bytes.
  package init(parsing text: String) throws(DateError) {
    var text = text
    let result = text.withUTF8 { bytes in
      Result { () throws(DateError) in try CivilDate(parsing: UnsafeRawBufferPointer(bytes)) }
    }
    self = try result.get()
  }

  /// Days since 1970-01-01.
  package var dayNumber: Int { Self.dayNumber(year: year, month: month, day: day) }

  /// Days since 1970-01-01 of a day of any year; `month` is 1 to 12.
  package static func dayNumber(year: Int, month: Int, day: Int) -> Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = floorDivide(shiftedYear, 400)
    let yearOfEra = shiftedYear - era * 400
    let marchMonth = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  /// The ISO 8601 week year and week, 1 to 53.
  package var isoWeek: (year: Int, week: Int) {
    Self.isoWeek(index: Self.weekIndex(dayNumber: dayNumber))
  }

  /// `2026-03-14`.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends `2026-03-14`; a year outside 0000 to 9999 gets a sign and at least six digits.
  package func append(to output: inout [UInt8]) {
    appendYear(year, to: &output)
    output.append(UInt8(ascii: "-"))
    appendTwoDigits(month, to: &output)
    output.append(UInt8(ascii: "-"))
    appendTwoDigits(day, to: &output)
  }

  package static func < (left: CivilDate, right: CivilDate) -> Bool {
    (left.year, left.month, left.day) < (right.year, right.month, right.day)
  }

  /// Monday-to-Sunday weeks, counted from the week of 1970-01-01.
  package static func weekIndex(dayNumber: Int) -> Int { floorDivide(dayNumber + 3, 7) }

  /// A week belongs to the year that contains its Thursday. 1970-01-01 was a Thursday.
  package static func isoWeek(index: Int) -> (year: Int, week: Int) {
    let thursdayDay = index * 7
    let year = CivilDate(dayNumber: thursdayDay).year
    let newYearDay = CivilDate(firstOf: year).dayNumber
    return (year, (thursdayDay - newYearDay) / 7 + 1)
  }

  /// Whether a year has a 29 February.
  package static func isLeap(year: Int) -> Bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
  }

  /// How many days a month has; `month` is 1 to 12.
  package static func dayCount(year: Int, month: Int) -> Int {
    switch month {
    case 2: isLeap(year: year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The first day of any year, or of one of its months.
  package init(firstOf year: Int, month: Int = 1) {
    self.year = year
    self.month = month
    day = 1
  }
}

/// Why a text is not a date.
package enum DateError: Error, Equatable, CustomStringConvertible {
  case notDate
  case noSuchDay

  package var description: String {
    switch self {
    case .notDate: "not a date of the form YYYY-MM-DD"
    case .noSuchDay: "no such day in the years 0001 to 9999"
    }
  }
}
