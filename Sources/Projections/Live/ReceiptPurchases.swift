// The in-app purchases of a receipt's resource: the sales that its reply, or its file, shows.
import AppStore
import Base
import Ledger
import Revenue

/// The purchases that one reply shows, or a receipt file in the form of a reply, each sale once.
struct ReceiptPurchases {
  /// One sale with the rows that show it, in the order of rule R2.
  struct Purchase {
    var keyKind: KeyKind
    var key: Text
    var rows: [ReplyRow]

    var saleDateMs: Int64 {
      let row = rows[0]
      let dates =
        keyKind == .lineItem
        ? (row.purchaseDateMs, row.originalPurchaseDateMs)
        : (row.originalPurchaseDateMs, row.purchaseDateMs)
      return dates.0 ?? dates.1 ?? 0
    }
  }

  let family: UUID16
  let environment: Text
  let bundle: Text
  /// By date, then key.
  let all: [Purchase]
  private let renewals: [RenewalInfo]
  private let requestDateMs: Int64?
  private let keeper: TextKeeper
  /// Declared types by product id.
  var products: [String: ProductType] = [:]
  /// Types by product id, from the receipt's file: a reply has none.
  var filedTypes: [String: ProductType] = [:]
  /// When the App Store was asked; nil if it was not.
  var lastSyncedAtMs: Int64?
  private let fallback: PurchaseFallback?

  /// - Parameters:
  ///   - notification: the version 1 notification that delivered the reply.
  ///   - receiptBundle: the bundle of a reply that names none (rule R2).
  ///   - fallback: given if the purchases come from the receipt's file, which has no renewals.
  init(
    _ bytes: Text, notification: Text? = nil, family: UUID16, _ environment: Text,
    receiptBundle: Text, _ keeper: TextKeeper, fallback: PurchaseFallback? = nil
  ) throws {
    let reply = try Reply(bytes, keeper, notification: notification)
    renewals =
      fallback == nil
      ? reply.renewals.filter { !$0.isOutermost || $0.isAutoRenewing != nil } : []
    self.fallback = fallback
    self.family = family
    self.environment = environment
    self.keeper = keeper
    bundle = reply.bundleID ?? receiptBundle
    requestDateMs = reply.requestDateMs
    var places: [SaleKey: Int] = [:]
    var purchases: [Purchase] = []
    for row in reply.rows {
      // Environment and bundle are the same for all rows of a reply.
      guard let key = SaleKey(of: row, environment: .none, bundle: .none) else { continue }
      if let place = places[key] {
        purchases[place].rows.append(row)
      } else {
        places[key] = purchases.count
        purchases.append(Purchase(keyKind: key.kind, key: key.text, rows: [row]))
      }
    }
    for place in purchases.indices where purchases[place].rows.count > 1 {
      purchases[place].rows = ReplyRow.inOrder(purchases[place].rows)
    }
    if purchases.count > 1 {
      purchases.sort { left, right in
        let (one, other) = (left.saleDateMs, right.saleDateMs)
        if one != other { return one < other }
        let order = left.key.order(right.key)
        return order != 0 ? order < 0 : left.keyKind.rawValue < right.keyKind.rawValue
      }
    }
    all = purchases
  }

  // MARK: Writing

  /// Writes a purchase; from the receipt's file if there is no sale.
  func write(_ purchase: Purchase, sale: SaleFields?, to resource: inout ReceiptResource) {
    let row = purchase.rows[0]
    let none = Text(start: nil, count: 0)
    let period = row.object.flatMap { try? PurchasePeriod(of: $0, keeper) }
    let type = type(of: sale?.product ?? row.productID ?? none, period)
    let cancelled = purchase.rows.first { $0.cancellationDateMs != nil }
    let endMs = period?.endMs
    var fields = PurchaseFields(
      keyKind: purchase.keyKind, key: purchase.key, environment: environment, bundle: bundle,
      product: row.productID ?? none, quantity: quantity(of: row),
      saleDateMs: purchase.saleDateMs, type: type, isTrial: row.isTrialPeriod,
      periodStartMs: endMs == nil ? nil : row.purchaseDateMs, periodEndMs: endMs,
      cancelledAtMs: cancelled?.cancellationDateMs,
      cancelledBy: cancelled.map { ReceiptResource.canceller($0.cancellationReason) },
      lastSyncedAtMs: lastSyncedAtMs, appStore: fallback == nil ? row.object : nil)
    setRenewal(of: row, type, period, in: &fields)
    resource.add(fields, family: family, sale: sale, fallback: fallback)
  }

  private func quantity(of row: ReplyRow) -> Int64 {
    guard let value = row.quantity.integer, (1...10).contains(value) else { return 1 }
    return value
  }

  /// The declared type, else the receipt's.
  private func type(of product: Text, _ period: PurchasePeriod?) -> ProductType? {
    if products.isEmpty, filedTypes.isEmpty { return Self.type(period?.productType) }
    let name = String(decoding: product, as: UTF8.self)
    return products[name] ?? Self.type(period?.productType) ?? filedTypes[name]
  }

  /// Whether some purchase's product is not declared, so that only the receipt's file can give its type.
  var hasUndeclaredProduct: Bool {
    all.contains { purchase in
      guard let product = purchase.rows[0].productID else { return false }
      return products[String(decoding: product, as: UTF8.self)] == nil
    }
  }

  /// The type as attribute 1707 of receipt files numbers it. A free subscription (4) has no type that can be declared.
  static func type(_ number: Int64?) -> ProductType? {
    switch number {
    case 0: .nonConsumable
    case 1: .consumable
    case 2: .nonRenewing
    case 3: .autoRenewable
    default: nil
    }
  }

  /// Only subscriptions renew; if the reply does not contain it, it is unknown.
  private func setRenewal(
    of row: ReplyRow, _ type: ProductType?, _ period: PurchasePeriod?,
    in fields: inout PurchaseFields
  ) {
    let isSubscription = type.map { $0 == .autoRenewable } ?? (period?.endMs != nil)
    let renewal = isSubscription ? renewals.first { $0.covers(row) } : nil
    fields.isAutoRenewing = isSubscription ? renewal?.isAutoRenewing : false
    fields.isInGracePeriod = isSubscription && renewal == nil ? nil : false
    if let endMs = renewal?.gracePeriodEndMs {
      fields.isInGracePeriod = requestDateMs.map { $0 < endMs }
    }
  }
}

// MARK: - Purchases in the client API

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

/// One purchase in the client API, as a reply, a receipt file or a signed transaction shows it.
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
  /// Adds a purchase. The sale's data takes precedence over what was shown.
  mutating func add(
    _ purchase: PurchaseFields, family: UUID16, sale: SaleFields?, fallback: PurchaseFallback?
  ) {
    begin()
    if Self.isUnknown(purchase.environment) {
      // The id is derived from the environment: any id given now would later belong to another purchase.
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

  /// Who cancelled a purchase. 1: the customer, for an issue with the app. Other reasons do not identify who.
  static func canceller(_ reason: Text?) -> StaticString {
    reason?.elementsEqual("1".utf8) == true ? "user" : "unknown"
  }
}
