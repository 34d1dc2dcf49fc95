// Queries about events with signed objects, and about what each event states about a sale.
import AppStore
import Base
package import Ledger
import Revenue

extension LedgerQueries {
  // MARK: Notifications

  /// The notification at a position; nil if there is none.
  package func notification(at position: Position) throws -> NotificationDetail? {
    try notifications("position = ?") { $0.bind(1, position) }.first
  }

  /// The notifications with this `notificationUUID`, in order.
  package func notifications(uuid: String) throws -> [NotificationDetail] {
    try notifications("uuid_hash = ?1 AND notification_uuid = ?2") {
      Self.bind(receipt: uuid, to: $0)
    }
  }

  /// The notifications with a transaction of one of the sales, in order.
  func notifications(about sales: [SaleDetail]) throws -> [NotificationDetail] {
    var positions: Set<Position> = []
    for sale in sales { positions.formUnion(try signedStatements(of: sale)) }
    return try positions.sorted().compactMap {
      try notification(at: $0) ?? legacyNotification(at: $0)
    }
  }

  /// The version 1 notification whose reply is at a position; nil if there is none.
  package func legacyNotification(at position: Position) throws -> NotificationDetail? {
    let rows = try database.prepare(
      """
      SELECT type, environment, bundle, original_transaction_id, transaction_id, occurred_at_ms
      FROM legacy_notifications WHERE position = ?
      """)
    rows.bind(1, position)
    guard try rows.step() else { return nil }
    return NotificationDetail(
      position: position, type: try text(rows, symbolAt: 0) ?? "",
      environment: try text(rows, symbolAt: 1) ?? "", bundleID: try text(rows, symbolAt: 2) ?? "",
      originalTransactionID: rows.optionalText(3), transactionID: rows.optionalText(4),
      occurredAtMs: try rows.instant(5))
  }

  private func notifications(
    _ condition: String, _ bind: (Statement) -> Void
  ) throws -> [NotificationDetail] {
    let rows = try database.prepare(
      """
      SELECT position, notification_uuid, type, subtype, environment, bundle,
      original_transaction_id, transaction_id, signed_at_ms, occurred_at_ms
      FROM notifications WHERE \(condition) ORDER BY position
      """)
    bind(rows)
    var result: [NotificationDetail] = []
    while try rows.step() {
      result.append(
        NotificationDetail(
          position: try rows.ordinal(0), notificationUUID: rows.text(1),
          type: try text(rows, symbolAt: 2) ?? "", subtype: try text(rows, symbolAt: 3),
          environment: try text(rows, symbolAt: 4) ?? "",
          bundleID: try text(rows, symbolAt: 5) ?? "",
          originalTransactionID: rows.optionalText(6), transactionID: rows.optionalText(7),
          signedAtMs: try rows.optionalInstant(8), occurredAtMs: try rows.instant(9)))
    }
    return result
  }

  // MARK: Fetched pages

  /// The fetched page at a position; nil if there is none.
  package func fetchedPage(at position: Position) throws -> FetchDetail? {
    let rows = try database.prepare(
      """
      SELECT call, environment, bundle, transaction_id, from_ms, to_ms, revision, error_code,
      has_more, occurred_at_ms FROM fetched_pages WHERE position = ?
      """)
    rows.bind(1, position)
    guard try rows.step() else { return nil }
    let call: FetchCallCode = try rows.code(0)
    return FetchDetail(
      position: position, call: call.call.rawValue,
      environment: try text(rows, symbolAt: 1) ?? "",
      bundleID: try text(rows, symbolAt: 2) ?? "", transactionID: rows.optionalText(3),
      fromMs: try rows.optionalInstant(4), toMs: try rows.optionalInstant(5),
      revision: rows.optionalText(6), errorCode: rows.optionalInteger(7),
      hasMore: try rows.flag(8), occurredAtMs: try rows.instant(9))
  }

  // MARK: Signed transactions

  /// The sales that the signed transactions of an event show, sorted by date, then key; none if the event counts for
  /// nothing or is of another type.
  package func sales(shownBySignedEvent line: [UInt8]) throws -> [SaleDetail] {
    let keeper = TextKeeper()
    return try withText(line) { line in
      try sales(
        withKeys: SignedStatements(line, keeper, readEvent).transactions.compactMap(key))
    }
  }

  func key(of transaction: SignedTransaction) -> SaleKey? {
    guard let environment = transaction.environment, let bundle = transaction.bundleID else {
      return nil
    }
    return SaleKey(
      of: transaction.row, environment: symbols.symbol(environment),
      bundle: symbols.symbol(bundle))
  }

  func isOf(_ sale: SaleDetail, _ key: SaleKey?) -> Bool {
    guard let key else { return false }
    return string(key.text) == sale.saleKey && symbols.string(key.bundle) == sale.bundleID
      && symbols.string(key.environment) == sale.environment
  }

  /// The positions of events with a signed transaction that has an id of the sale. Ids may collide.
  private func signedStatements(of sale: SaleDetail) throws -> Set<Position> {
    let rows = try database.prepare(
      "SELECT position FROM signed_statements WHERE transaction_hash = ?")
    var positions: Set<Position> = []
    for id in Set(sale.transactionIDs + [sale.transactionID]) {
      rows.reset()
      rows.bind(1, withText(id) { $0.indexHash })
      while try rows.step() { positions.insert(try rows.ordinal(0)) }
    }
    return positions
  }

  // MARK: Statements about a sale

  /// The most events that are read for a sale's statements.
  package static var statementEventsMax: Int { 1000 }

  /// What events stated about a sale, in the order of their statements' times, and whether older ones were left out.
  /// Replies are searched among those of the sale's user, and of the receipts that contributed to the sale: its first
  /// observation, country, user, price or lines.
  package func statements(
    about sale: SaleDetail
  ) throws -> (statements: [StatementDetail], isCut: Bool) {
    let events = try signedStatements(of: sale).union(replies(about: sale)).sorted()
    var result: [StatementDetail] = []
    for position in events.suffix(Self.statementEventsMax) {
      result += try statements(about: sale, at: position)
    }
    let sorted = result.enumerated().sorted { left, right in
      let (one, other) = (left.element, right.element)
      return (one.atMs ?? .min, one.position, left.offset)
        < (other.atMs ?? .min, other.position, right.offset)
    }
    return (sorted.map(\.element), events.count > Self.statementEventsMax)
  }

  /// The positions of valid replies about the receipts that a sale's events belong to.
  private func replies(about sale: SaleDetail) throws -> Set<Position> {
    let events: [Position?] =
      [sale.firstPosition, sale.countryPosition, sale.userPosition, sale.pricePosition]
      + sale.lines.map(\.position)
    let receipts = try database.prepare(
      """
      SELECT receipt FROM verifications WHERE position = ?1
      UNION SELECT receipt FROM uploads WHERE position = ?1 AND receipt IS NOT NULL
      """)
    var numbers: Set<Int64> = []
    for position in Set(events.compactMap(\.self)) {
      receipts.reset()
      receipts.bind(1, position)
      while try receipts.step() { numbers.insert(receipts.integer(0)) }
    }
    if let user = sale.userIdentifier {
      let ofUser = try database.prepare(
        """
        SELECT DISTINCT receipt FROM uploads WHERE receipt IS NOT NULL
        AND user = (SELECT id FROM users WHERE user_identifier = ?)
        """)
      ofUser.bind(1, text: user)
      while try ofUser.step() { numbers.insert(ofUser.integer(0)) }
    }
    let replies = try database.prepare(
      """
      SELECT v.position FROM verifications v JOIN receipts r ON r.id = v.receipt
      WHERE r.id = ?1 AND v.position BETWEEN r.first_position AND r.last_position
      AND v.authority = 1 AND v.outcome = \(OutcomeCode.valid.rawValue)
      AND v.reply_position = v.position
      """)
    var positions: Set<Position> = []
    for number in numbers {
      replies.reset()
      replies.bind(1, number)
      while try replies.step() { positions.insert(try replies.ordinal(0)) }
    }
    return positions
  }

  private func statements(
    about sale: SaleDetail, at position: Position
  ) throws -> [StatementDetail] {
    let keeper = TextKeeper()
    return try withText(try readEvent(position)) { line in
      let signed = try SignedStatements(line, keeper, readEvent)
      if let source = signed.source {
        return signed.transactions.filter { isOf(sale, key(of: $0)) }
          .map { StatementDetail($0, source, position) }
      }
      guard let event = EventLine(line), EventType(event.type) == .receiptVerified,
        let verification = try verification(at: position)
      else { return [] }
      try EventType.receiptVerified.checkVersion(event.version)
      let view = try ReceiptVerifiedView(data: event.data)
      guard let bytes = view.reply else { return [] }
      let reply = try Reply(bytes, keeper, notification: view.notification)
      let environment = symbols.symbol(verification.environment)
      // A reply that names no bundle has that of its receipt (rule R2).
      let bundle = reply.bundleID.map { symbols.symbol($0) } ?? symbols.symbol(sale.bundleID)
      return reply.rows.filter {
        isOf(sale, SaleKey(of: $0, environment: environment, bundle: bundle))
      }.map { StatementDetail($0, requestDateMs: reply.requestDateMs, position) }
    }
  }
}

/// The signed transactions of an event that were valid on arrival, or that it accepts.
private struct SignedStatements {
  /// Nil for an event of another type.
  private(set) var source: StatementDetail.Source?
  private(set) var transactions: [SignedTransaction] = []

  init(
    _ line: Text, _ keeper: TextKeeper, _ readEvent: (Position) throws -> [UInt8]
  ) throws {
    guard let event = EventLine(line), let type = EventType(event.type) else { return }
    switch type {
    case .transactionsReceived:
      source = .upload
      let view = try TransactionsReceivedView(
        data: event.data, isRedacted: event.isRedacted)
      guard view.isValid else { return }
      transactions = try ReceivedTransactions(view, keeper).transactions.compactMap(\.self)
    case .notificationReceived:
      source = .notification
      let view = try NotificationReceivedView(
        data: event.data, isRedacted: event.isRedacted)
      transactions = [try ReceivedNotification(view, keeper).transaction].compactMap(\.self)
    case .transactionsFetched:
      source = .fetch
      let view = try TransactionsFetchedView(data: event.data, isRedacted: event.isRedacted)
      transactions = try FetchedTransactions(view, keeper).transactions.compactMap(\.self)
    case .signaturesAccepted:
      source = .acceptance
      let accepted = try SignaturesAccepted(data: event.data)
      transactions = try withText(try readEvent(accepted.page)) { page in
        let kept = keeper.keep(Array(page))
        return try AcceptedObjects(accepted, page: kept, keeper).transactions.map(\.transaction)
      }
    default: return
    }
  }
}

extension StatementDetail {
  fileprivate init(
    _ transaction: SignedTransaction, _ source: Source, _ position: Position
  ) {
    self.init(transaction.row, requestDateMs: transaction.signedDateMs, position)
    self.source = source
    priceMilliunits = transaction.priceMilliunits
    currency = transaction.currency.map { String(decoding: $0, as: UTF8.self) }
    storefront = transaction.storefront.map { String(decoding: $0, as: UTF8.self) }
    revocationPercentage = transaction.revocationPercentage
  }

  fileprivate init(_ row: ReplyRow, requestDateMs: Int64?, _ position: Position) {
    func text(_ bytes: JSONBytes?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    self.init(
      atMs: requestDateMs, position: position, source: .reply,
      transactionID: text(row.transactionID), quantity: text(row.quantity.id),
      revokedAtMs: row.cancellationDateMs,
      revocationReason: row.cancellationReason.flatMap { $0.isEmpty ? nil : text($0) },
      isUpgraded: row.isUpgraded)
  }
}
