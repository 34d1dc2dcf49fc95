// Instants in epoch milliseconds, read and written as RFC 3339.
import Glibc

/// Instants are milliseconds since 1970-01-01T00:00:00Z without leap seconds.
package enum Timestamp {
  /// The instants that RFC 3339 can write: the years 0001 to 9999 in UTC. An instant outside this range in foreign
  /// data is not a valid date.
  package static let rangeMs: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

  /// The number of milliseconds in a day.
  package static let dayMs: Int64 = 86_400_000

  /// The system's clock, in epoch milliseconds.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Reads RFC 3339: `YYYY-MM-DDTHH:MM:SS`, at most three decimals, then `Z` or `±HH:MM`; `t` and `z` in either case.
  /// No leap second, no hour 24, nothing outside `rangeMs`.
  /// - Parameter cutsDecimals: accepts any number of decimals and drops those after the third.
  /// - Returns: epoch milliseconds.
  package static func parse(
    _ text: UnsafeRawBufferPointer, cutsDecimals: Bool = false
  ) throws(TimestampError) -> Int64 {
    guard text.count >= 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      text[10] | 0x20 == UInt8(ascii: "t"), text[13] == UInt8(ascii: ":"),
      text[16] == UInt8(ascii: ":"), let year = decimalValue(text, 0..<4),
      let month = decimalValue(text, 5..<7), let day = decimalValue(text, 8..<10),
      let hour = decimalValue(text, 11..<13), let minute = decimalValue(text, 14..<16),
      let second = decimalValue(text, 17..<19)
    else { throw .notTimestamp }
    var index = 19
    let fractionMs = try parseFraction(text, &index, cutsDecimals)
    let offsetSeconds = try parseOffset(text, index)
    guard let date = CivilDate(year: year, month: month, day: day) else { throw .noSuchDay }
    if second == 60 { throw .leapSecond }
    guard hour < 24, minute < 60, second < 60 else { throw .noSuchTime }
    let seconds = Int64(date.dayNumber) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    let ms = (seconds - Int64(offsetSeconds)) * 1000 + fractionMs
    guard rangeMs.contains(ms) else { throw .outsideYears }
    return ms
  }

  /// Reads RFC 3339 from a string, by the same rules as for bytes.
  package static func parse(
    _ text: String, cutsDecimals: Bool = false
  ) throws(TimestampError) -> Int64 {
    var text = text
    let result = text.withUTF8 { bytes in
      Result { () throws(TimestampError) in
        try parse(UnsafeRawBufferPointer(bytes), cutsDecimals: cutsDecimals)
      }
    }
    return try result.get()
  }

  /// Appends `2026-01-02T03:04:05.678Z`; a year outside 0000 to 9999 gets a sign and at least six digits.
  package static func append(ms: Int64, to output: inout [UInt8]) {
    let dayNumber = floorDivide(ms, dayMs)
    let timeMs = timeOfDayMs(ms)
    CivilDate(dayNumber: Int(dayNumber)).append(to: &output)
    output.append(UInt8(ascii: "T"))
    appendTime(seconds: timeMs / 1000, to: &output)
    output.append(UInt8(ascii: "."))
    output.append(UInt8(ascii: "0") + UInt8(timeMs % 1000 / 100))
    appendTwoDigits(timeMs % 100, to: &output)
    output.append(UInt8(ascii: "Z"))
  }

  /// Appends `2018-02-26 10:35:47 UTC`, the App Store's format, without the milliseconds.
  package static func appendAppStore(ms: Int64, to output: inout [UInt8]) {
    let dayNumber = floorDivide(ms, dayMs)
    CivilDate(dayNumber: Int(dayNumber)).append(to: &output)
    output.append(UInt8(ascii: " "))
    appendTime(seconds: timeOfDayMs(ms) / 1000, to: &output)
    output.append(contentsOf: " UTC".utf8)
  }

  /// `2026-01-02T03:04:05.678Z`.
  package static func text(ms: Int64) -> String {
    var bytes: [UInt8] = []
    append(ms: ms, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The instant's day in UTC, as days since 1970-01-01.
  package static func utcDay(ms: Int64) -> Int { Int(floorDivide(ms, dayMs)) }

  /// Computed by remainder, because the earliest instant's midnight does not fit into 64 bits.
  private static func timeOfDayMs(_ ms: Int64) -> Int {
    let remainder = ms % dayMs
    return Int(remainder < 0 ? remainder + dayMs : remainder)
  }

  private static func appendTime(seconds: Int, to output: inout [UInt8]) {
    appendTwoDigits(seconds / 3600, to: &output)
    output.append(UInt8(ascii: ":"))
    appendTwoDigits(seconds / 60 % 60, to: &output)
    output.append(UInt8(ascii: ":"))
    appendTwoDigits(seconds % 60, to: &output)
  }

  private static func parseFraction(
    _ text: UnsafeRawBufferPointer, _ index: inout Int, _ cutsDecimals: Bool
  ) throws(TimestampError) -> Int64 {
    guard text[index] == UInt8(ascii: ".") else { return 0 }
    index += 1
    var fractionMs: Int64 = 0
    var unitMs: Int64 = 100
    while index < text.count, let digit = decimalValue(text, index..<index + 1) {
      guard unitMs > 0 || cutsDecimals else { throw .tooManyDecimals }
      fractionMs += Int64(digit) * unitMs
      unitMs /= 10
      index += 1
    }
    guard unitMs < 100 else { throw .notTimestamp }
    return fractionMs
  }

  private static func parseOffset(
    _ text: UnsafeRawBufferPointer, _ index: Int
  ) throws(TimestampError) -> Int {
    if text.count == index + 1, text[index] | 0x20 == UInt8(ascii: "z") { return 0 }
    guard text.count == index + 6, text[index + 3] == UInt8(ascii: ":"),
      let hours = decimalValue(text, index + 1..<index + 3),
      let minutes = decimalValue(text, index + 4..<index + 6)
    else { throw .notTimestamp }
    guard hours < 24, minutes < 60 else { throw .noSuchTime }
    switch text[index] {
    case UInt8(ascii: "+"): return hours * 3600 + minutes * 60
    case UInt8(ascii: "-"): return -(hours * 3600 + minutes * 60)
    default: throw .notTimestamp
    }
  }
}

/// Why a text is not a timestamp.
package enum TimestampError: Error, Equatable, CustomStringConvertible {
  case notTimestamp
  case tooManyDecimals
  case noSuchDay
  case noSuchTime
  case leapSecond
  case outsideYears

  package var description: String {
    switch self {
    case .notTimestamp: "not a time of the form 2026-01-02T03:04:05.678Z (RFC 3339)"
    case .tooManyDecimals: "more than three decimals of a second"
    case .noSuchDay: "no such day in the years 0001 to 9999"
    case .noSuchTime: "no such time of day or offset"
    case .leapSecond: "a leap second, which timestamps do not support"
    case .outsideYears: "outside the years 0001 to 9999 in UTC"
    }
  }
}

// MARK: - Fixed form

extension Timestamp {
  /// The length of the fixed form of times in events, in bytes: `2026-01-02T03:04:05.678Z`.
  package static let fixedByteCount = 24
  /// The instants that the fixed form can express: the years 1970 to 9999.
  package static let fixedRangeMs: ClosedRange<Int64> = 0...253_402_300_799_999

  /// Reads the fixed form; nil for anything else, including days that do not exist.
  package static func parseFixed(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard text.count == fixedByteCount, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      text[10] == UInt8(ascii: "T"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
      text[19] == UInt8(ascii: "."), text[23] == UInt8(ascii: "Z"),
      let year = decimalValue(text, 0..<4), let month = decimalValue(text, 5..<7),
      let day = decimalValue(text, 8..<10), let hour = decimalValue(text, 11..<13),
      let minute = decimalValue(text, 14..<16), let second = decimalValue(text, 17..<19),
      let fractionMs = decimalValue(text, 20..<23), year >= 1970,
      let date = CivilDate(year: year, month: month, day: day),
      hour < 24, minute < 60, second < 60
    else { return nil }
    let seconds = date.dayNumber * 86_400 + hour * 3600 + minute * 60 + second
    return Int64(seconds * 1000 + fractionMs)
  }

  /// Writes the fixed form of an instant into the `fixedByteCount` bytes at `target`. An instant outside
  /// `fixedRangeMs` is clamped to it.
  package static func writeFixed(ms: Int64, to target: UnsafeMutableRawPointer) {
    let clamped = Int(min(max(ms, fixedRangeMs.lowerBound), fixedRangeMs.upperBound))
    let (dayNumber, msOfDay) = clamped.quotientAndRemainder(dividingBy: Int(dayMs))
    let date = CivilDate(dayNumber: dayNumber)
    func put(_ value: Int, _ offset: Int, digits: Int) {
      var rest = value
      for index in stride(from: offset + digits - 1, through: offset, by: -1) {
        put(UInt8(ascii: "0") + UInt8(rest % 10), index)
        rest /= 10
      }
    }
    func put(_ character: UInt8, _ offset: Int) {
      target.storeBytes(of: character, toByteOffset: offset, as: UInt8.self)
    }
    put(date.year, 0, digits: 4)
    put(UInt8(ascii: "-"), 4)
    put(date.month, 5, digits: 2)
    put(UInt8(ascii: "-"), 7)
    put(date.day, 8, digits: 2)
    put(UInt8(ascii: "T"), 10)
    put(msOfDay / 3_600_000, 11, digits: 2)
    put(UInt8(ascii: ":"), 13)
    put(msOfDay / 60_000 % 60, 14, digits: 2)
    put(UInt8(ascii: ":"), 16)
    put(msOfDay / 1000 % 60, 17, digits: 2)
    put(UInt8(ascii: "."), 19)
    put(msOfDay % 1000, 20, digits: 3)
    put(UInt8(ascii: "Z"), 23)
  }

  /// The fixed form of an instant. An instant outside `fixedRangeMs` is clamped to it.
  package static func fixedText(ms: Int64) -> String {
    String(unsafeUninitializedCapacity: fixedByteCount) { bytes in
      if let start = bytes.baseAddress { writeFixed(ms: ms, to: start) }
      return fixedByteCount
    }
  }
}

// MARK: - Digits, letters and division

/// The quotient rounded towards negative infinity; `divisor` is above 0. Not generic, because reports call it for
/// every instant.
@inlinable @inline(__always)
package func floorDivide(_ dividend: Int64, _ divisor: Int64) -> Int64 {
  let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? quotient - 1 : quotient
}

/// As above, for day and year numbers.
@inlinable @inline(__always)
package func floorDivide(_ dividend: Int, _ divisor: Int) -> Int {
  let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? quotient - 1 : quotient
}

/// Appends four digits. Outside 0000 to 9999, appends ISO 8601's expanded form: a sign and at least six digits.
package func appendYear(_ year: Int, to output: inout [UInt8]) {
  if (0...9999).contains(year) {
    appendTwoDigits(year / 100, to: &output)
    appendTwoDigits(year % 100, to: &output)
    return
  }
  output.append(year < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+"))
  let digits = String(year.magnitude)
  for _ in digits.utf8.count..<max(6, digits.utf8.count) { output.append(UInt8(ascii: "0")) }
  output.append(contentsOf: digits.utf8)
}

/// Appends a number from 0 to 99 with two digits.
package func appendTwoDigits(_ value: Int, to output: inout [UInt8]) {
  output.append(UInt8(ascii: "0") + UInt8(value / 10))
  output.append(UInt8(ascii: "0") + UInt8(value % 10))
}

/// The number written in ASCII digits; nil if a byte of the range is not a digit. The range must lie within the text.
@inline(__always)
func decimalValue(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
  var value = 0
  for index in range {
    let digit = text[index] &- UInt8(ascii: "0")
    guard digit < 10 else { return nil }
    value = value * 10 + Int(digit)
  }
  return value
}

/// The index of an ASCII letter in the alphabet, from 0, in either case; nil for other bytes.
@inlinable @inline(__always)
package func letterIndex(_ byte: UInt8) -> Int? {
  let capital = byte & 0xDF
  guard (0x41...0x5A).contains(capital) else { return nil }
  return Int(capital - 0x41)
}

/// The value of an ASCII digit; nil for other bytes.
@inline(__always)
package func digitValue(_ byte: UInt8) -> UInt8? {
  let value = byte &- UInt8(ascii: "0")
  return value <= 9 ? value : nil
}
