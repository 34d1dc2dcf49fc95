// What a request redacts: positions, and how much of each event goes.
package import Ledger

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
