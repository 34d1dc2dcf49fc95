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
    var place = 19
    let fractionMs = try parseFraction(text, &place, cutsDecimals)
    let offsetSeconds = try parseOffset(text, place)
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
    _ text: UnsafeRawBufferPointer, _ place: inout Int, _ cutsDecimals: Bool
  ) throws(TimestampError) -> Int64 {
    guard text[place] == UInt8(ascii: ".") else { return 0 }
    place += 1
    var fractionMs: Int64 = 0
    var unitMs: Int64 = 100
    while place < text.count, let digit = decimalValue(text, place..<place + 1) {
      guard unitMs > 0 || cutsDecimals else { throw .tooManyDecimals }
      fractionMs += Int64(digit) * unitMs
      unitMs /= 10
      place += 1
    }
    guard unitMs < 100 else { throw .notTimestamp }
    return fractionMs
  }

  private static func parseOffset(
    _ text: UnsafeRawBufferPointer, _ place: Int
  ) throws(TimestampError) -> Int {
    if text.count == place + 1, text[place] | 0x20 == UInt8(ascii: "z") { return 0 }
    guard text.count == place + 6, text[place + 3] == UInt8(ascii: ":"),
      let hours = decimalValue(text, place + 1..<place + 3),
      let minutes = decimalValue(text, place + 4..<place + 6)
    else { throw .notTimestamp }
    guard hours < 24, minutes < 60 else { throw .noSuchTime }
    switch text[place] {
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
