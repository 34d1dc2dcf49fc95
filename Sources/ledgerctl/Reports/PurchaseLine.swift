// One purchase in a receipt or a reply, for tables and JSON.
import AppStore
import Base
import JSON

/// A purchase as text.
struct PurchaseLine: Equatable {
  var productID: String?
  var transactionID: String?
  var originalTransactionID: String?
  var webOrderLineItemID: String?
  var quantity: String?
  /// As in `app add --product`.
  var type: String?
  var purchasedAt: String?
  var originallyPurchasedAt: String?
  var expiresAt: String?
  var canceledAt: String?
  /// `trial`, `introductory_offer` and the like.
  var traits: [String] = []

  init(_ purchase: ReceiptPurchase) {
    productID = purchase.productID
    transactionID = purchase.transactionID
    originalTransactionID = purchase.originalTransactionID
    webOrderLineItemID = purchase.webOrderLineItemID
    quantity = purchase.quantity
    type = purchase.productType.map(Self.typeName)
    purchasedAt = purchase.purchaseDateMs.map(instantText)
    originallyPurchasedAt = purchase.originalPurchaseDateMs.map(instantText)
    expiresAt = purchase.expiresDateMs.map(instantText)
    canceledAt = purchase.cancellationDateMs.map(instantText)
    if purchase.isTrialPeriod { traits.append("trial") }
    if purchase.isInIntroOfferPeriod { traits.append("introductory_offer") }
    if let offer = purchase.promotionalOfferID, !offer.isEmpty {
      traits.append("promotional_offer")
    }
  }

  init(_ row: ReplyRow) {
    func text(_ bytes: JSONBytes?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    productID = text(row.productID)
    transactionID = text(row.transactionID)
    originalTransactionID = text(row.originalTransactionID)
    webOrderLineItemID = text(row.webOrderLineItemID)
    quantity = text(row.quantity.id)
    purchasedAt = row.purchaseDateMs.map(instantText)
    originallyPurchasedAt = row.originalPurchaseDateMs.map(instantText)
    canceledAt = row.cancellationDateMs.map(instantText)
    if row.isTrialPeriod { traits.append("trial") }
    if row.isInIntroOfferPeriod { traits.append("introductory_offer") }
    if row.hasPromotionalOffer { traits.append("promotional_offer") }
    if row.hasOfferCode { traits.append("offer_code") }
    if row.isFamilyShared { traits.append("family_shared") }
    if row.isUpgraded { traits.append("upgraded") }
  }

  private static func typeName(_ type: Int) -> String {
    switch type {
    case 0: "non_consumable"
    case 1: "consumable"
    case 2: "non_renewing"
    case 3: "auto_renewable"
    case 4: "free_subscription"
    default: "\(type)"
    }
  }

  var record: Record {
    [
      "product_id": productID, "transaction_id": transactionID,
      "original_transaction_id": originalTransactionID,
      "web_order_line_item_id": webOrderLineItemID, "quantity": quantity, "type": type,
      "purchased_at": purchasedAt, "originally_purchased_at": originallyPurchasedAt,
      "expires_at": expiresAt, "canceled_at": canceledAt, "traits": traits,
    ]
  }

  /// Empty columns are left out, except those that identify a purchase.
  static func table(_ lines: [PurchaseLine]) -> TextTable {
    let all: [(column: TextTable.Column, cell: (PurchaseLine) -> String?)] = [
      ("product_id", \.productID), ("transaction_id", \.transactionID),
      ("original_transaction_id", \.originalTransactionID),
      (.number("quantity"), \.quantity), ("type", \.type),
      ("purchased_at", \.purchasedAt), ("expires_at", \.expiresAt),
      ("canceled_at", \.canceledAt),
      ("traits", { $0.traits.isEmpty ? nil : $0.traits.joined(separator: ",") }),
    ]
    let used = all.enumerated().filter { index, entry in
      index < 2 || lines.contains { entry.cell($0) != nil }
    }.map(\.element)
    var table = TextTable(used.map(\.column))
    for line in lines { table.append(used.map { $0.cell(line) ?? "" }) }
    return table
  }
}

/// A time in a receipt; one outside the supported range is shown in milliseconds.
func instantText(_ epochMs: Int64) -> String {
  Timestamp.rangeMs.contains(epochMs) ? timeText(epochMs) : "\(epochMs) ms"
}
