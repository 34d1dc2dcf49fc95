// What a request redacts: positions, and how much of each event goes.
import Base
package import Ledger
package import Projections

/// How much of an event's data goes.
package enum ErasureExtent: UInt8, Sendable {
  /// All personal data.
  case whole
  /// Of an upload whose receipt another user uploaded too: what names the user.
  case names
  /// All but the receipt, for which the App Store's reply is still to come.
  case waiting
  /// Of the signed objects of others: those that are about the user.
  case objects
  /// Of an upload that names no user and shows another user's purchases too: those objects, and what names a device.
  case ownObjects
  /// All personal data, if the event holds an app account token of the user.
  case withToken
  /// As `whole`, but the user's identifier stays. The receipt gets a new id.
  case receipt
  /// The same; the receipt keeps its id, because another upload has it.
  case receiptKeepingID
  /// Fields whose time is over.
  case ipAddress, identifierForVendor, metadata
}

/// The lines that one request redacts, and what tells the user's signed objects from others'.
struct ErasurePlan {
  struct Target {
    let position: Position
    let extent: ErasureExtent
  }

  /// By position; a position has several extents only for retention.
  var targets: [Target] = []
  var ownership = Ownership()
  /// How many receipts' contents go.
  var receiptCount = 0
  /// How many receipts' contents stay until the App Store replies.
  var waitingReceiptCount = 0
  /// Until when they stay at most, in epoch milliseconds.
  var waitsUntilMs: Int64 = 0
  /// What the log is searched for afterwards: identifiers as text.
  var identifiers: [[UInt8]] = []
  /// The uploads that name no user and go with this user's, and why.
  var withoutUser: [Position: InclusionReason] = [:]

  var isEmpty: Bool { targets.isEmpty }
}

/// What tells one user's purchases from others'.
package struct Ownership {
  /// The ids of transactions that show the user's sales.
  package var transactionIDs: Set<[UInt8]> = []
  /// The original transaction ids of which no other user has a sale.
  package var originalTransactionIDs: Set<[UInt8]> = []
  /// As rule R6 compares them.
  var appAccountTokens: Set<[UInt8]> = []
  /// The Apple Accounts, by `appTransactionId`, of which no other user uploaded a sale.
  var accounts: Set<[UInt8]> = []
  /// The accounts of which another user uploaded a sale too.
  var sharedAccounts: Set<[UInt8]> = []
  /// The transactions of shared accounts that no upload with a user shows: they lose the account's id.
  var unclaimedTransactionIDs: Set<[UInt8]> = []
  /// Tokens and accounts that are others'. They keep their names, so that nothing changes for these.
  var others: Set<[UInt8]> = []

  package init() {}

  /// Whether a purchase is about the user.
  func holds(_ purchase: PurchaseFacts) -> Bool {
    if let token = purchase.appAccountToken, appAccountTokens.contains(token) { return true }
    if let account = purchase.appTransactionID, accounts.contains(account) { return true }
    if let id = purchase.transactionID, transactionIDs.contains(id) { return true }
    return purchase.originalTransactionID.map { originalTransactionIDs.contains($0) } ?? false
  }

  /// Whether a purchase without a user loses its account's id, which would give it to another user.
  func losesAccount(_ purchase: PurchaseFacts) -> Bool {
    guard let account = purchase.appTransactionID, sharedAccounts.contains(account) else {
      return false
    }
    return purchase.transactionID.map { unclaimedTransactionIDs.contains($0) } ?? false
  }
}

/// What links an upload that names no user to one.
package enum InclusionReason: String, Sendable {
  case receipt, transaction
  case originalTransaction = "original_transaction"
  case appAccountToken = "app_account_token"
  case account = "app_transaction_id"
}

/// What a request would redact, for people.
package struct ErasurePreview: Sendable {
  /// How many events are looked at; some may hold nothing that goes.
  package var targetCount = 0
  /// How many events would lose data, by type; empty in a preview that is not exact.
  package var events: [(type: EventType, count: Int)] = []
  /// How many receipts' contents would go.
  package var receipts = 0
  /// How many would stay until the App Store replies, and until when at most, in epoch milliseconds.
  package var waitingReceipts = 0
  package var waitsUntilMs: Int64 = 0
  /// How many uploads of receipts that other users uploaded too would lose only what names the user.
  package var sharedUploads = 0
  /// The uploads that name no user and would go too, and what links each to the user.
  package var withoutUser: [(position: Position, reason: InclusionReason)] = []
  /// How many snapshots would be removed.
  package var snapshots = 0
  /// How many other events contain the identifier as text, and the first of them.
  package var remaining = 0
  package var remainingPositions: [Position] = []
  package var notSearched: [NotSearched] = []

  /// What retention takes; nil for a request, and if there is nothing to take.
  package var retention: RetentionPass?

  /// What was planned, for a request that is carried out at once, and the tree of events that it was planned for.
  var plan: ErasurePlan?
  var frontier = Frontier()

  package init() {}

  package var eventCount: Int { events.reduce(0) { $0 + $1.count } }
}

// MARK: - What an erasure would do, without doing it

extension ErasurePreview {
  /// What a request would redact now.
  ///
  /// Throws `refused` for what can't be erased.
  /// - Parameter isExact: whether to read the events, to count those that lose data, and the log, to look for the
  ///   identifier in data of others. The log is searched in any case if nothing would be redacted.
  package static func of(
    _ subject: ErasureSubject, _ reader: LogReader, _ database: Database, isExact: Bool,
    isCancelled: () -> Bool = { false }
  ) throws(ErasureError) -> ErasurePreview {
    try of(reader, database, isExact, isCancelled) {
      try $0.plan(subject, requestedAtMs: Timestamp.now())
    }
  }

  /// What retention would redact now.
  package static func of(
    _ rules: RetentionRules, nowMs: Int64, _ reader: LogReader, _ database: Database,
    isCancelled: () -> Bool = { false }
  ) throws(ErasureError) -> ErasurePreview {
    var pass: RetentionPass?
    var preview = try of(reader, database, true, isCancelled) { planner in
      let plan = try planner.plan(rules, nowMs: nowMs)
      pass = try planner.pass(of: plan)
      return plan
    }
    preview.retention = pass
    return preview
  }

  private static func of(
    _ reader: LogReader, _ database: Database, _ isExact: Bool, _ isCancelled: () -> Bool,
    _ makePlan: (ErasurePlanner) throws -> ErasurePlan
  ) throws(ErasureError) -> ErasurePreview {
    do {
      var preview = ErasurePreview()
      let end = reader.head.size
      let plan = try withoutActuallyEscaping(isCancelled) { isCancelled in
        try makePlan(
          try ErasurePlanner(database, reader, before: end, isCancelled: isCancelled))
      }
      (preview.plan, preview.frontier) = (plan, reader.head.frontier)
      preview.receipts = plan.receiptCount
      (preview.waitingReceipts, preview.waitsUntilMs) = (
        plan.waitingReceiptCount, plan.waitsUntilMs
      )
      preview.sharedUploads = plan.targets.count { $0.extent == .names }
      preview.withoutUser = plan.withoutUser.sorted { $0.key < $1.key }
        .map { (position: $0.key, reason: $0.value) }
      preview.snapshots = SnapshotStore(reader.directory).snapshots.count
      guard isExact || plan.isEmpty else {
        preview.targetCount = plan.targets.count
        return preview
      }
      // The digest of a line is of no matter here: nothing is written.
      var reduction = try LineRedaction([(end, plan)], database) { $0 }
      try reduction.run(reader, isCancelled: isCancelled) { _ in }
      preview.events = reduction.events(of: 0)
      preview.targetCount = preview.eventCount
      let search = IdentifierSearch(plan.identifiers)
      try search.run(
        reader, before: end, excluding: Set(plan.targets.map(\.position)),
        isCancelled: isCancelled)
      (preview.remaining, preview.remainingPositions) = search.result
      if search.isPartial { preview.notSearched = [.shortIdentifiers] }
      return preview
    } catch { throw Eraser.erasureError(error) }
  }
}

// MARK: - How long fields of uploads are kept

/// How long fields are kept, in milliseconds since they were recorded; nil for ever.
package struct RetentionRules: Equatable, Sendable {
  package var ipAddressMs: Int64?
  package var identifierForVendorMs: Int64?
  /// Prices in the metadata are kept for ever: figures follow from them.
  package var metadataMs: Int64?

  package init() {}

  /// Whether anything is ever taken out.
  package var isEmpty: Bool {
    ipAddressMs == nil && identifierForVendorMs == nil && metadataMs == nil
  }
}

/// What one pass of retention takes: how many uploads lose fields, and when the first and the last were recorded.
package struct RetentionPass: Equatable, Sendable {
  package var eventCount: Int
  /// Epoch milliseconds.
  package var firstRecordedAtMs: Int64
  package var lastRecordedAtMs: Int64
  /// Whether it takes so much more than passes before it that the clock may be wrong. Then it waits for an operator.
  package var isUnusual: Bool

  package init(
    eventCount: Int, firstRecordedAtMs: Int64, lastRecordedAtMs: Int64, isUnusual: Bool
  ) {
    self.eventCount = eventCount
    (self.firstRecordedAtMs, self.lastRecordedAtMs) = (firstRecordedAtMs, lastRecordedAtMs)
    self.isUnusual = isUnusual
  }

  /// What every pass may take.
  package static let usualCountMax = 1_000
  /// How many passes say what is usual, and how far beyond their median a pass may go.
  static let comparedCount = 30
  static let medianFactor = 10

  /// - Parameter earlier: how many events each of the last passes took.
  package static func isUnusual(_ eventCount: Int, earlier: [Int]) -> Bool {
    if eventCount <= usualCountMax { return false }
    if earlier.isEmpty { return true }
    let median = earlier.sorted()[(earlier.count - 1) / 2]
    return eventCount / medianFactor > median
      || (eventCount / medianFactor == median && eventCount % medianFactor > 0)
  }
}
