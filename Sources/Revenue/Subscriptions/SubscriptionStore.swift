// All subscriptions of a fold, in memory. Those stored by an earlier run are fetched when first needed.

/// What identifies a subscription (rule R13).
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
  private var newTurns: [SubscriptionTurn] = []

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

  /// Adds what an event newly says.
  func add(_ turns: [SubscriptionTurn]) { newTurns += turns }

  /// The turns since the last call, in the order of events.
  package func takeTurns() -> [SubscriptionTurn] {
    defer { newTurns.removeAll(keepingCapacity: true) }
    return newTurns
  }

  /// Changes a subscription in place.
  package func update(_ place: Int, _ change: (inout Subscription) -> Void) {
    subscriptions.update(place, change)
  }
}
