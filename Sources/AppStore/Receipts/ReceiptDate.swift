// The date formats of receipts and replies: RFC 3339, Xcode's, and `2015-11-18 04:34:41 Etc/GMT`.
private import Base

/// Parses dates in receipts and replies.
package enum ReceiptDate {
  /// Epoch milliseconds of an RFC 3339 time or of the legacy format with a space and `Etc/GMT` or
  /// `America/Los_Angeles`; nil if the text is neither. An RFC 3339 time may have any offset, with a colon or
  /// (as Xcode 12 writes it) without, and any fraction, which is truncated to milliseconds.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard (20...64).contains(text.count),
      let year = digits(text, 0, 4), text[4] == UInt8(ascii: "-"),
      let month = digits(text, 5, 2), text[7] == UInt8(ascii: "-"),
      let day = digits(text, 8, 2),
      let hour = digits(text, 11, 2), text[13] == UInt8(ascii: ":"),
      let minute = digits(text, 14, 2), text[16] == UInt8(ascii: ":"),
      let second = digits(text, 17, 2),
      (1...12).contains(month), (1...CivilDate.dayCount(year: year, month: month)).contains(day),
      hour < 24, minute < 60, second <= 60
    else { return nil }

    var offset = 19
    var milliseconds = 0
    if text[offset] == UInt8(ascii: ".") {
      offset += 1
      let fractionStart = offset
      var scale = 100
      while offset < text.count, let digit = digits(text, offset, 1) {
        milliseconds += digit * scale
        scale /= 10
        offset += 1
      }
      guard offset > fractionStart else { return nil }
    }
    let zoneSeconds: Int
    switch text[10] {
    case UInt8(ascii: "T"), UInt8(ascii: "t"):
      guard let zone = rfc3339Zone(text, offset) else { return nil }
      zoneSeconds = zone
    case UInt8(ascii: " "):
      let zone = text[offset...]
      if zone.elementsEqual(" Etc/GMT".utf8) {
        zoneSeconds = 0
      } else if zone.elementsEqual(" America/Los_Angeles".utf8),
        let pacific = PacificTime.offsetSeconds(
          year: year, month: month, day: day, secondOfDay: hour * 3_600 + minute * 60 + second)
      {
        zoneSeconds = pacific
      } else {
        return nil
      }
    default:
      return nil
    }
    // RFC 3339 allows the year 0000, which CivilDate does not.
    let dayNumber = CivilDate.dayNumber(year: year, month: month, day: day)
    let seconds = dayNumber * 86_400 + hour * 3_600 + minute * 60 + second - zoneSeconds
    return Int64(seconds * 1_000 + milliseconds)
  }

  private static func rfc3339Zone(_ text: UnsafeRawBufferPointer, _ offset: Int) -> Int? {
    let remaining = text.count - offset
    guard remaining > 0 else { return nil }
    switch text[offset] {
    case UInt8(ascii: "Z"), UInt8(ascii: "z"):
      return remaining == 1 ? 0 : nil
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      let hasColon = remaining == 6 && text[offset + 3] == UInt8(ascii: ":")
      guard hasColon || remaining == 5, let hours = digits(text, offset + 1, 2),
        let minutes = digits(text, offset + (hasColon ? 4 : 3), 2), hours < 24, minutes < 60
      else { return nil }
      let seconds = hours * 3_600 + minutes * 60
      return text[offset] == UInt8(ascii: "-") ? -seconds : seconds
    default:
      return nil
    }
  }

  private static func digits(
    _ text: UnsafeRawBufferPointer, _ start: Int, _ count: Int
  ) -> Int? {
    var value = 0
    for offset in start..<start + count {
      let digit = text[offset] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int(digit)
    }
    return value
  }
}
