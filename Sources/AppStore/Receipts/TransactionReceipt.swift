// Transaction (legacy) receipts: a property list that contains a signed property list.
import Base

/// The outer property list of a transaction receipt, with its two base64 fields decoded.
struct TransactionReceipt {
  /// The blob that `TransactionSignature` reads; nil if the receipt has none.
  let signature: [UInt8]?
  /// The inner property list, as signed.
  let purchaseInfo: [UInt8]
  /// The environment line, which is outside the signature.
  let environment: String?

  init(_ bytes: UnsafeRawBufferPointer) throws(ReceiptError) {
    let fields = try Self.texts(in: bytes, part: .file)
    guard let purchaseInfo = fields["purchase-info"] else {
      throw .missingField(.file, field: "purchase-info")
    }
    self.purchaseInfo = try Self.base64(purchaseInfo, field: "purchase-info")
    environment = fields["environment"].flatMap { $0.isEmpty ? nil : $0 }
    if let signature = fields["signature"] {
      self.signature = try Self.base64(signature, field: "signature")
    } else {
      signature = nil
    }
  }

  func decode() throws(ReceiptError) -> Receipt {
    let fields = try purchaseInfo.withUnsafeBufferPointer { buffer throws(ReceiptError) in
      try Self.texts(in: UnsafeRawBufferPointer(buffer), part: .purchaseInfo)
    }
    guard let bundleID = fields["bid"], !bundleID.isEmpty else {
      throw .missingField(.purchaseInfo, field: "bid")
    }
    func text(_ field: String) -> String? {
      fields[field].flatMap { $0.isEmpty ? nil : $0 }
    }
    var purchase = ReceiptPurchase()
    purchase.productID = text("product-id")
    purchase.transactionID = text("transaction-id")
    purchase.originalTransactionID = text("original-transaction-id")
    purchase.webOrderLineItemID = text("web-order-line-item-id").flatMap { $0 == "0" ? nil : $0 }
    purchase.quantity = text("quantity")
    purchase.purchaseDateMs = try Self.dateMs(fields, "purchase-date-ms", orText: "purchase-date")
    purchase.originalPurchaseDateMs = try Self.dateMs(
      fields, "original-purchase-date-ms", orText: "original-purchase-date")
    // The only date whose millisecond field has no suffix.
    purchase.expiresDateMs = try Self.dateMs(
      fields, "expires-date", orText: "expires-date-formatted")
    purchase.cancellationDateMs = try Self.dateMs(
      fields, "cancellation-date-ms", orText: "cancellation-date")
    purchase.isTrialPeriod = try Self.flag(fields, "is-trial-period")
    purchase.isInIntroOfferPeriod = try Self.flag(fields, "is-in-intro-offer-period")
    purchase.promotionalOfferID = text("promotional-offer-id")
    var receipt = Receipt(
      style: .transaction, environment: nil, bundleID: bundleID,
      applicationVersion: text("bvrs"), purchases: [purchase])
    receipt.unsignedEnvironment = environment
    return receipt
  }

  private static func texts(
    in bytes: UnsafeRawBufferPointer, part: ReceiptError.TransactionPart
  ) throws(ReceiptError) -> [String: String] {
    do { return try PropertyList.texts(in: bytes) } catch {
      throw .propertyList(part: part, error)
    }
  }

  private static func base64(_ text: String, field: String) throws(ReceiptError) -> [UInt8] {
    do { return try Base64.decode(Array(text.utf8)) } catch {
      throw .base64(field: field, error)
    }
  }

  /// The milliseconds if the receipt has them, otherwise the readable time (the oldest receipts have only
  /// that).
  private static func dateMs(
    _ fields: [String: String], _ field: String, orText textField: String
  ) throws(ReceiptError) -> Int64? {
    if let text = fields[field], !text.isEmpty {
      if let milliseconds = milliseconds(text) { return milliseconds }
      guard let date = readableDate(text) else { throw .invalidField(field: field) }
      return date
    }
    for name in [textField, "\(textField)-pst"] {
      guard let text = fields[name], !text.isEmpty else { continue }
      guard let date = readableDate(text) else { throw .invalidField(field: name) }
      return date
    }
    return nil
  }

  /// Digits only, at most 15: a larger number is beyond the year 30,000 and not a date.
  private static func milliseconds(_ text: String) -> Int64? {
    let isNumber = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isNumber, text.utf8.count <= 15 else { return nil }
    return Int64(text)
  }

  private static func readableDate(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { ReceiptDate.parse(UnsafeRawBufferPointer($0)) }
  }

  private static func flag(
    _ fields: [String: String], _ field: String
  ) throws(ReceiptError) -> Bool {
    switch fields[field] {
    case "true", "1", "YES": return true
    case nil, "", "false", "0", "NO": return false
    default: throw .invalidField(field: field)
    }
  }
}
