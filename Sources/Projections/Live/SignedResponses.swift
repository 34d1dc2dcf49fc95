// The client API's responses about uploads of signed transactions, read from the projections and from the events.
import AppStore
import Base
import Ledger
import Revenue

extension ReceiptResponses {
  static let signedUploadSQL =
    """
    SELECT s.upload_id, s.app_family, p.occurred_at_ms, u.user_identifier, p.ip_address, p.metadata, p.country,
    f.fraud_reason,
    (SELECT q.occurred_at_ms FROM signed_uploads e JOIN uploads q ON q.position = e.position
      WHERE e.upload_hash = s.upload_hash AND e.upload_id = s.upload_id ORDER BY e.position LIMIT 1)
    FROM signed_uploads s JOIN uploads p ON p.position = s.position
    LEFT JOIN users u ON u.id = p.user LEFT JOIN upload_verdicts f ON f.upload = p.position
    WHERE s.position = ?
    """

  /// The resource of an upload of signed transactions; nil if a position has none.
  func signedResource(upload position: Position, apps: AppDirectory) throws -> ClientReceipt? {
    let row = selectSignedUpload
    row.bind(1, position)
    defer {
      row.reset()
      keeper.removeAll()
    }
    guard try row.step() else { return nil }
    let family = try text(row.number(1))
    let fraudReason = row.isNull(7) ? nil : try text(row.number(7))
    var resource = ReceiptResource()
    let metadata = row.isNull(5) ? nil : resource.share(row.bytes(5))
    let user = row.isNull(3) ? nil : row.bytes(3)
    resource.begin()
    resource.add("id", text: row.bytes(0))
    resource.add("app_family_id", text: family)
    resource.add("is_fraud", fraudReason != nil)
    resource.add("fraud_reason", text: fraudReason)
    resource.add("user_identifier", text: user)
    resource.add("metadata", shared: metadata)
    resource.add("ip_address", text: row.isNull(4) ? nil : row.bytes(4))
    resource.beginArray("in_app_purchases")
    let occurredAtMs = try row.instant(2)
    let fallback = PurchaseFallback(
      country: row.isNull(6) ? nil : try text(row.number(6)), user: user,
      metadata: metadata, createdAtMs: occurredAtMs, updatedAtMs: occurredAtMs)
    var refusals: [ObjectRefusal] = []
    if let familyID = UUID16(String(decoding: family, as: UTF8.self)) {
      let line = try readEvent(position)
      try withUpload(of: line, at: position) { upload in
        guard upload.isValid else {
          refusals = self.refusals(in: upload, familyID, apps)
          return
        }
        let purchases = SignedPurchases(
          upload.transactions.filter(\.isValid), environment: upload.environment,
          products: apps.families[familyID]?.products ?? [:], keeper)
        try add(purchases, familyID, fallback, to: &resource)
      }
    }
    resource.endArray()
    resource.add(refusals)
    resource.add("created_at", instantMs: try row.optionalInstant(8) ?? occurredAtMs)
    resource.add("updated_at", instantMs: occurredAtMs)
    resource.end()
    return ClientReceipt(
      isFraud: fraudReason != nil,
      fraudReason: fraudReason.map { String(decoding: $0, as: UTF8.self) }, isPending: false,
      body: resource.finish())
  }

  /// Roughly what a purchase adds to the text in addition to its payload.
  private static let purchaseByteCount = 1100

  private func add(
    _ purchases: SignedPurchases, _ family: UUID16, _ fallback: PurchaseFallback,
    to resource: inout ReceiptResource
  ) throws {
    var common = CommonReads(metadata: fallback.metadata)
    resource.reserve(
      purchases.all.reduce(0) { $0 + Self.purchaseByteCount + ($1.content.row.object?.count ?? 0) })
    // Most purchases of an upload are periods of one subscription.
    var recent: SubscriptionDetail?
    for purchase in purchases.all {
      let subscription = try subscription(of: purchase, recent: recent)
      recent = subscription ?? recent
      try withSale(
        (purchase.key.kind, purchase.key.text), try known(purchase.environment),
        try known(purchase.bundle), &common, &resource
      ) { sale, resource in
        var own = fallback
        own.country = purchase.country(keeper) ?? fallback.country
        resource.add(
          purchases.fields(purchase, product: sale?.product, subscription), family: family,
          sale: sale, fallback: own)
      }
    }
  }

  /// The subscription of a purchase; nil if it belongs to none.
  private func subscription(
    of purchase: SignedPurchases.Purchase, recent: SubscriptionDetail?
  ) throws(DatabaseError) -> SubscriptionDetail? {
    guard purchase.extra.expiresAtMs != nil,
      let id = purchase.content.row.originalTransactionID ?? purchase.content.row.transactionID
    else { return nil }
    if let recent, id.elementsEqual(recent.originalTransactionID.utf8),
      purchase.environment.elementsEqual(recent.environment.utf8),
      purchase.bundle.elementsEqual(recent.bundleID.utf8)
    {
      return recent
    }
    func string(_ text: Text) -> String { String(decoding: text, as: UTF8.self) }
    return try subscriptions.subscription(
      environment: string(purchase.environment), bundleID: string(purchase.bundle),
      originalTransactionID: string(id))
  }

  private func withUpload(
    of line: [UInt8], at position: Position, _ body: (TransactionsReceivedView) throws -> Void
  ) throws {
    try line.withUnsafeBytes { bytes in
      guard let event = EventLine(bytes), EventType(event.type) == .transactionsReceived else {
        throw ProjectionError.missingEvent(position: position, names: position)
      }
      let view: TransactionsReceivedView
      do throws(EventError) {
        view = try TransactionsReceivedView(data: event.data, isRedacted: event.isRedacted)
      } catch {
        throw ProjectionError.event(position: position, error)
      }
      try body(view)
    }
  }

  // MARK: Fraud

  /// Which objects make an upload a fraud: those that the App Store did not sign, and those of another app.
  private func refusals(
    in upload: TransactionsReceivedView, _ family: UUID16, _ apps: AppDirectory
  ) -> [ObjectRefusal] {
    var refusals: [ObjectRefusal] = []
    func look(at object: SignedObjectView, _ field: String, names bundleID: Text?) {
      if !object.isValid {
        let reason = object.reason?.string ?? ""
        refusals.append(
          ObjectRefusal(
            field: field, code: TransactionsReceived.FraudReason.signatureInvalid.rawValue,
            message: SignedObjectFault(rawValue: reason)?.refusal ?? "is refused: \(reason)"))
      } else if let bundleID,
        apps.familiesByBundle[String(decoding: bundleID, as: UTF8.self)] != family
      {
        refusals.append(
          ObjectRefusal(
            field: field, code: TransactionsReceived.FraudReason.bundleIDMismatch.rawValue,
            message: "belongs to another app than the token"))
      }
    }
    for (index, object) in upload.transactions.enumerated() {
      let content = try? SignedTransaction(payload: object.payload, keeper)
      look(at: object, "signed_transactions[\(index)]", names: content?.bundleID)
    }
    guard let object = upload.appTransaction else { return refusals }
    let content = try? SignedAppTransaction(payload: object.payload, keeper)
    look(at: object, "app_transaction", names: content?.bundleID)
    if object.isValid, refusals.isEmpty, let content,
      let declared = apps.families[family]?.appAppleID,
      content.environment?.elementsEqual(EnvironmentName.production.text) ?? false,
      content.appAppleID != declared
    {
      refusals.append(
        ObjectRefusal(
          field: "app_transaction", code: "wrong_app_apple_id",
          message: "names another app than the one declared"))
    }
    return refusals
  }
}

/// A signed object that makes an upload a fraud, in the form in which a rejected request would name it.
struct ObjectRefusal {
  let field: String
  let code: String
  let message: String
}

// MARK: - Purchases of an upload of signed transactions

/// The purchases that a list of signed transactions shows: each sale once, by its newest statement.
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

    /// The country of its storefront; nil if that is not known.
    func country(_ keeper: TextKeeper) -> Text? {
      content.storefront.flatMap { Country.parse(alpha3: $0) }
        .map { keeper.keep(Array($0.description.utf8)) }
    }

    /// Whether another statement is about the same sale.
    fileprivate func isSame(_ key: SaleKey, _ environment: Text, _ bundle: Text) -> Bool {
      self.key == key && self.environment.equals(environment) && self.bundle.equals(bundle)
    }

    /// By date, then key, then whatever else tells sales apart.
    fileprivate static func isBefore(_ left: Purchase, _ right: Purchase) -> Bool {
      let (one, other) = (left.saleDateMs, right.saleDateMs)
      if one != other { return one < other }
      if left.key.text.order(right.key.text) != 0 { return left.key.text.order(right.key.text) < 0 }
      if left.key.kind != right.key.kind { return left.key.kind.rawValue < right.key.kind.rawValue }
      let order = left.environment.order(right.environment)
      return order != 0 ? order < 0 : left.bundle.order(right.bundle) < 0
    }
  }

  /// Fields of a payload that no rule reads.
  struct Extra {
    var expiresAtMs: Int64?
  }

  /// In the order of date and key.
  let all: [Purchase]
  /// Declared types by product id.
  private let products: [String: ProductType]

  /// - Parameters:
  ///   - objects: valid ones, in the order of the list.
  ///   - environment: of objects that name none.
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
  ///   - subscription: the subscription to which it belongs, if there is one.
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
