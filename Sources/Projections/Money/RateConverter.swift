// RateConverter: amounts into one reporting currency, and the sources of the rates it used.
import Time

/// Where rates were declared.
package struct RateSource: Hashable, Sendable {
  /// As the declarations name it.
  package let name: String
  /// The positions of those declarations, ascending.
  package let positions: [Int64]

  package init(name: String, positions: [Int64]) {
    self.name = name
    self.positions = positions
  }
}

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
  /// - Returns: nil where no rate of that day or before leads to the reporting currency, or where the result needs
  ///   more than 64 bits. An amount that is in it already comes back as it is.
  package mutating func convert(
    micros: Int64, from currency: Currency, utcDay: Int
  ) -> Int64? {
    if currency == target { return micros }
    guard let resolution = resolution(from: currency, utcDay: utcDay),
      let converted = resolution.fraction.applied(to: micros)
    else { return nil }
    isSourceUsed[resolution.sourceIndex] = true
    if let second = resolution.secondSourceIndex { isSourceUsed[second] = true }
    return converted
  }

  /// The sources of the rates used so far, each once, sorted as bytes.
  package var sourcesUsed: [RateSource] {
    var positions: [String: [Int64]] = [:]
    for (source, isUsed) in zip(table.sources, isSourceUsed) where isUsed {
      positions[source.name, default: []].append(source.position)
    }
    return positions.map { RateSource(name: $0.key, positions: $0.value.sorted()) }
      .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
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
