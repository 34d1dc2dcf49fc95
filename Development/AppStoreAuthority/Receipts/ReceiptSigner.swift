// Signs receipts of both styles from what they are to say.
package import AppStore
private import Base

/// Makes receipt files of the size and with the attributes that the App Store's have.
package struct ReceiptSigner: Sendable {
  package let authority: TestAuthority

  package init(authority: TestAuthority) { self.authority = authority }

  /// A unified receipt: SHA-256, three certificates.
  package func unified(_ receipt: Receipt) throws(AuthorityError) -> [UInt8] {
    let content = Self.attributes(of: receipt, AppFacts(receipt))
    let frame = SignedDataFrame(
      digest: .sha256, certificates: authority.chain, issuerName: authority.signer.issuerName,
      serial: DER.integer(authority.signer.serial))
    return frame.file(
      content: content, signature: try authority.signer.key.sign(content, .sha256))
  }

  /// A transaction receipt, version 2, of the receipt's first purchase.
  package func transaction(_ receipt: Receipt) throws(AuthorityError) -> [UInt8] {
    guard let purchase = receipt.purchases.first else {
      throw AuthorityError("sign", "a transaction receipt", "it needs a purchase")
    }
    let isSandbox = receipt.environment != "Production"
    return try TransactionReceiptPlan(
      fields: Self.fields(of: purchase, in: receipt, AppFacts(receipt)),
      environmentLine: TransactionReceiptPlan.environmentLine(isSandbox ? "Sandbox" : "Production")
    ).signed(by: authority.purchaseSigner)
  }

  // MARK: Unified

  /// The attributes of a unified receipt: what is signed.
  package static func attributes(of receipt: Receipt, _ facts: AppFacts) -> [UInt8] {
    let creation = DER.date(receipt.creationDateMs)
    let bundle = DER.utf8(receipt.bundleID)
    var attributes: [[UInt8]] = []
    func add(_ type: Int64, _ value: [UInt8]) {
      attributes.append(UnifiedReceiptPlan.attribute(type, value))
    }
    add(0, DER.utf8(receipt.environment ?? "Production"))
    add(1, DER.integer(facts.adamID))
    add(2, bundle)
    add(3, DER.utf8(receipt.applicationVersion ?? "1.0"))
    add(4, facts.opaque)
    add(5, SigningDigest.sha1.hash(facts.device + facts.opaque + bundle))
    add(6, facts.unexplained.six)
    add(7, facts.unexplained.seven)
    add(8, creation)
    add(9, DER.ia5("P26A"))
    add(10, DER.ia5("4+"))
    add(11, DER.integer(facts.numbers.eleven))
    add(12, creation)
    add(13, DER.integer(facts.numbers.thirteen))
    add(14, DER.integer(118))
    add(15, DER.integer(facts.downloadID ?? 0))
    add(16, DER.integer(facts.versionID))
    for purchase in receipt.purchases { add(17, Self.attributes(of: purchase, facts)) }
    add(18, DER.date(facts.originalPurchaseMs))
    add(19, DER.utf8(receipt.originalApplicationVersion ?? "1.0"))
    add(25, DER.integer(3))
    return DER.element(DER.Tag.set, joining: attributes)
  }

  private static func attributes(of purchase: ReceiptPurchase, _ facts: AppFacts) -> [UInt8] {
    var attributes: [[UInt8]] = []
    func add(_ type: Int64, _ value: [UInt8]) {
      attributes.append(UnifiedReceiptPlan.attribute(type, value))
    }
    add(1701, DER.integer(purchase.quantity.flatMap { Int64($0) } ?? 1))
    add(1702, DER.utf8(purchase.productID ?? ""))
    add(1703, DER.utf8(purchase.transactionID ?? ""))
    add(1704, DER.date(purchase.purchaseDateMs))
    add(1705, DER.utf8(purchase.originalTransactionID ?? ""))
    add(1706, DER.date(purchase.originalPurchaseDateMs))
    add(1707, DER.integer(Int64(purchase.productType ?? 0)))
    add(1708, DER.date(purchase.expiresDateMs))
    if let number = facts.productNumbers[purchase.productID ?? ""] {
      add(1710, DER.integer(number))
    }
    add(1711, DER.integer(purchase.webOrderLineItemID.flatMap { Int64($0) } ?? 0))
    add(1712, DER.date(purchase.cancellationDateMs))
    if purchase.expiresDateMs != nil {
      add(1713, DER.integer(purchase.isTrialPeriod ? 1 : 0))
      add(1719, DER.integer(purchase.isInIntroOfferPeriod ? 1 : 0))
    }
    if let offer = purchase.promotionalOfferID { add(1721, DER.utf8(offer)) }
    return DER.element(DER.Tag.set, joining: attributes)
  }

  // MARK: Transaction

  /// The keys of `purchase-info`, in the App Store's order.
  package static func fields(
    of purchase: ReceiptPurchase, in receipt: Receipt, _ facts: AppFacts
  ) -> [(String, String)] {
    let item = facts.productNumbers[purchase.productID ?? ""] ?? facts.itemID
    let purchaseMs = purchase.purchaseDateMs ?? 0
    let originalMs = purchase.originalPurchaseDateMs ?? purchaseMs
    var fields: [(String, String)] = [
      ("original-purchase-date-pst", StoreTime.losAngeles(originalMs)),
      ("unique-identifier", facts.deviceIdentifier),
      ("original-transaction-id", purchase.originalTransactionID ?? ""),
    ]
    if let expiresMs = purchase.expiresDateMs {
      fields += [
        ("expires-date", String(expiresMs)),
        ("expires-date-formatted", StoreTime.greenwich(expiresMs)),
        ("expires-date-formatted-pst", StoreTime.losAngeles(expiresMs)),
        ("is-trial-period", purchase.isTrialPeriod ? "true" : "false"),
        ("is-in-intro-offer-period", purchase.isInIntroOfferPeriod ? "true" : "false"),
      ]
    }
    if let item = purchase.webOrderLineItemID { fields.append(("web-order-line-item-id", item)) }
    fields += [
      ("transaction-id", purchase.transactionID ?? ""), ("quantity", purchase.quantity ?? "1"),
      ("product-id", purchase.productID ?? ""), ("item-id", String(item)),
      ("bid", receipt.bundleID), ("unique-vendor-identifier", facts.vendorIdentifier),
      ("bvrs", receipt.applicationVersion ?? "1.0"),
      ("purchase-date", StoreTime.greenwich(purchaseMs)), ("purchase-date-ms", String(purchaseMs)),
      ("purchase-date-pst", StoreTime.losAngeles(purchaseMs)),
      ("original-purchase-date", StoreTime.greenwich(originalMs)),
      ("original-purchase-date-ms", String(originalMs)),
    ]
    return fields
  }
}
