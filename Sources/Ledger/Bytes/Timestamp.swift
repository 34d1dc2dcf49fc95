// Event times: epoch milliseconds to and from their one written form.
import Glibc

/// Times as events carry them: `2026-01-02T03:04:05.678Z`, always 24 characters.
package enum Timestamp {
  /// How many characters a written time has.
  package static let characterCount = 24
  /// The last time that four digits of a year can express, 9999-12-31T23:59:59.999Z.
  package static let maxMs: Int64 = 253_402_300_799_999

  /// The system's clock, in milliseconds since 1970.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The written form of a time between 0 and `maxMs`; what lies outside is clamped.
  package static func string(_ timeMs: Int64) -> String {
    let buffer = ByteBuffer(capacity: 64)
    append(timeMs, to: buffer)
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  static func append(_ timeMs: Int64, to buffer: ByteBuffer) {
    let clamped = min(max(timeMs, 0), maxMs)
    let (days, msOfDay) = Int(clamped).quotientAndRemainder(dividingBy: 86_400_000)
    let (year, month, day) = civil(daysSince1970: days)
    buffer.reserve(characterCount)
    func put(_ value: Int, _ offset: Int, digits: Int) {
      var rest = value
      for place in stride(from: digits - 1, through: 0, by: -1) {
        buffer.base.storeBytes(
          of: 0x30 + UInt8(rest % 10), toByteOffset: buffer.count + offset + place, as: UInt8.self)
        rest /= 10
      }
    }
    func put(_ character: UInt8, _ offset: Int) {
      buffer.base.storeBytes(of: character, toByteOffset: buffer.count + offset, as: UInt8.self)
    }
    put(year, 0, digits: 4)
    put(0x2D, 4)
    put(month, 5, digits: 2)
    put(0x2D, 7)
    put(day, 8, digits: 2)
    put(0x54, 10)
    put(msOfDay / 3_600_000, 11, digits: 2)
    put(0x3A, 13)
    put(msOfDay / 60_000 % 60, 14, digits: 2)
    put(0x3A, 16)
    put(msOfDay / 1000 % 60, 17, digits: 2)
    put(0x2E, 19)
    put(msOfDay % 1000, 20, digits: 3)
    put(0x5A, 23)
    buffer.count += characterCount
  }

  /// Reads the written form; nil for anything else, dates that do not exist included.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard text.count == characterCount, text[4] == 0x2D, text[7] == 0x2D, text[10] == 0x54,
      text[13] == 0x3A, text[16] == 0x3A, text[19] == 0x2E, text[23] == 0x5A
    else { return nil }
    func number(_ offset: Int, _ digits: Int) -> Int {
      var value = 0
      for index in offset..<offset + digits {
        let digit = text[index] &- 0x30
        // Not a digit: a value that every range below refuses.
        if digit > 9 { return Int(Int32.min) }
        value = value * 10 + Int(digit)
      }
      return value
    }
    let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2))
    let (hour, minute, second) = (number(11, 2), number(14, 2), number(17, 2))
    let milliseconds = number(20, 3)
    guard year >= 1970, 1...12 ~= month, day >= 1, day <= dayCount(year: year, month: month),
      0..<24 ~= hour, 0..<60 ~= minute, 0..<60 ~= second, milliseconds >= 0
    else { return nil }
    let days = daysSince1970(year: year, month: month, day: day)
    return Int64(
      days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1000 + milliseconds)
  }

  private static func dayCount(year: Int, month: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  // Years are counted from March, so that the leap day is a year's last.
  private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let marchYear = month > 2 ? year : year - 1
    let monthFromMarch = (month + 9) % 12
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
    return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
  }

  private static func civil(daysSince1970: Int) -> (year: Int, month: Int, day: Int) {
    let days = daysSince1970 + 719_468
    let (era, dayOfEra) = days.quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
  }
}
