// Allocates a payment to groups by their shares, and the rate of a payment (settlement rule S13).

/// Arithmetic of payments.
package enum PaymentAllocation {
  /// The parts of a payment, in micros, in the order of the weights: each its share rounded down to a minor unit, and
  /// the minor units that remain to the largest remainders, of equal ones to the first.
  /// - Parameter total: the sum of the weights; not 0.
  /// - Returns: nil if the payment is not a whole number of minor units, or a product exceeds 128 bits.
  package static func parts(
    of payment: Int128, _ currency: Currency, by weights: [Int128], total: Int128
  ) -> [Int128]? {
    var unit: Int128 = 1
    for _ in currency.minorDigits..<PriceForms.microsDecimals { unit *= 10 }
    guard payment % unit == 0 else { return nil }
    let units = payment / unit
    var parts: [(units: Int128, remainder: Int128)] = []
    for weight in weights {
      let (product, overflow) = units.multipliedReportingOverflow(by: weight)
      if overflow { return nil }
      parts.append(floorDivided(product, by: total))
    }
    let rest = units - parts.reduce(0) { $0 + $1.units }
    precondition(rest >= 0 && rest <= Int128(parts.count), "remainders do not make up the payment")
    // Remainders have one denominator.
    let order = parts.indices.sorted {
      parts[$0].remainder != parts[$1].remainder
        ? parts[$0].remainder > parts[$1].remainder : $0 < $1
    }
    for index in order.prefix(Int(rest)) { parts[index].units += 1 }
    return parts.map { $0.units * unit }
  }

  /// The quotient rounded towards −∞, and the remainder as a part of the divisor's magnitude.
  private static func floorDivided(
    _ product: Int128, by divisor: Int128
  ) -> (units: Int128, remainder: Int128) {
    let (product, divisor) = divisor < 0 ? (-product, -divisor) : (product, divisor)
    let (quotient, remainder) = product.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  /// Proceeds divided by what was owed, half to even to 9 decimals.
  /// - Parameters: both in micros; `owed` is not 0.
  package static func effectiveRate(proceeds: Int64, owed: Int64) -> String {
    let isNegative = (proceeds < 0) != (owed < 0)
    let (magnitude, divisor) = (UInt128(proceeds.magnitude), UInt128(owed.magnitude))
    var (quotient, remainder) = (magnitude * 1_000_000_000).quotientAndRemainder(
      dividingBy: divisor)
    let rest = divisor - remainder
    if remainder > rest || (remainder == rest && quotient % 2 == 1) { quotient += 1 }
    let digits = String(quotient)
    let padded = String(repeating: "0", count: max(0, 10 - digits.count)) + digits
    return (isNegative && quotient > 0 ? "-" : "") + "\(padded.dropLast(9)).\(padded.suffix(9))"
  }
}
