// Projections that a server keeps at the log's head while it answers from them.
package import Base
package import Ledger

/// Keeps one ledger's projections up to date and answers the client API from them. Safe to use from several
/// threads: `catchUp` and `answers(uploads:)` share one connection, questions about users another, all other
/// questions a third, so that these wait for no fold.
package final class LiveProjections: Sendable {
  private struct Shared {
    var position = 0
    var path = ""
    var apps = AppDirectory()
  }

  /// Questions from one connection to the generation in use.
  private struct Questions {
    var path: String
    var answers: ReceiptResponses
    var waiting: WaitingQueries
    let apps: AppQueries
    let trust: TrustQueries
    let events: EventReader
  }

  private let directory: LedgerDirectory
  private let folding: Monitor<LiveFold>
  private let shared: Monitor<Shared>
  private let questions: Monitor<Questions?>
  /// Questions about users have a connection of their own, so that uploads wait for none of them.
  private let ownership: Monitor<(path: String, answers: OwnershipResponses)?>
  /// The connection that changes are read from: they may be many, and no question waits for them.
  private let changes = Monitor<Database?>(nil)
  private let notifications: Monitor<(path: String, lookup: IntakeLookup)?>
  private let keeper: WALCheckpointer?
  private let answerTimes: ResponseTimes

  /// Opens the projections, caught up with the log, or builds them where there are none that fit.
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
    // Where the system gives no thread, SQLite writes its log back in the middle of commits, as it does.
    keeper = try? WALCheckpointer { [folding] body in folding.withLock { _ in body() } }
    try folding.withLock { try share($0) }
  }

  /// Folds every event that is whole on disk, each batch in one transaction.
  /// - Throws: `ProjectionError`; `ledger` with the damage of a log that is not whole.
  package func catchUp() throws {
    try folding.withLock { fold in
      try fold.catchUp()
      try share(fold)
    }
  }

  /// Closes tails that have been sealed: open files keep their disk space.
  package func closeSealedTails() throws(LedgerError) {
    // A fold in progress looks at the log anyway, and may take long.
    _ = try folding.withLockIfFree { fold throws(LedgerError) in try fold.closeSealedTails() }
    try questions.withLock { questions throws(LedgerError) in
      try questions?.events.closeSealedTails()
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
      defer { shared.path = fold.path }
      shared.position = fold.progress.position
      if let apps { shared.apps = apps }
      return shared.path != fold.path
    }
    if isReplaced { closeReplaced() }
  }

  /// Closes connections to generations that were replaced, even if nobody asks again: as long as one is open, its file
  /// stays on disk, with what an erasure has redacted since.
  private func closeReplaced() {
    let path = shared.withLock { $0.path }
    questions.withLock { if $0?.path != path { $0 = nil } }
    ownership.withLock { if $0?.path != path { $0 = nil } }
    changes.withLock { if $0?.path != path { $0 = nil } }
    notifications.withLock { if $0?.path != path { $0 = nil } }
    keeper?.closeOthers(than: path)
  }

  // MARK: Answers

  /// The receipts as the uploads at some positions see them, all of one moment; nil where no folded upload
  /// is there. A failure to read one does not affect the others. The first of them at least; no
  /// more once they take `byteCountMax` bytes in memory.
  package func answers(
    uploads: some Sequence<Position>, byteCountMax: Int = .max
  ) throws -> [Result<ClientReceipt?, any Error>] {
    let apps = shared.withLock { $0.apps }
    return try folding.withLock {
      try $0.answers.answers(uploads: uploads, apps: apps, byteCountMax: byteCountMax)
    }
  }

  /// The receipt as the upload at a position sees it; nil where there is no folded upload.
  package func answer(upload position: Position) throws -> ClientReceipt? {
    try answers(uploads: [position]).first?.get()
  }

  /// The receipt as its newest upload sees it; nil where the family has no such receipt.
  package func answer(receiptID: UUID16, appFamily: UUID16) throws -> ClientReceipt? {
    let apps = shared.withLock { $0.apps }
    return try ask { questions in
      try questions.answers.answer(receiptID: receiptID, apps: apps, family: appFamily)
    }
  }

  // MARK: What waits for the App Store

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

  /// The upload at a position; nil where none waits there for the App Store.
  package func waitingUpload(at position: Position) throws -> WaitingUpload? {
    try ask { try $0.waiting.upload(at: position) }
  }

  /// How many receipts wait, and since when the oldest upload does, in epoch milliseconds.
  package func waitingSummary() throws -> (receipts: Int, oldestMs: Int64?) {
    try ask { try $0.waiting.summary() }
  }

  /// Products that sell though their apps, which declare others, do not declare them.
  package func undeclaredProducts() throws -> [UndeclaredProduct] {
    try ask { try $0.apps.undeclaredProducts() }
  }

  /// The trust that was declared last; nil where none was.
  package func newestTrust() throws -> TrustDeclared? { try ask { try $0.trust.newest() } }

  /// The newest final answer of the App Store for a receipt, unless it was given at another time (epoch
  /// milliseconds). One of the future comes from a clock that ran ahead.
  package func recentReply(
    ofReceipt receiptID: UUID16, appFamily: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply? {
    if !receiptID.withText({ answerTimes.mayHold($0, since: times.lowerBound) }) { return nil }
    return try ask {
      try $0.waiting.recentReply(ofReceipt: receiptID, family: appFamily, givenInMs: times)
    }
  }

  /// What the folded events from a point on changed, in their order; at most `limit` changes.
  package func changes(from point: ChangePoint, limit: Int) throws -> LedgerChangePage {
    try withGeneration { path in
      try changes.withLock { open in
        let database =
          if let open, open.path == path { open } else { try Database(path: path, mode: .read) }
        open = database
        return try LedgerQueries(database) { position in
          preconditionFailure("the tables tell of the event at \(position)")
        }.changes(from: point, limit: limit)
      }
    }
  }

  /// Whether a notification with this `notificationUUID` is folded. It has a connection of its own: no other question
  /// holds it up.
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
      let events = EventReader(directory)
      let questions = Questions(
        path: path,
        answers: try ReceiptResponses(database) { try events.line(at: $0) },
        waiting: try WaitingQueries(database), apps: AppQueries(database),
        trust: TrustQueries(database), events: events)
      current = questions
      return try body(questions)
    }
  }

  // MARK: Users

  /// Answers a question about a user of an app family, as far as events are folded.
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

  /// A connection of the caller's own, for reading, to the generation in use now.
  package func readingConnection() throws -> Database {
    try withGeneration { try Database(path: $0, mode: .read) }
  }

  // MARK: App families

  /// The app family of a bundle id; nil where none has it.
  package func appFamily(ofBundle bundleID: String) -> UUID16? {
    shared.withLock { $0.apps.familiesByBundle[bundleID] }
  }

  /// An app family as it was registered last; nil where there is none.
  package func appFamily(_ id: UUID16) -> AppFamily? { shared.withLock { $0.apps.families[id] } }

  /// The bundle ids of an app family, sorted; empty where there is none.
  package func bundles(of family: UUID16) -> [String] { appFamily(family)?.bundleIDs ?? [] }

  /// All app families, by name and then id.
  package var appFamilies: [AppFamily] {
    shared.withLock { Array($0.apps.families.values) }
      .sorted { ($0.name, $0.id.description) < ($1.name, $1.id.description) }
  }
}
