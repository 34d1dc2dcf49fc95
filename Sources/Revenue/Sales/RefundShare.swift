// Rule R12: how much of a sale is refunded, and what a line of the journal makes of it.

/// The share of a sale that is refunded, as it was stated. What it is of a quantity depends on that.
public struct RefundShare: Equatable, BitwiseCopyable, Sendable {
  /// What a share is of a quantity.
  public enum Kind: BitwiseCopyable, Sendable { case none, units, percentage, all }

  /// In thousandths of a percent, from 0 to 100,000.
  package let thousandths: Int32

  package static let none = RefundShare(percentage: 0)
  package static let all = RefundShare(percentage: 100_000)

  /// - Parameter percentage: in thousandths of a percent, from 0 to 100,000.
  package init(percentage: Int32) {
    precondition((0...100_000).contains(percentage), "a percentage of \(percentage)")
    thousandths = percentage
  }

  /// R12: what the share is of a quantity. Within 0.0005 % of `k ÷ quantity` it is exactly that.
  package func fraction(
    ofQuantity quantity: Int64
  ) -> (kind: Kind, numerator: Int64, denominator: Int64) {
    if self == .none { return (.none, 0, 1) }
    if self == .all { return (.all, 1, 1) }
    let product = Int64(thousandths) * quantity
    var (units, rest) = product.quotientAndRemainder(dividingBy: 100_000)
    if rest > 50_000 || (rest == 50_000 && units % 2 == 1) { units += 1 }
    rest = abs(product - units * 100_000)
    if rest * 2 > quantity { return (.percentage, Int64(thousandths), 100_000) }
    return (.units, units, quantity)
  }

  /// Whether this share is greater than another one of the same quantity, compared exactly.
  package func isGreater(than other: RefundShare, ofQuantity quantity: Int64) -> Bool {
    if self == other { return false }
    let (one, two) = (fraction(ofQuantity: quantity), other.fraction(ofQuantity: quantity))
    return one.numerator * two.denominator > two.numerator * one.denominator
  }

  /// R12: the refunded part of an amount, rounded half to even to the currency's minor unit. All of it is the amount
  /// itself; no part exceeds it.
  package func total(ofMicros amount: Int64, quantity: Int64, minorDigits: Int) -> Int64 {
    let fraction = fraction(ofQuantity: quantity)
    if fraction.kind == .none { return 0 }
    if fraction.kind == .all { return amount }
    var unit: Int128 = 1
    for _ in minorDigits..<PriceForms.microsDecimals { unit *= 10 }
    let divisor = Int128(fraction.denominator) * unit
    var (units, rest) = (Int128(amount) * Int128(fraction.numerator))
      .quotientAndRemainder(dividingBy: divisor)
    if rest * 2 > divisor || (rest * 2 == divisor && units % 2 == 1) { units += 1 }
    return Int64(min(units * unit, Int128(amount)))
  }
}

/// Goes through the Returns and Reversals of a sale in order, and computes what each changes (rules R8 and R12).
package struct RefundWalk {
  private let sale: Sale
  private let amount: Int64?
  private let minorDigits: Int
  private var refundedUnits: Int64 = 0
  private var refundedMicros: Int64 = 0
  /// Whether what Advanced Commerce refunds exceeded the sale's amount at a line.
  package private(set) var exceedsAmount = false

  package init(_ sale: Sale) {
    self.sale = sale
    amount = sale.amountMicros
    minorDigits = sale.price?.currency.minorDigits ?? 0
  }

  /// The signed quantity and amount of the next line; the amount is nil for an unpriced sale. A Return never gives
  /// anything back, and a Reversal takes nothing.
  package mutating func next(_ line: SaleLine) -> (quantity: Int64, amountMicros: Int64?) {
    let isReturn = line.type == .return
    let before = (units: refundedUnits, micros: refundedMicros)
    if let amount {
      let share = line.share.total(
        ofMicros: amount, quantity: sale.quantity, minorDigits: minorDigits)
      let total = min(share.addingCapped(line.advancedMicros), amount)
      refundedMicros = isReturn ? max(before.micros, total) : min(before.micros, total)
      exceedsAmount = sale.kind.isPaid && line.advancedMicros > amount
    }
    let units = units(after: line)
    refundedUnits = isReturn ? max(before.units, units) : min(before.units, units)
    return (before.units - refundedUnits, amount.map { _ in before.micros - refundedMicros })
  }

  /// R12: the units that are refunded after a line, as its share or its sum has them. Any other share or sum takes
  /// none, and a Reversal that ends at one gives back all.
  private func units(after line: SaleLine) -> Int64 {
    let fraction = line.share.fraction(ofQuantity: sale.quantity)
    if fraction.kind == .all { return sale.quantity }
    if line.advancedMicros > 0 {
      if refundedMicros == amount { return sale.quantity }
    } else if fraction.kind != .percentage {
      return fraction.kind == .none ? 0 : fraction.numerator
    }
    return line.type == .reversal ? 0 : refundedUnits
  }
}
