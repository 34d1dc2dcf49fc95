// RateConverter: amounts into one reporting currency, and the sources of the rates it used.
import Time

/// Converts amounts into a reporting currency by revenue rule R10.
package struct RateConverter: Sendable {
  /// The reporting currency.
  package let target: Currency
  private let table: RateTable
  /// Direct-mapped: a day of a currency has one slot, which it may lose to another and win back.
  private var cache: [CacheSlot?]
  private var isSourceUsed: [Bool]

  private struct CacheSlot {
    let currency: Currency
    let utcDay: Int
    let resolution: RateTable.Resolution?
  }

  /// Twenty currencies of a year fit; a power of two.
  private static let cacheCount = 8192

  /// A converter that has used no rate yet.
  package init(_ table: RateTable, to target: Currency) {
    self.table = table
    self.target = target
    cache = Array(repeating: nil, count: Self.cacheCount)
    isSourceUsed = Array(repeating: false, count: table.sources.count)
  }

  /// The amount in the reporting currency, rounded once, half to even, to the micro.
  /// - Parameter utcDay: days since 1970-01-01 of the line's date in UTC.
  /// - Returns: nil where no rate of that day or before leads to the reporting currency. An amount
  ///   that is in it already comes back as it is.
  /// - Throws: `ConversionError` where the result needs more than 64 bits.
  package mutating func convert(
    micros: Int64, from currency: Currency, utcDay: Int
  ) throws(ConversionError) -> Int64? {
    if currency == target { return micros }
    guard let resolution = resolution(from: currency, utcDay: utcDay) else { return nil }
    guard let converted = resolution.fraction.applied(to: micros) else {
      throw ConversionError(micros: micros, from: currency, to: target, utcDay: utcDay)
    }
    isSourceUsed[resolution.sourceIndex] = true
    if let second = resolution.secondSourceIndex { isSourceUsed[second] = true }
    return converted
  }

  /// The sources of the rates used so far, each once, sorted as bytes.
  package var sourcesUsed: [String] {
    zip(table.sources, isSourceUsed).filter(\.1).map(\.0)
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private mutating func resolution(
    from currency: Currency, utcDay: Int
  ) -> RateTable.Resolution? {
    // Neighbouring days of one currency get neighbouring slots, other currencies others.
    let place = (utcDay &+ Int(currency.ordinal) &* 367) & (Self.cacheCount - 1)
    if let slot = cache[place], slot.currency == currency, slot.utcDay == utcDay {
      return slot.resolution
    }
    let resolution = table.resolve(from: currency, to: target, utcDay: utcDay)
    cache[place] = CacheSlot(currency: currency, utcDay: utcDay, resolution: resolution)
    return resolution
  }
}

/// An amount that no longer fits into 64 bits of micros once converted.
package struct ConversionError: Error, Equatable, CustomStringConvertible {
  /// The amount in the currency `from`.
  package let micros: Int64
  package let from: Currency
  package let to: Currency
  /// Days since 1970-01-01.
  package let utcDay: Int

  package var description: String {
    let amount = Amount.text(micros: micros, currency: from)
    return "converting \(amount) \(from) to \(to) on \(CivilDate(dayNumber: utcDay)): "
      + "the result does not fit into 64 bits of micros"
  }
}
