// Currency: a known ISO 4217 alphabetic code and its minor digits.
import Base

/// A currency in the table (see `CurrencyTable`): three capital letters and a number of minor digits. Values
/// sort in the order of their codes, byte by byte.
package struct Currency:
  Hashable, Comparable, Sendable, BitwiseCopyable, CustomStringConvertible
{
  /// Index in the sorted table. It changes when the table grows, so the code is what gets stored.
  package let ordinal: UInt8

  package init(ordinal: UInt8) { self.ordinal = ordinal }

  /// Parses a code from UTF-8 text: ASCII white space around it is ignored, either case is accepted.
  /// - Returns: nil if the text is not a code in the table.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Currency? {
    var start = 0
    var end = text.count
    while start < end, isWhiteSpace(text[start]) { start += 1 }
    while end > start, isWhiteSpace(text[end - 1]) { end -= 1 }
    guard end - start == 3 else { return nil }
    var index = 0
    for place in start..<end {
      guard let letter = letterIndex(text[place]) else { return nil }
      index = index * 26 + letter
    }
    let ordinal = CurrencyTable.shared.ordinals[index]
    return ordinal == CurrencyTable.noOrdinal ? nil : Currency(ordinal: ordinal)
  }

  /// Parses a code from a string; the same rules as for bytes.
  package static func parse(_ text: String) -> Currency? {
    var text = text
    return text.withUTF8 { parse(UnsafeRawBufferPointer($0)) }
  }

  /// Every currency in the table, in the order of the codes.
  package static var all: [Currency] {
    (0..<CurrencyTable.shared.minorDigits.count).map { Currency(ordinal: UInt8($0)) }
  }

  /// Digits after the decimal point according to ISO 4217 (0 to 4); 0 for "N.A.".
  package var minorDigits: Int { Int(CurrencyTable.shared.minorDigits[Int(ordinal)]) }

  /// The three capital letters.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the three capital letters.
  package func append(to output: inout [UInt8]) {
    let start = Int(ordinal) * 3
    output.append(contentsOf: CurrencyTable.shared.letters[start..<start + 3])
  }

  package static func < (left: Currency, right: Currency) -> Bool { left.ordinal < right.ordinal }

  private static func isWhiteSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }
}
