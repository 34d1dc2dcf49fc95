// The one shape of a purchase in the client API, wherever it was seen.
import Base
import JSON
import Ledger
import Revenue

/// What the projections know of a sale.
struct SaleFields {
  var version: Int64
  var quantity: Int64
  var product: Text
  var saleDateMs: Int64
  var country: Text?
  var user: Text?
  var currency: Text?
  var createdAtMs: Int64
  var updatedAtMs: Int64
  /// Of the upload that showed it first.
  var metadata: ReceiptResource.SharedValue?
}

/// The substitute for a sale that the ledger does not count, or not yet: the upload's own data.
struct PurchaseFallback {
  var country: Text?
  var user: Text?
  var metadata: ReceiptResource.SharedValue?
  var createdAtMs: Int64
  var updatedAtMs: Int64
}

/// One purchase, as a reply, a receipt file or a signed transaction shows it.
struct PurchaseFields {
  var keyKind: KeyKind
  var key: Text
  var environment: Text
  var bundle: Text
  var product: Text
  var quantity: Int64
  /// Epoch milliseconds, like all dates.
  var saleDateMs: Int64
  var currency: Text?
  var type: ProductType?
  var isAutoRenewing: Bool?
  var isTrial: Bool
  var isInGracePeriod: Bool?
  var periodStartMs: Int64?
  var periodEndMs: Int64?
  var cancelledAtMs: Int64?
  var cancelledBy: StaticString?
  var lastSyncedAtMs: Int64?
  /// As the App Store sent it, one JSON object.
  var appStore: Text?
}

extension ReceiptResource {
  /// Adds a purchase. What the sale knows comes before what was shown.
  mutating func add(
    _ purchase: PurchaseFields, family: UUID16, sale: SaleFields?, fallback: PurchaseFallback?
  ) {
    begin()
    if Self.isUnknown(purchase.environment) {
      // It is named by the environment: any id given now would be another one's later.
      add("id", nil as String?)
    } else {
      addPurchaseID(
        family: family, environment: purchase.environment, bundle: purchase.bundle,
        kind: purchase.keyKind, key: purchase.key)
    }
    add("app_family_id", family)
    add("version", sale?.version ?? 0)
    add("marketplace", word: "itunes_connect")
    add("app_identifier", text: purchase.bundle)
    add("product_id", text: sale?.product ?? purchase.product)
    add("quantity", sale?.quantity ?? purchase.quantity)
    add("type", purchase.type?.rawValue)
    add("environment", word: Self.environment(purchase.environment))
    add("country_code", text: sale == nil ? fallback?.country : sale?.country)
    add("currency_code", text: sale == nil ? purchase.currency : sale?.currency)
    add("user_identifier", text: sale == nil ? fallback?.user : sale?.user)
    add("is_auto_renewing", purchase.isAutoRenewing)
    add("in_trial_period", purchase.isTrial)
    add("in_grace_period", purchase.isInGracePeriod)
    add("metadata", shared: sale == nil ? fallback?.metadata : sale?.metadata)
    add("purchased_at", instantMs: sale?.saleDateMs ?? purchase.saleDateMs)
    add("current_period_start_at", instantMs: purchase.periodStartMs)
    add("current_period_end_at", instantMs: purchase.periodEndMs)
    add("canceled_at", instantMs: purchase.cancelledAtMs)
    add("canceled_by", word: purchase.cancelledBy)
    add("created_at", instantMs: sale?.createdAtMs ?? fallback?.createdAtMs)
    add("updated_at", instantMs: sale?.updatedAtMs ?? fallback?.updatedAtMs)
    add("last_synced_at", instantMs: purchase.lastSyncedAtMs)
    add("app_store", json: purchase.appStore)
    end()
  }

  /// Who took a purchase back. 1: the customer, for an issue with the app. Anything else does not tell who.
  static func canceller(_ reason: Text?) -> StaticString {
    reason?.elementsEqual("1".utf8) == true ? "user" : "unknown"
  }
}
