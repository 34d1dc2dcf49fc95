// ExactFraction: a rate as a fraction of integers, and its one rounded product with an amount.

/// A positive fraction that carries an amount from one currency into another.
struct ExactFraction: Hashable, Sendable {
  /// Below 10³⁰, as is the denominator: a mantissa below 10¹⁸ times at most 10¹².
  let numerator: UInt128
  let denominator: UInt128

  /// One unit of the base is `rate` of the quote: from the base into the quote.
  init(direct rate: Decimal18) {
    self.init(numerator: UInt128(rate.mantissa), denominator: Self.powerOfTen(rate.scale))
  }

  /// From the quote of `rate` into its base.
  init(inverse rate: Decimal18) {
    self.init(numerator: Self.powerOfTen(rate.scale), denominator: UInt128(rate.mantissa))
  }

  /// From one quote of a common base into another: (base→target) ÷ (base→own).
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
  /// - Returns: nil where the result needs more than 64 bits.
  func applied(to micros: Int64) -> Int64? {
    let product = UInt128(micros.magnitude).multipliedFullWidth(by: numerator)
    // A quotient of 128 bits or more: `dividingFullWidth` would trap.
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
