// Unified receipts: the attributes inside PKCS#7. The types are those of Apple's receipt fields.

/// Decodes a unified receipt's attributes. A field that feeds a figure is either read or refused: a known
/// attribute of the wrong type, or with an invalid date, fails the receipt. Unknown types and empty values do
/// not.
enum UnifiedReceipt {
  static func decode(_ bytes: UnsafeRawBufferPointer) throws(ReceiptError) -> Receipt {
    let content = try SignedData.content(of: bytes)
    return try content.withBytes(of: bytes) { attributes throws(ReceiptError) in
      try decode(attributes: attributes)
    }
  }

  private static func decode(
    attributes: UnsafeRawBufferPointer
  ) throws(ReceiptError) -> Receipt {
    var bundleID: String?
    var receipt = Receipt(style: .unified, bundleID: "", purchases: [])
    try forEachAttribute(in: attributes) { type, value throws(ReceiptError) in
      switch type {
      case 0: receipt.environment = try text(value, of: type)
      case 2: bundleID = try text(value, of: type)
      case 3: receipt.applicationVersion = try text(value, of: type)
      case 12: receipt.creationDateMs = try dateMs(value, of: type)
      case 17:
        guard receipt.purchases.count < ReceiptFile.maximumPurchaseCount else {
          throw .tooManyPurchases
        }
        receipt.purchases.append(try purchase(value))
      case 19: receipt.originalApplicationVersion = try text(value, of: type)
      case 21: receipt.expirationDateMs = try dateMs(value, of: type)
      default: break
      }
    }
    guard let bundleID else { throw .missingBundleID }
    receipt.bundleID = bundleID
    return receipt
  }

  private static func purchase(
    _ attributes: UnsafeRawBufferPointer
  ) throws(ReceiptError) -> ReceiptPurchase {
    var purchase = ReceiptPurchase()
    try forEachAttribute(in: attributes) { type, value throws(ReceiptError) in
      switch type {
      case 1701: purchase.quantity = try integer(value, of: type).map { String($0) }
      case 1702: purchase.productID = try text(value, of: type)
      case 1703: purchase.transactionID = try text(value, of: type)
      case 1704: purchase.purchaseDateMs = try dateMs(value, of: type)
      case 1705: purchase.originalTransactionID = try text(value, of: type)
      case 1706: purchase.originalPurchaseDateMs = try dateMs(value, of: type)
      case 1707: purchase.productType = try integer(value, of: type).map { Int($0) }
      case 1708: purchase.expiresDateMs = try dateMs(value, of: type)
      case 1711:
        let id = try integer(value, of: type) ?? 0
        purchase.webOrderLineItemID = id == 0 ? nil : String(id)
      case 1712: purchase.cancellationDateMs = try dateMs(value, of: type)
      case 1713: purchase.isTrialPeriod = try (integer(value, of: type) ?? 0) != 0
      case 1719: purchase.isInIntroOfferPeriod = try (integer(value, of: type) ?? 0) != 0
      case 1721: purchase.promotionalOfferID = try text(value, of: type)
      default: break
      }
    }
    return purchase
  }

  /// Reads SET OF SEQUENCE { type INTEGER, version INTEGER, value OCTET STRING }.
  private static func forEachAttribute(
    in bytes: UnsafeRawBufferPointer,
    _ body: (Int64, UnsafeRawBufferPointer) throws(ReceiptError) -> Void
  ) throws(ReceiptError) {
    var attributes: DERReader
    do {
      var outer = DERReader(bytes)
      attributes = try outer.enter(DERIdentifier.set)
      try outer.finish()
    } catch { throw .attributes(error) }
    while !attributes.isAtEnd {
      let type: Int64
      let value: DEROctets
      do {
        var attribute = try attributes.enter(DERIdentifier.sequence)
        type = try attribute.nextInteger()
        _ = try attribute.next(DERIdentifier.integer)
        value = try attribute.nextOctets()
        try attribute.finish()
      } catch { throw .attributes(error) }
      try value.withBytes(of: bytes) { octets throws(ReceiptError) in
        try body(type, octets)
      }
    }
  }

  /// The text of a string value; nil if it is empty.
  private static func text(
    _ value: UnsafeRawBufferPointer, of type: Int64
  ) throws(ReceiptError) -> String? {
    guard let content = try textBytes(value, of: type), !content.isEmpty else { return nil }
    guard let text = String(validating: content, as: UTF8.self) else {
      throw .attribute(type: type, .notUTF8)
    }
    return text
  }

  private static func dateMs(
    _ value: UnsafeRawBufferPointer, of type: Int64
  ) throws(ReceiptError) -> Int64? {
    guard let content = try textBytes(value, of: type), !content.isEmpty else { return nil }
    guard let milliseconds = ReceiptDate.parse(content) else {
      throw .attribute(type: type, .notADate)
    }
    return milliseconds
  }

  private static func textBytes(
    _ value: UnsafeRawBufferPointer, of type: Int64
  ) throws(ReceiptError) -> UnsafeRawBufferPointer? {
    if value.isEmpty { return nil }
    let element: DERElement
    do {
      var reader = DERReader(value)
      element = try reader.next()
      try reader.finish()
    } catch { throw .attribute(type: type, .malformed(error)) }
    switch element.identifier {
    case DERIdentifier.utf8String, DERIdentifier.ia5String, DERIdentifier.printableString:
      return UnsafeRawBufferPointer(rebasing: value[element.content])
    case DERIdentifier.null:
      return nil
    default:
      throw .attribute(type: type, .notText)
    }
  }

  private static func integer(
    _ value: UnsafeRawBufferPointer, of type: Int64
  ) throws(ReceiptError) -> Int64? {
    if value.isEmpty { return nil }
    do {
      var reader = DERReader(value)
      let integer = try reader.nextInteger()
      try reader.finish()
      return integer
    } catch { throw .attribute(type: type, .malformed(error)) }
  }
}
