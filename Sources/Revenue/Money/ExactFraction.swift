// ExactFraction: a rate as a fraction of integers, multiplied with an amount and rounded once.

/// A positive fraction that converts an amount from one currency to another.
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
