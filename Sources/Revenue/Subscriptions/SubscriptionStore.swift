// All subscriptions of a fold, in memory, fetched when first needed if an earlier run stored them; chains of sales.

/// The key of a subscription (rule R13).
package struct SubscriptionKey {
  package var environment: Symbol
  package var bundle: Symbol
  package var original: Text

  package init(environment: Symbol, bundle: Symbol, original: Text) {
    (self.environment, self.bundle, self.original) = (environment, bundle, original)
  }

  /// A hash for tables in memory.
  var placeHash: UInt64 {
    original.placeHash(
      UInt64(UInt32(bitPattern: environment)) << 32 | UInt64(UInt32(bitPattern: bundle)))
  }
}

/// The source of subscriptions that an earlier run has stored.
package protocol SubscriptionSource: AnyObject {
  /// Adds the subscription with this key to the store, if there is one.
  func fetch(_ key: SubscriptionKey, into store: SubscriptionStore) throws
  /// Adds the subscriptions of an Apple Account of which no upload with a user shows a period.
  func fetchSubscriptions(ofAccount account: Int32, into store: SubscriptionStore) throws
}

/// The subscriptions by their keys.
package final class SubscriptionStore {
  package let arena: TextArena
  package let subscriptions = ChunkedArray<Subscription>()
  private let places = HashIndex()
  /// Nil if all subscriptions are in memory.
  private unowned let source: (any SubscriptionSource)?
  /// The number for the next subscription.
  private var nextID: Int
  private var newTurns: [SubscriptionTransition] = []

  package init(_ arena: TextArena, source: (any SubscriptionSource)? = nil, nextID: Int = 0) {
    self.arena = arena
    self.source = source
    self.nextID = nextID
  }

  /// The index of the subscription with a key, which an event at a position names; added if new.
  func place(of key: SubscriptionKey, position: Int) throws -> Int {
    if let place = known(key) { return place }
    if let source {
      try source.fetch(key, into: self)
      if let place = known(key) { return place }
    }
    return takeIn(
      Subscription(
        id: nextID, environment: key.environment, bundle: key.bundle,
        original: arena.keep(key.original), firstPosition: position))
  }

  /// Fetches the subscriptions of an Apple Account of which no upload with a user shows a period.
  func fetchSubscriptions(ofAccount account: Int32) throws {
    try source?.fetchSubscriptions(ofAccount: account, into: self)
  }

  /// The index of a subscription that is already in memory.
  package func known(_ key: SubscriptionKey) -> Int? {
    places.find(key.placeHash) { isOf(key, $0) }
  }

  /// Whether the subscription at an index has a key.
  func isOf(_ key: SubscriptionKey, _ place: Int) -> Bool {
    let subscription = subscriptions[place]
    return subscription.environment == key.environment && subscription.bundle == key.bundle
      && subscription.original.equals(key.original)
  }

  /// Adds a subscription, whose text must be in the arena.
  package func takeIn(_ subscription: Subscription) -> Int {
    let place = subscriptions.count
    subscriptions.append(subscription)
    nextID = max(nextID, subscription.id + 1)
    places.insert(subscription.key.placeHash, place)
    return place
  }

  /// Adds the transitions of an event.
  func add(_ turns: [SubscriptionTransition]) { newTurns += turns }

  /// The transitions since the last call, in the order of events.
  package func takeTurns() -> [SubscriptionTransition] {
    defer { newTurns.removeAll(keepingCapacity: true) }
    return newTurns
  }

  /// Changes a subscription in place.
  package func update(_ place: Int, _ change: (inout Subscription) -> Void) {
    subscriptions.update(place, change)
  }
}

// MARK: - Chains of sales

extension Sale {
  /// R7.4: only regular sales with an original transaction belong to chains.
  package var isOfChain: Bool { kind == .regular && !originalTransactionID.isEmpty }

  /// R7.4: what the latest earlier sale of the chain must have in common with this one.
  fileprivate func isOfSameChain(as other: Sale) -> Bool {
    environment == other.environment && bundle == other.bundle && product == other.product
      && originalTransactionID.equals(other.originalTransactionID)
  }
}

/// Groups sales by chain (rule R7.4) without sorting all of them: most chains have one sale.
final class ChainTable {
  private struct Chain {
    /// One sale of the chain, against which other sales are compared.
    let example: Int
    /// The most recently added member, or −1.
    var last: Int32 = -1
  }

  private let store: SaleStore
  private let places = HashIndex()
  private var chains: [Chain] = []
  /// For each member, the one added before it, or −1.
  private var previous: [Int32]

  init(_ store: SaleStore) {
    self.store = store
    previous = []
  }

  private func hash(_ sale: Sale) -> UInt64 {
    sale.originalTransactionID.placeHash(UInt64(UInt32(bitPattern: sale.product)))
  }

  private func find(_ sale: Sale, _ hash: UInt64) -> Int? {
    places.find(hash) { store.sales[chains[$0].example].isOfSameChain(as: sale) }
  }

  /// Adds the chain of a sale; returns whether it was new.
  func add(chainOf place: Int) -> Bool {
    let sale = store.sales[place]
    let hash = hash(sale)
    if find(sale, hash) != nil { return false }
    places.insert(hash, chains.count)
    chains.append(Chain(example: place))
    return true
  }

  /// Adds a sale to its chain, if that chain has been added.
  func addMember(_ place: Int) {
    if previous.count < store.sales.count {
      previous += Array(repeating: -1, count: store.sales.count - previous.count)
    }
    let sale = store.sales[place]
    guard let chain = find(sale, hash(sale)) else { return }
    previous[place] = chains[chain].last
    chains[chain].last = Int32(place)
  }

  /// Calls `body` with the indexes of each chain's sales.
  func forEachChain(_ body: (inout [Int]) -> Void) {
    var members: [Int] = []
    for chain in chains {
      members.removeAll(keepingCapacity: true)
      var place = chain.last
      while place >= 0 {
        members.append(Int(place))
        place = previous[Int(place)]
      }
      body(&members)
    }
  }
}
