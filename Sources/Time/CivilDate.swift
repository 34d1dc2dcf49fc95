// Days of the proleptic Gregorian calendar.

/// A day of the calendar, years 0001 to 9999.
package struct CivilDate: Equatable, Hashable, Comparable, Sendable {
  package let year: Int
  /// 1 to 12.
  package let month: Int
  /// 1 to 31.
  package let day: Int

  /// Nil where the calendar has no such day.
  package init?(year: Int, month: Int, day: Int) {
    guard (1...9999).contains(year), (1...12).contains(month), day >= 1,
      day <= Self.dayCount(year: year, month: month)
    else { return nil }
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// The day that lies so many days after 1970-01-01.
  package init(daysSince1970: Int) {
    // Years are counted from 1 March, so that a leap day is a year's last; 400 years have 146,097 days.
    let shifted = daysSince1970 + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// Reads `YYYY-MM-DD`; nil for anything else.
  package init?(_ text: String) {
    var text = text
    let parsed: CivilDate? = text.withUTF8 { buffer in
      let bytes = UnsafeRawBufferPointer(buffer)
      guard bytes.count == 10, bytes[4] == 0x2D, bytes[7] == 0x2D,
        let year = Timestamp.digits(bytes, 0, 4), let month = Timestamp.digits(bytes, 5, 2),
        let day = Timestamp.digits(bytes, 8, 2)
      else { return nil }
      return CivilDate(year: year, month: month, day: day)
    }
    guard let parsed else { return nil }
    self = parsed
  }

  /// Days since 1970-01-01, negative before it.
  package var daysSince1970: Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  package static func isLeap(_ year: Int) -> Bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
  }

  private static func dayCount(year: Int, month: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  package static func < (left: CivilDate, right: CivilDate) -> Bool {
    (left.year, left.month, left.day) < (right.year, right.month, right.day)
  }

  /// Appends `YYYY-MM-DD`.
  package func append(to bytes: inout [UInt8]) {
    Timestamp.appendDigits(year, 4, to: &bytes)
    bytes.append(UInt8(ascii: "-"))
    Timestamp.appendDigits(month, 2, to: &bytes)
    bytes.append(UInt8(ascii: "-"))
    Timestamp.appendDigits(day, 2, to: &bytes)
  }

  /// `YYYY-MM-DD`.
  package var text: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
