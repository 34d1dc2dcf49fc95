// Queries about sales: by key, by the events that changed them, by the replies that show them.
import AppStore
import Base
package import Ledger
import Revenue

extension LedgerQueries {
  /// The sales with this key or, if there are none, those that have a transaction with this id. Sales of pending
  /// receipts are included.
  package func sales(key: String) throws -> [SaleDetail] {
    let confirmed = try sales("sale_key = ?") { $0.bind(1, text: key) }
    let found = try confirmed + pendingSales { self.string($0.key) == key }
    if !found.isEmpty { return found }
    let confirmedByAlias = try sales("id IN (\(SaleTable.aliasSQL))") { $0.bind(1, text: key) }
    return try confirmedByAlias + pendingSales(ofTransaction: key)
  }

  /// The sales that an upload contributed to, directly or through its verifications. An upload of signed transactions
  /// needs none.
  package func sales(changedByUpload position: Position) throws -> [SaleDetail] {
    try sales(
      """
      country_position = ?1 OR user_position = ?1 OR price_position = ?1 OR first_position = ?1
      OR first_position IN (SELECT position FROM verifications WHERE upload = ?1)
      OR id IN (SELECT sale FROM later_lines WHERE position = ?1
      OR position IN (SELECT position FROM verifications WHERE upload = ?1))
      """
    ) { $0.bind(1, position) }
      + pendingSales { sale in
        sale.countryPosition == position || sale.userPosition == position
          || sale.pricePosition == position
      }
  }

  /// The exceptions of a sale.
  package func exceptions(of sale: SaleDetail) throws -> [ExceptionDetail] {
    try exceptions("s.sale_key = ? AND s.first_position = ?") {
      $0.bind(1, text: sale.saleKey)
      $0.bind(2, sale.firstPosition)
    }
  }

  // MARK: Shown by a reply

  /// The sales that a verification's reply shows, sorted by date, then key.
  package func sales(shownBy verification: VerificationDetail) throws -> [SaleDetail] {
    guard verification.authority == Authority.appStore.rawValue,
      verification.outcome == Outcome.valid.rawValue, let position = verification.replyPosition
    else { return [] }
    let line = try readEvent(position)
    return try withText(line) { line in
      guard let event = EventLine(line), EventType(event.type) == .receiptVerified else {
        return []
      }
      try EventType.receiptVerified.checkVersion(event.version)
      let view = try ReceiptVerifiedView(data: event.data)
      guard let reply = view.reply else { return [] }
      return try sales(
        shownBy: reply, view.notification,
        environment: symbols.symbol(verification.environment),
        receiptID: verification.receiptID)
    }
  }

  /// The purchases of a receipt: the sales that its latest reply shows or, while it is pending, those in its file.
  package func purchases(of receipt: ReceiptDetail) throws -> [SaleDetail] {
    if let position = receipt.replyPosition {
      let verification = try verifications(ofReceipt: receipt.receiptID).last {
        $0.replyPosition == position
          && $0.authority == Authority.appStore.rawValue && $0.outcome == Outcome.valid.rawValue
      }
      return try verification.map { try sales(shownBy: $0) } ?? []
    }
    let row = try database.prepare(
      """
      SELECT p.environment, p.purchases FROM pending_receipts p JOIN receipts r ON r.id = p.receipt
      WHERE \(Self.isReceipt)
      """)
    Self.bind(receipt: receipt.receiptID, to: row)
    guard try row.step() else { return [] }
    return try sales(
      shownBy: row.bytes(1), nil, environment: symbols.symbol(row.bytes(0)),
      receiptID: receipt.receiptID)
  }

  /// - Parameter receiptID: a reply that names no bundle has its receipt's (rule R2).
  private func sales(
    shownBy reply: Text, _ notification: Text?, environment: Symbol, receiptID: String
  ) throws -> [SaleDetail] {
    let keeper = TextKeeper()
    let reply = try Reply(reply, keeper, notification: notification)
    let bundle = try reply.bundleID.map { symbols.symbol($0) } ?? bundle(ofReceipt: receiptID)
    return try sales(
      withKeys: reply.rows.compactMap { SaleKey(of: $0, environment: environment, bundle: bundle) })
  }

  private func bundle(ofReceipt receiptID: String) throws -> Symbol {
    let row = try database.prepare(
      "SELECT bundle FROM receipts WHERE receipt_hash = ?1 AND receipt_id = ?2")
    Self.bind(receipt: receiptID, to: row)
    guard try row.step() else { return symbols.symbol("") }
    return try row.symbol(0)
  }

  /// The sales with these keys, sorted by date, then key.
  func sales(withKeys keys: [SaleKey]) throws -> [SaleDetail] {
    var result: [SaleDetail] = []
    var seen: Set<SaleKey> = []
    for key in keys where seen.insert(key).inserted {
      if let place = try store.find(key) {
        result.append(try detail(place, store))
      } else if let pending = try pending(), let place = pending.store.known(key) {
        result.append(try detail(place, pending.store))
      }
    }
    return result.sorted { ($0.saleDateMs, $0.saleKey) < ($1.saleDateMs, $1.saleKey) }
  }

  // MARK: Details

  func sales(_ condition: String, _ bind: (Statement) -> Void) throws -> [SaleDetail] {
    let rows = try database.prepare(
      "SELECT id FROM sales WHERE \(condition) ORDER BY sale_date_ms, id")
    bind(rows)
    var result: [SaleDetail] = []
    while try rows.step() {
      guard let place = try table.fetch(id: try rows.ordinal(0), into: store) else { continue }
      result.append(try detail(place, store))
    }
    return result
  }

  /// The pending sales that satisfy `condition`.
  func pendingSales(_ condition: (Sale) -> Bool) throws -> [SaleDetail] {
    guard let pending = try pending() else { return [] }
    let sales = pending.store.sales
    return try sales.indices.filter { sales[$0].isPending && condition(sales[$0]) }
      .map { try detail($0, pending.store) }
  }

  /// The pending sales that have a transaction with this id.
  private func pendingSales(ofTransaction id: String) throws -> [SaleDetail] {
    guard let pending = try pending() else { return [] }
    let store = pending.store
    let places = withText(id) { id in
      store.sales.indices.filter { store.sales[$0].isPending && store.hasAlias($0, id) }
    }
    return try places.map { try detail($0, store) }
  }

  func string(_ text: Text) -> String { String(decoding: text, as: UTF8.self) }

  private func detail(_ place: Int, _ store: SaleStore) throws -> SaleDetail {
    let sale = store.sales[place]
    var lines: [LineDetail] = []
    store.forEachJournalLine(of: sale) { line in
      lines.append(
        LineDetail(
          line: "\(line.type.word)", dateMs: line.dateMs, quantity: line.quantity,
          amountMicros: line.amountMicros, reason: line.reason.isEmpty ? nil : string(line.reason),
          position: line.position))
    }
    func position(_ value: Int) -> Position? { value >= 0 ? value : nil }
    let isUnpriced = sale.priceBasis == .none
    return SaleDetail(
      environment: symbols.string(sale.environment), bundleID: symbols.string(sale.bundle),
      saleKey: string(sale.key), productID: symbols.string(sale.product),
      kind: "\(sale.kind.word)", quantity: sale.quantity, saleDateMs: sale.saleDateMs,
      transactionID: string(sale.transactionID),
      originalTransactionID: string(sale.originalTransactionID),
      transactionIDs: store.sortedAliases(place).map(string), firstPosition: sale.firstPosition,
      countryCode: string(symbols.country(sale.country)),
      countryPosition: position(sale.countryPosition),
      userIdentifier: try userIdentifier(sale.user), userPosition: position(sale.userPosition),
      userBasis: "\(sale.userBasis.word)", currency: sale.price?.currency,
      unitPriceMicros: sale.price?.micros,
      amountMicros: sale.amountMicros, priceBasis: "\(sale.priceBasis.word)",
      pricePosition: position(sale.pricePosition),
      priceProblem: isUnpriced ? "\(sale.priceProblem.word)" : nil, isUpgraded: sale.isUpgraded,
      isCancelled: sale.cancellationState == .returned, isPending: sale.isPending, lines: lines)
  }

  private func userIdentifier(_ number: Int32) throws -> String? {
    guard number >= 0 else { return nil }
    let row = try database.prepare("SELECT user_identifier FROM users WHERE id = ?")
    row.bind(1, Int(number))
    return try row.step() ? row.text(0) : nil
  }
}
