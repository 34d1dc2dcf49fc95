// What a request redacts: positions, and how much of each event goes.
package import Ledger

/// How much of an event's data goes.
enum ErasureExtent: UInt8, Sendable {
  /// All personal data.
  case whole
  /// Of an upload whose receipt another user uploaded too: what names the user.
  case names
  /// Of the signed objects of others: those that are about the user.
  case objects
  /// All personal data of an upload, if each of its signed objects is about the user; else `objects`.
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
  var ownership = SignedOwnership()
  /// How many receipts' contents go.
  var receiptCount = 0
  /// What the log is searched for afterwards: identifiers as text.
  var identifiers: [[UInt8]] = []

  var isEmpty: Bool { targets.isEmpty }
}

/// Which signed objects are about one user.
struct SignedOwnership {
  /// The ids of transactions that show the user's sales.
  var transactionIDs: Set<[UInt8]> = []
  /// The original transaction ids of which no other user has a sale.
  var originalTransactionIDs: Set<[UInt8]> = []
  var appAccountTokens: Set<[UInt8]> = []

  /// Whether an object with these facts is about the user.
  func holds(
    transactionID: UnsafeRawBufferPointer?, originalTransactionID: UnsafeRawBufferPointer?,
    appAccountToken: UnsafeRawBufferPointer?
  ) -> Bool {
    if let appAccountToken, appAccountTokens.contains(Array(appAccountToken)) { return true }
    if let transactionID, transactionIDs.contains(Array(transactionID)) { return true }
    guard let originalTransactionID else { return false }
    return originalTransactionIDs.contains(Array(originalTransactionID))
  }
}

/// What a request would redact, for people.
package struct ErasurePreview: Sendable {
  /// How many events are looked at; some may hold nothing that goes.
  package var targetCount = 0
  /// How many events would lose data, by type; empty in a preview that is not exact.
  package var events: [(type: EventType, count: Int)] = []
  /// How many receipts' contents would go.
  package var receipts = 0
  /// How many uploads of receipts that other users uploaded too would lose only what names the user.
  package var sharedUploads = 0
  /// How many snapshots would be removed.
  package var snapshots = 0
  /// How many other events contain the identifier as text, and the first of them.
  package var remaining = 0
  package var remainingPositions: [Position] = []

  /// What retention takes; nil for a request, and if there is nothing to take.
  package var retention: RetentionPass?

  /// What was planned, for a request that is carried out at once, and the tree of events that it was planned for.
  var plan: ErasurePlan?
  var frontier = Frontier()

  package init() {}

  package var eventCount: Int { events.reduce(0) { $0 + $1.count } }
}
