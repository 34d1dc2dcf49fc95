// The in-app purchases of a receipt's resource: the sales that its reply, or its file, shows.
import AppStore
import Base
import JSON
import Ledger
import Revenue

/// The purchases that one reply shows, or a receipt file in the shape of one, each sale once.
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
    /// Of the upload that showed it first; nil where it has none, or where a notification showed the sale first.
    var metadata: ReceiptResource.SharedValue?
  }

  /// The substitute for a sale that the App Store has not confirmed: the upload's own data.
  struct Fallback {
    var country: Text?
    var user: Text?
    var metadata: ReceiptResource.SharedValue?
    var createdAtMs: Int64
    var updatedAtMs: Int64
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
  /// When the App Store was asked; nil where it was not.
  var lastSyncedAtMs: Int64?
  private let fallback: Fallback?

  /// - Parameter fallback: given where the purchases come from the receipt's file, which tells of no renewals.
  init(
    _ bytes: Text, family: UUID16, _ environment: Text, _ keeper: TextKeeper,
    fallback: Fallback? = nil
  ) throws {
    let reply = try Reply(bytes, keeper)
    renewals = fallback == nil ? try RenewalInfo.all(of: bytes, keeper) : []
    self.fallback = fallback
    self.family = family
    self.environment = environment
    self.keeper = keeper
    bundle = reply.bundleID ?? Text(start: nil, count: 0)
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

  /// Writes a purchase; without a sale, from the receipt's file.
  func write(_ purchase: Purchase, sale: SaleFields?, to resource: inout ReceiptResource) {
    let row = purchase.rows[0]
    let none = Text(start: nil, count: 0)
    let period = row.object.flatMap { try? PurchasePeriod(of: $0, keeper) }
    let product = sale?.product ?? row.productID ?? none
    let type = type(of: product, period)
    resource.begin()
    if ReceiptResource.isUnknown(environment) {
      // It is named by the environment: any id given now would be another one's later.
      resource.add("id", nil as String?)
    } else {
      resource.addPurchaseID(
        family: family, environment: environment, bundle: bundle, kind: purchase.keyKind,
        key: purchase.key)
    }
    resource.add("app_family_id", family)
    resource.add("version", sale?.version ?? 0)
    resource.add("marketplace", word: "itunes_connect")
    resource.add("app_identifier", text: bundle)
    resource.add("product_id", text: product)
    resource.add("quantity", sale?.quantity ?? quantity(of: row))
    resource.add("type", type?.rawValue)
    resource.add("environment", word: ReceiptResource.environment(environment))
    resource.add("country_code", text: sale == nil ? fallback?.country : sale?.country)
    resource.add("currency_code", text: sale?.currency)
    resource.add("user_identifier", text: sale == nil ? fallback?.user : sale?.user)
    addRenewal(of: row, type, period, to: &resource)
    resource.add("metadata", shared: sale == nil ? fallback?.metadata : sale?.metadata)
    resource.add("purchased_at", instantMs: sale?.saleDateMs ?? purchase.saleDateMs)
    let endMs = period?.endMs
    resource.add("current_period_start_at", instantMs: endMs == nil ? nil : row.purchaseDateMs)
    resource.add("current_period_end_at", instantMs: endMs)
    addCancellation(of: purchase, to: &resource)
    resource.add("created_at", instantMs: sale?.createdAtMs ?? fallback?.createdAtMs)
    resource.add("updated_at", instantMs: sale?.updatedAtMs ?? fallback?.updatedAtMs)
    resource.add("last_synced_at", instantMs: lastSyncedAtMs)
    resource.add("app_store", json: fallback == nil ? row.object : nil)
    resource.end()
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

  /// Whether some purchase's product is not declared, so that only the receipt's file can tell its type.
  var hasUndeclaredProduct: Bool {
    all.contains { purchase in
      guard let product = purchase.rows[0].productID else { return false }
      return products[String(decoding: product, as: UTF8.self)] == nil
    }
  }

  /// The types from a receipt's file, by product id; of several for one product the first.
  static func types(in file: Receipt) -> [String: ProductType] {
    var types: [String: ProductType] = [:]
    for purchase in file.purchases {
      guard let product = purchase.productID, types[product] == nil,
        let type = type(purchase.productType.map(Int64.init))
      else { continue }
      types[product] = type
    }
    return types
  }

  /// The type as attribute 1707 of receipt files numbers it. A free subscription (4) is of no type that can be
  /// declared.
  private static func type(_ number: Int64?) -> ProductType? {
    switch number {
    case 0: .nonConsumable
    case 1: .consumable
    case 2: .nonRenewing
    case 3: .autoRenewable
    default: nil
    }
  }

  /// Only subscriptions renew; where the reply does not tell, it is not known.
  private func addRenewal(
    of row: ReplyRow, _ type: ProductType?, _ period: PurchasePeriod?,
    to resource: inout ReceiptResource
  ) {
    let isSubscription = type.map { $0 == .autoRenewable } ?? (period?.endMs != nil)
    let renewal = isSubscription ? renewals.first { $0.covers(row) } : nil
    var isInGracePeriod: Bool? = isSubscription && renewal == nil ? nil : false
    if let endMs = renewal?.gracePeriodEndMs {
      isInGracePeriod = requestDateMs.map { $0 < endMs }
    }
    resource.add("is_auto_renewing", isSubscription ? renewal?.isAutoRenewing : false)
    resource.add("in_trial_period", row.isTrialPeriod)
    resource.add("in_grace_period", isInGracePeriod)
  }

  private func addCancellation(of purchase: Purchase, to resource: inout ReceiptResource) {
    guard let row = purchase.rows.first(where: { $0.cancellationDateMs != nil }) else {
      resource.add("canceled_at", instantMs: nil)
      resource.add("canceled_by", word: nil)
      return
    }
    // 1: the customer, for an issue with the app. Anything else does not tell who.
    let isByUser = row.cancellationReason?.elementsEqual("1".utf8) == true
    resource.add("canceled_at", instantMs: row.cancellationDateMs)
    resource.add("canceled_by", word: isByUser ? "user" : "unknown")
  }
}
