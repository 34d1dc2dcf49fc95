// What the projections know about a user whose erasure is planned.
import Base
import Ledger
import Projections
import Revenue

extension ErasurePlanner {
  static let temporaryTables = """
    PRAGMA temp_store = MEMORY;
    CREATE TEMP TABLE IF NOT EXISTS erased_users(id INTEGER PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS gone_users(id INTEGER PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS subject_users(id INTEGER PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS subject_uploads(
      position INTEGER PRIMARY KEY, receipt INTEGER, extent INTEGER NOT NULL);
    CREATE TEMP TABLE IF NOT EXISTS subject_receipts(
      receipt INTEGER PRIMARY KEY, is_shared INTEGER NOT NULL);
    CREATE TEMP TABLE IF NOT EXISTS subject_sales(id INTEGER PRIMARY KEY);
    CREATE TEMP TABLE IF NOT EXISTS subject_ids(id TEXT PRIMARY KEY) WITHOUT ROWID;
    DELETE FROM erased_users;
    INSERT INTO erased_users SELECT id FROM users
    WHERE user_identifier GLOB '(redacted *' OR user_identifier GLOB 'token:(redacted *';
    """

  /// SQL: whether a user is neither the subject nor erased.
  private static func isOther(_ user: String) -> String {
    """
    \(user) IS NOT NULL AND \(user) NOT IN (SELECT id FROM subject_users)
    AND \(user) NOT IN (SELECT id FROM gone_users)
    """
  }

  // MARK: Uploads

  /// Finds the uploads of the user, those without a user of receipts that only this user uploaded, and how much of each
  /// is redacted. Users who were erased before do not count as other users.
  func findUploads(_ user: PlannedUser) throws {
    let ofFamily = try family(of: user).map { "AND \(Self.uploadFamily) = \($0)" } ?? ""
    try database.execute(
      """
      INSERT INTO subject_uploads SELECT u.position, u.receipt, \(ErasureExtent.whole.rawValue)
      FROM uploads u WHERE u.user IN (SELECT id FROM subject_users) AND u.position < \(end) \(ofFamily);
      INSERT INTO subject_receipts
      SELECT DISTINCT receipt, 0 FROM subject_uploads WHERE receipt IS NOT NULL;
      UPDATE subject_receipts SET is_shared = 1 WHERE receipt IN (
        SELECT u.receipt FROM uploads u WHERE u.receipt IN (SELECT receipt FROM subject_receipts)
        AND \(Self.isOther("u.user")));
      UPDATE subject_uploads SET extent = \(ErasureExtent.names.rawValue)
      WHERE receipt IN (SELECT receipt FROM subject_receipts WHERE is_shared = 1);
      INSERT OR IGNORE INTO subject_uploads SELECT u.position, u.receipt, \(ErasureExtent.whole.rawValue)
      FROM uploads u WHERE u.position < \(end)
      AND u.receipt IN (SELECT receipt FROM subject_receipts WHERE is_shared = 0);
      """)
  }

  private static let uploadFamily = """
    coalesce((SELECT app_family FROM receipts r WHERE r.id = u.receipt),
      (SELECT app_family FROM signed_uploads g WHERE g.position = u.position))
    """

  private func family(of user: PlannedUser) throws -> Int64? {
    try user.family.map { try symbol($0.description) ?? -1 }
  }

  private func symbol(_ text: String) throws -> Int64? {
    let select = try database.prepare("SELECT id FROM symbols WHERE text = ?")
    select.bind(1, text: text)
    return try select.step() ? select.integer(0) : nil
  }

  /// The replies about the subject's uploads, and the events with signed objects of its transactions.
  func ownPositions() throws -> [Position] {
    let select = try database.prepare(
      """
      SELECT v.position FROM verifications v JOIN subject_uploads s ON s.position = v.upload
      WHERE v.authority = 1
      UNION SELECT s.position FROM subject_uploads s JOIN signed_uploads g ON g.position = s.position
      """)
    var positions: [Position] = []
    while try select.step() { positions.append(try select.ordinal(0)) }
    return positions
  }

  /// The receipts that no upload of the user has and an upload without a user has, and what they show.
  func unnamedReceipts(
    _ user: PlannedUser, _ found: [Position], _ index: EvidenceIndex
  ) throws -> [(receipt: Int64, facts: [PurchaseFacts])] {
    var receipts: Set<Int64> = []
    let ofReply = try database.prepare("SELECT receipt FROM verifications WHERE position = ?")
    for position in found {
      ofReply.bind(1, position)
      if try ofReply.step(), !ofReply.isNull(0) { receipts.insert(ofReply.integer(0)) }
      ofReply.reset()
    }
    var waiting: [Int64: [PurchaseFacts]] = [:]
    let keys = user.keys
    let pending = try database.prepare("SELECT receipt, purchases FROM pending_receipts")
    while try pending.step() {
      let facts = PurchaseFacts.all(ofReply: Array(pending.bytes(1)))
      if !keys.isDisjoint(with: facts.flatMap(\.keys)) { waiting[pending.integer(0)] = facts }
    }
    let family = try family(of: user)
    let isUnnamed = try database.prepare(
      """
      SELECT 1 FROM receipts r JOIN uploads u ON u.receipt = r.id
      WHERE r.id = ?1 AND u.position BETWEEN r.first_position AND r.last_position
      AND u.position < \(end) AND u.user IS NULL
      AND r.id NOT IN (SELECT receipt FROM subject_receipts)
      \(family.map { "AND r.app_family = \($0)" } ?? "") LIMIT 1
      """)
    let replies = try database.prepare(
      """
      SELECT DISTINCT v.reply_position FROM receipts r JOIN verifications v ON v.receipt = r.id
      WHERE r.id = ?1 AND v.position BETWEEN r.first_position AND r.last_position
      AND v.reply_position IS NOT NULL
      """)
    var linked: [(Int64, [Position])] = []
    for receipt in receipts.union(waiting.keys).sorted() {
      isUnnamed.bind(1, receipt)
      let isWanted = try isUnnamed.step()
      isUnnamed.reset()
      guard isWanted else { continue }
      replies.bind(1, receipt)
      var positions: [Position] = []
      while try replies.step() { positions.append(try replies.ordinal(0)) }
      replies.reset()
      linked.append((receipt, positions))
    }
    try index.read(linked.flatMap(\.1))
    return linked.map { receipt, positions in
      (receipt, positions.flatMap { index.facts[$0] ?? [] } + (waiting[receipt] ?? []))
    }
  }

  /// Whether another user uploaded a receipt.
  func isUploadedByOther(_ receipt: Int64) throws -> Bool {
    let select = try database.prepare(
      """
      SELECT 1 FROM receipts r JOIN uploads u ON u.receipt = r.id
      WHERE r.id = ? AND u.position BETWEEN r.first_position AND r.last_position
      AND \(Self.isOther("u.user")) LIMIT 1
      """)
    select.bind(1, receipt)
    return try select.step()
  }

  /// Whether a position is that of an upload of signed transactions that names no user.
  func isUnnamedSigned(_ position: Position, _ user: PlannedUser) throws -> Bool {
    let family = try family(of: user)
    let select = try database.prepare(
      """
      SELECT 1 FROM uploads u JOIN signed_uploads g ON g.position = u.position
      WHERE u.position = ? AND u.user IS NULL \(family.map { "AND g.app_family = \($0)" } ?? "")
      """)
    select.bind(1, position)
    return try select.step()
  }

  // MARK: Sales

  /// Finds the subject's sales, the ids of the transactions that show them, and the original ids that only the subject
  /// has.
  func findIDs(_ user: PlannedUser) throws {
    let ofFamily =
      try family(of: user).map {
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
      WHERE user IN (SELECT id FROM subject_users) \(ofFamily);
      INSERT OR IGNORE INTO subject_ids SELECT transaction_id FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND transaction_id != '';
      INSERT OR IGNORE INTO subject_ids SELECT transaction_id FROM sale_transactions
      WHERE sale IN (SELECT id FROM subject_sales) AND transaction_id != '';
      INSERT OR IGNORE INTO subject_ids SELECT sale_key FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND key_kind = 1;
      """)
    let ids = try database.prepare("SELECT id FROM subject_ids")
    while try ids.step() { user.ownership.transactionIDs.insert(Array(ids.bytes(0))) }
    user.ownership.transactionIDs.formUnion(user.unclaimedIDs)
    user.ownership.originalTransactionIDs = []
    let originals = try database.prepare(
      """
      SELECT DISTINCT original_transaction_id FROM sales
      WHERE id IN (SELECT id FROM subject_sales) AND original_transaction_id != ''
      """)
    while try originals.step() {
      let original = Array(originals.bytes(0))
      if try !hasOther(original: original) {
        user.ownership.originalTransactionIDs.insert(original)
      }
    }
  }

  /// Whether another user has a sale of a subscription.
  func hasOther(original: [UInt8]) throws -> Bool {
    if let known = othersOriginals[original] { return known }
    let select = try database.prepare(
      """
      SELECT 1 FROM subscriptions s WHERE s.original_hash = ?1 AND s.original_transaction_id = ?2
      AND \(Self.isOther("s.user"))
      UNION ALL SELECT 1 FROM sales s INDEXED BY sales_chain_hash
      WHERE s.chain_hash = ?1 AND s.original_transaction_id = ?2 AND \(Self.isOther("s.user")) LIMIT 1
      """)
    let isOther = try original.withUnsafeBytes { text in
      select.bind(1, text.indexHash)
      select.bind(2, text: text)
      return try select.step()
    }
    othersOriginals[original] = isOther
    return isOther
  }

  /// The users of the sales that a purchase shows. Ids of several apps may collide.
  func sellers(of purchase: PurchaseFacts) throws -> [Int64] {
    let isLineItem = purchase.lineItemID != nil
    guard
      let key = purchase.lineItemID ?? purchase.originalTransactionID ?? purchase.transactionID
    else { return [] }
    let name = (isLineItem ? [1] : [0]) + key
    if let known = knownSellers[name] { return known }
    let select = try database.prepare(
      "SELECT DISTINCT user FROM sales WHERE sale_key = ? AND key_kind = ? AND user IS NOT NULL")
    var users: [Int64] = []
    try key.withUnsafeBytes { text in
      select.bind(1, text: text)
      select.bind(2, Int64((isLineItem ? KeyKind.lineItem : .transaction).rawValue))
      while try select.step() { users.append(select.integer(0)) }
    }
    knownSellers[name] = users
    return users
  }

  /// Whether the sale that a purchase shows is assigned to its user by its Apple Account alone.
  func isByAccount(_ purchase: PurchaseFacts) throws -> Bool {
    guard
      let key = purchase.lineItemID ?? purchase.originalTransactionID ?? purchase.transactionID
    else { return false }
    let select = try database.prepare(
      """
      SELECT 1 FROM sales WHERE sale_key = ? AND key_kind = ?
      AND user_basis = \(UserBasis.account.rawValue) LIMIT 1
      """)
    return try key.withUnsafeBytes { text in
      select.bind(1, text: text)
      select.bind(
        2, Int64((purchase.lineItemID == nil ? KeyKind.transaction : .lineItem).rawValue))
      return try select.step()
    }
  }

  /// Whether an upload names the user: other users are known by a token alone.
  func hasUploads(_ user: Int64) throws -> Bool {
    if let known = knownUploaders[user] { return known }
    let select = try database.prepare("SELECT 1 FROM users WHERE id = ? AND uploads > 0")
    select.bind(1, user)
    let hasUploads = try select.step()
    knownUploaders[user] = hasUploads
    return hasUploads
  }

  /// The number of the user whom a token names.
  func number(of token: [UInt8]) throws -> Int64? {
    if let known = knownTokenUsers[token] { return known }
    let select = try database.prepare("SELECT id FROM users WHERE user_identifier = ?")
    select.bind(1, text: TokenUser.prefix + String(decoding: token, as: UTF8.self))
    let number = try select.step() ? select.integer(0) : nil
    knownTokenUsers[token] = .some(number)
    return number
  }

  /// The events that were found, limited to the app family of the erasure if it has one.
  func positions(found index: EvidenceIndex, _ user: PlannedUser) throws -> [Position] {
    let found = index.positions(of: user.keys)
    guard let family = try family(of: user) else { return found }
    let isOfFamily = try database.prepare(
      """
      SELECT 1 FROM verifications v JOIN receipts r ON r.id = v.receipt
      WHERE v.position = ?1 AND r.app_family = ?2
      UNION ALL SELECT 1 FROM signed_uploads WHERE position = ?1 AND app_family = ?2
      UNION ALL SELECT 1 FROM notifications WHERE position = ?1 AND app_family = ?2
      UNION ALL SELECT 1 FROM fetched_pages WHERE position = ?1 AND app_family = ?2
      """)
    return try found.filter { position in
      isOfFamily.bind(1, position)
      isOfFamily.bind(2, family)
      defer { isOfFamily.reset() }
      return try isOfFamily.step()
    }
  }

  // MARK: Targets

  /// Turns what was found about a user into targets.
  func collect(_ user: PlannedUser, _ index: EvidenceIndex) throws -> ErasurePlan {
    var plan = ErasurePlan()
    plan.identifiers = [user.searched]
    plan.identifiers += user.ownership.appAccountTokens.subtracting(plan.identifiers)
      .sorted { $0.lexicographicallyPrecedes($1) }
    try findUploads(user)
    try addLinkedUploads(user, to: &plan)
    var places: Set<Position> = []
    try addUploads(to: &plan, &places)
    try letWait(&plan, user)
    try addVerifications(ofUser: user, to: &plan, &places)
    for position in try positions(found: index, user) where places.insert(position).inserted {
      let facts = index.facts[position] ?? []
      try recordOthers(facts, user)
      guard let extent = try extent(of: facts, at: position, user, &plan) else { continue }
      plan.targets.append(.init(position: position, extent: extent))
    }
    for position in places { try recordOthers(index.facts[position] ?? [], user) }
    plan.ownership = user.ownership
    plan.targets.sort { $0.position < $1.position }
    return plan
  }

  /// Keeps the receipts for which the App Store has still to reply: otherwise their purchases never become revenue.
  private func letWait(_ plan: inout ErasurePlan, _ user: PlannedUser) throws {
    let waiting = try database.prepare(
      """
      SELECT s.position, s.receipt FROM subject_uploads s
      WHERE s.extent = \(ErasureExtent.whole.rawValue) AND \(Self.isWaiting("s"))
      """)
    var uploads: Set<Position> = []
    var receipts: Set<Int64> = []
    while user.waitsUntilMs > Timestamp.now(), try waiting.step() {
      uploads.insert(try waiting.ordinal(0))
      receipts.insert(waiting.integer(1))
    }
    if uploads.isEmpty { return }
    for index in plan.targets.indices where uploads.contains(plan.targets[index].position) {
      plan.targets[index] = .init(position: plan.targets[index].position, extent: .waiting)
    }
    plan.receiptCount -= receipts.count
    plan.waitingReceiptCount = receipts.count
    plan.waitsUntilMs = user.waitsUntilMs
  }

  /// Where others' events lose data, what their purchases name is kept unchanged.
  private func recordOthers(_ facts: [PurchaseFacts], _ user: PlannedUser) throws {
    for purchase in facts where !purchase.isRenewal {
      if user.ownership.holds(purchase) {
        // It is the user's by a token and another user's by its account: the account keeps its id.
        if let account = purchase.appTransactionID, try owner(of: purchase, user) == .other,
          try isByAccount(purchase)
        {
          user.ownership.others.insert(account)
        }
        continue
      }
      guard try shows(purchase, user).isOther else { continue }
      if let token = purchase.appAccountToken { user.ownership.others.insert(token) }
      if let account = purchase.appTransactionID,
        !user.ownership.sharedAccounts.contains(account)
      {
        user.ownership.others.insert(account)
      }
    }
  }

  /// How much is redacted of an event that was found by its purchases; nil if nothing is.
  private func extent(
    of facts: [PurchaseFacts], at position: Position, _ user: PlannedUser,
    _ plan: inout ErasurePlan
  ) throws -> ErasureExtent? {
    let isReply = try selectVerification.get()
    isReply.bind(1, position)
    defer { isReply.reset() }
    if try isReply.step() {
      let hasToken = facts.contains {
        $0.appAccountToken.map { user.ownership.appAccountTokens.contains($0) } ?? false
      }
      return hasToken ? .withToken : nil
    }
    if let reason = user.linkedUploads[position] {
      plan.withoutUser[position] = reason
      return try facts.contains { try shows($0, user).isOther } ? .ownObjects : .whole
    }
    let goes = facts.contains { user.ownership.holds($0) || user.ownership.losesAccount($0) }
    return goes ? .objects : nil
  }

  /// Adds the uploads that name no user, of receipts that the user also uploaded and of linked ones.
  private func addLinkedUploads(_ user: PlannedUser, to plan: inout ErasurePlan) throws {
    let uploads = try database.prepare(
      """
      SELECT u.position, u.user IS NULL FROM receipts r JOIN uploads u ON u.receipt = r.id
      WHERE r.id = ? AND u.position BETWEEN r.first_position AND r.last_position
      AND u.position < \(end) AND (u.user IS NULL OR u.user IN (SELECT id FROM gone_users))
      """)
    let unnamed = try database.prepare(
      """
      SELECT s.position FROM subject_uploads s JOIN uploads u ON u.position = s.position
      WHERE u.user IS NULL
      """)
    while try unnamed.step() {
      let position = try unnamed.ordinal(0)
      plan.withoutUser[position] = .receipt
    }
    let addReceipt = try database.prepare("INSERT OR IGNORE INTO subject_receipts VALUES(?, ?)")
    let addUpload = try database.prepare("INSERT OR IGNORE INTO subject_uploads VALUES(?, ?, ?)")
    for (receipt, link) in user.linkedReceipts {
      addReceipt.bind(1, receipt)
      addReceipt.bind(2, link.isShared ? 1 : 0)
      try addReceipt.run()
      let extent: ErasureExtent = link.isShared ? .names : .whole
      uploads.bind(1, receipt)
      while try uploads.step() {
        addUpload.bind(1, uploads.integer(0))
        addUpload.bind(2, receipt)
        addUpload.bind(3, Int64(extent.rawValue))
        try addUpload.run()
        let position = try uploads.ordinal(0)
        if uploads.integer(1) == 1 { plan.withoutUser[position] = link.reason }
      }
      uploads.reset()
    }
  }

  /// Adds the replies about the subject's uploads. Of replies about a shared receipt only those with a token are
  /// redacted.
  private func addVerifications(
    ofUser user: PlannedUser, to plan: inout ErasurePlan, _ places: inout Set<Position>
  ) throws {
    let verifications = try database.prepare(Self.verificationsOfSubject(before: end))
    while try verifications.step() {
      let isShared = verifications.integer(1) == Int64(ErasureExtent.names.rawValue)
      if isShared, user.ownership.appAccountTokens.isEmpty { continue }
      let position = try verifications.ordinal(0)
      guard places.insert(position).inserted else { continue }
      plan.targets.append(.init(position: position, extent: isShared ? .withToken : .whole))
    }
  }

  static func verificationsOfSubject(before end: Position) -> String {
    """
    SELECT v.position, s.extent FROM verifications v JOIN subject_uploads s ON s.position = v.upload
    WHERE v.authority = 1 AND v.position < \(end)
    """
  }
}
