// receipt.uploaded: one upload of a receipt, with the request's optional fields.
package import JSON

/// What an upload is made of when it is recorded.
package struct ReceiptUploaded {
  /// How an upload reached the ledger.
  package enum Origin: Equatable, Sendable {
    case http
    /// A line of an import file: its number from 1, and the SHA-256 (hex) of its bytes without the line end.
    case importLine(number: Int, sha256Hex: String)
  }

  /// UUID version 5 of the receipt's content within its app family.
  package var receiptID: String
  package var appFamilyID: String
  /// `unified` or `transaction`.
  package var style: String
  package var bundleID: String
  /// SHA-256 of the decoded receipt, in hex.
  package var receiptSHA256Hex: String
  /// When the upload was received, in epoch milliseconds.
  package var occurredAtMs: Int64
  package var origin: Origin
  /// ISO 3166-1 alpha-2, upper case.
  package var countryCode: String?
  package var identifierForVendor: String?
  package var userIdentifier: String?
  package var ipAddress: String?
  /// One JSON object without white space, or nil.
  package var metadata: [UInt8]?

  package init(
    receiptID: String, appFamilyID: String, style: String, bundleID: String,
    receiptSHA256Hex: String, occurredAtMs: Int64, origin: Origin
  ) {
    self.receiptID = receiptID
    self.appFamilyID = appFamilyID
    self.style = style
    self.bundleID = bundleID
    self.receiptSHA256Hex = receiptSHA256Hex
    self.occurredAtMs = occurredAtMs
    self.origin = origin
  }

  /// The event's data. The receipt stands last, so that a reader that doesn't need it is done before it.
  /// - Parameter receipt: the receipt's normalised base64.
  package func data(receipt: JSONBytes) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(receipt.count + (metadata?.count ?? 0) + 640)
    writer.beginObject()
    writer.key("receipt_id")
    writer.string(receiptID)
    writer.key("app_family_id")
    writer.string(appFamilyID)
    writer.key("style")
    writer.string(style)
    writer.key("bundle_id")
    writer.string(bundleID)
    writer.key("receipt_sha256")
    writer.string(receiptSHA256Hex)
    writer.key("occurred_at")
    writer.string(Timestamp.string(occurredAtMs))
    switch origin {
    case .http:
      writer.key("via")
      writer.string("http")
    case .importLine(let number, let sha256Hex):
      writer.key("via")
      writer.string("import")
      writer.key("line")
      writer.integer(number)
      writer.key("line_sha256")
      writer.string(sha256Hex)
    }
    optional("country_code", countryCode, &writer)
    optional("identifier_for_vendor", identifierForVendor, &writer)
    optional("user_identifier", userIdentifier, &writer)
    optional("ip_address", ipAddress, &writer)
    if let metadata {
      writer.key("metadata")
      metadata.withUnsafeBytes { writer.raw($0) }
    }
    writer.key("receipt")
    writer.string(receipt)
    writer.endObject()
    return writer.bytes
  }

  private func optional(_ key: StaticString, _ value: String?, _ writer: inout JSONWriter) {
    guard let value else { return }
    writer.key(key)
    writer.string(value)
  }
}

/// An upload as the fold reads it: places in the event's bytes, nothing copied.
package struct ReceiptUploadedView {
  package private(set) var receiptID: JSONString?
  package private(set) var appFamilyID: JSONString?
  package private(set) var style: JSONString?
  package private(set) var bundleID: JSONString?
  package private(set) var receiptSHA256Hex: JSONString?
  /// Epoch milliseconds; nil where the event names no time of its own.
  package private(set) var occurredAtMs: Int64?
  package private(set) var isImport = false
  package private(set) var line: Int64?
  package private(set) var lineSHA256Hex: JSONString?
  package private(set) var countryCode: JSONString?
  package private(set) var identifierForVendor: JSONString?
  package private(set) var userIdentifier: JSONString?
  package private(set) var ipAddress: JSONString?
  /// The metadata as written, one JSON object.
  package private(set) var metadata: JSONBytes?
  /// The receipt's base64.
  package private(set) var receipt: JSONString?

  package init(data: JSONBytes) throws(EventError) {
    do throws(JSONError) { try read(data) } catch { throw .malformed(.receiptUploaded, error) }
  }

  private mutating func read(_ data: JSONBytes) throws(JSONError) {
    var cursor = JSONCursor(data)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let length = key.raw.count
      if length == 7, key == "receipt" {
        // It stands last and is base64: whoever wants it decodes it strictly.
        let rest = try cursor.readRest()
        guard rest.count >= 2, rest.first == 0x22, rest.last == 0x22 else {
          throw JSONError(.wrongKind, at: cursor.offset)
        }
        receipt = JSONString(raw: JSONBytes(rebasing: rest[1..<rest.count - 1]), hasEscapes: false)
        return
      } else if length == 8, key == "metadata" {
        metadata = try cursor.readRaw()
      } else if length == 4, key == "line" {
        line = try cursor.readInteger()
      } else if try cursor.kind() == .string {
        try readText(key, &cursor)
      } else {
        try cursor.skipValue()
      }
    }
  }

  private mutating func readText(
    _ key: JSONString, _ cursor: inout JSONCursor
  ) throws(JSONError) {
    let text = try cursor.readString()
    // A key's length tells most of them apart.
    switch key.raw.count {
    case 3 where key == "via": isImport = text == "import"
    case 5 where key == "style": style = text
    case 9 where key == "bundle_id": bundleID = text
    case 10 where key == "receipt_id": receiptID = text
    case 10 where key == "ip_address": ipAddress = text
    case 11 where key == "occurred_at": occurredAtMs = Timestamp.parse(text.raw)
    case 11 where key == "line_sha256": lineSHA256Hex = text
    case 12 where key == "country_code": countryCode = text
    case 13 where key == "app_family_id": appFamilyID = text
    case 14 where key == "receipt_sha256": receiptSHA256Hex = text
    case 15 where key == "user_identifier": userIdentifier = text
    case 21 where key == "identifier_for_vendor": identifierForVendor = text
    default: break
    }
  }
}
