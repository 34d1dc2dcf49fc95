// Folds all standard projections: each event, in position order, into the tables.
import AppStore
import Base
import Ledger
import Revenue

/// Reads one event's line again, for replies that are used again late and receipts that stay pending.
typealias EventAccess = (Int) throws(LedgerError) -> [UInt8]

/// Folds events into one database, inside a transaction that the caller holds.
final class EventFold {
  private let database: Database
  let isFresh: Bool
  private let readEvent: EventAccess
  private let arena = TextArena()
  private let symbols: StringInterner
  private var symbolRows: SymbolRows
  private let users: UserTable
  private let receipts: ReceiptTable
  private let uploads: UploadTable
  private let exceptions: ExceptionTable
  private let saleTable: SaleTable
  private let sales: SaleStore
  private let subscriptionTable: SubscriptionTable
  private let subscriptions: SubscriptionStore
  private let accountTable: AccountTable
  private let accounts: AccountStore
  private let revenue: RevenueFold
  private let declarations: DeclarationTable
  private let catalogue: AppCatalogue
  private let comparison: ReplyComparison
  private let openUploads: OpenUploads
  private let verifications: VerificationTable
  private let replies: RecentReplies
  private let signedEvents: SignedEventFold
  /// Nil if there are only the standard projections.
  private let additional: AdditionalFold?
  /// Keeps the lines of folded events for a while; nil if they are not needed.
  private let recent: RecentEvents?
  /// Nil for the events of one ledger at their own positions.
  private let origins: (any EventOrigins)?
  private let keeper = TextKeeper()
  private let rows: RowWriter
  private var recentEnvironment: Symbol = .none
  private var recentReplyBundle: Symbol = .none
  private var recentFamily: Symbol = .none
  private var recentBundle: Symbol = .none
  private var recentCountry: Symbol = .none
  private let pace: WritingPace
  private var closingSteps: FinalTables
  /// The position of the next event.
  private(set) var nextPosition: Int
  /// When the last folded event was recorded, in epoch milliseconds.
  private var lastEventAtMs: Int64 = 0
  /// Whether an app family was registered.
  private(set) var hasNewApps = false
  /// Whether a price list was declared. The end of each run then applies prices again.
  var hasNewPrices: Bool { declarations.hasNewPrices }

  /// - Parameters:
  ///   - isFresh: whether the database is empty, so that no lookup is needed.
  ///   - recent: keeps the lines of folded events.
  ///   - answerTimes: receives final replies, including those of a transaction that is rolled back.
  ///   - pace: when a fold from nothing writes.
  ///   - repliesFromMs: replies recorded before are not kept for later uploads.
  ///   - origins: knows the events if they have other positions here than in their ledgers.
  init(
    _ database: Database, isFresh: Bool, nextPosition: Int, recent: RecentEvents? = nil,
    answerTimes: ResponseTimes? = nil, projections: ProjectionSet,
    pace: WritingPace = WritingPace(), repliesFromMs: Int64 = .min,
    origins: (any EventOrigins)? = nil, readEvent: @escaping EventAccess
  ) throws(DatabaseError) {
    self.database = database
    self.isFresh = isFresh
    self.nextPosition = nextPosition
    self.recent = recent
    self.pace = pace
    self.origins = origins
    closingSteps = FinalTables(pace)
    self.readEvent = { (position) throws(LedgerError) in
      guard let recent else { return try readEvent(position) }
      return try recent.line(at: position, readEvent)
    }
    let rows = RowWriter(database, arena, isThreaded: isFresh)
    self.rows = rows
    symbols = StringInterner(arena)
    if !isFresh { try symbols.load(from: database) }
    symbolRows = SymbolRows(symbols)
    let users = try UserTable(database, arena, isFresh: isFresh)
    self.users = users
    receipts = try ReceiptTable(database, arena, isFresh: isFresh)
    uploads = try UploadTable(database, rows)
    exceptions = try ExceptionTable(database, rows, arena, isFresh: isFresh)
    saleTable = SaleTable(database, symbols, isFresh: isFresh)
    let nextSale = isFresh ? 0 : Int(try database.nextNumber(of: "sales"))
    sales = SaleStore(arena, source: isFresh ? nil : saleTable, nextID: nextSale)
    subscriptionTable = SubscriptionTable(database)
    subscriptions = SubscriptionStore(
      arena, source: isFresh ? nil : subscriptionTable,
      nextID: isFresh ? 0 : try SubscriptionTable.nextID(database))
    accountTable = AccountTable(database, arena)
    accounts = AccountStore(
      arena, source: isFresh ? nil : accountTable,
      nextID: isFresh ? 0 : try database.nextNumber(of: "accounts"))
    revenue = RevenueFold(
      store: sales, subscriptions: subscriptions, accounts: accounts, symbols: symbols,
      exceptions: exceptions,
      userIdentifier: { (number) throws(DatabaseError) in try users.identifier(number) },
      tokenUser: { (identifier) throws(DatabaseError) in try users.number(of: identifier) },
      positionText: { origins?.text(of: $0) ?? "\($0)" },
      isAfterErasure: { (position, erasure, named) in
        guard let origins else { return position > erasure }
        let known = origins.position(ofErasure: erasure, namedBy: named)
        return known.map { position > $0 } ?? false
      })
    declarations = DeclarationTable(database, rows, symbols, isFresh: isFresh)
    catalogue = AppCatalogue(symbols, arena)
    if !isFresh { try catalogue.load(from: database) }
    comparison = ReplyComparison(catalogue, self.readEvent)
    additional = AdditionalFold(projections, rows, symbols) { (number) throws(DatabaseError) in
      try users.identifier(number)
    }
    saleTable.additional = additional
    openUploads = try OpenUploads(rows)
    replies = RecentReplies(
      database, rows, isFresh: isFresh, recent, firstMs: repliesFromMs)
    verifications = try VerificationTable(
      rows, symbols, keeper, receipts, openUploads, replies, answerTimes)
    signedEvents = try SignedEventFold(
      rows, symbols, keeper, users: users, uploads: uploads, catalogue: catalogue,
      exceptions: exceptions, revenue: revenue)
  }

  /// Folds one event that another thread has parsed.
  @inline(__always)
  func fold(_ event: borrowing ScannedEvent) throws(ProjectionError) {
    switch event.content {
    case .other: return try fold(event.line)
    case .uploaded(let upload):
      try fold(event.line) { () throws in try fold(upload, event.line) }
    case .verified(let result, let reply):
      try expect(event.line)
      if let fault = try fold(result, reply, event.line) {
        try passOver(event.line, event.line.data, fault)
        return take(event.line)
      }
    case .received(let upload):
      keeper.removeAll()
      try fold(event.line) { () throws in try signedEvents.fold(upload, event.line) }
    case .notified(let notification):
      keeper.removeAll()
      try fold(event.line) { () throws in try signedEvents.fold(notification, event.line) }
    case .fetched(let page):
      keeper.removeAll()
      try fold(event.line) { () throws in try signedEvents.fold(page, event.line) }
    }
    if let additional { try fold(event.line, event.line.data, into: additional) }
    take(event.line)
  }

  /// Folds the next event.
  @inline(__always)
  private func fold(_ event: EventLine, _ body: () throws -> Void) throws(ProjectionError) {
    try expect(event)
    do { try body() } catch { throw Self.projectionError(error, at: event.position) }
  }

  private func take(_ event: EventLine) {
    recent?.add(event)
    nextPosition += 1
    lastEventAtMs = event.recordedAtMs
  }

  private func fold(
    _ event: EventLine, _ data: Text, into additional: AdditionalFold
  ) throws(ProjectionError) {
    do { try additional.fold(event, data) } catch {
      throw Self.projectionError(error, at: event.position)
    }
  }

  /// Positions have no gaps.
  private func expect(_ event: EventLine) throws(ProjectionError) {
    guard event.position == nextPosition else {
      throw .ledger(
        LedgerError(
          .init(verdict: .missing, file: "log", position: nextPosition),
          operation: "fold", cause: "position \(event.position) follows"))
    }
  }

  private static func projectionError(
    _ error: any Error, at position: Position
  ) -> ProjectionError {
    switch error {
    case let error as EventError: .event(position: position, error)
    case let error as DatabaseError: .database(error)
    case let error as LedgerError: .ledger(error)
    case let error as ProjectionError: error
    default: .output(error)
    }
  }

  /// Folds one event.
  func fold(_ event: EventLine) throws(ProjectionError) {
    try expect(event)
    guard let type = EventType(event.type) else {
      throw .event(position: event.position, .unknownType)
    }
    do throws(EventError) { try type.checkVersion(event.version) } catch {
      throw .event(position: event.position, error)
    }
    try fold(type, event, event.data)
    take(event)
  }

  private func fold(
    _ type: EventType, _ event: EventLine, _ data: Text
  ) throws(ProjectionError) {
    if let fault = try foldStandard(type, event, data) {
      return try passOver(event, data, fault)
    }
    if let additional { try fold(event, data, into: additional) }
  }

  /// Folds an event into the standard projections. Folds nothing of a malformed event and returns what is wrong.
  private func foldStandard(
    _ type: EventType, _ event: EventLine, _ data: Text
  ) throws(ProjectionError) -> EventError? {
    let isRedacted = event.isRedacted
    if isRedacted, let fault = MalformedEvent.fault(of: event, type) { return fault }
    do {
      switch type {
      case .receiptUploaded:
        let upload = try ReceiptUploadedView(
          data: data, isRedacted: isRedacted, version: event.version)
        try fold(upload, event)
      case .receiptVerified:
        let result = try ReceiptVerifiedView(data: data)
        keeper.removeAll()
        return try fold(result, try reply(of: result), event)
      case .appRegistered:
        let app = try AppRegistered(data: data)
        try declarations.add(app, data: data, position: event.position)
        catalogue.add(app)
        hasNewApps = true
      case .transactionsReceived:
        keeper.removeAll()
        let view = try TransactionsReceivedView(data: data, isRedacted: isRedacted)
        try signedEvents.fold(try ReceivedTransactions(view, keeper), event)
      case .notificationReceived:
        keeper.removeAll()
        let view = try NotificationReceivedView(data: data, isRedacted: isRedacted)
        try signedEvents.fold(try ReceivedNotification(view, keeper), event)
      case .transactionsFetched:
        keeper.removeAll()
        let view = try TransactionsFetchedView(data: data, isRedacted: isRedacted)
        try signedEvents.fold(try FetchedTransactions(view, keeper), event)
      case .signaturesAccepted:
        keeper.removeAll()
        return try fold(try SignaturesAccepted(data: data), event)
      case .pricesDeclared, .ratesDeclared, .pricesWithdrawn, .ratesWithdrawn,
        .settlementDeclared, .settlementMapped, .trustDeclared, .dataRedacted:
        return try declarations.fold(type, event, data, origins)
      default:
        precondition(type.role == .record, "an event that affects figures must be folded")
        try type.validate(data, version: event.version)
      }
      return nil
    } catch let error as EventError where error.malformation != nil {
      return error
    } catch {
      throw Self.projectionError(error, at: event.position)
    }
  }

  /// Records a malformed event, which must not keep all others from being folded, as an exception.
  private func passOver(
    _ event: EventLine, _ data: Text, _ fault: EventError
  ) throws(ProjectionError) {
    var detail = fault.malformation ?? ""
    do throws(JSONError) {
      try JSONValidator.validate(data, depthLimit: JSONValidator.greatestDepthLimit)
    } catch {
      detail = EventType(event.type).map { "\($0.rawValue) data" } ?? detail
    }
    let nothing = Text(start: nil, count: 0)
    do throws(DatabaseError) {
      let none = symbols.symbol("")
      try withText(detail) { (detail) throws(DatabaseError) in
        try exceptions.add(
          .malformedEvent, environment: none, bundle: none, product: nothing,
          transaction: nothing, detail: detail, position: event.position)
      }
    } catch { throw .database(error) }
  }

  // MARK: receipt.uploaded

  private func fold(_ upload: ReceiptUploadedView, _ event: EventLine) throws {
    guard let receiptID = upload.receiptID, let family = upload.appFamilyID,
      let bundle = upload.bundleID, let style = upload.style
    else { preconditionFailure("a decoded upload identifies its receipt") }
    let occurredAtMs = upload.occurredAtMs ?? event.recordedAtMs
    keeper.removeAll()
    let country =
      upload.countryCode.map {
        symbols.symbol(keeper.bytes(of: $0), recent: &recentCountry)
      } ?? .none
    var user: Int32 = -1
    if let identifier = upload.userIdentifier, !identifier.raw.isEmpty {
      user = try users.number(of: keeper.bytes(of: identifier))
      users.noteUpload(user, atMs: occurredAtMs)
    }
    let number: Int32
    if let known = try receipts.find(receiptID.raw) {
      number = known
    } else {
      number = receipts.add(
        ReceiptRecord(
          receiptID: arena.keep(receiptID.raw),
          appFamily: symbols.symbol(keeper.bytes(of: family), recent: &recentFamily),
          bundle: symbols.symbol(keeper.bytes(of: bundle), recent: &recentBundle),
          isTransactionStyle: style == "transaction", firstPosition: event.position,
          lastPosition: event.position, createdAtMs: event.recordedAtMs,
          updatedAtMs: event.recordedAtMs))
    }
    try receipts.update(number) { receipt in
      receipt.uploads += 1
      receipt.lastUpload = event.position
      receipt.lastPosition = event.position
      receipt.updatedAtMs = event.recordedAtMs
      if receipt.country == .none { receipt.country = country }
      if receipt.user < 0 { receipt.user = user }
    }
    try uploads.add(
      upload, position: event.position, receipt: number, occurredAtMs: occurredAtMs,
      recordedAtMs: event.recordedAtMs, country: country, user: user)
    // Without its receipt, an upload can no longer be verified.
    if upload.receipt != nil { openUploads.add(event.position, receipt: number) }
    comparison.note(upload, at: event.position)
  }

  // MARK: signatures.accepted

  /// Folds objects of an earlier page that count from this event on. Returns what is wrong if the page lacks them.
  private func fold(
    _ accepted: SignaturesAccepted, _ event: EventLine
  ) throws(ProjectionError) -> EventError? {
    let fault = EventError.badField(.signaturesAccepted, field: "page")
    var page = accepted.page
    if let origins {
      guard let known = origins.position(named: page, by: event) else { return fault }
      page = known
    }
    guard 0..<event.position ~= page else { return fault }
    let line: [UInt8]
    do throws(LedgerError) { line = try readEvent(page) } catch { throw .ledger(error) }
    return try withText(line) { (line) throws(ProjectionError) -> EventError? in
      let objects: AcceptedObjects
      do throws(EventError) { objects = try AcceptedObjects(accepted, page: line, keeper) } catch {
        return error
      }
      do {
        try signedEvents.fold(objects, of: page, accepted.occurredAtMs, event)
      } catch { throw Self.projectionError(error, at: event.position) }
      return nil
    }
  }

  // MARK: receipt.verified

  /// Folds a result. Returns what is wrong if its positions do not name events of the right kind.
  private func fold(
    _ result: ReceiptVerifiedView, _ reply: Reply?, _ event: EventLine
  ) throws(ProjectionError) -> EventError? {
    guard let origins else { return try foldNamed(result, reply, event) }
    // A position that names nothing: an event outside the fold is treated as missing from the ledger.
    func position(_ named: Int) -> Position { origins.position(named: named, by: event) ?? -1 }
    let replyOf = result.replyOf.map { position(Int($0)) }
    return try foldNamed(
      result.naming(upload: position(result.upload), replyOf: replyOf), reply, event)
  }

  /// As above, with positions of this fold.
  private func foldNamed(
    _ result: ReceiptVerifiedView, _ reply: Reply?, _ event: EventLine
  ) throws(ProjectionError) -> EventError? {
    let found = try uploads.withEvidence(at: result.upload) {
      (receipt, evidence) throws(ProjectionError) -> EventError? in
      if let replyOf = result.replyOf {
        return try fold(result, replyOf: Int(replyOf), event, receipt, evidence)
      }
      try fold(result, HeldReply(result, reply, event), event, receipt, evidence)
      return nil
    }
    guard let fault = found else { return .badField(.receiptVerified, field: "upload") }
    return fault
  }

  /// Folds a result whose reply is in an earlier event.
  private func fold(
    _ result: ReceiptVerifiedView, replyOf: Position, _ event: EventLine, _ receipt: Int32,
    _ evidence: UploadEvidence
  ) throws(ProjectionError) -> EventError? {
    let fault = EventError.badField(.receiptVerified, field: "reply_of")
    guard 0..<event.position ~= replyOf else { return fault }
    let known: Void? = try replies.withReply(ofReceipt: receipt, at: replyOf, keeper) {
      (held) throws(ProjectionError) in try fold(result, held, event, receipt, evidence)
    }
    if known != nil { return nil }
    let line: [UInt8]
    do throws(LedgerError) { line = try readEvent(replyOf) } catch { throw .ledger(error) }
    return try withText(line) { (bytes) throws(ProjectionError) -> EventError? in
      keeper.removeAll()
      guard let earlier = EventLine(bytes), EventType(earlier.type) == .receiptVerified,
        let view = try? ReceiptVerifiedView(data: earlier.data)
      else { return fault }
      let reply: Reply?
      do throws(EventError) { reply = try self.reply(of: view) } catch { return fault }
      try fold(result, HeldReply(view, reply, earlier), event, receipt, evidence)
      return nil
    }
  }

  private func reply(of result: ReceiptVerifiedView) throws(EventError) -> Reply? {
    guard let bytes = result.reply else { return nil }
    do throws(JSONError) {
      return try Reply(bytes, keeper, notification: result.notification)
    } catch {
      throw .badField(.receiptVerified, field: "reply")
    }
  }

  private func fold(
    _ result: ReceiptVerifiedView, _ held: HeldReply, _ event: EventLine, _ receipt: Int32,
    _ evidence: UploadEvidence
  ) throws(ProjectionError) {
    let reply = held.reply
    let mismatch = try mismatch(of: reply, result, receipt)
    let replyBundle: Text
    do {
      replyBundle = try comparison.bundle(of: reply, result) {
        symbols.text(try receipts.bundle(of: receipt))
      }
    } catch { throw Self.projectionError(error, at: event.position) }
    do throws(DatabaseError) {
      let environment = symbols.symbol(
        try environment(of: result, reply, receipt), recent: &recentEnvironment)
      let occurredAtMs = result.occurredAtMs ?? event.recordedAtMs
      try verifications.add(
        result, event, receipt: receipt, environment: environment, occurredAtMs: occurredAtMs,
        requestDateMs: reply?.requestDateMs, replyPosition: reply == nil ? -1 : held.position)
      var shownSales: Int?
      if result.authority == .appStore {
        let bundle = symbols.symbol(replyBundle, recent: &recentReplyBundle)
        if let mismatch {
          try exceptions.add(
            .replyMismatch, environment: environment, bundle: bundle, detail: mismatch.rawValue,
            position: event.position)
        }
        if result.outcome == .valid, let reply {
          var verification = Verification(
            position: event.position, occurredAtMs: occurredAtMs,
            recordedAtMs: event.recordedAtMs, requestDateMs: reply.requestDateMs,
            environment: environment, bundle: bundle, upload: evidence,
            trust: ReplyTrust(result),
            products: catalogue.isEmpty
              ? nil : catalogue.products(of: try receipts.appFamily(of: receipt)))
          if held.isNotified { verification.notifiedAtMs = held.occurredAtMs ?? occurredAtMs }
          try byRules {
            try revenue.fold(verification, rows: reply.rows, renewals: reply.renewals)
          }
          shownSales = revenue.shownSaleCount
          if let reason = revenue.fraudReason {
            try verifications.convict(receipt, result, reason, event)
          }
        } else if reply != nil || result.hasOtherReply {
          // R1: any other recorded reply.
          let status = (result.status ?? reply?.status).map(String.init) ?? "none"
          try exceptions.add(
            .replyNotValid, environment: environment, bundle: bundle,
            detail: "status \(status) at \(revenue.positionText(event.position))",
            position: event.position)
        }
      }
      try verifications.settle(
        result, receipt, environment, event, purchases: shownSales, held)
      if let notification = result.notification, let reply {
        try signedEvents.note(
          notification, reply, at: event.position, occurredAtMs, environment: environment,
          bundle: replyBundle)
      }
    } catch { throw .database(error) }
  }

  private func mismatch(
    of reply: Reply?, _ result: ReceiptVerifiedView, _ receipt: Int32
  ) throws(ProjectionError) -> ReplyMismatch? {
    guard let reply, result.authority == .appStore else { return nil }
    do {
      return try comparison.mismatch(
        of: reply, result, ofFamily: symbols.text(receipts.appFamily(of: receipt)),
        receiptBundle: symbols.text(receipts.bundle(of: receipt)))
    } catch { throw Self.projectionError(error, at: result.upload) }
  }

  /// R1: the reply's environment or, if it names none, that of the endpoint that replied. If none replied, the
  /// environment that the signature check recorded; if that recorded nothing for a transaction receipt, unknown.
  private func environment(
    of result: ReceiptVerifiedView, _ reply: Reply?, _ receipt: Int32
  ) throws(DatabaseError) -> Text {
    if let named = reply?.environment { return named }
    switch result.endpoint {
    case .production: return EnvironmentName.production.text
    case .sandbox: return EnvironmentName.sandbox.text
    case nil:
      if let environment = result.environment {
        // R1: it is Sandbox, in every report.
        return environment == PendingEnvironment.productionSandbox
          ? EnvironmentName.sandbox.text : keeper.bytes(of: environment)
      }
      if reply == nil, try receipts.isTransactionStyle(receipt) {
        return PendingEnvironment.unknown.text
      }
      return EnvironmentName.production.text
    }
  }

  // MARK: Writing

  /// During a fold from nothing, writes rows that will probably not change, while there is time for it. A row that
  /// does change is written again.
  /// - Parameter total: how many events the fold will have folded at its end.
  func writeSettled(total: Int) throws(ProjectionError) {
    guard isFresh else { return }
    let limit = nextPosition - pace.settledEventCount
    do throws(DatabaseError) {
      try replies.storeMany(nowMs: lastEventAtMs)
      try receipts.storeSettled(before: limit, rows)
      try saleTable.storeSettled(sales, before: limit, rows)
      try subscriptionTable.storeSettled(subscriptions, before: limit, rows)
      while let step = closingSteps.next(after: nextPosition, of: total) { try take(step) }
      try openUploads.store(before: limit)
    } catch { throw .database(error) }
  }

  private func take(_ step: ClosingStep) throws(DatabaseError) {
    let limit = nextPosition - pace.settledEventCount
    switch step {
    case .users: try users.store(rows)
    case .sales: try saleTable.storeAgain(sales, before: limit, rows)
    case .subscriptions: try subscriptionTable.storeAgain(subscriptions, before: limit, rows)
    case .receipts: try receipts.storeAgain(before: limit, rows)
    case .index(let sql): try rows.execute(sql)
    }
  }

  /// Derives what follows from all folded events and writes everything that changed. After a fold from nothing, also
  /// creates the indexes.
  func finish() throws(ProjectionError) {
    do throws(DatabaseError) {
      let hasNewPrices = declarations.hasNewPrices
      if hasNewPrices, !isFresh { try saleTable.fetchUnpriced(into: sales) }
      let derived = DerivedPrices(
        store: sales, symbols: symbols, priceList: try declarations.sortedPriceList())
      let isFresh = isFresh
      try byRules {
        try derived.settle { isFresh || $0.isChanged || hasNewPrices }
        try revenue.settleUsers()
      }
      try saleTable.store(sales, rows)
      try subscriptionTable.store(subscriptions, rows)
      try accountTable.store(accounts, rows)
      try users.store(rows)
      try receipts.store(rows)
      try symbolRows.store(rows)
      try openUploads.store()
      if isFresh {
        // Steps remain if the log has only a few blocks.
        while let step = closingSteps.next() { try take(step) }
        for index in Schema.lateIndexes { try rows.execute(index) }
      }
      try replies.store(nowMs: lastEventAtMs)
    } catch { throw .database(error) }
    let changes = receipts.takePendingChanges()
    try PendingReceipts(database, readEvent).update(
      added: changes.added, removed: changes.removed)
  }
}
