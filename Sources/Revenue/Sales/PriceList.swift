// Declared prices (rule R7.5), declared products, and derived prices (rules R7.4 to R7.6).

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

  /// Removes the entries of a declaration.
  package mutating func remove(position: Int) {
    for product in Array(entries.keys) {
      entries[product]?.removeAll { $0.position == position }
    }
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

// MARK: - Declared products

/// The products that an app family declares, for detecting fraud.
package final class DeclaredProducts {
  /// Whether each is a consumable.
  private let areConsumable: [TextKey: Bool]

  /// - Parameter areConsumable: the declared products, and whether each is a consumable. The texts must live
  ///   as long as this object.
  package init(_ areConsumable: [TextKey: Bool]) { self.areConsumable = areConsumable }

  /// Whether a product is declared.
  func holds(_ product: Text) -> Bool { areConsumable[TextKey(text: product)] != nil }

  /// Whether a product is declared as a consumable.
  func isConsumable(_ product: Text) -> Bool { areConsumable[TextKey(text: product)] == true }
}

// MARK: - Derived prices

/// Sets the prices of sales for which no client sent one (rule R7, 4–6), from other sales and from price lists, at the
/// report's position; removes derived prices that no longer apply.
package struct DerivedPrices {
  let store: SaleStore
  let symbols: StringInterner
  let priceList: PriceList

  package init(store: SaleStore, symbols: StringInterner, priceList: PriceList) {
    self.store = store
    self.symbols = symbols
    self.priceList = priceList
  }

  /// Derives the prices of all sales in memory whose basis may have changed: those for which `isConcerned`
  /// returns true, and their chains.
  package func settle(_ isConcerned: (Sale) -> Bool) throws {
    let chains = ChainTable(store)
    // Fetching a chain appends to the store. Visit only the sales that were there before.
    for place in store.sales.indices where isConcerned(store.sales[place]) {
      let sale = store.sales[place]
      if sale.isOfChain {
        if chains.add(chainOf: place) { try store.fetchChain(of: sale) }
      } else if sale.kind.isPaid, !sale.priceBasis.isOwn {
        set(place, sale.kind == .regular ? listed(sale) : .none)
      }
    }
    for place in store.sales.indices where store.sales[place].isOfChain {
      chains.addMember(place)
    }
    chains.forEachChain { settle(chain: &$0) }
  }

  /// R7.4: visits the sales of a chain by (date, key as bytes).
  private func settle(chain places: inout [Int]) {
    places.sort { left, right in
      let (one, other) = (store.sales[left], store.sales[right])
      if one.saleDateMs != other.saleDateMs { return one.saleDateMs < other.saleDateMs }
      return one.key.precedes(other.key)
    }
    // If a line item and a transaction have the same date and key, neither counts as the earlier sale.
    var carried: (price: UnitPrice, position: Int)?
    var latest: (price: UnitPrice, position: Int)?
    var previous: Int?
    for place in places {
      let sale = store.sales[place]
      if let previous {
        let before = store.sales[previous]
        if before.saleDateMs != sale.saleDateMs || !before.key.equals(sale.key) {
          carried = latest
        }
      }
      previous = place
      if sale.priceBasis.isOwn, let price = sale.price {
        // R12: a signed 0 is a price, but not one to carry forward.
        if price.micros > 0 || sale.priceBasis.isFromClient { latest = (price, sale.pricePosition) }
      } else if let carried, sale.keyKind == .lineItem {
        set(place, derived(carried.price, .carriedForward, carried.position, for: sale))
      } else {
        set(place, listed(sale))
      }
    }
  }

  private enum Derived {
    case none
    /// There is a price, but the amount of the sale would exceed 64 bits.
    case tooLarge
    case price(UnitPrice, PriceBasis, Int)
  }

  private func derived(
    _ price: UnitPrice, _ basis: PriceBasis, _ position: Int, for sale: Sale
  ) -> Derived {
    price.amountMicros(of: sale.quantity) == nil ? .tooLarge : .price(price, basis, position)
  }

  /// R7.5: the price from the price list.
  private func listed(_ sale: Sale) -> Derived {
    let entry = priceList.entry(
      product: sale.product, country: sale.country, saleDateMs: sale.saleDateMs)
    guard let entry else { return .none }
    return derived(entry.price, .priceList, entry.position, for: sale)
  }

  private func set(_ place: Int, _ derived: Derived) {
    let before = store.sales[place]
    var sale = before
    (sale.price, sale.priceBasis, sale.pricePosition) = (nil, .none, -1)
    if sale.priceProblem == .tooLarge { sale.priceProblem = .noPrice }
    switch derived {
    case .none: break
    case .tooLarge: if sale.priceProblem == .noPrice { sale.priceProblem = .tooLarge }
    case .price(let price, let basis, let position):
      (sale.price, sale.priceBasis, sale.pricePosition) = (price, basis, position)
    }
    if sale.price == before.price, sale.priceBasis == before.priceBasis,
      sale.pricePosition == before.pricePosition, sale.priceProblem == before.priceProblem
    {
      return
    }
    sale.isChanged = true
    store.update(place) { $0 = sale }
  }
}
