// Rounds amounts to a currency's minor unit so that they add up to the rounded total.

/// Rounds the amounts of one column and currency by largest remainder. The total is rounded half to even; each amount
/// is rounded down, and those with the largest remainders up, as many as the total needs. Thus the rounded amounts
/// add up to the rounded total, and none moves by a minor unit or more.
package struct MinorRounding: Sendable {
  /// The minor unit in micros: 10,000 for EUR.
  private let unitMicros: Int128
  /// The sum of the amounts, in micros. 128 bits hold it: see `RevenueSums`.
  private var sum: Int128 = 0
  /// The sum of the amounts rounded down, in minor units.
  private var floorUnits: Int128 = 0
  private var count = 0
  /// The amounts that are not whole minor units: which one it is, and what remains below it in micros. Reports
  /// without converted amounts have few.
  private var remainders: [(ordinal: Int, micros: Int32)] = []
  /// After `finish`: the ordinals of the amounts that are rounded up, sorted.
  private var raised: [Int] = []

  package init(_ currency: Currency) { unitMicros = Self.unitMicros(currency) }

  /// Adds the next amount, in micros.
  package mutating func add(_ micros: Int128) {
    let (units, remainder) = Self.floor(micros, unitMicros)
    sum += micros
    floorUnits += units
    // A minor unit is at most 1,000,000 micros.
    if remainder > 0 { remainders.append((count, Int32(remainder))) }
    count += 1
  }

  /// Decides which amounts are rounded up. Where remainders are equal, the earlier amount is.
  package mutating func finish() {
    let missing = Int(Self.halfToEven(sum, unitMicros) / unitMicros - floorUnits)
    precondition(
      missing >= 0 && missing <= remainders.count, "remainders do not make up the total")
    remainders.sort { left, right in
      left.micros != right.micros ? left.micros > right.micros : left.ordinal < right.ordinal
    }
    raised = remainders.prefix(missing).map(\.ordinal).sorted()
    remainders = []
  }

  /// Rounds an amount that was added.
  /// - Parameter ordinal: its number among those added, from 0.
  package func rounded(_ micros: Int128, ordinal: Int) -> Int128 {
    let units = Self.floor(micros, unitMicros).units
    return (units + (isRaised(ordinal) ? 1 : 0)) * unitMicros
  }

  private func isRaised(_ ordinal: Int) -> Bool {
    var (low, high) = (0, raised.count)
    while low < high {
      let middle = (low + high) / 2
      if raised[middle] < ordinal { low = middle + 1 } else { high = middle }
    }
    return low < raised.count && raised[low] == ordinal
  }

  /// The rounded amounts, in their order; all in micros.
  package static func rounded(_ amounts: [Int128], _ currency: Currency) -> [Int128] {
    var rounding = MinorRounding(currency)
    for amount in amounts { rounding.add(amount) }
    rounding.finish()
    return amounts.enumerated().map { rounding.rounded($1, ordinal: $0) }
  }

  /// A single amount, or a total, rounded half to even to the minor unit; in micros.
  package static func halfToEven(_ micros: Int128, _ currency: Currency) -> Int128 {
    halfToEven(micros, unitMicros(currency))
  }

  private static func unitMicros(_ currency: Currency) -> Int128 {
    var unit: Int128 = 1
    for _ in currency.minorDigits..<PriceForms.microsDecimals { unit *= 10 }
    return unit
  }

  private static func floor(
    _ micros: Int128, _ unit: Int128
  ) -> (units: Int128, remainder: Int128) {
    let (units, remainder) = micros.quotientAndRemainder(dividingBy: unit)
    return remainder < 0 ? (units - 1, remainder + unit) : (units, remainder)
  }

  private static func halfToEven(_ micros: Int128, _ unit: Int128) -> Int128 {
    let (units, remainder) = floor(micros, unit)
    let isUp = remainder * 2 > unit || (remainder * 2 == unit && units % 2 != 0)
    return (isUp ? units + 1 : units) * unit
  }
}
