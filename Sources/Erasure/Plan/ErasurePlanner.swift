// Finds what a request is about: the projections name the events, the log is read for tokens.
import Base
import JSON
import Ledger
import Projections
import Revenue

/// Plans erasures at one state of the projections. Used by one thread.
final class ErasurePlanner {
  private let database: Database
  private let reader: LogReader
  /// Only events before it are redacted.
  var end: Position

  /// - Parameters:
  ///   - database: projections that have folded all events before `end`.
  ///   - reader: the log with these events.
  init(_ database: Database, _ reader: LogReader, before end: Position) throws {
    self.database = database
    self.reader = reader
    self.end = end
    try database.execute(
      """
      PRAGMA temp_store = MEMORY;
      CREATE TEMP TABLE IF NOT EXISTS erased_users(id INTEGER PRIMARY KEY);
      CREATE TEMP TABLE IF NOT EXISTS subject_users(id INTEGER PRIMARY KEY);
      CREATE TEMP TABLE IF NOT EXISTS subject_uploads(
        position INTEGER PRIMARY KEY, receipt INTEGER, extent INTEGER NOT NULL);
      CREATE TEMP TABLE IF NOT EXISTS subject_receipts(
        receipt INTEGER PRIMARY KEY, is_shared INTEGER NOT NULL);
      CREATE TEMP TABLE IF NOT EXISTS subject_sales(id INTEGER PRIMARY KEY);
      CREATE TEMP TABLE IF NOT EXISTS subject_ids(id TEXT PRIMARY KEY) WITHOUT ROWID;
      CREATE TEMP TABLE IF NOT EXISTS others_originals(id TEXT PRIMARY KEY) WITHOUT ROWID;
      DELETE FROM erased_users;
      INSERT INTO erased_users SELECT id FROM users
      WHERE user_identifier GLOB '(redacted *' OR user_identifier GLOB 'token:(redacted *';
      """)
  }

  private func clear() throws {
    for table in [
      "subject_users", "subject_uploads", "subject_receipts", "subject_sales", "subject_ids",
    ] { try database.execute("DELETE FROM \(table)") }
  }

  /// What a request redacts. Users of earlier plans count as erased in later ones.
  func plan(_ subject: ErasureSubject) throws -> ErasurePlan {
    // One state, and one lock for thousands of queries.
    try database.execute("BEGIN")
    defer { try? database.execute("COMMIT") }
    try clear()
    switch subject {
    case .user(let identifier, let family): return try plan(user: identifier, family)
    case .receipt(let id): return try plan(receipt: id)
    case .position(let position): return try plan(position: position)
    }
  }

  // MARK: A user

  private static let tokenPrefix = "token:"

  private func plan(user identifier: String, _ family: UUID16?) throws -> ErasurePlan {
    var plan = ErasurePlan()
    plan.identifiers = [Array(identifier.utf8)]
    let familySymbol = try family.map { try symbol($0.description) ?? -1 }
    guard try addUser(identifier) || identifier.hasPrefix(Self.tokenPrefix) else { return plan }
    if identifier.hasPrefix(Self.tokenPrefix) {
      let token = Array(identifier.utf8.dropFirst(Self.tokenPrefix.utf8.count))
      plan.ownership.appAccountTokens.insert(token)
      plan.identifiers = [token]
    }
    try findUploads(familySymbol)
    // Tokens name further sales, and those further tokens.
    var readPositions: Set<Position> = []
    while true {
      try findSales(familySymbol)
      try findIDs(&plan.ownership)
      let positions = try statementPositions(plan.ownership).filter { !readPositions.contains($0) }
      readPositions.formUnion(positions)
      let found = try tokens(at: positions, plan.ownership)
        .subtracting(plan.ownership.appAccountTokens)
      if found.isEmpty { break }
      plan.ownership.appAccountTokens.formUnion(found)
      plan.identifiers += found.sorted { $0.lexicographicallyPrecedes($1) }
      for token in found {
        _ = try addUser(Self.tokenPrefix + String(decoding: token, as: UTF8.self))
      }
    }
    try collect(&plan, signedPositions: readPositions)
    try database.execute("INSERT OR IGNORE INTO erased_users SELECT id FROM subject_users")
    return plan
  }

  /// Adds a user to the subject; false if there is none with this identifier.
  private func addUser(_ identifier: String) throws -> Bool {
    let select = try database.prepare("SELECT id FROM users WHERE user_identifier = ?")
    select.bind(1, text: identifier)
    guard try select.step() else { return false }
    let insert = try database.prepare("INSERT OR IGNORE INTO subject_users VALUES(?)")
    insert.bind(1, select.integer(0))
    try insert.run()
    return true
  }

  private func symbol(_ text: String) throws -> Int64? {
    let select = try database.prepare("SELECT id FROM symbols WHERE text = ?")
    select.bind(1, text: text)
    return try select.step() ? select.integer(0) : nil
  }

  /// The uploads of the user, those without a user of receipts that only the user uploaded, and for each how much
  /// goes. Users who were erased before do not make a receipt another user's.
  private func findUploads(_ family: Int64?) throws {
    let ofFamily =
      family.map {
        """
        AND coalesce((SELECT app_family FROM receipts r WHERE r.id = u.receipt),
          (SELECT app_family FROM signed_uploads g WHERE g.position = u.position)) = \($0)
        """
      } ?? ""
    try database.execute(
      """
      INSERT INTO subject_uploads SELECT u.position, u.receipt, \(ErasureExtent.whole.rawValue)
      FROM uploads u WHERE u.user IN (SELECT id FROM subject_users) AND u.position < \(end) \(ofFamily);
      INSERT INTO subject_receipts
      SELECT DISTINCT receipt, 0 FROM subject_uploads WHERE receipt IS NOT NULL;
      UPDATE subject_receipts SET is_shared = 1 WHERE receipt IN (
        SELECT u.receipt FROM uploads u WHERE u.receipt IN (SELECT receipt FROM subject_receipts)
        AND u.user IS NOT NULL AND u.user NOT IN (SELECT id FROM subject_users)
        AND u.user NOT IN (SELECT id FROM erased_users));
      UPDATE subject_uploads SET extent = \(ErasureExtent.names.rawValue)
      WHERE receipt IN (SELECT receipt FROM subject_receipts WHERE is_shared = 1);
      INSERT OR IGNORE INTO subject_uploads SELECT u.position, u.receipt, \(ErasureExtent.whole.rawValue)
      FROM uploads u WHERE u.position < \(end)
      AND u.receipt IN (SELECT receipt FROM subject_receipts WHERE is_shared = 0);
      """)
  }

  private func findSales(_ family: Int64?) throws {
    let ofFamily =
      family.map {
        """
        AND bundle IN (SELECT id FROM symbols WHERE text IN (SELECT bundle_id FROM app_bundles
          WHERE app_family_id = (SELECT text FROM symbols WHERE id = \($0)))
          UNION SELECT bundle FROM receipts WHERE app_family = \($0)
          UNION SELECT bundle FROM signed_uploads WHERE app_family = \($0))
        """
      } ?? ""
    try database.execute(
      """
      INSERT OR IGNORE INTO subject_sales SELECT id FROM sales
      WHERE user IN (SELECT id FROM subject_users) \(ofFamily)
      """)
  }

  /// The ids of the transactions that show the subject's sales, and the original ids that are the subject's alone.
  private func findIDs(_ ownership: inout SignedOwnership) throws {
    try database.execute(
      """
      INSERT OR IGNORE INTO subject_ids SELECT transaction_id FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND transaction_id != '';
      INSERT OR IGNORE INTO subject_ids SELECT transaction_id FROM sale_transactions
      WHERE sale IN (SELECT id FROM subject_sales) AND transaction_id != '';
      INSERT OR IGNORE INTO subject_ids SELECT sale_key FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND key_kind = 1;
      """)
    let ids = try database.prepare("SELECT id FROM subject_ids")
    while try ids.step() { ownership.transactionIDs.insert(Array(ids.bytes(0))) }
    try database.execute(
      """
      DELETE FROM others_originals;
      INSERT OR IGNORE INTO others_originals SELECT original_transaction_id FROM subscriptions
      WHERE user IS NOT NULL AND user NOT IN (SELECT id FROM subject_users)
      AND user NOT IN (SELECT id FROM erased_users);
      """)
    let originals = try database.prepare(
      """
      SELECT DISTINCT original_transaction_id FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND original_transaction_id != ''
      AND original_transaction_id NOT IN (SELECT id FROM others_originals)
      """)
    while try originals.step() {
      ownership.originalTransactionIDs.insert(Array(originals.bytes(0)))
    }
    let insert = try database.prepare("INSERT OR IGNORE INTO subject_ids VALUES(?)")
    for original in ownership.originalTransactionIDs {
      original.withUnsafeBytes { insert.bind(1, text: $0) }
      try insert.run()
    }
  }

  /// The events with signed objects that name one of the subject's transactions.
  private func statementPositions(_ ownership: SignedOwnership) throws -> [Position] {
    var positions: Set<Position> = []
    let statements = try database.prepare(
      "SELECT position FROM signed_statements WHERE transaction_hash = ?")
    let pages = try database.prepare(
      "SELECT position FROM fetched_pages WHERE transaction_hash = ? AND transaction_id = ?")
    let isSigned = try database.integer(
      "SELECT EXISTS(SELECT 1 FROM signed_statements) OR EXISTS(SELECT 1 FROM fetched_pages)")
    let ids = ownership.transactionIDs.union(ownership.originalTransactionIDs)
    for id in isSigned == 0 ? [] : ids {
      try id.withUnsafeBytes { text in
        statements.bind(1, text.indexHash)
        while try statements.step() { positions.insert(Int(statements.integer(0))) }
        statements.reset()
        pages.bind(1, text.indexHash)
        pages.bind(2, text: text)
        while try pages.step() { positions.insert(Int(pages.integer(0))) }
        pages.reset()
      }
    }
    let notifications = try database.prepare(
      """
      SELECT position FROM notifications WHERE transaction_id IN (SELECT id FROM subject_ids)
      OR original_transaction_id IN (SELECT id FROM subject_ids)
      """)
    while try notifications.step() { positions.insert(Int(notifications.integer(0))) }
    return positions.filter { $0 < end }.sorted()
  }

  /// The app account tokens of the subject's transactions in some events.
  private func tokens(
    at positions: [Position], _ ownership: SignedOwnership
  ) throws -> Set<[UInt8]> {
    var found: Set<[UInt8]> = []
    for position in positions {
      for facts in try SignedFacts.all(of: try reader.event(at: position)) {
        guard let token = facts.appAccountToken,
          facts.transactionID.map({ ownership.transactionIDs.contains($0) }) == true
        else { continue }
        found.insert(token)
      }
    }
    // A token that an erasure took away names no user.
    return found.filter { !$0.starts(with: "(redacted ".utf8) }
  }

  /// Turns what was found into targets.
  private func collect(_ plan: inout ErasurePlan, signedPositions: Set<Position>) throws {
    let uploads = try database.prepare("SELECT position, extent FROM subject_uploads")
    var isUpload: Set<Position> = []
    while try uploads.step() {
      let extent: ErasureExtent = try uploads.code(1)
      isUpload.insert(Int(uploads.integer(0)))
      plan.targets.append(.init(position: Int(uploads.integer(0)), extent: extent))
    }
    plan.receiptCount = Int(
      try database.integer("SELECT count(*) FROM subject_receipts WHERE is_shared = 0") ?? 0)
    try addVerifications(to: &plan)
    let uploader = try database.prepare("SELECT user FROM uploads WHERE position = ?")
    for position in signedPositions where !isUpload.contains(position) {
      uploader.bind(1, position)
      let isAnonymous = try uploader.step() && uploader.isNull(0)
      uploader.reset()
      plan.targets.append(
        .init(position: position, extent: isAnonymous ? .ownObjects : .objects))
    }
    plan.targets.sort { $0.position < $1.position }
  }

  /// The verifications of the subject's uploads. Replies about a shared receipt go only if they hold a token.
  private func addVerifications(to plan: inout ErasurePlan) throws {
    let verifications = try database.prepare(
      """
      SELECT v.position, s.extent FROM verifications v JOIN subject_uploads s ON s.position = v.upload
      WHERE v.authority = 1 AND v.position < \(end)
      """)
    while try verifications.step() {
      let isShared = verifications.integer(1) == Int64(ErasureExtent.names.rawValue)
      if isShared, plan.ownership.appAccountTokens.isEmpty { continue }
      plan.targets.append(
        .init(
          position: Int(verifications.integer(0)), extent: isShared ? .withToken : .whole))
    }
  }

  // MARK: A receipt, one event

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
    try collect(&plan, signedPositions: [])
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
      let upload = Int(replies.integer(1))
      let index = lowerBound(0..<uploads.count) { uploads[$0] < upload }
      guard index < uploads.count, uploads[index] == upload, try isWithoutReceipt(upload) else {
        continue
      }
      plan.targets.append(.init(position: Int(replies.integer(0)), extent: .whole))
    }
    return plan
  }

  /// Whether an upload's receipt was taken out: that of others, or of whom only fields went, stays.
  private func isWithoutReceipt(_ upload: Position) throws -> Bool {
    try reader.event(at: upload).withUnsafeBytes { bytes in
      guard let event = EventLine(bytes), event.isRedacted else { return false }
      return try ReceiptUploadedView(data: event.data, isRedacted: true).receiptSHA256Hex == nil
    }
  }

  // MARK: Retention

  /// How many targets one pass has at most; the next pass goes on.
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
        plan.targets.append(.init(position: Int(uploads.integer(0)), extent: extent))
      }
    }
    try add(rules.ipAddressMs, .ipAddress, "ip_address IS NOT NULL")
    try add(rules.identifierForVendorMs, .identifierForVendor, "identifier_for_vendor IS NOT NULL")
    try add(rules.metadataMs, .metadata, Self.hasFreeMetadata)
    plan.targets.sort { ($0.position, $0.extent.rawValue) < ($1.position, $1.extent.rawValue) }
    return plan
  }

  /// What a plan of retention takes, against what the passes in the log took; nil if it takes nothing.
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

  /// SQL: whether metadata has members besides those of prices.
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
