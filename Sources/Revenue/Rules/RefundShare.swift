// Rule R12: how much of a sale is refunded, and what a line of the journal makes of it.

/// The share of a sale that is refunded.
public struct RefundShare: Equatable, BitwiseCopyable, Sendable {
  /// How the share is stated.
  public enum Kind: Int8, BitwiseCopyable, Sendable { case none, units, percentage, all }

  package let kind: Kind
  /// For `units` from 1 to the quantity − 1; for `percentage` in thousandths of a percent, from 0 to 100,000 exclusive;
  /// otherwise 0.
  package let value: Int32

  package static let none = RefundShare(kind: .none, value: 0)
  package static let all = RefundShare(kind: .all, value: 0)

  private init(kind: Kind, value: Int32) { (self.kind, self.value) = (kind, value) }

  /// A stored share; nil if the value does not fit the kind.
  package init?(kind: Kind, storedValue: Int64) {
    let values: ClosedRange<Int64> =
      switch kind {
      case .none, .all: 0...0
      case .units: 1...(Sale.quantityMax - 1)
      case .percentage: 1...99_999
      }
    guard values.contains(storedValue) else { return nil }
    self.init(kind: kind, value: Int32(storedValue))
  }

  /// R12: a revocation percentage of a quantity. Within 0.0005 % of `k ÷ quantity` the share is exactly that.
  /// - Parameter percentage: in thousandths of a percent, from 0 to 100,000.
  package init(percentage: Int64, quantity: Int64) {
    precondition((0...100_000).contains(percentage), "a percentage of \(percentage)")
    let product = percentage * quantity
    var (units, rest) = product.quotientAndRemainder(dividingBy: 100_000)
    if rest > 50_000 || (rest == 50_000 && units % 2 == 1) { units += 1 }
    rest = abs(product - units * 100_000)
    if rest * 2 > quantity {
      self.init(kind: .percentage, value: Int32(percentage))
    } else if units == 0 {
      self = .none
    } else {
      self = units == quantity ? .all : RefundShare(kind: .units, value: Int32(units))
    }
  }

  /// The share as a fraction.
  private func fraction(ofQuantity quantity: Int64) -> (numerator: Int64, denominator: Int64) {
    switch kind {
    case .none: (0, 1)
    case .units: (Int64(value), quantity)
    case .percentage: (Int64(value), 100_000)
    case .all: (1, 1)
    }
  }

  /// Whether this share is greater than another one of the same quantity, compared exactly.
  package func isGreater(than other: RefundShare, ofQuantity quantity: Int64) -> Bool {
    let (one, two) = (fraction(ofQuantity: quantity), other.fraction(ofQuantity: quantity))
    return one.numerator * two.denominator > two.numerator * one.denominator
  }

  /// R12: the refunded part of an amount, rounded half to even to the currency's minor unit. All of it is the amount
  /// itself; no part exceeds it.
  package func total(ofMicros amount: Int64, quantity: Int64, minorDigits: Int) -> Int64 {
    if kind == .none { return 0 }
    if kind == .all { return amount }
    let fraction = fraction(ofQuantity: quantity)
    var unit: Int128 = 1
    for _ in minorDigits..<PriceForms.microsDecimals { unit *= 10 }
    let divisor = Int128(fraction.denominator) * unit
    var (units, rest) = (Int128(amount) * Int128(fraction.numerator))
      .quotientAndRemainder(dividingBy: divisor)
    if rest * 2 > divisor || (rest * 2 == divisor && units % 2 == 1) { units += 1 }
    return Int64(min(units * unit, Int128(amount)))
  }
}

/// What is known of a refund by its date, from signed statements (rule R12).
package struct SignedRefund: BitwiseCopyable {
  /// The `revocationDate`, or a `refundDate` of Advanced Commerce; epoch milliseconds.
  package var dateMs: Int64
  package var share: RefundShare
  /// What Advanced Commerce refunds on this date.
  package var advancedMicros: Int64
  /// Index of the sale's next one, or −1.
  var next: Int32 = -1

  package init(dateMs: Int64, share: RefundShare, advancedMicros: Int64) {
    (self.dateMs, self.share, self.advancedMicros) = (dateMs, share, advancedMicros)
  }

  /// The second that contains an instant. Replies and signed statements agree on a refund's date only to the second.
  static func second(_ epochMs: Int64) -> Int64 {
    epochMs >= 0 ? epochMs / 1000 : (epochMs - 999) / 1000
  }
}

/// Goes through the Returns and Reversals of a sale in order, and computes what each changes (rules R8 and R12).
package struct RefundWalk {
  private let sale: Sale
  private let amount: Int64?
  private let minorDigits: Int
  private var refundedUnits: Int64 = 0
  private var refundedMicros: Int64 = 0
  /// Whether the refunds so far exceeded the sale's amount at a line.
  package private(set) var exceedsAmount = false

  package init(_ sale: Sale) {
    self.sale = sale
    amount = sale.amountMicros
    minorDigits = sale.price?.currency.minorDigits ?? 0
  }

  /// The signed quantity and amount of the next line; the amount is nil for an unpriced sale.
  package mutating func next(_ line: SaleLine) -> (quantity: Int64, amountMicros: Int64?) {
    let unitsBefore = refundedUnits
    refundedUnits = units(after: line)
    let quantity = unitsBefore - refundedUnits
    guard let amount else { return (quantity, nil) }
    let before = refundedMicros
    let share = line.share.total(
      ofMicros: amount, quantity: sale.quantity, minorDigits: minorDigits)
    let (total, overflow) = share.addingReportingOverflow(line.advancedMicros)
    exceedsAmount = sale.kind.isPaid && (overflow || total > amount)
    refundedMicros = overflow ? amount : min(total, amount)
    return (quantity, before - refundedMicros)
  }

  /// R12: the refunded units after a line.
  private func units(after line: SaleLine) -> Int64 {
    switch line.share.kind {
    case .all: return sale.quantity
    case .none where line.advancedMicros == 0: return 0
    case .units where line.advancedMicros == 0: return Int64(line.share.value)
    default: break
    }
    return line.type == .reversal ? 0 : refundedUnits
  }
}
