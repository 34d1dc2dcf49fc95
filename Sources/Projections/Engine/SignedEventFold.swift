// Folds events with signed objects, and those that accept such objects later, into the tables and the rules.
import AppStore
import Base
import Ledger
import Revenue

/// Folds the events with signed objects. Used inside a fold.
final class SignedEventFold {
  private let symbols: StringInterner
  private let users: UserTable
  private let uploads: UploadTable
  private let verdicts: UploadVerdicts
  private let notifications: NotificationTable
  private let legacyNotifications: RowTarget
  private let fetchedPages: FetchedPageTable
  private let acceptances: RowTarget
  private let catalogue: AppCatalogue
  private let exceptions: ExceptionTable
  private let revenue: RevenueFold
  private let keeper: TextKeeper
  private let rows: RowWriter
  private let statements: RowTarget
  private var recentFamily: Symbol = .none
  private var recentBundle: Symbol = .none
  private var recentEnvironment: Symbol = .none
  private var recentCountry: Symbol = .none

  /// - Parameter keeper: keeps a text until the next event.
  init(
    _ rows: RowWriter, _ symbols: StringInterner, _ keeper: TextKeeper, users: UserTable,
    uploads: UploadTable, catalogue: AppCatalogue, exceptions: ExceptionTable,
    revenue: RevenueFold
  ) throws(DatabaseError) {
    self.rows = rows
    self.symbols = symbols
    self.keeper = keeper
    self.users = users
    self.uploads = uploads
    self.catalogue = catalogue
    self.exceptions = exceptions
    self.revenue = revenue
    verdicts = try UploadVerdicts(rows)
    notifications = try NotificationTable(rows, symbols) { keeper.bytes(of: $0) }
    legacyNotifications = try rows.target("INSERT INTO legacy_notifications", valueCount: 7)
    fetchedPages = try FetchedPageTable(rows, symbols) { keeper.bytes(of: $0) }
    acceptances = try rows.target("INSERT INTO signature_acceptances", valueCount: 3)
    statements = try rows.target("INSERT INTO signed_statements", valueCount: 2)
  }

  // MARK: transactions.received

  func fold(_ upload: ReceivedTransactions, _ event: EventLine) throws {
    let view = upload.view
    guard let family = view.appFamilyID else {
      preconditionFailure("a decoded upload names its app family")
    }
    let occurredAtMs = view.occurredAtMs ?? event.recordedAtMs
    let country =
      view.countryCode.map { symbols.symbol(keeper.bytes(of: $0), recent: &recentCountry) }
      ?? .none
    var user: Int32 = -1
    if let identifier = view.userIdentifier, !identifier.raw.isEmpty {
      user = try users.number(of: keeper.bytes(of: identifier))
      users.noteUpload(user, atMs: occurredAtMs)
    }
    let familySymbol = symbols.symbol(family.raw, recent: &recentFamily)
    let bundle = upload.transactions.lazy.compactMap { $0?.bundleID }.first
    try uploads.add(
      view, position: event.position, appFamily: familySymbol,
      bundle: bundle.map { symbols.symbol($0, recent: &recentBundle) } ?? .none,
      occurredAtMs: occurredAtMs, recordedAtMs: event.recordedAtMs, country: country, user: user)
    guard view.isValid else {
      let reason = view.fraudReason.map { symbols.symbol(keeper.bytes(of: $0)) } ?? .none
      return try convict(reason, event)
    }
    let evidence = UploadEvidence(
      position: event.position, occurredAtMs: occurredAtMs, country: country, user: user,
      metadata: view.metadata ?? Text(start: nil, count: 0))
    let products = catalogue.isEmpty ? nil : catalogue.products(of: familySymbol)
    try fold(
      zip(upload.transactions, view.transactions.lazy.map(\.root)), of: event, evidence, products)
    if let reason = revenue.fraudReason { try convict(symbols.symbol(reason.rawValue), event) }
  }

  private func convict(_ reason: Symbol, _ event: EventLine) throws(DatabaseError) {
    if reason == .none { return }
    try verdicts.add(
      upload: event.position, receipt: nil, Fraud(reason: reason, position: event.position))
  }

  // MARK: notification.received

  func fold(_ notification: ReceivedNotification, _ event: EventLine) throws {
    let view = notification.view
    guard let environment = view.environment, let bundle = view.bundleID else {
      preconditionFailure("a decoded notification names its environment and bundle")
    }
    let transaction = notification.transaction
    try notifications.add(
      view, event,
      environment: symbols.symbol(keeper.bytes(of: environment), recent: &recentEnvironment),
      bundle: symbols.symbol(keeper.bytes(of: bundle), recent: &recentBundle),
      transactionID: transaction?.row.transactionID,
      originalTransactionID: transaction?.row.originalTransactionID
        ?? notification.originalTransactionID)
    if let verdict = view.transaction {
      try fold(CollectionOfOne((transaction, verdict.root)), of: event, nil, nil)
    }
    if let renewal = notification.renewal {
      try fold(
        renewal, of: event, environment: keeper.bytes(of: environment),
        bundle: keeper.bytes(of: bundle))
    }
    try noteExpiry(notification, event, environment, bundle)
  }

  /// A notification of these types reports the end of a subscription, whatever its renewal information contains.
  private func noteExpiry(
    _ notification: ReceivedNotification, _ event: EventLine, _ environment: JSONString,
    _ bundle: JSONString
  ) throws {
    guard let type = notification.view.type, type == "EXPIRED" || type == "GRACE_PERIOD_EXPIRED",
      let original = notification.transaction?.row.originalTransactionID
        ?? notification.renewal?.info.originalTransactionID,
      counts(environment: keeper.bytes(of: environment), bundle: keeper.bytes(of: bundle))
    else { return }
    let key = SubscriptionKey(
      environment: symbols.symbol(keeper.bytes(of: environment), recent: &recentEnvironment),
      bundle: symbols.symbol(keeper.bytes(of: bundle), recent: &recentBundle), original: original)
    try byRules { try revenue.noteExpiry(key, position: event.position) }
  }

  // MARK: Version 1 notifications

  /// Records a version 1 notification, whose reply was folded, and indexes it by the purchase that it is about.
  func note(
    _ kept: JSONBytes, _ reply: Reply, at position: Position, _ occurredAtMs: Int64,
    environment: Symbol, bundle: Text
  ) throws(DatabaseError) {
    let type = (try? LegacyNotification(kept, keeper))?.type
    let row = LegacyNotification.subject(of: reply.rows, type: type)
    rows.begin(legacyNotifications)
    rows.add(position)
    rows.add(occurredAtMs)
    rows.add(Int(symbols.symbol(type ?? Text(start: nil, count: 0))))
    rows.add(Int(environment))
    rows.add(Int(symbols.symbol(bundle, recent: &recentBundle)))
    rows.add(text: row?.transactionID)
    rows.add(text: row?.originalTransactionID)
    try rows.end()
    if let row { try note(row, at: position) }
  }

  // MARK: transactions.fetched

  func fold(_ page: FetchedTransactions, _ event: EventLine) throws {
    let view = page.view
    guard let environment = view.environment, let bundle = view.bundleID else {
      preconditionFailure("a decoded page names its environment and bundle")
    }
    let place = (
      environment: symbols.symbol(keeper.bytes(of: environment), recent: &recentEnvironment),
      bundle: symbols.symbol(keeper.bytes(of: bundle), recent: &recentBundle)
    )
    try fetchedPages.add(view, event, environment: place.environment, bundle: place.bundle)
    for (list, objects) in [("transactions", view.transactions), ("renewals", view.renewals)] {
      for (index, object) in objects.enumerated() where !object.isValid {
        let reason = object.reason?.string ?? "none"
        let position = revenue.positionText(event.position)
        try exceptions.add(
          .signatureRefused, environment: place.environment, bundle: place.bundle,
          detail: "\(reason) at \(position), \(list)[\(index)]", position: event.position)
      }
    }
    try fold(zip(page.transactions, view.transactions.lazy.map(\.root)), of: event, nil, nil)
    for renewal in page.renewals {
      try fold(
        renewal, of: event, environment: keeper.bytes(of: environment),
        bundle: keeper.bytes(of: bundle))
    }
  }

  // MARK: signatures.accepted

  /// Folds objects of an earlier page.
  /// - Parameter page: its position.
  func fold(
    _ objects: AcceptedObjects, of page: Position, _ occurredAtMs: Int64, _ event: EventLine
  ) throws {
    rows.begin(acceptances)
    rows.add(event.position)
    rows.add(page)
    rows.add(occurredAtMs)
    try rows.end()
    try fold(objects.transactions.lazy.map { ($0, $1) }, of: event, nil, nil)
    // A search for a transaction's events must also find the page, which has the evidence.
    for (transaction, _) in objects.transactions where counts(transaction) {
      try note(transaction.row, at: page)
    }
    for renewal in objects.renewals {
      try fold(
        renewal, of: event, environment: keeper.bytes(of: objects.environment),
        bundle: keeper.bytes(of: objects.bundleID))
    }
  }

  // MARK: Statements

  /// Folds the transactions that count (rule R12).
  private func fold(
    _ list: some Sequence<(SignedTransaction?, SHA256Digest?)>, of event: EventLine,
    _ upload: UploadEvidence?, _ products: DeclaredProducts?
  ) throws {
    var counting: [SignedStatement] = []
    for (transaction, root) in list {
      guard let transaction, counts(transaction) else { continue }
      counting.append(
        SignedStatement(
          transaction, trust: root == .appleRootG3 ? .appStore : .configured))
      try note(transaction.row, at: event.position)
    }
    try byRules {
      try revenue.fold(
        SignedEvidence(
          position: event.position, recordedAtMs: event.recordedAtMs, upload: upload,
          products: products),
        counting)
    }
  }

  /// Whether a valid transaction counts: its bundle was registered, its environment is one of Apple's two.
  private func counts(_ transaction: SignedTransaction) -> Bool {
    guard let bundle = transaction.bundleID, let environment = transaction.environment,
      transaction.signedDateMs != nil
    else { return false }
    return counts(environment: environment, bundle: bundle)
  }

  private func counts(environment: Text, bundle: Text) -> Bool {
    let name = JSONString(raw: environment, hasEscapes: false)
    return (name == EnvironmentName.production || name == EnvironmentName.sandbox)
      && catalogue.isKnown(bundle: bundle)
  }

  // MARK: Renewal information

  /// Folds valid renewal information that counts as a transaction would (rule R13).
  /// - Parameters:
  ///   - environment: that of the event; the information may name one itself.
  ///   - bundle: that of the event.
  private func fold(
    _ renewal: SignedRenewal, of event: EventLine, environment: Text, bundle: Text
  ) throws {
    let environment = renewal.environment ?? environment
    guard let signedAtMs = renewal.signedDateMs, counts(environment: environment, bundle: bundle)
    else { return }
    let evidence = RenewalEvidence(
      environment: symbols.symbol(environment, recent: &recentEnvironment),
      bundle: symbols.symbol(bundle, recent: &recentBundle), statementMs: signedAtMs,
      position: event.position)
    try byRules { try revenue.fold(renewal.info, evidence) }
  }

  /// Indexes a sale's events by its transactions.
  private func note(_ row: ReplyRow, at position: Position) throws(DatabaseError) {
    guard let id = row.transactionID ?? row.originalTransactionID else { return }
    rows.begin(statements)
    rows.add(id.indexHash)
    rows.add(position)
    try rows.end()
  }
}
