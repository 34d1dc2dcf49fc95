// Unified receipts: the attributes inside PKCS#7, with Apple's types of receipt fields; and the dates of receipts.
import Base

/// Decodes a unified receipt's attributes. A field that affects a figure is either read or rejected: a known attribute
/// of the wrong type, or with an invalid date, fails the receipt. Unknown types and empty values do not.
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

// MARK: - Dates

/// Parses dates in receipts and replies: RFC 3339, Xcode's, and `2015-11-18 04:34:41 Etc/GMT`.
package enum ReceiptDate {
  /// Epoch milliseconds of an RFC 3339 time or of the legacy format with a space and `Etc/GMT` or
  /// `America/Los_Angeles`; nil if the text is neither. An RFC 3339 time may have any offset, with a colon or
  /// (as Xcode 12 writes it) without, and any fraction, which is truncated to milliseconds.
  package static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard (20...64).contains(text.count),
      let year = digits(text, 0, 4), text[4] == UInt8(ascii: "-"),
      let month = digits(text, 5, 2), text[7] == UInt8(ascii: "-"),
      let day = digits(text, 8, 2),
      let hour = digits(text, 11, 2), text[13] == UInt8(ascii: ":"),
      let minute = digits(text, 14, 2), text[16] == UInt8(ascii: ":"),
      let second = digits(text, 17, 2),
      (1...12).contains(month), (1...CivilDate.dayCount(year: year, month: month)).contains(day),
      hour < 24, minute < 60, second <= 60
    else { return nil }

    var offset = 19
    var milliseconds = 0
    if text[offset] == UInt8(ascii: ".") {
      offset += 1
      let fractionStart = offset
      var scale = 100
      while offset < text.count, let digit = digits(text, offset, 1) {
        milliseconds += digit * scale
        scale /= 10
        offset += 1
      }
      guard offset > fractionStart else { return nil }
    }
    let zoneSeconds: Int
    switch text[10] {
    case UInt8(ascii: "T"), UInt8(ascii: "t"):
      guard let zone = rfc3339Zone(text, offset) else { return nil }
      zoneSeconds = zone
    case UInt8(ascii: " "):
      let zone = text[offset...]
      if zone.elementsEqual(" Etc/GMT".utf8) {
        zoneSeconds = 0
      } else if zone.elementsEqual(" America/Los_Angeles".utf8),
        let pacific = PacificTime.offsetSeconds(
          year: year, month: month, day: day, secondOfDay: hour * 3_600 + minute * 60 + second)
      {
        zoneSeconds = pacific
      } else {
        return nil
      }
    default:
      return nil
    }
    // RFC 3339 allows the year 0000, which CivilDate does not.
    let dayNumber = CivilDate.dayNumber(year: year, month: month, day: day)
    let seconds = dayNumber * 86_400 + hour * 3_600 + minute * 60 + second - zoneSeconds
    return Int64(seconds * 1_000 + milliseconds)
  }

  private static func rfc3339Zone(_ text: UnsafeRawBufferPointer, _ offset: Int) -> Int? {
    let remaining = text.count - offset
    guard remaining > 0 else { return nil }
    switch text[offset] {
    case UInt8(ascii: "Z"), UInt8(ascii: "z"):
      return remaining == 1 ? 0 : nil
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      let hasColon = remaining == 6 && text[offset + 3] == UInt8(ascii: ":")
      guard hasColon || remaining == 5, let hours = digits(text, offset + 1, 2),
        let minutes = digits(text, offset + (hasColon ? 4 : 3), 2), hours < 24, minutes < 60
      else { return nil }
      let seconds = hours * 3_600 + minutes * 60
      return text[offset] == UInt8(ascii: "-") ? -seconds : seconds
    default:
      return nil
    }
  }

  private static func digits(
    _ text: UnsafeRawBufferPointer, _ start: Int, _ count: Int
  ) -> Int? {
    var value = 0
    for offset in start..<start + count {
      let digit = text[offset] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int(digit)
    }
    return value
  }
}
