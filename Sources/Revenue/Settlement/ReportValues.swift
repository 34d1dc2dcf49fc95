// The values in the cells of Apple's reports: numbers, dates and codes (settlement rule S3).
import Base

/// Reads cells. Nil means that a cell has not the form of the value.
enum ReportValue {
  private static let digitsMax = 12
  private static let amountDecimals = 6
  private static let rateDecimals = 12

  /// White space around and inside cells; cells end before an LF.
  @inline(__always)
  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte >= 0x09 && byte <= 0x0D }

  /// The text without the white space around it.
  @inline(__always)
  static func trimmed(_ text: Text) -> Text {
    var (start, end) = (0, text.count)
    while start < end, isSpace(text[start]) { start &+= 1 }
    while end > start, isSpace(text[end &- 1]) { end &-= 1 }
    return Text(rebasing: text[start..<end])
  }

  // MARK: Numbers

  static func integer(_ text: Text) -> Int64? {
    guard let whole = WholePart(text) else { return nil }
    if whole.end < text.count {
      guard whole.end + 1 < text.count, text[whole.end] == UInt8(ascii: ".") else { return nil }
      for index in whole.end + 1..<text.count where text[index] != UInt8(ascii: "0") {
        return nil
      }
    }
    return whole.isNegative ? -whole.value : whole.value
  }

  /// An amount in micros. 12 digits before the point and 6 after it fit.
  static func micros(_ text: Text) -> Int64? {
    guard let whole = WholePart(text),
      let decimals = decimalCount(text, whole, max: amountDecimals)
    else { return nil }
    var value = whole.value
    for index in 0..<amountDecimals {
      value = value &* 10
      if index < decimals { value = value &+ Int64(text[whole.end &+ 1 &+ index] &- 0x30) }
    }
    return whole.isNegative ? -value : value
  }

  /// A rate as it stands, without a plus and commas.
  static func rate(_ text: Text) -> String? {
    guard let whole = WholePart(text), decimalCount(text, whole, max: rateDecimals) != nil
    else { return nil }
    let plain = text.filter { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "+") }
    return String(decoding: plain, as: UTF8.self)
  }

  /// The digits after the point; 0 where the text ends before one.
  @inline(__always)
  private static func decimalCount(_ text: Text, _ whole: WholePart, max: Int) -> Int? {
    if whole.end == text.count { return 0 }
    let count = text.count - whole.end - 1
    guard text[whole.end] == UInt8(ascii: "."), count >= 1, count <= max else { return nil }
    for index in whole.end &+ 1..<text.count where digitValue(text[index]) == nil { return nil }
    return count
  }

  /// A sign and the digits before the point, in groups of three or without groups.
  private struct WholePart {
    private(set) var value: Int64 = 0
    let isNegative: Bool
    /// Where it ends in the text.
    private(set) var end: Int

    @inline(__always)
    init?(_ text: Text) {
      guard let first = text.first else { return nil }
      isNegative = first == UInt8(ascii: "-")
      let start = isNegative || first == UInt8(ascii: "+") ? 1 : 0
      (end, value) = (start, 0)
      var digits = 0
      var groupStart = -1
      while end < text.count {
        let byte = text[end]
        if let digit = digitValue(byte) {
          digits &+= 1
          if digits > digitsMax { return nil }
          value = value &* 10 &+ Int64(digit)
        } else if byte == UInt8(ascii: ",") {
          let isGood =
            groupStart < 0
            ? end > start && end - start <= 3 && text[start] != UInt8(ascii: "0")
            : end - groupStart == 3
          guard isGood else { return nil }
          groupStart = end + 1
        } else {
          break
        }
        end &+= 1
      }
      guard digits > 0, groupStart < 0 || end - groupStart == 3 else { return nil }
    }
  }

  // MARK: Dates

  /// A day of the form `MM/DD/YYYY` that exists, in days since 1970-01-01.
  static func day(_ text: Text) -> Int32? {
    guard text.count == 10, text[2] == UInt8(ascii: "/"), text[5] == UInt8(ascii: "/"),
      let month = decimal(text, 0..<2), let day = decimal(text, 3..<5),
      let year = decimal(text, 6..<10),
      let date = CivilDate(year: year, month: month, day: day)
    else { return nil }
    return Int32(date.dayNumber)
  }

  @inline(__always)
  private static func decimal(_ text: Text, _ range: Range<Int>) -> Int? {
    var value = 0
    for index in range {
      guard let digit = digitValue(text[index]) else { return nil }
      value = value * 10 + Int(digit)
    }
    return value
  }
}

// MARK: - Codes

/// Turns the codes of countries and currencies into symbols, each once, and remembers which currencies are unknown.
final class CodeReader {
  let symbols: StringInterner
  /// Symbols by the code as a number in base 26; `unseen` until a code is met.
  private var countries = [Symbol](repeating: unseen, count: 26 * 26)
  private var currencies = [Symbol](repeating: unseen, count: 26 * 26 * 26)
  private var unknownCurrencies: [Symbol] = []

  private static let unseen: Symbol = -2

  init(_ symbols: StringInterner) { self.symbols = symbols }

  /// Two letters, as capital letters.
  @inline(__always)
  func country(_ text: Text) -> Symbol? {
    guard text.count == 2, let first = letterIndex(text[0]), let second = letterIndex(text[1])
    else { return nil }
    let index = first &* 26 &+ second
    if countries[index] == Self.unseen { countries[index] = symbol([first, second]) }
    return countries[index]
  }

  /// Three letters, as capital letters; also of a currency outside the table.
  @inline(__always)
  func currency(_ text: Text) -> Symbol? {
    guard text.count == 3, let first = letterIndex(text[0]), let second = letterIndex(text[1]),
      let third = letterIndex(text[2])
    else { return nil }
    let index = (first &* 26 &+ second) &* 26 &+ third
    if currencies[index] == Self.unseen {
      currencies[index] = symbol([first, second, third])
      if Currency.parse(text) == nil { unknownCurrencies.append(currencies[index]) }
    }
    return currencies[index]
  }

  /// The exceptions for codes outside the table of currencies that were met since the last call.
  @inline(__always)
  func unknownFindings() -> [AppleReport.Finding] {
    if unknownCurrencies.isEmpty { return [] }
    defer { unknownCurrencies = [] }
    return unknownCurrencies.map { .currencyUnknown($0) }
  }

  private func symbol(_ letters: [Int]) -> Symbol {
    withText(letters.map { 0x41 + UInt8($0) }) { symbols.symbol($0) }
  }

  /// An amount for a message, with the digits of its currency.
  func text(micros: Int128, _ currency: Symbol) -> String {
    Amount.text(micros: micros, currency: Currency.parse(symbols.text(currency)))
  }
}
