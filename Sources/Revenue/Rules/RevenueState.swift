// The state of a fold without a database: saved as bytes, and loaded to continue without a replay.
import Base

/// Symbols, sales, exceptions and declared prices, all in memory. Users are identified by symbols.
package final class RevenueState {
  private let arena = TextArena()
  package let symbols: StringInterner
  package let store: SaleStore
  package let subscriptions: SubscriptionStore
  package let accounts: AccountStore
  package let exceptions: ExceptionList
  package var priceList = PriceList()

  private static let magic = Array("RLRS".utf8)
  private static let version: UInt8 = 6
  private static var headerSize: Int { magic.count + 1 }
  /// A unit price has at most 11 digits before its 6 decimals.
  private static let microsMax: Int64 = 99_999_999_999_999_999

  /// Creates an empty state.
  package convenience init() { self.init(saleCount: 0) }

  private init(saleCount: Int) {
    symbols = StringInterner(arena)
    store = SaleStore(arena, nextID: saleCount)
    subscriptions = SubscriptionStore(arena)
    accounts = AccountStore(arena)
    exceptions = ExceptionList(arena)
  }

  /// Creates a fold that applies the rules to this state.
  package func fold() -> RevenueFold {
    RevenueFold(
      store: store, subscriptions: subscriptions, accounts: accounts, symbols: symbols,
      exceptions: exceptions, userIdentifier: { [symbols] in symbols.text($0) },
      tokenUser: { [symbols] in symbols.symbol($0) })
  }

  /// Derives the prices that follow from other sales and from the price list (rule R7, 4 to 6), and the users that
  /// follow from Apple Accounts (rule R6).
  package func derive() throws {
    try fold().settleUsers()
    priceList.sort()
    try DerivedPrices(store: store, symbols: symbols, priceList: priceList).settle { _ in true }
  }

  // MARK: Saving

  /// The state as bytes: magic, version, the counted parts, and the SHA-256 of all of these.
  package func save() -> [UInt8] {
    var writer = StateWriter(Self.magic + [Self.version])
    writer.write(symbols.count)
    for symbol in 0..<symbols.count { writer.write(symbols.text(Symbol(symbol))) }
    writer.write(store.sales.count)
    for place in store.sales.indices { save(place, &writer) }
    writer.write(subscriptions.subscriptions.count)
    for subscription in subscriptions.subscriptions { subscription.save(&writer) }
    writer.write(accounts.accounts.count)
    for place in accounts.accounts.indices {
      accounts.accounts[place].save(accounts.users(place), &writer)
    }
    let prices = priceList.all
    writer.write(prices.count)
    for (product, entry) in prices {
      writer.write(product)
      writer.write(entry.country)
      writer.write(entry.effectiveFromMs)
      writer.write(entry.position)
      writer.write(entry.ordinal)
      writer.write(entry.price)
    }
    writer.write(exceptions.entries.count)
    for (key, position) in exceptions.entries {
      writer.write(key.type.rawValue)
      writer.write(key.sale)
      writer.write(key.environment)
      writer.write(key.bundle)
      writer.write(key.product.text)
      writer.write(key.transaction.text)
      writer.write(key.detail.text)
      writer.write(position)
    }
    return writer.bytes + writer.bytes.withUnsafeBytes { SHA256.hash($0) }.bytes
  }

  private func save(_ place: Int, _ writer: inout StateWriter) {
    let sale = store.sales[place]
    precondition(sale.id == place, "a sale of a state in memory is not at its number's place")
    writer.write(sale.environment)
    writer.write(sale.bundle)
    writer.write(sale.keyKind.rawValue)
    writer.write(sale.key)
    writer.write(sale.product)
    writer.write(sale.quantity)
    writer.write(sale.saleDateMs)
    writer.write(sale.kind.rawValue)
    writer.write(sale.transactionID)
    writer.write(sale.originalTransactionID)
    writer.write(sale.firstPosition)
    writer.write(sale.trust.rawValue)
    writer.write(sale.flags.rawValue)
    writer.write(sale.clientCountry)
    writer.write(sale.country)
    writer.write(sale.countryPosition)
    writer.write(sale.user)
    writer.write(sale.userPosition)
    writer.write(sale.userBasis.rawValue)
    writer.write(sale.account)
    writer.write(sale.token)
    writer.write(sale.tokenUser)
    writer.write(sale.tokenPosition)
    writer.write(sale.priceBasis.rawValue)
    if let price = sale.price { writer.write(price) }
    writer.write(sale.signedAmountMicros)
    writer.write(sale.pricePosition)
    writer.write(sale.priceProblem.rawValue)
    writer.write(sale.isUpgraded ? 1 : 0)
    writer.write(sale.isPending ? 1 : 0)
    for timeMs in [sale.newestReplyMs, sale.newestReplyEventMs, sale.newestSignedMs] {
      writer.write(timeMs == .min ? nil : timeMs)
    }
    writer.write(sale.periodEndMs)
    writer.write(sale.periodEndStatementMs)
    writer.write(sale.cancellationState.rawValue)
    writer.write(sale.version)
    writer.write(sale.createdAtMs)
    writer.write(sale.updatedAtMs)
    writer.write(sale.updatedPosition)
    let aliases = store.aliases(place)
    writer.write(aliases.count)
    for alias in aliases { writer.write(alias) }
    var lines: [SaleLine] = []
    store.forEachLine(of: sale) { lines.append($0) }
    writer.write(lines.count)
    for line in lines {
      writer.write(line.type.rawValue)
      writer.write(line.dateMs)
      writer.write(line.position)
      writer.write(line.statementMs)
      writer.write(line.reason)
      writer.write(line.share.thousandths)
      writer.write(line.advancedMicros)
      writer.write(line.isAssumed ? 1 : 0)
    }
    store.refunds(of: place)?.save(&writer)
  }

  // MARK: Loading

  /// Loads a state from its saved bytes. It uses at most a small multiple of their size in memory.
  package static func load(_ bytes: UnsafeRawBufferPointer) throws(RevenueStateError)
    -> RevenueState
  {
    guard bytes.starts(with: magic) else { throw .notState }
    guard bytes.count > headerSize else { throw .damaged }
    guard bytes[magic.count] == version else { throw .unknownVersion(bytes[magic.count]) }
    let contentCount = bytes.count - SHA256Digest.byteCount
    guard contentCount >= headerSize else { throw .damaged }
    let content = UnsafeRawBufferPointer(rebasing: bytes[..<contentCount])
    guard bytes[contentCount...].elementsEqual(SHA256.hash(content).bytes) else { throw .damaged }
    var reader = StateReader(UnsafeRawBufferPointer(rebasing: content[headerSize...]))
    let texts = try reader.list { reader throws(RevenueStateError) in try reader.text() }
    let saleCount = try reader.count()
    let state = RevenueState(saleCount: saleCount)
    for (number, text) in texts.enumerated() {
      guard state.symbols.symbol(text) == Symbol(number) else { throw .inconsistent }
    }
    for number in 0..<saleCount { try state.loadSale(number, &reader) }
    for number in 0..<(try reader.count()) {
      let subscription = try Subscription(
        id: number, saleCount: saleCount, symbolCount: texts.count, &reader, state.arena)
      guard state.subscriptions.known(subscription.key) == nil else { throw .inconsistent }
      _ = state.subscriptions.takeIn(subscription)
    }
    for number in 0..<(try reader.count()) {
      let (account, users) = try Account.load(
        id: Int32(number), symbolCount: texts.count, &reader, state.arena)
      guard state.accounts.known(account.key) == nil else { throw .inconsistent }
      state.accounts.takeIn(account, users: users)
    }
    let accountCount = state.accounts.accounts.count
    guard state.store.sales.allSatisfy({ $0.account < accountCount }),
      state.subscriptions.subscriptions.allSatisfy({ $0.account < accountCount })
    else { throw .inconsistent }
    for _ in 0..<(try reader.count()) { try state.loadPrice(&reader) }
    state.priceList.sort()
    for _ in 0..<(try reader.count()) { try state.loadException(saleCount, &reader) }
    guard reader.isAtEnd else { throw .inconsistent }
    return state
  }

  private func loadSale(_ id: Int, _ reader: inout StateReader) throws(RevenueStateError) {
    let count = symbols.count
    var sale = Sale(
      id: id, environment: try reader.symbol(below: count), bundle: try reader.symbol(below: count),
      keyKind: try reader.value(), key: store.arena.keep(try reader.text()))
    sale.product = try reader.symbol(below: count)
    sale.quantity = try reader.integer(in: 1...Sale.quantityMax)
    sale.saleDateMs = try reader.instant()
    sale.kind = try reader.value()
    sale.transactionID = store.arena.keep(try reader.text())
    sale.originalTransactionID = store.arena.keep(try reader.text())
    sale.firstPosition = try reader.position()
    sale.trust = try reader.value()
    sale.flags = SaleFlags(
      rawValue: UInt16(try reader.integer(in: 0...Int64(SaleFlags.all.rawValue))))
    sale.clientCountry = try reader.symbol(orNoneBelow: count)
    sale.country = try reader.symbol(orNoneBelow: count)
    sale.countryPosition = try reader.position()
    sale.user = try reader.symbol(orNoneBelow: count)
    sale.userPosition = try reader.position()
    sale.userBasis = try reader.value()
    sale.account = Int32(try reader.integer(in: -1...Int64(Int32.max)))
    sale.token = try reader.integer()
    sale.tokenUser = try reader.symbol(orNoneBelow: count)
    sale.tokenPosition = try reader.position()
    sale.priceBasis = try reader.value()
    guard sale.kind.isPaid == (sale.priceBasis != .notApplicable) else { throw .inconsistent }
    if sale.priceBasis != .none, sale.priceBasis != .notApplicable {
      sale.price = try reader.price(microsMax: Self.microsMax)
    }
    sale.signedAmountMicros = try reader.integer(in: 0...Self.microsMax)
    guard sale.hasAmount else { throw .inconsistent }
    sale.pricePosition = try reader.position()
    sale.priceProblem = try reader.value()
    sale.isUpgraded = try reader.integer(in: 0...1) == 1
    sale.isPending = try reader.integer(in: 0...1) == 1
    sale.newestReplyMs = try reader.optionalInstant() ?? .min
    sale.newestReplyEventMs = try reader.optionalInstant() ?? .min
    sale.newestSignedMs = try reader.optionalInstant() ?? .min
    sale.periodEndMs = try reader.optionalInstant()
    sale.periodEndStatementMs = try reader.integer()
    sale.cancellationState = try reader.value()
    sale.version = Int(try reader.integer(in: 1...Int64(Int32.max)))
    sale.createdAtMs = try reader.integer()
    sale.updatedAtMs = try reader.integer()
    sale.updatedPosition = try reader.position()
    let key = SaleKey(
      environment: sale.environment, bundle: sale.bundle, kind: sale.keyKind, text: sale.key)
    guard store.known(key) == nil else { throw .inconsistent }
    let place = store.takeIn(sale)
    for _ in 0..<(try reader.count()) { store.appendAlias(place, try reader.text()) }
    for _ in 0..<(try reader.count()) {
      let type: LineType = try reader.value()
      guard type != .sale else { throw .inconsistent }
      store.addLine(
        place,
        SaleLine(
          type: type, dateMs: try reader.instant(),
          position: try reader.position(), statementMs: try reader.integer(),
          reason: store.arena.keep(try reader.text()),
          share: RefundShare(percentage: Int32(try reader.integer(in: 0...100_000))),
          advancedMicros: try reader.integer(in: 0...Int64.max),
          isAssumed: try reader.integer(in: 0...1) == 1))
    }
    if sale.hasRefundStatements {
      store.setRefunds(of: place, try RefundHistory(&reader, store.arena))
    }
  }

  private func loadPrice(_ reader: inout StateReader) throws(RevenueStateError) {
    let product = try reader.symbol(below: symbols.count)
    let entry = PriceList.Entry(
      country: try reader.symbol(orNoneBelow: symbols.count),
      effectiveFromMs: try reader.instant(), position: try reader.position(),
      ordinal: try reader.position(), price: try reader.price(microsMax: Self.microsMax))
    priceList.add(product, entry)
  }

  private func loadException(
    _ saleCount: Int, _ reader: inout StateReader
  ) throws(RevenueStateError) {
    let key = ExceptionList.Key(
      type: try reader.value(), sale: Int(try reader.integer(in: -1...Int64(saleCount) - 1)),
      environment: try reader.symbol(below: symbols.count),
      bundle: try reader.symbol(below: symbols.count),
      product: TextKey(text: try reader.text()), transaction: TextKey(text: try reader.text()),
      detail: TextKey(text: try reader.text()))
    exceptions.add(key, try reader.position())
  }
}

/// Why bytes cannot be loaded as a state.
package enum RevenueStateError: Error, Equatable, CustomStringConvertible {
  case notState
  case unknownVersion(UInt8)
  case damaged
  case inconsistent

  package var description: String {
    let cause =
      switch self {
      case .notState: "these bytes are no saved state"
      case .unknownVersion(let version): "its version \(version) is not known to this program"
      case .damaged: "it is damaged: its SHA-256 differs"
      case .inconsistent: "its parts contradict each other"
      }
    return "loading the revenue state: \(cause)"
  }
}
