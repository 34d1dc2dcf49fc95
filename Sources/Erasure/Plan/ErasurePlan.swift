// What a request or retention redacts: positions and how much of each event; previews, and the rules of retention.
import Base
package import Ledger
package import Projections

/// How much of an event's data is redacted.
package enum ErasureExtent: UInt8, Sendable {
  /// All personal data.
  case whole
  /// Of an upload whose receipt another user also uploaded: what names the user.
  case names
  /// Everything but the receipt, which the App Store has still to reply about.
  case waiting
  /// Of other users' signed objects: those that are about the user.
  case objects
  /// Of an upload that names no user and also shows another user's purchases: the user's objects, and what names a
  /// device.
  case ownObjects
  /// All personal data, if the event holds an app account token of the user.
  case withToken
  /// As `whole`, but the user's identifier is kept. The receipt gets a new id.
  case receipt
  /// As `receipt`, but the receipt keeps its id because another upload has it.
  case receiptKeepingID
  /// Fields whose retention has ended.
  case ipAddress, identifierForVendor, metadata
}

/// The lines that one request redacts, and what tells the user's signed objects from other users'.
struct ErasurePlan {
  struct Target {
    let position: Position
    let extent: ErasureExtent
  }

  /// By position; a position has several extents only for retention.
  var targets: [Target] = []
  var ownership = Ownership()
  /// How many receipts' contents are redacted.
  var receiptCount = 0
  /// How many receipts' contents are kept until the App Store replies.
  var waitingReceiptCount = 0
  /// Until when they are kept at most, in epoch milliseconds.
  var waitsUntilMs: Int64 = 0
  /// The identifiers that the log is searched for afterwards, as text.
  var identifiers: [[UInt8]] = []
  /// The uploads that name no user and are redacted with this user's, and why.
  var withoutUser: [Position: InclusionReason] = [:]

  var isEmpty: Bool { targets.isEmpty }
}

/// What tells one user's purchases from other users'.
package struct Ownership {
  /// The ids of transactions that show the user's sales.
  package var transactionIDs: Set<[UInt8]> = []
  /// The original transaction ids of which no other user has a sale.
  package var originalTransactionIDs: Set<[UInt8]> = []
  /// As rule R6 compares them.
  var appAccountTokens: Set<[UInt8]> = []
  /// The Apple Accounts, by `appTransactionId`, of which no other user uploaded a sale.
  var accounts: Set<[UInt8]> = []
  /// The accounts of which another user also uploaded a sale.
  var sharedAccounts: Set<[UInt8]> = []
  /// The transactions of shared accounts that no upload with a user shows: they lose the account's id.
  var unclaimedTransactionIDs: Set<[UInt8]> = []
  /// Tokens and accounts of other users. They keep their names, so that nothing changes for these users.
  var others: Set<[UInt8]> = []

  package init() {}

  /// Whether a purchase is about the user.
  func holds(_ purchase: PurchaseFacts) -> Bool {
    if let token = purchase.appAccountToken, appAccountTokens.contains(token) { return true }
    if let account = purchase.appTransactionID, accounts.contains(account) { return true }
    if let id = purchase.transactionID, transactionIDs.contains(id) { return true }
    return purchase.originalTransactionID.map { originalTransactionIDs.contains($0) } ?? false
  }

  /// Whether a purchase without a user loses its account's id, which would assign it to another user.
  func losesAccount(_ purchase: PurchaseFacts) -> Bool {
    guard let account = purchase.appTransactionID, sharedAccounts.contains(account) else {
      return false
    }
    return purchase.transactionID.map { unclaimedTransactionIDs.contains($0) } ?? false
  }
}

/// What links an upload that names no user to a user.
package enum InclusionReason: String, Sendable {
  case receipt, transaction
  case originalTransaction = "original_transaction"
  case appAccountToken = "app_account_token"
  case account = "app_transaction_id"
}

/// What a request would redact, for display.
package struct ErasurePreview: Sendable {
  /// How many events are planned for; some may have nothing to redact.
  package var targetCount = 0
  /// How many events would lose data, by type; empty in a preview that is not exact.
  package var events: [(type: EventType, count: Int)] = []
  /// How many receipts' contents would be redacted.
  package var receipts = 0
  /// How many would be kept until the App Store replies, and until when at most, in epoch milliseconds.
  package var waitingReceipts = 0
  package var waitsUntilMs: Int64 = 0
  /// How many uploads of receipts that other users also uploaded would lose only what names the user.
  package var sharedUploads = 0
  /// The uploads that name no user and would also be redacted, and what links each to the user.
  package var withoutUser: [(position: Position, reason: InclusionReason)] = []
  /// How many snapshots would be removed.
  package var snapshots = 0
  /// How many other events contain the identifier as text, and the first of them.
  package var remaining = 0
  package var remainingPositions: [Position] = []
  package var notSearched: [NotSearched] = []

  /// What retention erases; nil for a request, and if there is nothing to erase.
  package var retention: RetentionPass?

  /// The plan, for a request that is carried out at once, and the tree of the events that it covers.
  var plan: ErasurePlan?
  var frontier = Frontier()

  package init() {}

  package var eventCount: Int { events.reduce(0) { $0 + $1.count } }
}

// MARK: - Preview

extension ErasurePreview {
  /// What a request would redact now.
  ///
  /// Throws `refused` for what can't be erased.
  /// - Parameter isExact: whether to read the events, to count those that lose data, and the log, to search for the
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
      // The digest of a line does not matter here: nothing is written.
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

// MARK: - Retention rules

/// How long fields are kept, in milliseconds since they were recorded; nil for ever.
package struct RetentionRules: Equatable, Sendable {
  package var ipAddressMs: Int64?
  package var identifierForVendorMs: Int64?
  /// Excludes prices, which are kept for ever because figures follow from them.
  package var metadataMs: Int64?

  package init() {}

  /// Whether nothing is ever erased.
  package var isEmpty: Bool {
    ipAddressMs == nil && identifierForVendorMs == nil && metadataMs == nil
  }
}

/// What one pass of retention erases: how many uploads lose fields, and when the first and the last were recorded.
package struct RetentionPass: Equatable, Sendable {
  package var eventCount: Int
  /// Epoch milliseconds.
  package var firstRecordedAtMs: Int64
  package var lastRecordedAtMs: Int64
  /// Whether it erases so much more than earlier passes that the clock may be wrong. Then it waits for an operator.
  package var isUnusual: Bool

  package init(
    eventCount: Int, firstRecordedAtMs: Int64, lastRecordedAtMs: Int64, isUnusual: Bool
  ) {
    self.eventCount = eventCount
    (self.firstRecordedAtMs, self.lastRecordedAtMs) = (firstRecordedAtMs, lastRecordedAtMs)
    self.isUnusual = isUnusual
  }

  /// What every pass may erase, in events.
  package static let usualCountMax = 1_000
  /// How many earlier passes define what is usual, and by what factor a pass may exceed their median.
  static let comparedCount = 30
  static let medianFactor = 10

  /// - Parameter earlier: how many events each of the last passes redacted.
  package static func isUnusual(_ eventCount: Int, earlier: [Int]) -> Bool {
    if eventCount <= usualCountMax { return false }
    if earlier.isEmpty { return true }
    let median = earlier.sorted()[(earlier.count - 1) / 2]
    return eventCount / medianFactor > median
      || (eventCount / medianFactor == median && eventCount % medianFactor > 0)
  }
}
