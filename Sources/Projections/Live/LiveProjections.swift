// Projections that a server keeps at the log's head while it answers requests from them.
package import Base
package import Ledger

/// Keeps one ledger's projections up to date and answers the client API from them. Safe to use from several threads:
/// `catchUp` has one connection, resources of receipts, queries about users, and all other queries have one each, so
/// that none waits for a fold.
package final class LiveProjections: Sendable {
  private struct Shared {
    var position = 0
    var path = ""
    var apps = AppDirectory()
    /// Of the generation at the path.
    var recent = RecentEvents()
  }

  /// Reads resources of receipts from the generation in use.
  private struct Responses {
    var path: String
    let answers: ReceiptResponses
    let events: EventReader
  }

  /// Queries on one connection to the generation in use.
  private struct Questions {
    var path: String
    var waiting: WaitingQueries
    let apps: AppQueries
    let trust: TrustQueries
  }

  private let directory: LedgerDirectory
  private let folding: Monitor<LiveFold>
  private let shared: Monitor<Shared>
  private let responses = Monitor<Responses?>(nil)
  private let questions: Monitor<Questions?>
  /// Queries about users have their own connection, so that uploads never wait for them.
  private let ownership: Monitor<(path: String, answers: OwnershipResponses)?>
  /// The connection for reading changes: there may be many, and no other query waits for them.
  private let changes = Monitor<Database?>(nil)
  private let notifications: Monitor<(path: String, lookup: IntakeLookup)?>
  private let keeper: WALCheckpointer?
  private let answerTimes: ResponseTimes

  /// Opens the projections, caught up with the log; builds them if none fit.
  package init(
    _ directory: LedgerDirectory, observer: Projector.Observer = .init(),
    projections: ProjectionSet = .standard
  ) throws {
    self.directory = directory
    let fold = try LiveFold(directory, observer, projections)
    answerTimes = fold.answerTimes
    folding = Monitor(fold)
    shared = Monitor(Shared())
    questions = Monitor(nil)
    ownership = Monitor(nil)
    notifications = Monitor(nil)
    // If no thread can be started, SQLite writes its log back during commits, as it does by default.
    keeper = try? WALCheckpointer { [folding] body in folding.withLock { _ in body() } }
    try folding.withLock { try share($0) }
  }

  /// Folds every event that is complete on disk, each batch in one transaction.
  /// - Throws: `ProjectionError`; `ledger` with the damage of a damaged log.
  package func catchUp() throws {
    try folding.withLock { fold in
      try fold.catchUp()
      try share(fold)
    }
  }

  /// Closes tails that have been sealed: open files keep their disk space.
  package func closeSealedTails() throws(LedgerError) {
    // A fold in progress reads the log anyway, and may take long.
    _ = try folding.withLockIfFree { fold throws(LedgerError) in try fold.closeSealedTails() }
    try responses.withLock { responses throws(LedgerError) in
      try responses?.events.closeSealedTails()
    }
  }

  /// How many events are folded.
  package var position: Position { shared.withLock { $0.position } }

  deinit { keeper?.stop() }

  private func share(_ fold: LiveFold) throws {
    keeper?.look(at: fold.database)
    let apps = fold.hasNewApps ? try AppDirectory(fold.database) : nil
    fold.hasNewApps = false
    let isReplaced = shared.withLock { shared in
      defer { (shared.path, shared.recent) = (fold.path, fold.recent) }
      shared.position = fold.progress.position
      if let apps { shared.apps = apps }
      return shared.path != fold.path
    }
    if isReplaced { closeReplaced() }
  }

  /// Closes connections to generations that were replaced, even without further requests: while one is open, its file
  /// stays on disk, with data that an erasure has redacted since.
  private func closeReplaced() {
    let path = shared.withLock { $0.path }
    responses.withLock { if $0?.path != path { $0 = nil } }
    questions.withLock { if $0?.path != path { $0 = nil } }
    ownership.withLock { if $0?.path != path { $0 = nil } }
    changes.withLock { if $0?.path != path { $0 = nil } }
    notifications.withLock { if $0?.path != path { $0 = nil } }
    keeper?.closeOthers(than: path)
  }

  // MARK: Receipts

  /// The receipts of uploads, each as of its upload, all read at one moment; nil for a position without a folded upload.
  /// A failure to read one does not affect the others. Returns at least one, and stops once they take `byteCountMax`
  /// bytes in memory.
  package func answers(
    uploads: some Sequence<FoldedUpload>, byteCountMax: Int = .max
  ) throws -> [Result<ClientReceipt?, any Error>] {
    let apps = shared.withLock { $0.apps }
    return try respond {
      try $0.answers(uploads: uploads, apps: apps, byteCountMax: byteCountMax)
    }
  }

  /// The receipt as the upload at a position sees it; nil if there is no folded upload.
  package func answer(upload position: Position) throws -> ClientReceipt? {
    try answers(uploads: [FoldedUpload(at: position)]).first?.get()
  }

  /// The receipt as its newest upload sees it; nil if the family has no such receipt.
  package func answer(receiptID: UUID16, appFamily: UUID16) throws -> ClientReceipt? {
    let apps = shared.withLock { $0.apps }
    return try respond { try $0.answer(receiptID: receiptID, apps: apps, family: appFamily) }
  }

  private func respond<Result>(_ body: (ReceiptResponses) throws -> Result) throws -> Result {
    try withGeneration { path in
      try responses.withLock { current in
        if let current, current.path == path { return try body(current.answers) }
        let events = EventReader(directory)
        let recent = shared.withLock { $0.path == path ? $0.recent : RecentEvents() }
        let opened = Responses(
          path: path,
          answers: try ReceiptResponses(try Database(path: path, mode: .read), recent) {
            try events.line(at: $0)
          }, events: events)
        current = opened
        return try body(opened.answers)
      }
    }
  }

  // MARK: Pending receipts

  /// Pending receipts, by number, each with all its waiting uploads.
  /// - Parameters:
  ///   - afterReceipt: the number of the last receipt that is known; negative for none.
  ///   - limit: the most receipts to return.
  package func waiting(afterReceipt: Int64 = -1, limit: Int) throws -> [WaitingReceipt] {
    try ask { try $0.waiting.receipts(after: afterReceipt, limit: limit) }
  }

  /// The uploads of a receipt that wait for the App Store, in order.
  package func waitingUploads(
    ofReceipt receiptID: UUID16, appFamily: UUID16, _ part: WaitingPart = .all
  ) throws -> [WaitingUpload] {
    try ask { try $0.waiting.uploads(ofReceipt: receiptID, family: appFamily, part) }
  }

  /// The upload at a position; nil if none waits there for the App Store.
  package func waitingUpload(at position: Position) throws -> WaitingUpload? {
    try ask { try $0.waiting.upload(at: position) }
  }

  /// How many receipts wait, and when the oldest waiting upload was received, in epoch milliseconds.
  package func waitingSummary() throws -> (receipts: Int, oldestMs: Int64?) {
    try ask { try $0.waiting.summary() }
  }

  /// Products that are sold but that their apps do not declare, although these declare others.
  package func undeclaredProducts() throws -> [UndeclaredProduct] {
    try ask { try $0.apps.undeclaredProducts() }
  }

  /// The latest trust declaration; nil if there is none.
  package func newestTrust() throws -> TrustDeclared? { try ask { try $0.trust.newest() } }

  /// The newest final reply of the App Store for a receipt, unless it was given outside a range of time (epoch
  /// milliseconds). A reply from the future comes from a clock that ran ahead.
  package func recentReply(
    ofReceipt receiptID: UUID16, appFamily: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply? {
    if !receiptID.withText({ answerTimes.mayHold($0, since: times.lowerBound) }) { return nil }
    return try ask {
      try $0.waiting.recentReply(ofReceipt: receiptID, family: appFamily, givenInMs: times)
    }
  }

  /// What the folded events changed from a point on, in order; at most `limit` changes.
  package func changes(from point: ChangePoint, limit: Int) throws -> LedgerChangePage {
    try withGeneration { path in
      try changes.withLock { open in
        let database =
          if let open, open.path == path { open } else { try Database(path: path, mode: .read) }
        open = database
        return try LedgerQueries(database) { position in
          preconditionFailure("the tables already hold the event at \(position)")
        }.changes(from: point, limit: limit)
      }
    }
  }

  /// Whether a notification with this `notificationUUID` is folded. It has its own connection, so that no other query
  /// delays it.
  package func containsNotification(uuid: String) throws -> Bool {
    try withGeneration { path in
      try notifications.withLock { current in
        if let current, current.path == path {
          return try current.lookup.containsNotification(uuid)
        }
        let lookup = try IntakeLookup(try Database(path: path, mode: .read))
        current = (path, lookup)
        return try lookup.containsNotification(uuid)
      }
    }
  }

  private func ask<Result>(_ body: (Questions) throws -> Result) throws -> Result {
    try withGeneration { try ask($0, body) }
  }

  /// Calls `body` with the path of the generation in use, again if it was replaced meanwhile.
  private func withGeneration<Result>(_ body: (String) throws -> Result) throws -> Result {
    let path = shared.withLock { $0.path }
    // The body may have opened a connection after those to this generation were closed.
    defer { if shared.withLock({ $0.path }) != path { closeReplaced() } }
    do { return try body(path) } catch {
      // Another process may have put a new generation in use, and removed this one, since the last batch.
      guard Generations(directory).current != shared.withLock({ $0.path }) else { throw error }
      try catchUp()
      return try body(shared.withLock { $0.path })
    }
  }

  private func ask<Result>(_ path: String, _ body: (Questions) throws -> Result) throws -> Result {
    try questions.withLock { current in
      if let questions = current, questions.path == path { return try body(questions) }
      let database = try Database(path: path, mode: .read)
      let questions = Questions(
        path: path, waiting: try WaitingQueries(database), apps: AppQueries(database),
        trust: TrustQueries(database))
      current = questions
      return try body(questions)
    }
  }

  // MARK: Users

  /// Answers a question about a user of an app family from the folded events.
  /// - Parameter atMs: the moment that decides what has ended, in epoch milliseconds.
  package func answer(
    _ question: OwnershipQuestion, about user: String, of family: UUID16, atMs: Int64
  ) throws -> OwnershipResponse {
    let app = appFamily(family)
    return try withGeneration { path in
      try ownership.withLock { current in
        let answers: OwnershipResponses
        if let current, current.path == path {
          answers = current.answers
        } else {
          answers = try OwnershipResponses(try Database(path: path, mode: .read))
          current = (path, answers)
        }
        return try answers.answer(question, about: user, of: family, app, atMs: atMs)
      }
    }
  }

  /// A read connection to the generation in use now, owned by the caller.
  package func readingConnection() throws -> Database {
    try withGeneration { try Database(path: $0, mode: .read) }
  }

  // MARK: App families

  /// The app family of a bundle id; nil if there is none.
  package func appFamily(ofBundle bundleID: String) -> UUID16? {
    shared.withLock { $0.apps.familiesByBundle[bundleID] }
  }

  /// The latest registration of an app family; nil if there is none.
  package func appFamily(_ id: UUID16) -> AppFamily? { shared.withLock { $0.apps.families[id] } }

  /// The bundle ids of an app family, sorted; empty if there is none.
  package func bundles(of family: UUID16) -> [String] { appFamily(family)?.bundleIDs ?? [] }

  /// All app families, by name and then id.
  package var appFamilies: [AppFamily] {
    shared.withLock { Array($0.apps.families.values) }
      .sorted { ($0.name, $0.id.description) < ($1.name, $1.id.description) }
  }
}
