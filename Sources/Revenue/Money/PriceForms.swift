// Parses unit prices in the forms that clients send, exactly and without allocation.
import Base

/// The price forms of revenue rule R7. Each function parses one raw token and returns micros (10⁻⁶ of the
/// currency's unit), from 0 to 10¹⁷, or nil if it is unreadable. Zero is returned as 0; the rule decides
/// whether it is a price.
package enum PriceForms {
  static let wholeDigitsMax = 11
  static let microsDigitsMax = 17
  static let milliunitsDigitsMax = 14
  static let microsDecimals = 6

  /// Parses `price`: the content of a JSON string, or a JSON number's digits as written, of the form
  /// `^[0-9]{1,11}(\.[0-9]+)?$`. Rounds half to even at the sixth decimal, taking all further decimals into
  /// account.
  package static func micros(decimal text: UnsafeRawBufferPointer) -> Int64? {
    var place = 0
    var micros: Int64 = 0
    while place < text.count, let digit = digitValue(text[place]) {
      guard place < wholeDigitsMax else { return nil }
      micros = micros * 10 + Int64(digit)
      place += 1
    }
    guard place > 0 else { return nil }
    if place == text.count { return micros * 1_000_000 }
    guard text[place] == UInt8(ascii: "."), place + 1 < text.count else { return nil }
    let pointPlace = place
    var seventhDigit: UInt8 = 0
    var hasMore = false
    for place in (pointPlace + 1)..<text.count {
      guard let digit = digitValue(text[place]) else { return nil }
      switch place - pointPlace {
      case ...microsDecimals: micros = micros * 10 + Int64(digit)
      case microsDecimals + 1: seventhDigit = digit
      default: hasMore = hasMore || digit != 0
      }
    }
    let decimals = text.count - pointPlace - 1
    for _ in min(decimals, microsDecimals)..<microsDecimals { micros *= 10 }
    if seventhDigit > 5 || (seventhDigit == 5 && (hasMore || micros % 2 == 1)) { micros += 1 }
    return micros
  }

  /// Parses `price_micros`: a JSON integer token of at most 17 digits, without a sign.
  package static func micros(microsToken token: UnsafeRawBufferPointer) -> Int64? {
    integer(token, digitsMax: microsDigitsMax)
  }

  /// Parses `price_milliunits`: a JSON integer token of at most 14 digits, without a sign.
  package static func micros(milliunitsToken token: UnsafeRawBufferPointer) -> Int64? {
    integer(token, digitsMax: milliunitsDigitsMax).map { $0 * 1000 }
  }

  private static func integer(_ token: UnsafeRawBufferPointer, digitsMax: Int) -> Int64? {
    guard (1...digitsMax).contains(token.count) else { return nil }
    if token.count > 1, token[0] == UInt8(ascii: "0") { return nil }
    var value: Int64 = 0
    for byte in token {
      guard let digit = digitValue(byte) else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }
}
