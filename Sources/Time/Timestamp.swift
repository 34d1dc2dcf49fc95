// Instants as epoch milliseconds, read from and written as RFC 3339.
import Glibc

/// Instants in milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
package enum Timestamp {
  /// The instants that RFC 3339 can write: years 0001 to 9999.
  package static let range: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

  /// The system's clock, in epoch milliseconds.
  package static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// `2026-01-02T03:04:05.678Z`. The instant must lie within `range`.
  package static func text(_ epochMs: Int64) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(24)
    append(epochMs, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends `2026-01-02T03:04:05.678Z`. The instant must lie within `range`.
  package static func append(_ epochMs: Int64, to bytes: inout [UInt8]) {
    precondition(range.contains(epochMs), "an instant outside the years 0001 to 9999")
    let day = floorDivide(epochMs, by: 86_400_000)
    let time = Int(epochMs - day * 86_400_000)
    CivilDate(daysSince1970: Int(day)).append(to: &bytes)
    bytes.append(UInt8(ascii: "T"))
    appendDigits(time / 3_600_000, 2, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    appendDigits(time / 60_000 % 60, 2, to: &bytes)
    bytes.append(UInt8(ascii: ":"))
    appendDigits(time / 1000 % 60, 2, to: &bytes)
    bytes.append(UInt8(ascii: "."))
    appendDigits(time % 1000, 3, to: &bytes)
    bytes.append(UInt8(ascii: "Z"))
  }

  /// Reads RFC 3339 with up to three digits of a second's fraction; nil for anything else, a leap second
  /// or an instant outside `range` included.
  package static func parse(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard bytes.count >= 20, bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] | 0x20 == 0x74,
      bytes[13] == 0x3A, bytes[16] == 0x3A,
      let year = digits(bytes, 0, 4), let month = digits(bytes, 5, 2),
      let day = digits(bytes, 8, 2), let hour = digits(bytes, 11, 2),
      let minute = digits(bytes, 14, 2), let second = digits(bytes, 17, 2),
      let date = CivilDate(year: year, month: month, day: day),
      hour < 24, minute < 60, second < 60
    else { return nil }
    var place = 19
    var fractionMs = 0
    if bytes[place] == 0x2E {
      var scale = 100
      place += 1
      let first = place
      while place < bytes.count, let digit = digits(bytes, place, 1) {
        if scale == 0 { return nil }
        fractionMs += digit * scale
        scale /= 10
        place += 1
      }
      if place == first { return nil }
    }
    guard let offsetMinutes = zoneOffset(bytes, at: place) else { return nil }
    let seconds = date.daysSince1970 * 86400 + hour * 3600 + (minute - offsetMinutes) * 60 + second
    let epochMs = Int64(seconds) * 1000 + Int64(fractionMs)
    return range.contains(epochMs) ? epochMs : nil
  }

  /// Reads RFC 3339, as the other form does.
  package static func parse(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { parse(UnsafeRawBufferPointer($0)) }
  }

  private static func zoneOffset(_ bytes: UnsafeRawBufferPointer, at place: Int) -> Int? {
    guard place < bytes.count else { return nil }
    if bytes[place] | 0x20 == 0x7A { return place + 1 == bytes.count ? 0 : nil }
    guard bytes[place] == 0x2B || bytes[place] == 0x2D, place + 6 == bytes.count,
      bytes[place + 3] == 0x3A, let hours = digits(bytes, place + 1, 2),
      let minutes = digits(bytes, place + 4, 2), hours < 24, minutes < 60
    else { return nil }
    return (hours * 60 + minutes) * (bytes[place] == 0x2D ? -1 : 1)
  }

  static func digits(_ bytes: UnsafeRawBufferPointer, _ from: Int, _ count: Int) -> Int? {
    guard from + count <= bytes.count else { return nil }
    var value = 0
    for index in from..<from + count {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      value = value * 10 + Int(bytes[index] - 0x30)
    }
    return value
  }

  static func appendDigits(_ value: Int, _ count: Int, to bytes: inout [UInt8]) {
    var divisor = 1
    for _ in 1..<count { divisor *= 10 }
    while divisor > 0 {
      bytes.append(UInt8(0x30 + value / divisor % 10))
      divisor /= 10
    }
  }

  /// The quotient rounded towards negative infinity, so that instants before 1970 fall on their own day.
  package static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
  }
}
