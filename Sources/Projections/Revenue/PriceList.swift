// Declared prices (rule R7.5).
import JSON

/// All entries of the declared price lists.
struct PriceList {
  struct Entry {
    var country: Symbol
    var effectiveFromMs: Int64
    var position: Int
    var ordinal: Int
    var price: UnitPrice
  }

  private var entries: [Symbol: [Entry]] = [:]
  private var isSorted = true

  var isEmpty: Bool { entries.isEmpty }

  mutating func add(_ product: Symbol, _ entry: Entry) {
    entries[product, default: []].append(entry)
    isSorted = false
  }

  /// Must be called after entries were added, before prices are asked for.
  mutating func sort() {
    if isSorted { return }
    for product in Array(entries.keys) {
      entries[product]?.sort { left, right in
        (left.effectiveFromMs, left.position, left.ordinal)
          < (right.effectiveFromMs, right.position, right.ordinal)
      }
    }
    isSorted = true
  }

  /// R7.5: the entry in effect on the sale date, of the country itself or else of all countries; the
  /// latest `effective_from`, then the latest position.
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
