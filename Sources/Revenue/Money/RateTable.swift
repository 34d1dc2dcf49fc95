// RateTable: the declared exchange rates, and which of them converts one currency on one day.
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
