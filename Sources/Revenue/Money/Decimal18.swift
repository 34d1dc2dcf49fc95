// An exact positive decimal, used for exchange rates; and the rounding of amounts to a currency's minor unit.
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

// MARK: - Rounding to minor units

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
  /// The amounts that are not whole minor units: the ordinal of each, and its remainder in micros. Reports without
  /// converted amounts have few.
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

  /// Decides which amounts are rounded up; of equal remainders, the earlier amount.
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

  /// The rounded amounts, in order; all in micros.
  package static func rounded(_ amounts: [Int128], _ currency: Currency) -> [Int128] {
    var rounding = MinorRounding(currency)
    for amount in amounts { rounding.add(amount) }
    rounding.finish()
    return amounts.enumerated().map { rounding.rounded($1, ordinal: $0) }
  }

  /// Rounds columns of rows that are all in one currency, each column by itself.
  /// - Returns: whether an amount changed.
  package static func round<Row>(
    _ rows: inout [Row], _ columns: [WritableKeyPath<Row, Int128>], _ currency: Currency
  ) -> Bool {
    var hasChanged = false
    for column in columns {
      let exact = rows.map { $0[keyPath: column] }
      let rounded = rounded(exact, currency)
      if rounded == exact { continue }
      hasChanged = true
      for (index, amount) in rounded.enumerated() { rows[index][keyPath: column] = amount }
    }
    return hasChanged
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
