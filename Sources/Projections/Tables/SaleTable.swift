// The tables of sales, their transactions and their journal lines.
import Ledger
package import Revenue

/// Writes the sales of a store, and fetches those of earlier runs.
package final class SaleTable: SaleSource {
  private let database: Database
  private let symbols: StringInterner
  private let isFresh: Bool
  private var saleTarget: RowTarget?
  private var transactionTarget: RowTarget?
  private var lineTarget: RowTarget?
  private var refundTarget: RowTarget?
  private var claimTarget: RowTarget?
  private var figures: PackedSaleTable<SaleFigures>
  private var times: PackedSaleTable<StatementTime>
  /// Receives each sale that is written; nil if not needed.
  var additional: AdditionalFold?
  /// How many sales `storeSettled` has processed.
  private var settledCount = 0
  private lazy var selectByKey = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT \(Self.fetchedColumns) FROM sales
      WHERE sale_key = ? AND key_kind = ? AND environment = ? AND bundle = ?
      """)
  }
  private lazy var selectChain = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT \(Self.fetchedColumns) FROM sales WHERE chain_hash = ? AND original_transaction_id = ?
      AND environment = ? AND bundle = ? AND product = ? AND kind = 0
      """)
  }
  private lazy var selectOfAccount = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT \(Self.fetchedColumns) FROM sales INDEXED BY sales_account
      WHERE account = ? AND account IS NOT NULL AND NOT \(UserBasis.isByUploadSQL("user_basis"))
      """)
  }
  private lazy var selectTransactions = Result { () throws(DatabaseError) in
    try database.prepare("SELECT transaction_id FROM sale_transactions WHERE sale = ?")
  }
  private lazy var selectLines = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT line, date_ms, position, reason, share, advanced_micros, is_assumed, statement_ms
      FROM later_lines WHERE sale = ? ORDER BY ordinal
      """)
  }
  private lazy var selectRefunds = Result { () throws(DatabaseError) in
    try database.prepare("SELECT statements FROM refund_statements WHERE sale = ?")
  }
  private lazy var selectClaim = Result { () throws(DatabaseError) in
    try database.prepare("SELECT user, position FROM sale_claims WHERE sale = ?")
  }

  private lazy var selectAlias = Result { () throws(DatabaseError) in
    try database.prepare("SELECT 1 WHERE EXISTS(\(Self.aliasSQL))")
  }

  /// SQL: the numbers of the sales with the alias `?1`. Nearly all ids are digits, and an index of integers is small
  /// and quickly built.
  static let aliasSQL = """
    SELECT id FROM sales WHERE CAST(transaction_id AS INTEGER) = CAST(?1 AS INTEGER)
      AND transaction_id = ?1 AND is_transaction_alias = 1
    UNION ALL
    SELECT sale FROM sale_transactions WHERE CAST(transaction_id AS INTEGER) = CAST(?1 AS INTEGER)
      AND transaction_id = ?1
    """

  private static let columns = """
    id, environment, bundle, key_kind, sale_key, product, quantity, sale_date_ms, kind, \
    transaction_id, original_transaction_id, first_position, country, country_position, user, \
    user_position, unit_price_micros, currency, price_basis, price_position, price_problem, \
    is_upgraded, cancellation_state, version, created_at_ms, updated_at_ms, \
    is_transaction_alias, chain_hash, trust, flags, client_country, amount_micros, \
    period_end_ms, user_basis, account, token, token_user, token_position
    """
  private static let columnCount = 38
  /// With the times of the newest statements, which only the rules need.
  private static let fetchedColumns = "\(columns), \(StatementTime.ofSaleSQL)"

  package init(_ database: Database, _ symbols: StringInterner, isFresh: Bool) {
    self.database = database
    self.symbols = symbols
    self.isFresh = isFresh
    figures = PackedSaleTable(database)
    times = PackedSaleTable(database)
  }

  // MARK: Fetching

  package func fetch(_ key: SaleKey, into store: SaleStore) throws(DatabaseError) {
    let statement = try selectByKey.get()
    defer { statement.reset() }
    statement.bind(1, text: key.text)
    statement.bind(2, Int(key.kind.rawValue))
    statement.bind(3, Int(key.environment))
    statement.bind(4, Int(key.bundle))
    if try statement.step() { _ = try takeIn(statement, store) }
  }

  /// Fetches the sale with this number into the store and returns its index there; nil if there is none.
  func fetch(id: Int, into store: SaleStore) throws(DatabaseError) -> Int? {
    let statement = try database.prepare("SELECT \(Self.fetchedColumns) FROM sales WHERE id = ?")
    statement.bind(1, id)
    return try statement.step() ? try takeIn(statement, store) : nil
  }

  package func fetchChain(of sale: Sale, into store: SaleStore) throws(DatabaseError) {
    let statement = try selectChain.get()
    defer { statement.reset() }
    statement.bind(1, sale.originalTransactionID.indexHash)
    statement.bind(2, text: sale.originalTransactionID)
    statement.bind(3, Int(sale.environment))
    statement.bind(4, Int(sale.bundle))
    statement.bind(5, Int(sale.product))
    while try statement.step() { _ = try takeIn(statement, store) }
  }

  package func hasAlias(_ transaction: Text) throws(DatabaseError) -> Bool {
    let statement = try selectAlias.get()
    defer { statement.reset() }
    statement.bind(1, text: transaction)
    return try statement.step()
  }

  package func fetchSales(ofAccount account: Int32, into store: SaleStore) throws(DatabaseError) {
    let statement = try selectOfAccount.get()
    defer { statement.reset() }
    statement.bind(1, Int(account))
    while try statement.step() { _ = try takeIn(statement, store) }
  }

  package func claim(ofSale id: Int) throws(DatabaseError) -> SaleClaim? {
    let statement = try selectClaim.get()
    defer { statement.reset() }
    statement.bind(1, id)
    guard try statement.step() else { return nil }
    return SaleClaim(user: try statement.number(0), position: try statement.ordinal(1))
  }

  /// Fetches the sales that a price list could price: those without a price from another source.
  func fetchUnpriced(into store: SaleStore) throws(DatabaseError) {
    let statement = try database.prepare(
      "SELECT \(Self.fetchedColumns) FROM sales WHERE kind = 0 AND price_basis IN (?, ?)")
    statement.bind(1, Int(PriceBasis.none.rawValue))
    statement.bind(2, Int(PriceBasis.priceList.rawValue))
    while try statement.step() { _ = try takeIn(statement, store) }
  }

  /// All sales in numerical order, with texts in `arena`, but without aliases, lines, and times of statements.
  func all(_ arena: TextArena) throws(DatabaseError) -> [Sale] {
    let rows = try database.prepare("SELECT \(Self.columns) FROM sales ORDER BY id")
    var result: [Sale] = []
    while try rows.step() { result.append(try read(rows, arena)) }
    return result
  }

  /// Adds a row's sale to the store and returns its index there.
  private func takeIn(_ row: Statement, _ store: SaleStore) throws(DatabaseError) -> Int? {
    let key = SaleKey(
      environment: try row.number(1), bundle: try row.number(2),
      kind: try row.code(3), text: row.bytes(4))
    if let place = store.known(key) { return place }
    var sale = try read(row, store.arena)
    let time = row.bytes(Int32(Self.columnCount))
    if time.count == StatementTime.byteCount, let start = time.baseAddress {
      sale.newestReplyMs = StatementTime(start)?.newestReplyMs ?? .min
      sale.newestReplyEventMs = StatementTime(start)?.newestReplyEventMs ?? .min
      sale.newestSignedMs = StatementTime(start)?.newestSignedMs ?? .min
      sale.periodEndStatementMs = StatementTime(start)?.periodEndMs ?? .min
    }
    let place = store.takeIn(sale)
    if try row.flag(26) {
      _ = store.addAlias(place, store.sales[place].transactionID, isNew: false)
    }
    try takeInParts(place, store)
    return place
  }

  private func read(_ row: Statement, _ arena: TextArena) throws(DatabaseError) -> Sale {
    var sale = Sale(
      id: try row.ordinal(0), environment: try row.number(1), bundle: try row.number(2),
      keyKind: try row.code(3), key: arena.keep(row.bytes(4)))
    sale.product = try row.number(5)
    sale.quantity = try row.number(6, in: 1...Sale.quantityMax)
    sale.saleDateMs = try row.instant(7)
    sale.kind = try row.code(8)
    sale.transactionID = arena.keep(row.bytes(9))
    sale.originalTransactionID = arena.keep(row.bytes(10))
    sale.firstPosition = try row.ordinal(11)
    sale.country = try row.symbol(12)
    sale.countryPosition = try row.optionalOrdinal(13) ?? -1
    sale.user = try row.optionalNumber(14) ?? -1
    sale.userPosition = try row.optionalOrdinal(15) ?? -1
    sale.priceBasis = try row.code(18)
    if let micros = try row.optionalUnsigned(16), let amount = try row.optionalUnsigned(31),
      let currency = Currency.parse(symbols.text(try row.number(17)))
    {
      guard !micros.multipliedReportingOverflow(by: sale.quantity).overflow
      else { throw DatabaseError(inconsistency: "the amount of a sale exceeds 64 bits") }
      sale.price = UnitPrice(micros: micros, currency: currency)
      if sale.priceBasis == .signedTransaction { sale.signedAmountMicros = amount }
    }
    sale.pricePosition = try row.optionalOrdinal(19) ?? -1
    sale.priceProblem = try row.code(20)
    sale.isUpgraded = try row.flag(21)
    sale.cancellationState = try row.code(22)
    sale.version = try row.ordinal(23)
    sale.createdAtMs = try row.instant(24)
    sale.updatedAtMs = try row.instant(25)
    sale.trust = try row.code(28)
    sale.flags = SaleFlags(rawValue: try row.number(29))
    sale.clientCountry = try row.symbol(30)
    sale.periodEndMs = try row.optionalInstant(32)
    sale.userBasis = try row.code(33)
    sale.account = try row.optionalNumber(34) ?? -1
    sale.token = row.optionalInteger(35) ?? 0
    sale.tokenUser = try row.optionalNumber(36) ?? -1
    sale.tokenPosition = try row.optionalOrdinal(37) ?? -1
    sale.isChanged = false
    sale.isTimeChanged = false
    sale.isFirstObservation = false
    return sale
  }

  private func takeInParts(_ place: Int, _ store: SaleStore) throws(DatabaseError) {
    let id = store.sales[place].id
    let transactions = try selectTransactions.get()
    defer { transactions.reset() }
    transactions.bind(1, id)
    while try transactions.step() {
      _ = store.addAlias(place, transactions.bytes(0), isNew: false)
    }
    let lines = try selectLines.get()
    defer { lines.reset() }
    lines.bind(1, id)
    while try lines.step() {
      store.addLine(
        place,
        SaleLine(
          type: try lines.code(0), dateMs: try lines.instant(1),
          position: try lines.ordinal(2), statementMs: try lines.optionalInstant(7) ?? .min,
          reason: store.arena.keep(lines.bytes(3)),
          share: try lines.share(4),
          advancedMicros: try lines.unsigned(5), isAssumed: try lines.flag(6)))
    }
    if store.sales[place].flags.contains(.hasRefundStatements) {
      try takeInRefunds(place, id, store)
    }
  }

  private func takeInRefunds(
    _ place: Int, _ id: Int, _ store: SaleStore
  ) throws(DatabaseError) {
    let refunds = try selectRefunds.get()
    defer { refunds.reset() }
    refunds.bind(1, id)
    guard try refunds.step(),
      let history = RefundHistory(stored: refunds.bytes(0), store.arena)
    else { throw DatabaseError(inconsistency: "a sale has refunds without their statements") }
    store.setRefunds(of: place, history)
  }

  // MARK: Writing

  /// Writes the changed sales with their transactions, lines and refunds, and the times of statements.
  package func store(_ sales: SaleStore, _ rows: RowWriter) throws(DatabaseError) {
    if !isFresh { try queueTimes(sales) }
    for place in sales.sales.indices where sales.sales[place].isChanged {
      try write(place, sales, rows)
    }
    try writeClaims(sales, rows)
    if isFresh {
      try figures.storeAll(sales, rows) { figures(of: $0) }
      try times.storeAll(sales, rows) { StatementTime($0) }
    } else {
      try figures.store(rows)
      try times.store(rows)
    }
  }

  /// Queues the times of new sales, and those that changed.
  private func queueTimes(_ sales: SaleStore) throws(DatabaseError) {
    let storedCount = Int(try database.nextNumber(of: "sales"))
    for place in sales.sales.indices {
      let sale = sales.sales[place]
      guard sale.isTimeChanged || sale.id >= storedCount else { continue }
      times.add(StatementTime(sale), ofSale: sale.id)
      sales.update(place) { $0.isTimeChanged = false }
    }
  }

  private func figures(of sale: Sale) -> SaleFigures {
    SaleFigures(sale, currency: sale.price.map { symbols.symbol($0.currency) } ?? .none)
  }

  /// Writes, in order, the sales first seen before a position that have not changed since.
  func storeSettled(
    _ sales: SaleStore, before position: Position, _ rows: RowWriter
  ) throws(DatabaseError) {
    while settledCount < sales.sales.count, sales.sales[settledCount].firstPosition < position {
      let place = settledCount
      settledCount += 1
      if sales.sales[place].updatedPosition >= position { continue }
      try write(place, sales, rows)
    }
  }

  /// Rewrites sales that have changed since they were written, but not since a position.
  func storeAgain(
    _ sales: SaleStore, before position: Position, _ rows: RowWriter
  ) throws(DatabaseError) {
    for place in 0..<settledCount
    where sales.sales[place].isChanged && sales.sales[place].updatedPosition < position {
      try write(place, sales, rows)
    }
  }

  private func write(
    _ place: Int, _ sales: SaleStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    let sale = sales.sales[place]
    rows.begin(try target(rows))
    add(sale, rows)
    rows.add(sales.hasAlias(place, sale.transactionID) ? 1 : 0)
    rows.add(sale.originalTransactionID.isEmpty ? nil : sale.originalTransactionID.indexHash)
    rows.add(Int(sale.trust.rawValue))
    rows.add(Int(sale.flags.rawValue))
    rows.add(symbol: sale.clientCountry)
    rows.add(sale.amountMicros)
    rows.add(sale.periodEndMs)
    rows.add(Int(sale.userBasis.rawValue))
    rows.add(symbol: sale.account)
    rows.add(sale.token == 0 ? nil : sale.token)
    rows.add(symbol: sale.tokenUser)
    rows.add(position: sale.tokenPosition)
    try rows.end()
    try storeTransactions(of: place, sales, rows)
    try writeLines(of: sale, sales, rows)
    try writeRefunds(of: place, sales, rows)
    try additional?.fold(place, of: sales)
    if !isFresh { figures.add(figures(of: sale), ofSale: sale.id) }
    sales.update(place) { $0.isChanged = false }
  }

  private func target(_ rows: RowWriter) throws(DatabaseError) -> RowTarget {
    if let saleTarget { return saleTarget }
    let made = try rows.target(
      upserting: "sales(\(Self.columns))", valueCount: Self.columnCount, key: "id",
      changing: Self.changing)
    saleTarget = made
    return made
  }

  /// The columns that later observations and price lists change. The first observation fixes the others.
  private static let changing = [
    "quantity", "kind", "country", "country_position", "user", "user_position",
    "unit_price_micros", "currency", "price_basis", "price_position", "price_problem",
    "is_upgraded", "cancellation_state", "version", "updated_at_ms", "is_transaction_alias",
    "flags", "client_country", "amount_micros", "period_end_ms", "user_basis", "account", "token",
    "token_user", "token_position",
  ]

  private func add(_ sale: Sale, _ rows: RowWriter) {
    rows.add(sale.id)
    rows.add(Int(sale.environment))
    rows.add(Int(sale.bundle))
    rows.add(Int(sale.keyKind.rawValue))
    rows.add(kept: sale.key)
    rows.add(Int(sale.product))
    rows.add(sale.quantity)
    rows.add(sale.saleDateMs)
    rows.add(Int(sale.kind.rawValue))
    rows.add(kept: sale.transactionID)
    rows.add(kept: sale.originalTransactionID)
    rows.add(sale.firstPosition)
    rows.add(symbol: sale.country)
    rows.add(position: sale.countryPosition)
    rows.add(symbol: sale.user)
    rows.add(position: sale.userPosition)
    rows.add(sale.price?.micros)
    rows.add(symbol: sale.price.map { symbols.symbol($0.currency) } ?? .none)
    rows.add(Int(sale.priceBasis.rawValue))
    rows.add(position: sale.pricePosition)
    rows.add(Int(sale.priceProblem.rawValue))
    rows.add(sale.isUpgraded ? 1 : 0)
    rows.add(Int(sale.cancellationState.rawValue))
    rows.add(sale.version)
    rows.add(sale.createdAtMs)
    rows.add(sale.updatedAtMs)
  }

  /// Writes new aliases, except the sale's own transaction, which is in the sale's row.
  private func storeTransactions(
    of place: Int, _ sales: SaleStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    let sale = sales.sales[place]
    for transaction in sales.takeNewAliases(place) where !transaction.equals(sale.transactionID) {
      if transactionTarget == nil {
        transactionTarget = try rows.target(
          "INSERT OR IGNORE INTO sale_transactions", valueCount: 2)
      }
      guard let transactionTarget else { return }
      rows.begin(transactionTarget)
      rows.add(sale.id)
      rows.add(kept: transaction)
      try rows.end()
    }
  }

  /// Writes all lines of a sale with their figures. Their number never shrinks, so replacing the old rows is enough.
  private func writeLines(
    of sale: Sale, _ sales: SaleStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    if sale.firstLine < 0 { return }
    if lineTarget == nil {
      lineTarget = try rows.target("INSERT OR REPLACE INTO later_lines", valueCount: 13)
    }
    guard let lineTarget else { return }
    var ordinal = 1
    var walk = RefundWalk(sale)
    var hasExceeded = false
    try sales.forEachLine(of: sale) { line throws(DatabaseError) in
      let figures = walk.next(line)
      rows.begin(lineTarget)
      rows.add(sale.id)
      rows.add(ordinal)
      rows.add(Int(line.type.rawValue))
      rows.add(line.dateMs)
      rows.add(line.position)
      rows.add(kept: line.reason)
      rows.add(figures.quantity)
      rows.add(figures.amountMicros)
      rows.add(Int(line.share.thousandths))
      rows.add(line.advancedMicros)
      rows.add(line.isAssumed ? 1 : 0)
      rows.add(walk.exceedsAmount && !hasExceeded ? 1 : 0)
      rows.add(line.statementMs == .min ? nil : line.statementMs)
      try rows.end()
      if walk.exceedsAmount { hasExceeded = true }
      ordinal += 1
    }
  }

  private func writeClaims(_ sales: SaleStore, _ rows: RowWriter) throws(DatabaseError) {
    for (sale, claim) in sales.takeNewClaims() {
      if claimTarget == nil {
        claimTarget = try rows.target("INSERT OR REPLACE INTO sale_claims", valueCount: 3)
      }
      guard let claimTarget else { return }
      rows.begin(claimTarget)
      rows.add(sale)
      rows.add(Int(claim.user))
      rows.add(claim.position)
      try rows.end()
    }
  }

  /// Writes what statements contain about refunds of a sale, if any.
  private func writeRefunds(
    of place: Int, _ sales: SaleStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    guard let history = sales.refunds(of: place) else { return }
    if refundTarget == nil {
      refundTarget = try rows.target("INSERT OR REPLACE INTO refund_statements", valueCount: 2)
    }
    guard let refundTarget else { return }
    rows.begin(refundTarget)
    rows.add(sales.sales[place].id)
    withText(history.stored) { rows.add(blob: $0) }
    try rows.end()
  }
}
