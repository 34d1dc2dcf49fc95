// The declared exchange rates, which of them converts a currency on a day, and the conversion.
import Base

/// One exchange rate of a `rates.declared` event: 1 `base` = `rate` `quote`.
package struct DeclaredRate: Hashable, Sendable {
  /// The publisher, as in the event.
  package var source: String
  /// Days since 1970-01-01.
  package var dateDay: Int
  package var base: Currency
  package var quote: Currency
  package var rate: Decimal18
  /// Position of the event.
  package var position: Int64
  /// Index among the event's rates. Of two rates that are otherwise alike, the later one counts.
  package var orderInFile: Int

  /// Creates a rate as its event declares it.
  package init(
    source: String, dateDay: Int, base: Currency, quote: Currency, rate: Decimal18,
    position: Int64, orderInFile: Int
  ) {
    self.source = source
    self.dateDay = dateDay
    self.base = base
    self.quote = quote
    self.rate = rate
    self.position = position
    self.orderInFile = orderInFile
  }
}

/// Declared rates in the order in which revenue rule R10 searches them. Immutable; use a `RateConverter` to
/// convert.
package struct RateTable: Sendable {
  /// The parts of a rate that R10 needs. A rate that a later one for the same pair and day replaces is not
  /// kept.
  private struct Entry {
    let day: Int
    let rate: Decimal18
    let sourceIndex: Int
  }

  private struct Pair {
    let base: Currency
    let quote: Currency
    let entries: Range<Int>
  }

  /// Sorted by base, then quote.
  private let pairs: [Pair]
  /// One run per pair, ascending by day.
  private let entries: [Entry]
  /// Every base of a pair, ascending.
  private let bases: [Currency]
  /// The declarations that contain the rates, without duplicates.
  let sources: [Source]

  struct Source: Hashable, Sendable {
    let name: String
    let position: Int64
  }

  /// Builds the table from rates in any order.
  package init(_ rates: [DeclaredRate]) {
    let sorted = rates.sorted { left, right in
      (left.base, left.quote, left.dateDay, left.position, left.orderInFile)
        < (right.base, right.quote, right.dateDay, right.position, right.orderInFile)
    }
    var pairs: [Pair] = []
    var entries: [Entry] = []
    var bases: [Currency] = []
    var sources: [Source] = []
    var sourceIndexes: [Source: Int] = [:]
    var pairStart = 0
    for (index, rate) in sorted.enumerated() {
      let next = index + 1 < sorted.count ? sorted[index + 1] : nil
      let isLastOfPair = next?.base != rate.base || next?.quote != rate.quote
      if isLastOfPair || next?.dateDay != rate.dateDay {
        let source = Source(name: rate.source, position: rate.position)
        let sourceIndex = sourceIndexes[source] ?? sources.count
        if sourceIndex == sources.count {
          sources.append(source)
          sourceIndexes[source] = sourceIndex
        }
        entries.append(Entry(day: rate.dateDay, rate: rate.rate, sourceIndex: sourceIndex))
      }
      if isLastOfPair {
        pairs.append(Pair(base: rate.base, quote: rate.quote, entries: pairStart..<entries.count))
        pairStart = entries.count
        if bases.last != rate.base { bases.append(rate.base) }
      }
    }
    self.pairs = pairs
    self.entries = entries
    self.bases = bases
    self.sources = sources
  }

  /// A rate as used by a conversion.
  struct Leg: Sendable {
    let base: Currency
    let quote: Currency
    let day: Int
    let rate: Decimal18
    let sourceIndex: Int

    /// Whether it is older; on the same day, whether its currencies sort first.
    func isOlder(than other: Leg) -> Bool {
      (day, base, quote) < (other.day, other.base, other.quote)
    }
  }

  /// A fraction and the rates behind it.
  struct Resolution: Sendable {
    let fraction: ExactFraction
    let leg: Leg
    let secondLeg: Leg?

    /// The day of the older rate.
    var oldestDay: Int { min(leg.day, secondLeg?.day ?? leg.day) }
  }

  /// The fraction that converts between two different currencies on a day: the direct pair, otherwise the
  /// inverse of the opposite pair, otherwise through the alphabetically first base with rates for both. Each
  /// rate is the latest up to that day, and none is older than `ageMaxDays`.
  func resolve(from: Currency, to: Currency, utcDay: Int, ageMaxDays: Int?) -> Resolution? {
    let days = Self.days(upTo: utcDay, ageMaxDays)
    if let leg = latest(from, to, days) {
      return Resolution(fraction: ExactFraction(direct: leg.rate), leg: leg, secondLeg: nil)
    }
    if let leg = latest(to, from, days) {
      return Resolution(fraction: ExactFraction(inverse: leg.rate), leg: leg, secondLeg: nil)
    }
    for base in bases {
      guard let target = latest(base, to, days), let own = latest(base, from, days)
      else { continue }
      return Resolution(
        fraction: ExactFraction(cross: target.rate, over: own.rate), leg: target, secondLeg: own)
    }
    return nil
  }

  private static func days(upTo day: Int, _ ageMaxDays: Int?) -> ClosedRange<Int> {
    guard let ageMaxDays else { return .min...day }
    precondition(ageMaxDays >= 0, "the age of a rate is negative")
    let (first, isBelowAll) = day.subtractingReportingOverflow(ageMaxDays)
    return (isBelowAll ? .min : first)...day
  }

  private func latest(_ base: Currency, _ quote: Currency, _ days: ClosedRange<Int>) -> Leg? {
    let pairIndex = lowerBound(pairs.indices) { (pairs[$0].base, pairs[$0].quote) < (base, quote) }
    guard pairIndex < pairs.count, pairs[pairIndex].base == base, pairs[pairIndex].quote == quote
    else { return nil }
    let range = pairs[pairIndex].entries
    let after = lowerBound(range) { entries[$0].day <= days.upperBound }
    guard after > range.lowerBound, entries[after - 1].day >= days.lowerBound else { return nil }
    let entry = entries[after - 1]
    return Leg(
      base: base, quote: quote, day: entry.day, rate: entry.rate, sourceIndex: entry.sourceIndex)
  }
}

// MARK: - Conversion

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

/// By what an amount is multiplied, as declared rates say it.
package struct RateUse: Equatable, Sendable {
  /// `0.92`; of the opposite pair `1/1.0854`; through a third currency `0.85/1.0854`.
  package let rate: String
  /// The days of its rates since 1970-01-01, in their order.
  package let days: [Int]
  /// The positions of their declarations, in the same order.
  package let positions: [Int64]
}

/// Converts amounts to one reporting currency by revenue rule R10, and records the sources of the rates used and the
/// oldest rate.
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

  /// The rates that convert a currency on a day; nil if none does, or if it is the reporting currency.
  package mutating func rateUse(of currency: Currency, utcDay: Int) -> RateUse? {
    guard currency != target, let resolution = resolution(from: currency, utcDay: utcDay)
    else { return nil }
    let legs = [resolution.leg, resolution.secondLeg].compactMap { $0 }
    let rates = legs.map(\.rate.description)
    return RateUse(
      // A single rate of the opposite pair divides.
      rate: legs.count == 1 && legs[0].base == target
        ? "1/\(rates[0])" : rates.joined(separator: "/"),
      days: legs.map(\.day),
      positions: legs.map { table.sources[$0.sourceIndex].position })
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
