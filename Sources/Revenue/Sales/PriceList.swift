// Declared prices (rule R7.5).

/// All entries of the declared price lists.
package struct PriceList {
  package struct Entry {
    package var country: Symbol
    package var effectiveFromMs: Int64
    package var position: Int
    package var ordinal: Int
    package var price: UnitPrice

    package init(
      country: Symbol, effectiveFromMs: Int64, position: Int, ordinal: Int, price: UnitPrice
    ) {
      self.country = country
      self.effectiveFromMs = effectiveFromMs
      self.position = position
      self.ordinal = ordinal
      self.price = price
    }
  }

  private var entries: [Symbol: [Entry]] = [:]
  private var isSorted = true

  package init() {}

  package mutating func add(_ product: Symbol, _ entry: Entry) {
    entries[product, default: []].append(entry)
    isSorted = false
  }

  /// Call this after adding entries and before looking up prices.
  package mutating func sort() {
    if isSorted { return }
    for product in Array(entries.keys) {
      entries[product]?.sort { left, right in
        (left.effectiveFromMs, left.position, left.ordinal)
          < (right.effectiveFromMs, right.position, right.ordinal)
      }
    }
    isSorted = true
  }

  /// All entries, by product.
  var all: [(product: Symbol, entry: Entry)] {
    entries.keys.sorted().flatMap { product in
      (entries[product] ?? []).map { (product, $0) }
    }
  }

  /// R7.5: the entry in effect on the sale date, for the country itself or otherwise for all countries: the
  /// one with the latest `effective_from`, then the latest position.
  func entry(product: Symbol, country: Symbol, saleDateMs: Int64) -> Entry? {
    guard let list = entries[product] else { return nil }
    precondition(isSorted)
    func latest(_ wanted: Symbol) -> Entry? {
      list.last { $0.country == wanted && $0.effectiveFromMs <= saleDateMs }
    }
    if country != .none, let own = latest(country) { return own }
    return latest(.none)
  }
}
