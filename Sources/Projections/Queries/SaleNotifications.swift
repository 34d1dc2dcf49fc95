// What notifications state about a sale: refunds that were requested, granted, declined and reversed.
import AppStore
import Base
import Ledger
import Revenue

/// What a notification states about a sale. It makes no journal line by itself: its transaction is a statement like any
/// other.
package struct SaleNotification: Equatable, Sendable {
  package var notification: NotificationDetail
  /// Why a customer requested a refund, if the App Store asks for consumption information; as sent.
  package var consumptionRequestReason: String?
  /// The date of the transaction's revocation; nil if nothing is refunded.
  package var revokedAtMs: Int64?
  package var revocationReason: String?
  /// 100,000 is all; nil if not stated.
  package var revocationPercentage: Int64?
  /// `REFUND_FULL`, `REFUND_PRORATED`, `FAMILY_REVOKE`, or any other value as sent.
  package var revocationType: String?
}

extension LedgerQueries {
  /// The notifications with a transaction of a sale, in the order in which they were signed, and whether older ones
  /// were left out. At most `statementEventsMax` events are read.
  package func notifications(
    about sale: SaleDetail
  ) throws -> (notifications: [SaleNotification], isCut: Bool) {
    let found = try notifications(about: [sale])
    let known = try found.suffix(Self.statementEventsMax).compactMap { try read($0, about: sale) }
    let sorted = known.sorted { left, right in
      let (one, other) = (left.notification, right.notification)
      return (one.atMs, one.position) < (other.atMs, other.position)
    }
    return (sorted, found.count > Self.statementEventsMax)
  }

  /// Nil if its transaction is of another sale with the same ids, or counts for nothing.
  private func read(
    _ notification: NotificationDetail, about sale: SaleDetail
  ) throws -> SaleNotification? {
    let keeper = TextKeeper()
    return try withText(try readEvent(notification.position)) { line in
      guard let event = EventLine(line) else { return nil }
      guard EventType(event.type) == .notificationReceived else {
        return try readLegacy(notification, event, about: sale, keeper)
      }
      let view = try NotificationReceivedView(
        data: event.data, isRedacted: event.isRedacted)
      let received = try ReceivedNotification(view, keeper)
      guard let transaction = received.transaction, isOf(sale, key(of: transaction)) else {
        return nil
      }
      func text(_ bytes: JSONBytes?) -> String? {
        bytes.map { String(decoding: $0, as: UTF8.self) }
      }
      var result = SaleNotification(
        notification: notification, revokedAtMs: transaction.revocationDateMs,
        revocationReason: text(transaction.revocationReason),
        revocationPercentage: transaction.revocationPercentage)
      let words = try RefundWords(
        notification: view.notification?.payload, transaction: transaction.row.object, keeper)
      result.consumptionRequestReason = text(words.consumptionRequestReason)
      result.revocationType = text(words.revocationType)
      return result
    }
  }

  /// As above for version 1, which shows a purchase as a reply does.
  private func readLegacy(
    _ notification: NotificationDetail, _ event: EventLine, about sale: SaleDetail,
    _ keeper: TextKeeper
  ) throws -> SaleNotification? {
    let view = try ReceiptVerifiedView(data: event.data)
    guard let bytes = view.reply else { return nil }
    let reply = try Reply(bytes, keeper, notification: view.notification)
    let environment = symbols.symbol(notification.environment)
    let bundle = symbols.symbol(notification.bundleID)
    func own(_ row: ReplyRow) -> Bool {
      isOf(sale, SaleKey(of: row, environment: environment, bundle: bundle))
    }
    let type = try view.notification.flatMap { try LegacyNotification($0, keeper).type }
    guard let row = LegacyNotification.subject(of: reply.rows, type: type), own(row) else {
      return nil
    }
    return SaleNotification(
      notification: notification, revokedAtMs: row.cancellationDateMs,
      revocationReason: row.cancellationReason.map { String(decoding: $0, as: UTF8.self) })
  }
}

/// Fields about a refund that no rule reads.
private struct RefundWords {
  private(set) var consumptionRequestReason: JSONBytes?
  private(set) var revocationType: JSONBytes?

  init(
    notification: JSONBytes?, transaction: JSONBytes?, _ keeper: TextKeeper
  ) throws(JSONError) {
    if let transaction {
      var cursor = JSONCursor(transaction)
      revocationType = try Self.member("revocationType", of: &cursor, keeper)
    }
    guard let notification else { return }
    var cursor = JSONCursor(notification)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "data", try cursor.kind() == .object {
        consumptionRequestReason = try Self.member("consumptionRequestReason", of: &cursor, keeper)
      } else {
        try cursor.skipValue()
      }
    }
  }

  /// Skips an object; returns its text or digits of this name, or nil.
  private static func member(
    _ name: StaticString, of cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) -> JSONBytes? {
    var found: JSONBytes?
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == name {
        found = try keeper.read(&cursor).id
      } else {
        try cursor.skipValue()
      }
    }
    return found
  }
}
