// Plans erasures: the projections name the events; the log is searched for purchases, tokens and accounts of users.
import Base
package import Ledger
package import Projections
import Revenue

/// Plans erasures at one state of the projections. Used by one thread.
final class ErasurePlanner {
  let database: Database
  let reader: LogReader
  let isCancelled: () -> Bool
  /// Only events before it are redacted.
  var end: Position
  /// The users of sales, by kind and key; the same for every erasure.
  var knownSellers: [[UInt8]: [Int64]] = [:]
  /// Users of earlier requests, and users erased before.
  var goneUsers: Set<Int64> = []
  /// Whether a user has uploads, by number; the users of tokens, by token. The same for every erasure.
  var knownUploaders: [Int64: Bool] = [:]
  var knownTokenUsers: [[UInt8]: Int64?] = [:]
  lazy var selectVerification = Result { () throws(DatabaseError) in
    try database.prepare("SELECT 1 FROM verifications WHERE position = ?")
  }
  /// Whether users other than the subject have a sale of a subscription, by original transaction id.
  var othersOriginals: [[UInt8]: Bool] = [:]

  /// - Parameters:
  ///   - database: projections that have folded all events before `end`.
  ///   - reader: the log with these events.
  init(
    _ database: Database, _ reader: LogReader, before end: Position,
    isCancelled: @escaping () -> Bool
  ) throws {
    self.database = database
    self.reader = reader
    self.end = end
    self.isCancelled = isCancelled
    try database.execute(Self.temporaryTables)
  }

  func clear() throws {
    for table in [
      "subject_users", "subject_uploads", "subject_receipts", "subject_sales", "subject_ids",
    ] { try database.execute("DELETE FROM \(table)") }
    othersOriginals = [:]
  }

  /// What requests redact, or why one can't be carried out. Users of earlier requests count as erased in later ones.
  /// - Parameter requestedAtMs: when each was requested, in epoch milliseconds.
  func plan(
    _ subjects: [ErasureSubject], requestedAtMs: [Int64]
  ) throws -> [Result<ErasurePlan, ErasureError>] {
    // Thousands of queries see one state and take one lock.
    try database.execute("BEGIN")
    defer { try? database.execute("COMMIT") }
    let users = zip(subjects, requestedAtMs).compactMap { subject, requestedAtMs in
      if case .user(let identifier, let family) = subject {
        PlannedUser(identifier, family, requestedAtMs: requestedAtMs)
      } else {
        nil
      }
    }
    var ofUsers = try plan(users: users)[...]
    return try subjects.map { subject in
      try clear()
      do {
        switch subject {
        case .user: return .success(ofUsers.removeFirst())
        case .receipt(let id): return .success(try plan(receipt: id))
        case .position(let position): return .success(try plan(position: position))
        }
      } catch let error as ErasureError {
        guard case .refused = error else { throw error }
        return .failure(error)
      }
    }
  }

  func plan(_ subject: ErasureSubject, requestedAtMs: Int64) throws -> ErasurePlan {
    guard let plan = try plan([subject], requestedAtMs: [requestedAtMs]).first else {
      preconditionFailure("a plan is missing")
    }
    return try plan.get()
  }

  /// Adds the subject's uploads to the targets.
  func addUploads(to plan: inout ErasurePlan, _ places: inout Set<Position>) throws {
    let uploads = try database.prepare("SELECT position, extent FROM subject_uploads")
    while try uploads.step() {
      let extent: ErasureExtent = try uploads.code(1)
      places.insert(try uploads.ordinal(0))
      plan.targets.append(.init(position: try uploads.ordinal(0), extent: extent))
    }
    plan.receiptCount = Int(
      try database.integer("SELECT count(*) FROM subject_receipts WHERE is_shared = 0") ?? 0)
  }

  // MARK: Receipts and events

  private func plan(receipt id: String) throws -> ErasurePlan {
    let select = try database.prepare("SELECT id FROM receipts WHERE receipt_id = ?")
    select.bind(1, text: id)
    guard try select.step() else { return ErasurePlan() }
    return try plan(receiptNumber: select.integer(0))
  }

  private func plan(receiptNumber: Int64) throws -> ErasurePlan {
    var plan = ErasurePlan()
    try database.execute(
      """
      INSERT INTO subject_uploads SELECT position, receipt, \(ErasureExtent.receipt.rawValue)
      FROM uploads WHERE receipt = \(receiptNumber) AND position < \(end)
      """)
    var places: Set<Position> = []
    try addUploads(to: &plan, &places)
    let verifications = try database.prepare(Self.verificationsOfSubject(before: end))
    while try verifications.step() {
      plan.targets.append(.init(position: try verifications.ordinal(0), extent: .whole))
    }
    plan.targets.sort { $0.position < $1.position }
    plan.receiptCount = plan.isEmpty ? 0 : 1
    return plan
  }

  private func plan(position: Position) throws -> ErasurePlan {
    func refusal(_ cause: String) -> ErasureError {
      .refused(object: "position \(position)", cause: cause)
    }
    guard position < end else { throw refusal("the log has no such event") }
    let type = try reader.event(at: position).withUnsafeBytes { bytes in
      EventLine(bytes).flatMap { EventType($0.type) }
    }
    var plan = ErasurePlan()
    switch type {
    case .receiptUploaded:
      let count = try database.prepare(
        """
        SELECT count(*) FROM uploads
        WHERE receipt = (SELECT receipt FROM uploads WHERE position = ?)
        """)
      count.bind(1, position)
      let isOnly = try count.step() && count.integer(0) <= 1
      plan.targets = [.init(position: position, extent: isOnly ? .receipt : .receiptKeepingID)]
      plan.receiptCount = isOnly ? 1 : 0
    case .transactionsReceived: plan.targets = [.init(position: position, extent: .receipt)]
    case .receiptVerified, .notificationReceived, .transactionsFetched:
      plan.targets = [.init(position: position, extent: .whole)]
    default: throw refusal("an event of this type holds no personal data")
    }
    return plan
  }

  // MARK: Receipts that waited

  /// The receipts that earlier erasures kept for the App Store's reply and that are due now: the reply has arrived, is
  /// no longer requested, or the time is over.
  func planAnswered(nowMs: Int64) throws -> ErasurePlan {
    var plan = ErasurePlan()
    let due = try database.prepare(
      """
      SELECT h.upload FROM held_receipts h JOIN uploads u ON u.position = h.upload
      WHERE h.upload < \(end) AND (h.until_ms <= ? OR NOT \(Self.isWaiting("u")))
      """)
    due.bind(1, nowMs)
    let replies = try database.prepare(
      "SELECT position FROM verifications WHERE upload = ? AND authority = 1 AND position < ?")
    while try due.step() {
      let upload = try due.ordinal(0)
      plan.targets.append(.init(position: upload, extent: .receiptKeepingID))
      replies.bind(1, upload)
      replies.bind(2, end)
      while try replies.step() {
        plan.targets.append(.init(position: try replies.ordinal(0), extent: .whole))
      }
      replies.reset()
    }
    plan.receiptCount = plan.targets.count { $0.extent == .receiptKeepingID }
    plan.targets.sort { $0.position < $1.position }
    return plan
  }

  /// SQL: whether the App Store will still be asked about an upload's receipt.
  static func isWaiting(_ upload: String) -> String {
    """
    EXISTS (SELECT 1 FROM open_uploads o JOIN receipts r ON r.id = o.receipt
      WHERE o.upload = \(upload).position AND o.is_accepted = 1 AND o.is_refused = 0 AND r.is_final = 0)
    """
  }

  // MARK: Late replies

  /// Whether the App Store replied to anything after a position.
  static func hasReplies(after position: Position, _ database: Database) throws -> Bool {
    let replies = try database.prepare(
      "SELECT 1 FROM verifications WHERE position > ? AND authority = 1 LIMIT 1")
    replies.bind(1, position)
    return try replies.step()
  }

  /// The replies after a position about some uploads.
  func plan(repliesAfter position: Position, about uploads: [Position]) throws -> ErasurePlan {
    var plan = ErasurePlan()
    let replies = try database.prepare(
      "SELECT position, upload FROM verifications WHERE position > ? AND authority = 1")
    replies.bind(1, position)
    while try replies.step() {
      let upload = try replies.ordinal(1)
      let index = lowerBound(0..<uploads.count) { uploads[$0] < upload }
      guard index < uploads.count, uploads[index] == upload, try isWithoutReceipt(upload) else {
        continue
      }
      plan.targets.append(.init(position: try replies.ordinal(0), extent: .whole))
    }
    return plan
  }

  /// Whether an upload's receipt was redacted: it is kept for other users, and where only fields were redacted.
  private func isWithoutReceipt(_ upload: Position) throws -> Bool {
    try reader.event(at: upload).withUnsafeBytes { bytes in
      guard let event = EventLine(bytes), event.isRedacted else { return false }
      return try ReceiptUploadedView(data: event.data, isRedacted: true).receiptSHA256Hex == nil
    }
  }

  // MARK: Retention

  /// The most targets of one pass; the next pass continues.
  private static let retentionCountMax = 500_000

  /// The uploads whose fields are older than the rules allow.
  func plan(_ rules: RetentionRules, nowMs: Int64) throws -> ErasurePlan {
    var plan = ErasurePlan()
    func add(_ limitMs: Int64?, _ extent: ErasureExtent, _ condition: String) throws {
      guard let limitMs else { return }
      let uploads = try database.prepare(
        """
        SELECT position FROM uploads WHERE recorded_at_ms < ? AND position < ? AND \(condition)
        ORDER BY position LIMIT \(Self.retentionCountMax)
        """)
      uploads.bind(1, nowMs - limitMs)
      uploads.bind(2, end)
      while try uploads.step() {
        plan.targets.append(.init(position: try uploads.ordinal(0), extent: extent))
      }
    }
    try add(rules.ipAddressMs, .ipAddress, "ip_address IS NOT NULL")
    try add(rules.identifierForVendorMs, .identifierForVendor, "identifier_for_vendor IS NOT NULL")
    try add(rules.metadataMs, .metadata, Self.hasFreeMetadata)
    plan.targets.sort { ($0.position, $0.extent.rawValue) < ($1.position, $1.extent.rawValue) }
    return plan
  }

  /// What a plan of retention erases, compared with earlier passes in the log; nil if it erases nothing.
  func pass(of plan: ErasurePlan) throws -> RetentionPass? {
    guard let first = plan.targets.first, let last = plan.targets.last else { return nil }
    var count = 1
    for (before, target) in zip(plan.targets, plan.targets.dropFirst())
    where before.position != target.position { count += 1 }
    let upload = try database.prepare("SELECT recorded_at_ms FROM uploads WHERE position = ?")
    func recordedAtMs(_ position: Position) throws -> Int64 {
      defer { upload.reset() }
      upload.bind(1, position)
      return try upload.step() ? try upload.instant(0) : 0
    }
    let passes = try database.prepare(
      """
      SELECT sum(l.lines) AS taken FROM redactions o JOIN redactions l ON l.erasure = o.position
      WHERE o.request IS NOT NULL AND o.scope = ? GROUP BY o.position HAVING taken > 0
      ORDER BY o.position DESC LIMIT \(RetentionPass.comparedCount)
      """)
    passes.bind(1, text: DataRedacted.Scope.retention.rawValue)
    var earlier: [Int] = []
    while try passes.step() { earlier.append(try passes.ordinal(0)) }
    return RetentionPass(
      eventCount: count, firstRecordedAtMs: try recordedAtMs(first.position),
      lastRecordedAtMs: try recordedAtMs(last.position),
      isUnusual: RetentionPass.isUnusual(count, earlier: earlier))
  }

  /// SQL: whether metadata has members other than prices.
  private static let hasFreeMetadata = """
    metadata IS NOT NULL AND (
      EXISTS (SELECT 1 FROM json_each(metadata) m WHERE m.key NOT IN ('prices', \(priceMembers)))
      OR EXISTS (SELECT 1 FROM json_each(metadata, '$.prices') e, json_each(
          CASE WHEN e.type = 'object' THEN e.value ELSE '{"free":1}' END) m
        WHERE m.key NOT IN (\(priceMembers))))
    """
  private static let priceMembers = """
    'price', 'price_micros', 'price_milliunits', 'currency', 'product_id', 'transaction_id', 'kind'
    """
}

// MARK: - Erasures in the projections

/// Reads the erasures from one generation of the projections.
package struct ErasureQueries {
  /// An erasure in the log.
  package struct Erasure: Sendable {
    package let position: Position
    /// Epoch milliseconds.
    package let recordedAtMs: Int64
    package let scope: String
    package let reason: String
    package let request: String
    /// How many lines its events list.
    package let lineCount: Int
  }

  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// The positions of the newest events that list redacted lines, the newest first.
  package func newestListings(limit: Int) throws(ErasureError) -> [Position] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        "SELECT position FROM redactions WHERE part IS NOT NULL ORDER BY position DESC LIMIT ?")
      rows.bind(1, limit)
      var positions: [Position] = []
      while try rows.step() { positions.append(try rows.ordinal(0)) }
      return positions
    } catch { throw .projections(.database(error)) }
  }

  /// All erasures, by position.
  package func all() throws(ErasureError) -> [Erasure] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT o.position, o.recorded_at_ms, o.scope, o.reason, o.request,
          (SELECT coalesce(sum(l.lines), 0) FROM redactions l WHERE l.erasure = o.position)
        FROM redactions o WHERE o.request IS NOT NULL ORDER BY o.position
        """)
      var erasures: [Erasure] = []
      while try rows.step() {
        erasures.append(
          Erasure(
            position: try rows.ordinal(0), recordedAtMs: rows.integer(1), scope: rows.text(2),
            reason: rows.text(3), request: rows.text(4), lineCount: try rows.ordinal(5)))
      }
      return erasures
    } catch { throw .projections(.database(error)) }
  }
}
