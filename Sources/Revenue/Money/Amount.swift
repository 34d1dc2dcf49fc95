// Writes amounts as exact text with the currency's minor digits, or more if needed; and multiplies by rates.

/// Writes amounts in micros (10⁻⁶ of the currency's unit) as revenue rule R9 requires: `.` as the decimal
/// point, `-` as the sign, no thousands separator, and as many decimals as the currency has minor digits, or
/// more if the amount needs them. Without a currency, it writes only the decimals that the amount needs.
package enum Amount {
  private static let microsPerUnit: UInt64 = 1_000_000

  /// Appends a 64-bit amount.
  package static func append(micros: Int64, currency: Currency?, to output: inout [UInt8]) {
    if micros < 0 { output.append(UInt8(ascii: "-")) }
    let magnitude = micros.magnitude
    appendDigits(magnitude / microsPerUnit, to: &output)
    appendFraction(magnitude % microsPerUnit, currency, to: &output)
  }

  /// Appends a 128-bit sum.
  package static func append(micros: Int128, currency: Currency?, to output: inout [UInt8]) {
    if micros < 0 { output.append(UInt8(ascii: "-")) }
    let (whole, fraction) = micros.magnitude.quotientAndRemainder(
      dividingBy: UInt128(microsPerUnit))
    // 2¹²⁷ / 10⁶ is below 10³³, so two groups of digits hold every integer part.
    let (high, low) = whole.quotientAndRemainder(dividingBy: 1_000_000_000_000_000_000)
    if high > 0 {
      appendDigits(UInt64(high), to: &output)
      appendDigits(UInt64(low), minimumCount: 18, to: &output)
    } else {
      appendDigits(UInt64(low), to: &output)
    }
    appendFraction(UInt64(fraction), currency, to: &output)
  }

  /// A 64-bit amount as text.
  package static func text(micros: Int64, currency: Currency?) -> String {
    var bytes: [UInt8] = []
    append(micros: micros, currency: currency, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A 128-bit sum as text.
  package static func text(micros: Int128, currency: Currency?) -> String {
    var bytes: [UInt8] = []
    append(micros: micros, currency: currency, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Sums by currency: `9.99 EUR 4.00 USD`, by code.
  package static func text(_ sums: [Currency: Int128]) -> String {
    sums.sorted { $0.key < $1.key }
      .map { "\(text(micros: $0.value, currency: $0.key)) \($0.key)" }.joined(separator: " ")
  }

  private static func appendFraction(
    _ micros: UInt64, _ currency: Currency?, to output: inout [UInt8]
  ) {
    let minorDigits = currency?.minorDigits ?? 0
    var digits = micros
    var count = PriceForms.microsDecimals
    while count > minorDigits, digits % 10 == 0 {
      digits /= 10
      count -= 1
    }
    guard count > 0 else { return }
    output.append(UInt8(ascii: "."))
    appendDigits(digits, minimumCount: count, to: &output)
  }
}

/// Appends a decimal number, padded with zeros to `minimumCount` digits (at most 20).
func appendDigits(_ value: UInt64, minimumCount: Int = 1, to output: inout [UInt8]) {
  var rest = value
  var start = 20
  withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
    repeat {
      start -= 1
      digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0 || 20 - start < minimumCount
    output.append(contentsOf: UnsafeRawBufferPointer(rebasing: digits[start...]))
  }
}

// MARK: - Exact fractions

/// A positive fraction that converts an amount from one currency to another: a rate as a fraction of integers.
struct ExactFraction: Hashable, Sendable {
  /// Below 10³⁰, like the denominator: a mantissa below 10¹⁸ times at most 10¹².
  let numerator: UInt128
  let denominator: UInt128

  /// From the base to the quote: one unit of the base is `rate` of the quote.
  init(direct rate: Decimal18) {
    self.init(numerator: UInt128(rate.mantissa), denominator: Self.powerOfTen(rate.scale))
  }

  /// From the quote of `rate` to its base.
  init(inverse rate: Decimal18) {
    self.init(numerator: Self.powerOfTen(rate.scale), denominator: UInt128(rate.mantissa))
  }

  /// From one quote of a common base to another: (base→target) ÷ (base→own).
  init(cross target: Decimal18, over own: Decimal18) {
    self.init(
      numerator: UInt128(target.mantissa) * Self.powerOfTen(own.scale),
      denominator: UInt128(own.mantissa) * Self.powerOfTen(target.scale))
  }

  private init(numerator: UInt128, denominator: UInt128) {
    self.numerator = numerator
    self.denominator = denominator
  }

  /// The amount times the fraction, rounded once, half to even.
  /// - Returns: nil if the result needs more than 64 bits.
  func applied(to micros: Int64) -> Int64? {
    let product = UInt128(micros.magnitude).multipliedFullWidth(by: numerator)
    // The quotient would need 128 bits or more: `dividingFullWidth` would trap.
    guard product.high < denominator else { return nil }
    var (quotient, remainder) = denominator.dividingFullWidth(product)
    guard quotient <= UInt128(UInt64.max) else { return nil }
    let complement = denominator - remainder
    if remainder > complement || (remainder == complement && quotient % 2 == 1) { quotient += 1 }
    let magnitude = Int128(quotient)
    return Int64(exactly: micros < 0 ? -magnitude : magnitude)
  }

  private static func powerOfTen(_ exponent: Int) -> UInt128 {
    var power: UInt128 = 1
    for _ in 0..<exponent { power *= 10 }
    return power
  }
}
