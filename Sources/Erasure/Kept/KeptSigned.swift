// What an erasure keeps of signed objects: the facts that the rules read, in the App Store's names, without signatures.
import AppStore
import Base
import Ledger
import Revenue

/// Writes signed objects from their decoded parts.
struct KeptSigned {
  private let names: Pseudonyms
  private let reply: KeptReply

  init(_ names: Pseudonyms) {
    self.names = names
    reply = KeptReply(names)
  }

  /// Writes an object with its verdict and these facts.
  func object(_ view: SignedObjectView, _ facts: [UInt8], to writer: inout JSONWriter) {
    writer.beginObject()
    verdict(view, to: &writer)
    writer.key("payload")
    facts.withUnsafeBytes { writer.raw($0) }
    writer.endObject()
  }

  private func verdict(_ view: SignedObjectView, to writer: inout JSONWriter) {
    writer.member("outcome", view.isValid ? "valid" : "invalid")
    writer.member("reason", ifPresent: view.reason?.string)
    writer.member("root_sha256", ifPresent: view.root?.hex)
    writer.member("signer_sha256", ifPresent: view.signer?.hex)
    writer.member("signed_at", ifPresent: view.signedAtMs.map { Timestamp.fixedText(ms: $0) })
  }

  /// The facts of an object that is not valid, or whose facts do not count.
  static let nothing = Array("{}".utf8)

  private func text(_ key: StaticString, _ value: JSONBytes?, to writer: inout JSONWriter) {
    guard let value else { return }
    writer.key(key)
    writer.string(value)
  }

  // MARK: Transactions

  func facts(of transaction: SignedTransaction) -> [UInt8] {
    let row = transaction.row
    var writer = JSONWriter()
    writer.beginObject()
    text("transactionId", row.transactionID, to: &writer)
    text("originalTransactionId", row.originalTransactionID, to: &writer)
    text("webOrderLineItemId", row.webOrderLineItemID, to: &writer)
    text("bundleId", transaction.bundleID, to: &writer)
    text("productId", row.productID, to: &writer)
    writer.member("purchaseDate", ifPresent: row.purchaseDateMs)
    writer.member("originalPurchaseDate", ifPresent: row.originalPurchaseDateMs)
    writer.member("expiresDate", ifPresent: row.expiresAtMs)
    reply.quantity(row.quantity, to: &writer)
    if let type = transaction.type {
      writer.member("type", type.rawValue)
    } else if transaction.isOfOtherType {
      writer.member("type", "?")
    }
    if row.isFamilyShared { writer.member("inAppOwnershipType", "FAMILY_SHARED") }
    writer.member("signedDate", ifPresent: transaction.signedDateMs)
    text("environment", transaction.environment, to: &writer)
    if let storefront = transaction.storefront, Country.parse(alpha3: storefront) != nil {
      text("storefront", storefront, to: &writer)
    }
    if let token = transaction.appAccountToken.flatMap({ names.token($0) }) {
      writer.member("appAccountToken", token)
    }
    if let account = names.account(of: ShownPurchase(transaction)) {
      writer.member("appTransactionId", account)
    }
    writer.member("revocationDate", ifPresent: transaction.revocationDateMs)
    if let reason = transaction.revocationReason {
      writer.member("revocationReason", names.code(reason))
    }
    writer.member("revocationPercentage", ifPresent: transaction.revocationPercentage)
    if row.isUpgraded {
      writer.key("isUpgraded")
      writer.boolean(true)
    }
    if let isRenewal = transaction.isRenewal {
      writer.member("transactionReason", isRenewal ? "RENEWAL" : "PURCHASE")
    }
    offerAndPrice(of: transaction, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private func offerAndPrice(of transaction: SignedTransaction, to writer: inout JSONWriter) {
    writer.member("offerType", ifPresent: transaction.offerType)
    if transaction.isFreeTrial {
      writer.member("offerDiscountType", "FREE_TRIAL")
    } else if transaction.hasOfferDiscountType {
      writer.member("offerDiscountType", "?")
    }
    if let price = transaction.priceMilliunits {
      writer.member("price", price)
    } else if transaction.hasPrice {
      writer.member("price", "?")
    }
    if let currency = transaction.currency {
      writer.member(
        "currency", Currency.parse(currency)?.description ?? names.mark(currency))
    }
    if transaction.hasMultiSeatInfo {
      writer.key("multiSeatInfo")
      writer.beginObject()
      writer.endObject()
    }
    guard transaction.isAdvancedCommerce else { return }
    writer.key("advancedCommerceInfo")
    writer.beginObject()
    if !transaction.advancedRefunds.isEmpty { refunds(transaction.advancedRefunds, to: &writer) }
    writer.endObject()
  }

  private func refunds(
    _ refunds: [(dateMs: Int64?, amountMilliunits: Int64?)], to writer: inout JSONWriter
  ) {
    writer.key("items")
    writer.beginArray()
    writer.beginObject()
    writer.key("refunds")
    writer.beginArray()
    for refund in refunds {
      writer.beginObject()
      writer.member("refundDate", ifPresent: refund.dateMs)
      writer.member("refundAmount", ifPresent: refund.amountMilliunits)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    writer.endArray()
  }

  // MARK: Renewal information

  /// The facts of renewal information if only its subscription counts.
  func facts(ofSubscription originalTransactionID: JSONBytes) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    text("originalTransactionId", originalTransactionID, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  func facts(of renewal: SignedRenewal) -> [UInt8] {
    let info = renewal.info
    var writer = JSONWriter()
    writer.beginObject()
    text("originalTransactionId", info.originalTransactionID, to: &writer)
    text("autoRenewProductId", info.autoRenewProductID, to: &writer)
    writer.member("autoRenewStatus", ifPresent: info.isAutoRenewing.map { $0 ? 1 : 0 })
    if let intent = info.expirationIntent {
      writer.member("expirationIntent", names.code(intent))
    }
    if let isOn = info.isInBillingRetry {
      writer.key("isInBillingRetryPeriod")
      writer.boolean(isOn)
    }
    writer.member("gracePeriodExpiresDate", ifPresent: info.gracePeriodEndMs)
    text("environment", renewal.environment, to: &writer)
    writer.member("signedDate", ifPresent: renewal.signedDateMs)
    writer.endObject()
    return writer.bytes
  }
}
