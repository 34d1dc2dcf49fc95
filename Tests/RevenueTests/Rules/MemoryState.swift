// The state of a fold in memory, for tests of the rules without a database.
import Base
import Revenue

/// Symbols, sales, exceptions and declared prices. Users are identified by symbols.
final class MemoryState {
  private let arena = TextArena()
  let symbols: StringInterner
  let store: SaleStore
  let subscriptions: SubscriptionStore
  let accounts: AccountStore
  let exceptions: ExceptionList
  var priceList = PriceList()

  init() {
    symbols = StringInterner(arena)
    store = SaleStore(arena)
    subscriptions = SubscriptionStore(arena)
    accounts = AccountStore(arena)
    exceptions = ExceptionList(arena)
  }

  /// Creates a fold that applies the rules to this state.
  func fold() -> RevenueFold {
    RevenueFold(
      store: store, subscriptions: subscriptions, accounts: accounts, symbols: symbols,
      exceptions: exceptions, userIdentifier: { [symbols] in symbols.text($0) },
      tokenUser: { [symbols] in symbols.symbol($0) })
  }

  /// Derives the prices that follow from other sales and from the price list (rule R7, 4 to 6), and the users that
  /// follow from Apple Accounts (rule R6).
  func derive() throws {
    try fold().settleUsers()
    priceList.sort()
    try DerivedPrices(store: store, symbols: symbols, priceList: priceList).settle { _ in true }
  }
}

/// Stores the exceptions of a fold without a database, in the order in which they were found, without duplicates.
final class ExceptionList: ExceptionSink {
  /// The fields that distinguish exceptions. A repetition at a later position is not stored.
  struct Key: Hashable {
    var type: ExceptionType
    /// −1 for an exception of a row or of a whole verification.
    var sale = -1
    var environment: Symbol
    var bundle: Symbol
    var product = TextKey(text: Text(start: nil, count: 0))
    var transaction = TextKey(text: Text(start: nil, count: 0))
    var detail: TextKey
    /// The verification that it belongs to, or −1.
    var upload = -1
  }

  private let arena: TextArena
  private var seen: Set<Key> = []
  private(set) var entries: [Key] = []

  init(_ arena: TextArena) { self.arena = arena }

  func add(_ type: ExceptionType, sale: Sale, detail: Text, position: Int) {
    // Exceptions of pending sales are not facts yet.
    if sale.isPending { return }
    add(
      Key(
        type: type, sale: sale.id, environment: sale.environment, bundle: sale.bundle,
        detail: TextKey(text: detail)))
  }

  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, product: Text, transaction: Text,
    detail: Text, position: Int
  ) {
    add(
      Key(
        type: type, environment: environment, bundle: bundle, product: TextKey(text: product),
        transaction: TextKey(text: transaction), detail: TextKey(text: detail)))
  }

  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: Text, upload: Int,
    position: Int
  ) {
    // Verifications of one upload can differ in environment and bundle.
    add(
      Key(
        type: type, environment: .none, bundle: .none, detail: TextKey(text: detail),
        upload: upload))
  }

  func add(
    _ type: ExceptionType, environment: Symbol, bundle: Symbol, detail: String, position: Int
  ) {
    withText(detail) {
      add(
        Key(type: type, environment: environment, bundle: bundle, detail: TextKey(text: $0)))
    }
  }

  /// Stores an exception and copies its texts, if it is new.
  private func add(_ key: Key) {
    if seen.contains(key) { return }
    var kept = key
    kept.product = TextKey(text: arena.keep(key.product.text))
    kept.transaction = TextKey(text: arena.keep(key.transaction.text))
    kept.detail = TextKey(text: arena.keep(key.detail.text))
    seen.insert(kept)
    entries.append(kept)
  }
}
