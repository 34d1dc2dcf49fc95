// RateConverter: converts amounts to one reporting currency, and records the sources of the rates used and
// the oldest.
import Base

/// The source of some declared rates.
package struct RateSource: Hashable, Sendable {
  /// The name in the declarations.
  package let name: String
  /// The positions of those declarations, ascending.
  package let positions: [Int64]

  package init(name: String, positions: [Int64]) {
    self.name = name
    self.positions = positions
  }
}

/// The day of a declared rate, and its currency pair.
package struct RateDay: Equatable, Sendable {
  package let base: Currency
  package let quote: Currency
  /// Days since 1970-01-01.
  package let day: Int
}

/// Converts amounts to a reporting currency by revenue rule R10.
package struct RateConverter: Sendable {
  /// The reporting currency.
  package let target: Currency
  /// The most days that a rate may be older than the line; nil means no limit.
  package let ageMaxDays: Int?
  private let table: RateTable
  /// Direct-mapped: each pair of currency and day has one slot, which another pair may take over.
  private var cache: [CacheSlot?]
  private var isSourceUsed: [Bool]
  private var oldest: RateTable.Leg?

  private struct CacheSlot {
    let currency: Currency
    let utcDay: Int
    let resolution: RateTable.Resolution?
  }

  /// Fits twenty currencies for a year; a power of two.
  private static let cacheCount = 8192

  /// Creates a converter that has used no rate yet.
  package init(_ table: RateTable, to target: Currency, ageMaxDays: Int? = nil) {
    self.table = table
    self.target = target
    self.ageMaxDays = ageMaxDays
    cache = Array(repeating: nil, count: Self.cacheCount)
    isSourceUsed = Array(repeating: false, count: table.sources.count)
  }

  /// The amount in the reporting currency, rounded once, half to even, to the micro. An amount that is
  /// already in the reporting currency is returned unchanged.
  /// - Parameter utcDay: days since 1970-01-01 of the line's date in UTC.
  /// - Returns: nil if no sufficiently recent rate of that day or earlier leads to the reporting currency, or
  ///   if the result needs more than 64 bits.
  package mutating func convert(
    micros: Int64, from currency: Currency, utcDay: Int
  ) -> Int64? {
    if currency == target { return micros }
    guard let resolution = resolution(from: currency, utcDay: utcDay),
      let converted = resolution.fraction.applied(to: micros)
    else { return nil }
    note(resolution.leg)
    if let second = resolution.secondLeg { note(second) }
    return converted
  }

  private mutating func note(_ leg: RateTable.Leg) {
    isSourceUsed[leg.sourceIndex] = true
    if let oldest, !leg.isOlder(than: oldest) { return }
    oldest = leg
  }

  /// The day of the older rate that would convert a currency on a day if its age did not matter. Nil if the
  /// rates are recent enough or there are none.
  package mutating func staleRateDay(from currency: Currency, utcDay: Int) -> Int? {
    guard currency != target, ageMaxDays != nil,
      resolution(from: currency, utcDay: utcDay) == nil
    else { return nil }
    return table.resolve(from: currency, to: target, utcDay: utcDay, ageMaxDays: nil)?.oldestDay
  }

  /// The positions of the declarations whose rates convert a currency on a day. Empty if none does, or if it is the
  /// reporting currency.
  package mutating func declarations(of currency: Currency, utcDay: Int) -> [Int64] {
    guard currency != target, let resolution = resolution(from: currency, utcDay: utcDay)
    else { return [] }
    let legs = [resolution.leg, resolution.secondLeg].compactMap { $0 }
    return Set(legs.map { table.sources[$0.sourceIndex].position }).sorted()
  }

  /// The oldest rate used so far. Of several rates on that day, the first by currencies.
  package var oldestUsed: RateDay? {
    oldest.map { RateDay(base: $0.base, quote: $0.quote, day: $0.day) }
  }

  /// The sources of the rates used so far, without duplicates, sorted as bytes.
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
    // Consecutive days of one currency get consecutive slots; other currencies get other slots.
    let place = (utcDay &+ Int(currency.ordinal) &* 367) & (Self.cacheCount - 1)
    if let slot = cache[place], slot.currency == currency, slot.utcDay == utcDay {
      return slot.resolution
    }
    let resolution = table.resolve(
      from: currency, to: target, utcDay: utcDay, ageMaxDays: ageMaxDays)
    cache[place] = CacheSlot(currency: currency, utcDay: utcDay, resolution: resolution)
    return resolution
  }
}
