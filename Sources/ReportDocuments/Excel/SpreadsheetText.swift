// Texts and dates as an Excel file holds them: no character that XML forbids, no accidental escape, and not too long.
package import Base
package import Revenue

/// Makes texts that end with a 0, as C requires.
package struct SpreadsheetText {
  /// Excel's limit of characters in a cell.
  static let characterCountMax = 32_767
  private static let mark = " … (cut)"

  /// The last text, with a 0 at its end.
  package private(set) var bytes: [UInt8] = []
  /// How many texts were cut.
  private(set) var cutCount = 0

  package init() {}

  /// Sets the text. Characters that XML cannot hold, and text that Excel would read as an escape, are written as
  /// `_xHHHH_`, which Excel shows as the character.
  package mutating func set(_ text: UnsafeRawBufferPointer) {
    bytes.removeAll(keepingCapacity: true)
    if Self.isPlain(text) {
      bytes.append(contentsOf: text)
    } else {
      appendEscaped(text)
    }
    bytes.append(0)
  }

  /// Whether a text is short and needs no change: no control character, `_` or U+FFFE and U+FFFF.
  private static func isPlain(_ text: UnsafeRawBufferPointer) -> Bool {
    if text.count > characterCountMax / 8 { return false }
    for byte in text where byte < 0x20 || byte == 0xEF { return false }
    var rest = text[...]
    while let offset = rest.firstIndex(of: UInt8(ascii: "_")) {
      if isEscape(text, offset) { return false }
      rest = rest[(offset + 1)...]
    }
    return true
  }

  private mutating func appendEscaped(_ text: UnsafeRawBufferPointer) {
    // In units of UTF-16, which Excel counts.
    var count = 0
    var offset = 0
    let countMax = Self.characterCountMax - Self.mark.utf16.count
    // Where the text is cut if it turns out to be too long.
    var cut: Int?
    while offset < text.count {
      let length = Self.length(of: text[offset], at: offset, in: text)
      let start = bytes.count
      let units = append(text, offset, length)
      if count <= countMax, count + units > countMax { cut = start }
      count += units
      if count > Self.characterCountMax { break }
      offset += length
    }
    guard count > Self.characterCountMax, let cut else { return }
    bytes.removeLast(bytes.count - cut)
    bytes.append(contentsOf: Self.mark.utf8)
    cutCount += 1
  }

  /// Appends a character and returns how many units of UTF-16 it takes.
  private mutating func append(
    _ text: UnsafeRawBufferPointer, _ offset: Int, _ length: Int
  ) -> Int {
    let byte = text[offset]
    let isForbidden =
      length == 3 && byte == 0xEF && text[offset + 1] == 0xBF && text[offset + 2] >= 0xBE
    let isControl = byte < 0x20 && byte != 0x09 && byte != 0x0A
    if isForbidden || isControl || byte == UInt8(ascii: "_") && Self.isEscape(text, offset) {
      let value = isForbidden ? 0xFF00 | UInt32(text[offset + 2]) + 0x40 : UInt32(byte)
      let digits = String(value, radix: 16, uppercase: true)
      bytes.append(contentsOf: "_x".utf8)
      bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
      bytes.append(contentsOf: digits.utf8)
      bytes.append(UInt8(ascii: "_"))
      return 7
    }
    bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[offset..<offset + length]))
    return length == 4 ? 2 : 1
  }

  /// The number of bytes of the character that begins with a byte.
  private static func length(
    of byte: UInt8, at offset: Int, in text: UnsafeRawBufferPointer
  ) -> Int {
    let length =
      switch byte {
      case 0xF0...: 4
      case 0xE0...: 3
      case 0xC0...: 2
      default: 1
      }
    return min(length, text.count - offset)
  }

  /// Whether `_xHHHH_` begins at an offset: Excel would show another character for it.
  private static func isEscape(_ text: UnsafeRawBufferPointer, _ offset: Int) -> Bool {
    guard offset + 6 < text.count, text[offset + 1] | 0x20 == UInt8(ascii: "x"),
      text[offset + 6] == UInt8(ascii: "_")
    else { return false }
    return text[offset + 2..<offset + 6].allSatisfy {
      (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20)
    }
  }
}

// MARK: - Dates

/// Instants, days and months as the numbers that Excel shows as dates: days since 30 December 1899, as Excel counts
/// them from 1 March 1900 on.
package enum SpreadsheetDate {
  private static let msPerDay: Int64 = 86_400_000
  /// 30 December 1899, in days since 1970.
  private static let epochDay = -25_569
  /// From 1 March 1900, before which Excel's calendar is wrong by a day, to 31 December 9999.
  private static let days = 61...2_958_465

  /// An instant in a zone's local time; nil if Excel has no number for it.
  package static func number(atMs epochMs: Int64, in zone: TimeZoneTable) -> Double? {
    let (localMs, overflow) = epochMs.addingReportingOverflow(
      Int64(zone.offsetSeconds(atMs: epochMs)) * 1000)
    if overflow { return nil }
    let day = Int(floorDivide(localMs, msPerDay))
    guard days.contains(day - epochDay) else { return nil }
    return Double(localMs - Int64(epochDay) * msPerDay) / Double(msPerDay)
  }

  /// A day since 1970; nil if Excel has no number for it.
  static func number(ofDay day: Int) -> Double? {
    days.contains(day - epochDay) ? Double(day - epochDay) : nil
  }

  /// `2026-03-14`, or the first day of `2026-03`; nil for any other text.
  package static func number(of period: UnsafeRawBufferPointer, _ granularity: Period.Granularity)
    -> Double?
  {
    var text = String(decoding: period, as: UTF8.self)
    switch granularity {
    case .day: break
    case .month: text += "-01"
    default: return nil
    }
    return (try? CivilDate(parsing: text)).flatMap { number(ofDay: $0.dayNumber) }
  }
}
