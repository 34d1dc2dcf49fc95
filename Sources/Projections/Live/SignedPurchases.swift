// The in-app purchases of an upload of signed transactions: each sale once, by its newest statement.
import AppStore
import JSON
import Ledger
import Revenue

/// The purchases that a list of signed transactions shows.
struct SignedPurchases {
  /// One sale with the newest statement of the list about it.
  struct Purchase {
    var key: SaleKey
    var environment: Text
    var bundle: Text
    var content: SignedTransaction
    var extra: Extra

    /// As rule R3 dates it.
    var saleDateMs: Int64 {
      let row = content.row
      let dates =
        key.kind == .lineItem
        ? (row.purchaseDateMs, row.originalPurchaseDateMs)
        : (row.originalPurchaseDateMs, row.purchaseDateMs)
      return dates.0 ?? dates.1 ?? 0
    }

    /// Of its storefront; nil where that is not known.
    func country(_ keeper: TextKeeper) -> Text? {
      content.storefront.flatMap { Country.parse(alpha3: $0) }
        .map { keeper.keep(Array($0.description.utf8)) }
    }

    /// Whether another statement is about the same sale.
    fileprivate func isSame(_ key: SaleKey, _ environment: Text, _ bundle: Text) -> Bool {
      self.key == key && self.environment.equals(environment) && self.bundle.equals(bundle)
    }

    /// By date, then key, then what else tells sales apart.
    fileprivate static func isBefore(_ left: Purchase, _ right: Purchase) -> Bool {
      let (one, other) = (left.saleDateMs, right.saleDateMs)
      if one != other { return one < other }
      if left.key.text.order(right.key.text) != 0 { return left.key.text.order(right.key.text) < 0 }
      if left.key.kind != right.key.kind { return left.key.kind.rawValue < right.key.kind.rawValue }
      let order = left.environment.order(right.environment)
      return order != 0 ? order < 0 : left.bundle.order(right.bundle) < 0
    }
  }

  /// What a payload says that no rule looks at.
  struct Extra {
    var expiresAtMs: Int64?
  }

  /// In the order of date and key.
  let all: [Purchase]
  /// Declared types by product id.
  private let products: [String: ProductType]

  /// - Parameters:
  ///   - objects: valid ones, in the order of the list.
  ///   - environment: of those that name none.
  ///   - products: declared types by product id.
  ///   - keeper: keeps texts as long as the purchases are used.
  init(
    _ objects: [SignedObjectView], environment: JSONString?, products: [String: ProductType],
    _ keeper: TextKeeper
  ) {
    self.products = products
    var purchases: [Purchase] = []
    for object in objects {
      guard
        let content = try? SignedTransaction(
          payload: object.payload, keeper, environment: environment),
        let environment = content.environment, let bundle = content.bundleID,
        let key = SaleKey(of: content.row, environment: .none, bundle: .none)
      else { continue }
      let purchase = Purchase(
        key: key, environment: environment, bundle: bundle, content: content,
        extra: (try? Extra(object.payload, keeper)) ?? Extra())
      guard let place = purchases.firstIndex(where: { $0.isSame(key, environment, bundle) }) else {
        purchases.append(purchase)
        continue
      }
      // Of equal times the later in the list is the later statement (rule R12).
      if (content.signedDateMs ?? .min) >= (purchases[place].content.signedDateMs ?? .min) {
        purchases[place] = purchase
      }
    }
    all = purchases.sorted(by: Purchase.isBefore)
  }

  /// A purchase as the client API shows it.
  /// - Parameters:
  ///   - product: the sale's, if there is one.
  ///   - subscription: that to which it belongs, if there is one.
  func fields(
    _ purchase: Purchase, product: Text?, _ subscription: SubscriptionDetail?
  ) -> PurchaseFields {
    let (content, row) = (purchase.content, purchase.content.row)
    let product = product ?? row.productID ?? Text(start: nil, count: 0)
    let type =
      products[String(decoding: product, as: UTF8.self)] ?? content.type.map(ProductType.init)
    let endMs = purchase.extra.expiresAtMs
    let isSubscription = type.map { $0 == .autoRenewable } ?? (endMs != nil)
    let isCancelled = content.revocationDateMs != nil
    let renewing = isSubscription ? subscription : nil
    return PurchaseFields(
      keyKind: purchase.key.kind, key: purchase.key.text, environment: purchase.environment,
      bundle: purchase.bundle, product: product, quantity: Self.quantity(row),
      saleDateMs: purchase.saleDateMs,
      currency: content.priceMilliunits == nil ? nil : content.currency, type: type,
      isAutoRenewing: isSubscription ? renewing?.isAutoRenewing : false,
      isTrial: content.isFreeTrial,
      isInGracePeriod: isSubscription ? renewing?.isInGracePeriod : false,
      periodStartMs: renewing?.terms.periodStartMs ?? (endMs == nil ? nil : row.purchaseDateMs),
      periodEndMs: renewing?.terms.expiresAtMs ?? endMs,
      cancelledAtMs: content.revocationDateMs,
      cancelledBy: isCancelled ? ReceiptResource.canceller(content.revocationReason) : nil,
      lastSyncedAtMs: content.signedDateMs, appStore: row.object)
  }

  private static func quantity(_ row: ReplyRow) -> Int64 {
    guard let value = row.quantity.integer, (1...1_000_000).contains(value) else { return 1 }
    return value
  }
}

extension SignedPurchases.Extra {
  fileprivate init(_ payload: Text, _ keeper: TextKeeper) throws(JSONError) {
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "expiresDate" {
        expiresAtMs = try keeper.read(&cursor).flooredInstantMs
      } else {
        try cursor.skipValue()
      }
    }
  }
}

extension ProductType {
  init(_ type: SignedProductType) {
    self =
      switch type {
      case .autoRenewable: .autoRenewable
      case .nonRenewing: .nonRenewing
      case .nonConsumable: .nonConsumable
      case .consumable: .consumable
      }
  }

  /// The type that a signed statement of a sale named; nil if none did.
  init?(_ flags: SaleFlags) {
    if flags.contains(.isConsumable) {
      self = .consumable
    } else if flags.contains(.isNonConsumable) {
      self = .nonConsumable
    } else if flags.contains(.isNonRenewing) {
      self = .nonRenewing
    } else if flags.contains(.isAutoRenewable) {
      self = .autoRenewable
    } else {
      return nil
    }
  }
}
