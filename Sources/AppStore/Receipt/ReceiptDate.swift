// The two spellings of a time in receipts: RFC 3339, and `2015-11-18 04:34:41 Etc/GMT`.

/// Times as receipts write them.
package enum ReceiptDate {
  /// Epoch milliseconds of an RFC 3339 time (any offset, any fraction, cut to milliseconds) or of
  /// the legacy form with a space and `Etc/GMT`; nil where it is neither.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard (20...64).contains(text.count),
      let year = digits(text, 0, 4), text[4] == UInt8(ascii: "-"),
      let month = digits(text, 5, 2), text[7] == UInt8(ascii: "-"),
      let day = digits(text, 8, 2),
      let hour = digits(text, 11, 2), text[13] == UInt8(ascii: ":"),
      let minute = digits(text, 14, 2), text[16] == UInt8(ascii: ":"),
      let second = digits(text, 17, 2),
      (1...12).contains(month), (1...dayCount(year: year, month: month)).contains(day),
      hour < 24, minute < 60, second <= 60
    else { return nil }

    var offset = 19
    var milliseconds: Int64 = 0
    if text[offset] == UInt8(ascii: ".") {
      offset += 1
      let fractionStart = offset
      var scale: Int64 = 100
      while offset < text.count, let digit = digits(text, offset, 1) {
        milliseconds += digit * scale
        scale /= 10
        offset += 1
      }
      guard offset > fractionStart else { return nil }
    }
    let zoneSeconds: Int64
    switch text[10] {
    case UInt8(ascii: "T"), UInt8(ascii: "t"):
      guard let zone = rfc3339Zone(text, offset) else { return nil }
      zoneSeconds = zone
    case UInt8(ascii: " "):
      guard text[offset...].elementsEqual(" Etc/GMT".utf8) else { return nil }
      zoneSeconds = 0
    default:
      return nil
    }
    let days = daysSinceEpoch(year: year, month: month, day: day)
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - zoneSeconds
    return seconds * 1_000 + milliseconds
  }

  /// Days from 1970-01-01 to a date of the proleptic Gregorian calendar, year 0 or later.
  package static func daysSinceEpoch(year: Int64, month: Int64, day: Int64) -> Int64 {
    // Counted from March, the leap day is a year's last, and month lengths follow one line.
    let marchYear = month > 2 ? year : year - 1
    let marchMonth = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    let leapDays =
      floorDivide(marchYear, 4) - floorDivide(marchYear, 100)
      + floorDivide(marchYear, 400)
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    return marchYear * 365 + leapDays + dayOfYear - 719_468
  }

  private static func floorDivide(_ dividend: Int64, _ divisor: Int64) -> Int64 {
    let quotient = dividend / divisor
    return dividend % divisor < 0 ? quotient - 1 : quotient
  }

  private static func dayCount(year: Int64, month: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  private static func rfc3339Zone(_ text: UnsafeRawBufferPointer, _ offset: Int) -> Int64? {
    let remaining = text.count - offset
    guard remaining > 0 else { return nil }
    switch text[offset] {
    case UInt8(ascii: "Z"), UInt8(ascii: "z"):
      return remaining == 1 ? 0 : nil
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      guard remaining == 6, text[offset + 3] == UInt8(ascii: ":"),
        let hours = digits(text, offset + 1, 2), let minutes = digits(text, offset + 4, 2),
        hours < 24, minutes < 60
      else { return nil }
      let seconds = hours * 3_600 + minutes * 60
      return text[offset] == UInt8(ascii: "-") ? -seconds : seconds
    default:
      return nil
    }
  }

  private static func digits(
    _ text: UnsafeRawBufferPointer, _ start: Int, _ count: Int
  ) -> Int64? {
    var value: Int64 = 0
    for offset in start..<start + count {
      let digit = text[offset] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }
}
