// What is delivered: the JSON body that a change becomes, and the line in which it waits.
import Base
package import Ledger
package import Projections
import Revenue

/// One delivery, ready to be signed and sent.
package struct WebhookDelivery: Sendable, Equatable {
  /// The change that it tells of.
  package let point: ChangePoint
  /// What tells the change from all others of its ledger.
  private let identity: [String]
  /// Deliveries of one line are sent one after another, in the order of the log.
  package let line: String
  package let type: WebhookType
  package let body: [UInt8]

  /// Nil for what no webhook tells of: sales outside of Production and Sandbox, and what belongs to no app family.
  package init?(_ change: LedgerChange) {
    guard let family = change.appFamilyID else { return nil }
    point = change.point
    identity = change.identity
    switch change.content {
    case .sale(let sale, let isRenewal):
      guard Self.isOfAppStore(sale.environment), let first = sale.lines.first else { return nil }
      line = Self.line(of: sale)
      type = isRenewal ? .renewal : .purchase
      body = Self.body(type, first.dateMs) { writer in
        Self.write(sale, first, family, change, to: &writer)
      }
    case .line(let sale, let journalLine):
      guard Self.isOfAppStore(sale.environment) else { return nil }
      line = Self.line(of: sale)
      type = journalLine.line == "\(LineType.return.word)" ? .refund : .reversal
      body = Self.body(type, journalLine.dateMs) { writer in
        Self.write(sale, journalLine, family, change, to: &writer)
      }
    case .subscription(let subscription, let turn):
      guard Self.isOfAppStore(subscription.environment) else { return nil }
      line = Self.line(
        subscription.environment, subscription.bundleID, subscription.originalTransactionID)
      type = turn.kind == .expiry ? .expiry : .gracePeriod
      body = Self.body(type, turn.expiresAtMs ?? subscription.terms.expiresAtMs) { writer in
        Self.write(subscription, turn, family, change, to: &writer)
      }
    case .fraud(let fraud):
      line = "upload \(fraud.receiptID ?? fraud.uploadID ?? "")"
      type = .fraud
      body = Self.body(type, fraud.occurredAtMs) { writer in
        Self.write(fraud, family, change, to: &writer)
      }
    }
  }

  /// That of `webhook test`, which tells of no change.
  package init(testOf family: String, nowMs: Int64) {
    point = ChangePoint(0)
    identity = ["test", "\(nowMs)"]
    line = ""
    type = .test
    body = Self.body(.test, nowMs) { $0.member("app_family_id", family) }
  }

  /// The header `webhook-id`: the same for the same change, also after a restart, a replay, and an erasure.
  package func id(in ledger: LedgerIdentity) -> String {
    let parts = JSONValue.array((["\(ledger.id)"] + identity).map { .string($0) })
    let digest = parts.bytes.withUnsafeBytes { SHA256.hash($0) }
    return String(digest.hex.prefix(32))
  }

  private static func isOfAppStore(_ environment: String) -> Bool {
    environment == "Production" || environment == "Sandbox"
  }

  /// All of a subscription's sales share one.
  private static func line(of sale: SaleDetail) -> String {
    line(
      sale.environment, sale.bundleID,
      sale.originalTransactionID.isEmpty ? sale.saleKey : sale.originalTransactionID)
  }

  private static func line(_ environment: String, _ bundleID: String, _ id: String) -> String {
    "\(environment) \(bundleID) \(id)"
  }

  // MARK: Bodies

  private static func body(
    _ type: WebhookType, _ atMs: Int64, _ data: (inout JSONWriter) -> Void
  ) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(1024)
    writer.beginObject()
    writer.member("type", type.rawValue)
    writer.member("timestamp", Timestamp.text(ms: atMs))
    writer.key("data")
    writer.beginObject()
    data(&writer)
    writer.endObject()
    writer.endObject()
    return writer.bytes
  }

  private static func write(
    _ sale: SaleDetail, _ line: LineDetail, _ family: String, _ change: LedgerChange,
    to writer: inout JSONWriter
  ) {
    writer.member("app_family_id", family)
    writer.member("environment", sale.environment)
    writer.member("bundle_id", sale.bundleID)
    writer.member("product_id", sale.productID)
    writer.member("kind", sale.kind)
    writer.member("sale_key", sale.saleKey)
    writer.member("transaction_id", sale.transactionID)
    writer.member("original_transaction_id", sale.originalTransactionID)
    writer.member("user_identifier", sale.userIdentifier)
    writer.member("country_code", sale.countryPosition == nil ? nil : sale.countryCode)
    writer.member("sale_date", Timestamp.text(ms: sale.saleDateMs))
    writer.key("quantity")
    writer.integer(line.quantity)
    writer.member(
      "amount", line.amountMicros.map { Amount.text(micros: $0, currency: sale.currency) })
    writer.member("currency", sale.currency?.description)
    writer.member("price_basis", sale.priceBasis.isEmpty ? nil : sale.priceBasis)
    writer.member("reason", line.reason)
    writePlace(of: change, to: &writer)
  }

  private static func write(
    _ subscription: SubscriptionDetail, _ turn: SubscriptionTurnDetail, _ family: String,
    _ change: LedgerChange, to writer: inout JSONWriter
  ) {
    func time(_ ms: Int64?) -> String? { ms.map { Timestamp.text(ms: $0) } }
    writer.member("app_family_id", family)
    writer.member("environment", subscription.environment)
    writer.member("bundle_id", subscription.bundleID)
    writer.member("product_id", subscription.productID)
    writer.member("original_transaction_id", subscription.originalTransactionID)
    writer.member("user_identifier", subscription.userIdentifier)
    writer.member(
      "country_code", subscription.countryCode == "ZZ" ? nil : subscription.countryCode)
    writer.member("expires_at", time(turn.expiresAtMs))
    writer.member("grace_period_expires_at", time(turn.gracePeriodExpiresAtMs))
    writer.member("expiration_intent", turn.expirationIntent)
    writePlace(of: change, to: &writer)
  }

  private static func write(
    _ fraud: FraudDetail, _ family: String, _ change: LedgerChange, to writer: inout JSONWriter
  ) {
    writer.member("app_family_id", family)
    writer.member("bundle_id", fraud.bundleID)
    writer.member("receipt_id", fraud.receiptID)
    writer.member("upload_id", fraud.uploadID)
    writer.member("user_identifier", fraud.userIdentifier)
    writer.member("country_code", fraud.countryCode)
    writer.member("reason", fraud.reason)
    writer.key("upload_position")
    writer.integer(fraud.upload)
    writePlace(of: change, to: &writer)
  }

  private static func writePlace(of change: LedgerChange, to writer: inout JSONWriter) {
    writer.key("position")
    writer.integer(change.point.position)
    writer.key("backfill")
    writer.boolean(change.isBackfill)
  }
}

/// What a webhook tells of.
package enum WebhookType: String, Sendable, CaseIterable {
  case purchase, renewal, refund, reversal, expiry
  case gracePeriod = "grace_period"
  case fraud
  /// Of `webhook test`.
  case test
}

extension JSONWriter {
  /// Writes a member whose value is a text, or null.
  fileprivate mutating func member(_ key: StaticString, _ value: String?) {
    self.key(key)
    if let value { string(value) } else { null() }
  }
}
