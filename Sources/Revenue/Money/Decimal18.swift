// Decimal18: an exact positive decimal, used for exchange rates.
import Base

/// An exact decimal above 0: `mantissa` × 10^-`scale`, with at most 18 significant digits and at most 12
/// decimals. Zeros at either end of the text do not count towards these limits, so equal numbers are equal
/// values.
package struct Decimal18: Hashable, Sendable, CustomStringConvertible {
  /// Limits on the text and on the parts.
  package static let significantDigitsMax = 18
  package static let decimalsMax = 12

  /// 1 to 10¹⁸ - 1.
  package let mantissa: UInt64
  /// 0 to 12; above 0 only if the mantissa does not end with 0.
  package let scale: Int

  /// Creates a value from its two parts, as stored in a database. Trailing zeros are removed.
  /// - Returns: nil if the parts are outside the ranges above.
  package init?(mantissa: UInt64, scale: Int) {
    guard mantissa > 0, (0...Self.decimalsMax).contains(scale) else { return nil }
    var mantissa = mantissa
    var scale = scale
    while scale > 0, mantissa % 10 == 0 {
      mantissa /= 10
      scale -= 1
    }
    guard mantissa < 1_000_000_000_000_000_000 else { return nil }
    self.mantissa = mantissa
    self.scale = scale
  }

  /// Parses `digits` or `digits.digits`: no sign, no exponent, no white space.
  package init(parsing text: UnsafeRawBufferPointer) throws(DecimalError) {
    let point = text.firstIndex(of: UInt8(ascii: ".")) ?? text.count
    guard point > 0, point != text.count - 1 else { throw .notDecimal }
    for place in text.indices where place != point {
      guard digitValue(text[place]) != nil else { throw .notDecimal }
    }
    let zero = UInt8(ascii: "0")
    var start = 0
    while start < point, text[start] == zero { start += 1 }
    var end = text.count
    while end > point + 1, text[end - 1] == zero { end -= 1 }

    let decimals = max(0, end - point - 1)
    guard decimals <= Self.decimalsMax else { throw .tooManyDecimals }
    var digitCount = 0
    var mantissa: UInt64 = 0
    for place in start..<end where place != point {
      let digit = text[place] - zero
      if digitCount > 0 || digit > 0 { digitCount += 1 }
      guard digitCount <= Self.significantDigitsMax else { throw .tooManyDigits }
      mantissa = mantissa * 10 + UInt64(digit)
    }
    guard mantissa > 0 else { throw .zero }
    self.mantissa = mantissa
    self.scale = decimals
  }

  /// Parses a decimal from a string; the same rules as for bytes.
  package init(parsing text: String) throws(DecimalError) {
    var text = text
    let result = text.withUTF8 { bytes in
      Result { () throws(DecimalError) in
        try Decimal18(parsing: UnsafeRawBufferPointer(bytes))
      }
    }
    self = try result.get()
  }

  /// The number in its shortest form, such as `1.095`.
  package var description: String {
    var digits: [UInt8] = []
    appendDigits(mantissa, minimumCount: scale + 1, to: &digits)
    if scale > 0 { digits.insert(UInt8(ascii: "."), at: digits.count - scale) }
    return String(decoding: digits, as: UTF8.self)
  }
}

/// Why a text is not a `Decimal18`.
package enum DecimalError: Error, Equatable, CustomStringConvertible {
  case notDecimal
  case zero
  case tooManyDigits
  case tooManyDecimals

  package var description: String {
    switch self {
    case .notDecimal: "not a decimal number such as 1.0854 (digits, and a point between digits)"
    case .zero: "not above 0"
    case .tooManyDigits: "more than \(Decimal18.significantDigitsMax) significant digits"
    case .tooManyDecimals: "more than \(Decimal18.decimalsMax) decimals"
    }
  }
}
