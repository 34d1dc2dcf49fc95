// The content of a receipt file of either style, its errors, its text form, and its environment.
package import Base

/// The two file formats in which the App Store has issued receipts.
package enum ReceiptStyle: String, Sendable {
  /// PKCS#7 that contains a set of attributes: the receipt of the whole app, since 2013.
  case unified
  /// A property list for one purchase: the legacy transaction receipt.
  case transaction
}

/// A decoded receipt. Do not trust its content until `ReceiptVerifier` has checked the signature.
package struct Receipt: Equatable, Sendable {
  package var style: ReceiptStyle
  /// As in the signed content (`Production`, `ProductionSandbox`, `Xcode`, ...). Nil for a transaction
  /// receipt: its environment line is outside the signature.
  package var environment: String?
  /// The environment line of a transaction receipt. It is not signed, so it is never evidence, but nothing better
  /// exists until the App Store has replied.
  package var unsignedEnvironment: String?
  package var bundleID: String
  package var applicationVersion: String?
  package var originalApplicationVersion: String?
  /// Epoch milliseconds. Nil for a transaction receipt, which has only the date of its purchase.
  package var creationDateMs: Int64?
  /// Epoch milliseconds. Only volume purchases expire as a whole.
  package var expirationDateMs: Int64?
  package var purchases: [ReceiptPurchase]

  package init(
    style: ReceiptStyle, environment: String? = nil, bundleID: String,
    applicationVersion: String? = nil, originalApplicationVersion: String? = nil,
    creationDateMs: Int64? = nil, expirationDateMs: Int64? = nil, purchases: [ReceiptPurchase]
  ) {
    self.style = style
    self.environment = environment
    self.bundleID = bundleID
    self.applicationVersion = applicationVersion
    self.originalApplicationVersion = originalApplicationVersion
    self.creationDateMs = creationDateMs
    self.expirationDateMs = expirationDateMs
    self.purchases = purchases
  }
}

/// One purchase as a receipt describes it. Ids stay text; a field that the receipt omits is nil. Dates are
/// epoch milliseconds.
package struct ReceiptPurchase: Equatable, Sendable {
  package var productID: String?
  package var transactionID: String?
  package var originalTransactionID: String?
  /// Decimal text; nil if the receipt has none or 0.
  package var webOrderLineItemID: String?
  package var quantity: String?
  package var purchaseDateMs: Int64?
  package var originalPurchaseDateMs: Int64?
  package var expiresDateMs: Int64?
  package var cancellationDateMs: Int64?
  /// 0 non-consumable, 1 consumable, 2 non-renewing, 3 auto-renewable, 4 free subscription.
  package var productType: Int?
  package var isTrialPeriod = false
  package var isInIntroOfferPeriod = false
  package var promotionalOfferID: String?

  package init() {}
}

// MARK: - Errors

/// Why a receipt file cannot be decoded. No message shows a byte of the receipt.
package enum ReceiptError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No bytes at all.
  case empty
  /// Neither PKCS#7 nor a property list.
  case unknownStyle
  /// ASN.1 that is damaged, or is not PKCS#7 SignedData with content.
  case envelope(DERError)
  /// PKCS#7 of a type other than SignedData over data.
  case notSignedData
  /// The content is not a set of attributes.
  case attributes(DERError)
  /// The value of an attribute does not match its type.
  case attribute(type: Int64, AttributeProblem)
  /// More purchases than `ReceiptFile.maximumPurchaseCount`.
  case tooManyPurchases
  /// A damaged property list; `part` tells which of the two.
  case propertyList(part: TransactionPart, PropertyListError)
  /// A property list without a field that every receipt has.
  case missingField(TransactionPart, field: String)
  /// A field that should hold base64 but does not.
  case base64(field: String, Base64Error)
  /// An invalid date or flag.
  case invalidField(field: String)
  /// A unified receipt without attribute 2.
  case missingBundleID

  /// What can be wrong with one attribute.
  package enum AttributeProblem: Equatable, Sendable {
    case malformed(DERError)
    case notText
    case notUTF8
    case notADate
  }

  /// The two property lists of a transaction receipt.
  package enum TransactionPart: String, Sendable {
    case file = "receipt"
    case purchaseInfo = "purchase-info"
  }

  package var description: String { "decode receipt: \(cause)" }

  /// What is wrong, without the operation.
  package var cause: String {
    switch self {
    case .empty: "empty"
    case .unknownStyle: "neither a PKCS#7 file nor a property list"
    case .envelope(let error): "PKCS#7: \(error)"
    case .notSignedData: "PKCS#7: not SignedData with content"
    case .attributes(let error): "attributes: \(error)"
    case .attribute(let type, let problem): "attribute \(type): \(Self.describe(problem))"
    case .tooManyPurchases: "more than \(ReceiptFile.maximumPurchaseCount) purchases"
    case .propertyList(let part, let error): "property list \(part.rawValue): \(error)"
    case .missingField(let part, let field): "property list \(part.rawValue): no field \(field)"
    case .base64(let field, let error): "field \(field): \(error)"
    case .invalidField(let field): "field \(field): not a valid value"
    case .missingBundleID: "no bundle id (attribute 2)"
    }
  }

  private static func describe(_ problem: AttributeProblem) -> String {
    switch problem {
    case .malformed(let error): "\(error)"
    case .notText: "not a string"
    case .notUTF8: "not UTF-8"
    case .notADate: "not an RFC 3339 date"
    }
  }
}

// MARK: - Text form

/// A receipt as clients send it: repairs the two harmless ways in which base64 is altered in transit, and no others.
package enum ReceiptText {
  /// The text without CR, LF and TAB, and with each space turned back into `+`, which form decoding had replaced; nil
  /// if the text needs no change.
  package static func normalized(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let first = text.firstIndex(where: { $0 <= UInt8(ascii: " ") && isDamage($0) }) else {
      return nil
    }
    return [UInt8](unsafeUninitializedCapacity: text.count) { output, count in
      for offset in 0..<text.count {
        var byte = text[offset]
        if offset >= first, isDamage(byte) {
          guard byte == UInt8(ascii: " ") else { continue }
          byte = UInt8(ascii: "+")
        }
        output.initializeElement(at: count, to: byte)
        count += 1
      }
    }
  }

  /// As `normalized`, for an array. An unaltered array is returned without a copy.
  package static func normalize(_ text: [UInt8]) -> [UInt8] {
    text.withUnsafeBytes { normalized($0) } ?? text
  }

  /// Normalizes and decodes what a client sent into the bytes of the receipt file.
  package static func decode(_ text: UnsafeRawBufferPointer) throws(Base64Error) -> [UInt8] {
    if let mended = normalized(text) { return try Base64.decode(mended) }
    return try Base64.decode(text)
  }

  private static func isDamage(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
      || byte == UInt8(ascii: "\t")
  }
}

// MARK: - Receipt files

/// The entry point for receipt files: detects the style from the content and decodes it.
package enum ReceiptFile {
  /// More purchases than any real receipt has; limits what a small hostile file can claim.
  package static let maximumPurchaseCount = 65_536

  /// Decodes a receipt file (the bytes after base64). `ReceiptVerifier` decides whether it is genuine.
  package static func decode(_ bytes: UnsafeRawBufferPointer) throws(ReceiptError) -> Receipt {
    switch try style(of: bytes) {
    case .unified: try UnifiedReceipt.decode(bytes)
    case .transaction: try TransactionReceipt(bytes).decode()
    }
  }

  /// Decodes a receipt file in an array.
  package static func decode(_ bytes: [UInt8]) throws(ReceiptError) -> Receipt {
    try bytes.withUnsafeBufferPointer { buffer throws(ReceiptError) in
      try decode(UnsafeRawBufferPointer(buffer))
    }
  }

  /// The style, detected from the first bytes.
  package static func style(
    of bytes: UnsafeRawBufferPointer
  ) throws(ReceiptError) -> ReceiptStyle {
    guard let first = bytes.first else { throw .empty }
    if first == DERIdentifier.sequence { return .unified }
    let visible = bytes.first { $0 != 0x20 && !(0x09...0x0D).contains($0) }
    guard visible == UInt8(ascii: "{") else { throw .unknownStyle }
    return .transaction
  }
}

// MARK: - Environment of a pending receipt

/// The environment of a receipt that the App Store has not confirmed yet (rule R1, *pending*).
package enum PendingEnvironment {
  /// The environment of a transaction receipt without a usable environment line: only the App Store knows it.
  package static let unknown: StaticString = "Unknown"

  /// The name in receipts of the sandbox.
  package static let productionSandbox: StaticString = "ProductionSandbox"

  /// The environment that a file names, as its signature verification records it. For a unified receipt, this
  /// is the signed name. For a transaction receipt, it is `Sandbox` or nothing: the line is outside the
  /// signature, but labelling a production receipt as sandbox gains nothing.
  package static func named(in file: Receipt) -> String? {
    if file.style == .unified { return file.environment }
    let sandbox = EnvironmentName.sandbox.description
    return file.unsignedEnvironment == sandbox ? sandbox : nil
  }

  /// R1: `ProductionSandbox` is Sandbox. A transaction receipt that names Sandbox is Sandbox; any other has the
  /// environment `Unknown`.
  package static func environment(of file: Receipt) -> String {
    guard let named = named(in: file) else {
      return file.style == .transaction ? "\(unknown)" : EnvironmentName.production.description
    }
    return named == "\(productionSandbox)" ? EnvironmentName.sandbox.description : named
  }
}
