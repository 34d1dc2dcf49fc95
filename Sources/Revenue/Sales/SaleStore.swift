// All sales of a fold, in memory. Sales stored by an earlier run are fetched when first needed.

/// The source of sales that an earlier run has stored. The rules pass on the errors that it throws and throw
/// none themselves.
package protocol SaleSource: AnyObject {
  /// Adds the sale with this key to the store, if there is one.
  func fetch(_ key: SaleKey, into store: SaleStore) throws
  /// Adds all sales of the chain of `sale` to the store (rule R7.4).
  func fetchChain(of sale: Sale, into store: SaleStore) throws
  /// Whether a stored sale has this transaction id as an alias.
  func hasAlias(_ transaction: Text) throws -> Bool
  /// Adds the sales of an Apple Account that no upload with a user shows.
  func fetchSales(ofAccount account: Int32, into store: SaleStore) throws
  /// The claim of the sale with this number.
  func claim(ofSale id: Int) throws -> SaleClaim?
}

/// The sales, their aliases, and their lines other than Sale lines.
package final class SaleStore {
  struct Alias {
    var text: Text
    /// Index of the sale's next alias, or −1.
    var next: Int32
    /// Whether the database does not have it yet.
    var isNew: Bool
  }

  package let arena: TextArena
  package let sales = ChunkedArray<Sale>()
  private let aliases = ChunkedArray<Alias>()
  private let lines = ChunkedArray<SaleLine>()
  private let places = HashIndex()
  /// Contains the first `indexedAliasCount` aliases: few events need the index, so it is completed on demand.
  private let aliasIndex = HashIndex()
  private var indexedAliasCount = 0
  /// By the index of their sale. Few sales have one.
  private var refundHistories: [Int: RefundHistory] = [:]
  /// Claims by the number of their sale. Few sales have one.
  private var claims: [Int: SaleClaim] = [:]
  /// The sales whose claims the database does not have.
  private var newClaims: Set<Int> = []
  /// Nil if all sales are in memory.
  private unowned let source: (any SaleSource)?
  /// The number for the next sale.
  private(set) var nextID: Int

  package init(_ arena: TextArena, source: (any SaleSource)? = nil, nextID: Int = 0) {
    self.arena = arena
    self.source = source
    self.nextID = nextID
  }

  /// The index of a sale in `sales`, or nil if there is none.
  @inline(__always)
  package func find(_ key: SaleKey) throws -> Int? {
    if let place = known(key) { return place }
    guard let source else { return nil }
    try source.fetch(key, into: self)
    return known(key)
  }

  /// The index of a sale that is already in memory.
  @inline(__always)
  package func known(_ key: SaleKey) -> Int? {
    places.find(key.placeHash) { sales[$0].isOf(key) }
  }

  /// Fetches the sales of a sale's chain from the database.
  func fetchChain(of sale: Sale) throws {
    try source?.fetchChain(of: sale, into: self)
  }

  /// Fetches the sales of an Apple Account that no upload with a user shows.
  func fetchSales(ofAccount account: Int32) throws {
    try source?.fetchSales(ofAccount: account, into: self)
  }

  /// Adds a new sale and copies its key's text.
  func add(_ key: SaleKey) -> Int {
    let kept = SaleKey(
      environment: key.environment, bundle: key.bundle, kind: key.kind, text: arena.keep(key.text))
    let sale = Sale(
      id: nextID, environment: kept.environment, bundle: kept.bundle, keyKind: kept.kind,
      key: kept.text)
    nextID += 1
    return place(sale, kept)
  }

  /// Adds a sale from the database. Its texts must be in the arena.
  package func takeIn(_ sale: Sale) -> Int {
    place(
      sale,
      SaleKey(
        environment: sale.environment, bundle: sale.bundle, kind: sale.keyKind, text: sale.key))
  }

  private func place(_ sale: Sale, _ key: SaleKey) -> Int {
    let place = sales.count
    sales.append(sale)
    places.insert(key.placeHash, place)
    return place
  }

  /// Changes a sale in place.
  @inline(__always)
  package func update<Result>(_ place: Int, _ change: (inout Sale) -> Result) -> Result {
    sales.update(place, change)
  }

  /// Whether a transaction id is an alias of the sale (rule R2).
  @inline(__always)
  package func hasAlias(_ place: Int, _ text: Text) -> Bool {
    var index = sales[place].firstAlias
    while index >= 0 {
      if aliases[Int(index)].text.equals(text) { return true }
      index = aliases[Int(index)].next
    }
    return false
  }

  /// Whether a transaction id is an alias of any sale, of any environment and bundle.
  func isAliasOfAny(_ text: Text) throws -> Bool {
    while indexedAliasCount < aliases.count {
      aliasIndex.insert(aliases[indexedAliasCount].text.placeHash(), indexedAliasCount)
      indexedAliasCount += 1
    }
    if aliasIndex.find(text.placeHash(), { aliases[$0].text.equals(text) }) != nil { return true }
    return try source?.hasAlias(text) ?? false
  }

  /// Adds an alias if the sale does not have it; returns whether it was new.
  package func addAlias(_ place: Int, _ text: Text, isNew: Bool = true) -> Bool {
    if hasAlias(place, text) { return false }
    aliases.append(
      Alias(text: arena.keep(text), next: sales[place].firstAlias, isNew: isNew))
    sales.update(place) { $0.firstAlias = Int32(aliases.count - 1) }
    return true
  }

  /// The aliases of a sale that the database does not have, sorted as bytes. Marks them as stored.
  package func takeNewAliases(_ place: Int) -> [Text] {
    var result: [Text] = []
    var index = sales[place].firstAlias
    while index >= 0 {
      let alias = aliases[Int(index)]
      if alias.isNew { result.append(alias.text) }
      aliases.update(Int(index)) { $0.isNew = false }
      index = alias.next
    }
    return result.count > 1 ? result.sorted { $0.precedes($1) } : result
  }

  /// The aliases of a sale, sorted as bytes.
  package func sortedAliases(_ place: Int) -> [Text] {
    aliases(place).sorted { $0.precedes($1) }
  }

  /// The aliases of a sale in the order in which they were added.
  func aliases(_ place: Int) -> [Text] {
    var result: [Text] = []
    var index = sales[place].firstAlias
    while index >= 0 {
      result.append(aliases[Int(index)].text)
      index = aliases[Int(index)].next
    }
    return result.reversed()
  }

  /// Appends a Return or Reversal to a sale.
  package func addLine(_ place: Int, _ line: SaleLine) {
    lines.append(line)
    let index = Int32(lines.count - 1)
    let last = sales[place].lastLine
    if last >= 0 {
      lines.update(Int(last)) { $0.next = index }
    } else {
      sales.update(place) { $0.firstLine = index }
    }
    sales.update(place) { $0.lastLine = index }
  }

  /// Visits a sale's Returns and Reversals in order.
  package func forEachLine<Failure: Error>(
    of sale: Sale, _ body: (SaleLine) throws(Failure) -> Void
  ) throws(Failure) {
    var index = sale.firstLine
    while index >= 0 {
      let line = lines[Int(index)]
      try body(line)
      index = line.next
    }
  }

  /// The latest Return or Reversal of a sale.
  func lastLine(of sale: Sale) -> SaleLine? {
    sale.lastLine < 0 ? nil : lines[Int(sale.lastLine)]
  }

  /// Changes the latest Return or Reversal of a sale, if it has one.
  func updateLastLine(of place: Int, _ change: (inout SaleLine) -> Void) {
    let last = sales[place].lastLine
    if last >= 0 { lines.update(Int(last), change) }
  }

  /// The share that was refunded before the latest Return or Reversal of a sale.
  func shareBeforeLastLine(of place: Int) -> RefundShare {
    var shares = (before: RefundShare.none, last: RefundShare.none)
    forEachLine(of: sales[place]) { shares = (shares.last, $0.share) }
    return shares.before
  }

  // MARK: R6 – claims after an erasure

  func claim(_ place: Int) throws -> SaleClaim? {
    let id = sales[place].id
    if let claim = claims[id] { return claim }
    guard let claim = try source?.claim(ofSale: id) else { return nil }
    claims[id] = claim
    return claim
  }

  func setClaim(_ place: Int, _ claim: SaleClaim) {
    claims[sales[place].id] = claim
    newClaims.insert(sales[place].id)
  }

  /// The claims that the database does not have, by the numbers of their sales. Marks them as stored.
  package func takeNewClaims() -> [(sale: Int, claim: SaleClaim)] {
    defer { newClaims.removeAll() }
    return newClaims.sorted().compactMap { id in claims[id].map { (id, $0) } }
  }

  // MARK: R12 – statements about refunds

  /// The statements about refunds of a sale; nil if there are none.
  package func refunds(of place: Int) -> RefundHistory? {
    sales[place].hasRefundStatements ? refundHistories[place] : nil
  }

  package func setRefunds(of place: Int, _ history: RefundHistory) {
    refundHistories[place] = history
    sales.update(place) { _ = $0.flags.insert(.hasRefundStatements) }
  }
}
