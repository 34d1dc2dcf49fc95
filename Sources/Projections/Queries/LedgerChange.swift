// What events changed that others are told of: lines of the journal and frauds, each with its place in the log.
package import Ledger
package import Revenue

/// The place of a change: an event, and which of its changes. Changes are in this order.
package struct ChangePoint: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var position: Position
  /// Among the changes of the event, from 0.
  package var ordinal: Int

  package init(_ position: Position, _ ordinal: Int = 0) {
    self.position = position
    self.ordinal = ordinal
  }

  /// Reads `12.0`; nil for anything else.
  package init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let position = Position(parts[0]), let ordinal = Int(parts[1]),
      position >= 0, ordinal >= 0
    else { return nil }
    self.init(position, ordinal)
  }

  package var description: String { "\(position).\(ordinal)" }

  package static func < (left: ChangePoint, right: ChangePoint) -> Bool {
    (left.position, left.ordinal) < (right.position, right.ordinal)
  }
}

/// One thing that an event changed, as the projections know it now.
package struct LedgerChange: Equatable, Sendable {
  package enum Content: Equatable, Sendable {
    /// A sale. A renewal is what the App Store signed as one or, where it signed neither that nor a purchase, what
    /// follows an earlier sale with its original transaction id that was not upgraded.
    case sale(SaleDetail, isRenewal: Bool)
    /// A Return or Reversal.
    case line(SaleDetail, LineDetail)
    /// That it ended, or has a grace period.
    case subscription(SubscriptionDetail, SubscriptionTurnDetail)
    case fraud(FraudDetail)
  }

  package var point: ChangePoint
  /// What tells the change from all others of its ledger, whatever its position and its user are.
  package var identity: [String]
  /// Whether a synchronization or an import brought it in.
  package var isBackfill: Bool
  /// Nil if no app family has the bundle.
  package var appFamilyID: String?
  package var content: Content

  package init(
    point: ChangePoint, identity: [String], isBackfill: Bool = false, appFamilyID: String?,
    content: Content
  ) {
    self.point = point
    self.identity = identity
    self.isBackfill = isBackfill
    self.appFamilyID = appFamilyID
    self.content = content
  }
}

/// What an event newly said of a subscription.
package struct SubscriptionTurnDetail: Equatable, Sendable {
  package var kind: SubscriptionTurn.Kind
  /// The end of its period as known then, in epoch milliseconds.
  package var expiresAtMs: Int64?
  package var expirationIntent: String?
  package var gracePeriodExpiresAtMs: Int64?

  package init(
    kind: SubscriptionTurn.Kind, expiresAtMs: Int64? = nil, expirationIntent: String? = nil,
    gracePeriodExpiresAtMs: Int64? = nil
  ) {
    self.kind = kind
    self.expiresAtMs = expiresAtMs
    self.expirationIntent = expirationIntent
    self.gracePeriodExpiresAtMs = gracePeriodExpiresAtMs
  }
}

/// The first fraud verdict on an upload.
package struct FraudDetail: Equatable, Sendable {
  /// The position of the upload.
  package var upload: Position
  package var reason: String
  /// Nil for an upload of signed transactions.
  package var receiptID: String?
  /// Nil for an upload of a receipt.
  package var uploadID: String?
  package var bundleID: String?
  package var countryCode: String?
  package var userIdentifier: String?
  /// When the upload was received.
  package var occurredAtMs: Int64

  package init(
    upload: Position, reason: String, receiptID: String? = nil, uploadID: String? = nil,
    bundleID: String? = nil, countryCode: String? = nil, userIdentifier: String? = nil,
    occurredAtMs: Int64
  ) {
    self.upload = upload
    self.reason = reason
    self.receiptID = receiptID
    self.uploadID = uploadID
    self.bundleID = bundleID
    self.countryCode = countryCode
    self.userIdentifier = userIdentifier
    self.occurredAtMs = occurredAtMs
  }
}

/// Some changes in order, and where the next ones begin.
package struct LedgerChangePage: Sendable {
  package var changes: [LedgerChange]
  package var next: ChangePoint

  package init(changes: [LedgerChange], next: ChangePoint) {
    self.changes = changes
    self.next = next
  }
}
