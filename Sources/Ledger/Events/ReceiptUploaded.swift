// receipt.uploaded: one upload of a receipt, with the request's optional fields.
package import Base

/// The content of an upload's event.
package struct ReceiptUploaded {
  /// How an upload reached the ledger.
  package enum Origin: Equatable, Sendable {
    case http
    /// A line of an import file: its number from 1, and the SHA-256 (hex) of its bytes without the line end.
    case importLine(number: Int, sha256Hex: String)
    /// A call of the App Store Server API; only notifications come so.
    case fetch
  }

  /// The version of an upload with facts in place of its receipt, a forgery's; that of all others is 1.
  package static let reducedVersion = 2

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

  /// The event's data. The receipt comes last, so that a reader that does not need it can stop before it.
  /// - Parameter receipt: the receipt's normalised base64.
  package func data(receipt: JSONBytes) -> [UInt8] {
    data(receipt: receipt) { $0.string(receipt) }
  }

  /// The data in `reducedVersion`.
  /// - Parameter facts: one JSON object.
  package func data(facts: JSONBytes) -> [UInt8] {
    data(receipt: facts) { $0.raw(facts) }
  }

  private func data(receipt: JSONBytes, write: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(receipt.count + (metadata?.count ?? 0) + 640)
    writer.beginObject()
    writer.member("receipt_id", receiptID)
    writer.member("app_family_id", appFamilyID)
    writer.member("style", style)
    writer.member("bundle_id", bundleID)
    writer.member("receipt_sha256", receiptSHA256Hex)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    writeRequestMembers(to: &writer)
    writer.key("receipt")
    write(&writer)
    writer.endObject()
    return writer.bytes
  }
}

/// An upload as the fold reads it: its members point into the event's bytes.
package struct ReceiptUploadedView {
  package private(set) var receiptID: JSONString?
  package private(set) var appFamilyID: JSONString?
  package private(set) var style: JSONString?
  package private(set) var bundleID: JSONString?
  package private(set) var receiptSHA256Hex: JSONString?
  /// Epoch milliseconds; nil if the event does not contain it.
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
  /// The receipt's base64; nil if the event has facts or nothing in its place.
  package var receipt: JSONString? { hasFacts ? nil : lastMember }
  /// What a redacted event, or one of a forgery, kept of the receipt, one JSON object.
  package var receiptFacts: JSONBytes? { hasFacts ? lastMember?.raw : nil }
  /// Of a redacted event that keeps its receipt until the App Store replies: until when at most, in epoch milliseconds.
  package private(set) var receiptUntilMs: Int64?
  private var lastMember: JSONString?
  private var hasFacts = false

  /// The members in the catalogue's order; those up to `via`, and `receipt`, are required. The last is one of redacted
  /// events, and stands before `receipt`.
  package static let members = [
    "receipt_id", "app_family_id", "style", "bundle_id", "receipt_sha256", "occurred_at", "via",
    "line", "line_sha256", "country_code", "identifier_for_vendor", "user_identifier",
    "ip_address", "metadata", "receipt", "receipt_until",
  ]
  private static var required: UInt32 { 0b100_0000_0111_1111 }
  /// A redacted event may have neither the receipt nor its SHA-256.
  private static var requiredIfRedacted: UInt32 { 0b000_0000_0110_1111 }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameters:
  ///   - isRedacted: whether the data is what a redaction kept.
  ///   - version: the event's.
  package init(data: JSONBytes, isRedacted: Bool = false, version: Int = 1) throws(EventError) {
    var review = MemberValidator()
    let isReduced = version == ReceiptUploaded.reducedVersion
    do throws(JSONError) { try read(data, isRedacted, isReduced, &review) } catch {
      throw .malformed(.receiptUploaded, error)
    }
    try review.check(
      .receiptUploaded, required: isRedacted ? Self.requiredIfRedacted : Self.required,
      Self.members)
  }

  private mutating func read(
    _ data: JSONBytes, _ isRedacted: Bool, _ isReduced: Bool, _ review: inout MemberValidator
  ) throws(JSONError) {
    var cursor = JSONCursor(data)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let length = key.raw.count
      if length == 7, key == "receipt" {
        // The receipt is last and is base64; a caller that needs it decodes it strictly.
        let rest = try cursor.readRest()
        if isRedacted || isReduced, let facts = Self.lastObject(rest) {
          (lastMember, hasFacts) = (JSONString(raw: facts, hasEscapes: false), true)
        } else if !isReduced {
          lastMember = Self.lastString(rest)
        }
        review.mark(14, isRight: lastMember != nil)
        return
      } else if length == 8, key == "metadata" {
        let isObject = try cursor.kind() == .object
        metadata = try cursor.readRaw()
        review.mark(13, isRight: isObject)
      } else if isRedacted, length == 13, key == "receipt_until" {
        receiptUntilMs = try cursor.readStringOrSkip().flatMap { Timestamp.parseFixed($0.raw) }
        review.mark(15, isRight: receiptUntilMs != nil)
      } else if length == 4, key == "line" {
        line = try cursor.readIntegerOrSkip()
        review.mark(7, isRight: line != nil)
      } else {
        try readText(key, &cursor, &review)
      }
    }
  }

  /// The string that forms the rest of the data; nil if the rest is anything else.
  private static func lastString(_ rest: JSONBytes) -> JSONString? {
    var cursor = JSONCursor(rest)
    guard let text = try? cursor.readString(), cursor.offset == rest.count else { return nil }
    return text
  }

  /// The object that forms the rest of the data; nil if the rest is anything else.
  private static func lastObject(_ rest: JSONBytes) -> JSONBytes? {
    var cursor = JSONCursor(rest)
    guard (try? cursor.kind()) == .object, let object = try? cursor.readRaw(),
      cursor.offset == rest.count
    else { return nil }
    return object
  }

  private mutating func readText(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    let text = try cursor.readStringOrSkip()
    // The length alone distinguishes most keys.
    switch key.raw.count {
    case 3 where key == "via":
      isImport = text.map { $0 == "import" } ?? false
      review.mark(6, isRight: isImport || text.map { $0 == "http" } ?? false)
    case 5 where key == "style":
      style = text
      review.mark(2, isRight: text.map { $0 == "unified" || $0 == "transaction" } ?? false)
    case 9 where key == "bundle_id":
      bundleID = text
      review.mark(3, isRight: text != nil)
    case 10 where key == "receipt_id":
      receiptID = text
      review.mark(0, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 10 where key == "ip_address":
      ipAddress = text
      review.mark(12, isRight: text != nil)
    case 11 where key == "occurred_at":
      occurredAtMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(5, isRight: occurredAtMs != nil)
    case 11 where key == "line_sha256":
      lineSHA256Hex = text
      review.mark(8, isRight: text != nil)
    case 12 where key == "country_code":
      countryCode = text.flatMap { $0.raw.isEmpty ? nil : $0 }
      review.mark(9, isRight: text != nil)
    case 13 where key == "app_family_id":
      appFamilyID = text
      review.mark(1, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 14 where key == "receipt_sha256":
      receiptSHA256Hex = text
      review.mark(4, isRight: text != nil)
    case 15 where key == "user_identifier":
      userIdentifier = text
      review.mark(11, isRight: text != nil)
    case 21 where key == "identifier_for_vendor":
      identifierForVendor = text
      review.mark(10, isRight: text != nil)
    default: break
    }
  }
}

// MARK: - What the two types of uploads have in common: where an upload came from, and the request's optional fields

/// The optional fields of an upload, as the fold reads them: they point into the event's bytes.
package protocol UploadView {
  /// The line's number in the import file, from 1.
  var line: Int64? { get }
  var lineSHA256Hex: JSONString? { get }
  var countryCode: JSONString? { get }
  var identifierForVendor: JSONString? { get }
  var userIdentifier: JSONString? { get }
  var ipAddress: JSONString? { get }
  /// The metadata as written, one JSON object.
  var metadata: JSONBytes? { get }
}

extension ReceiptUploadedView: UploadView {}
extension TransactionsReceivedView: UploadView {}

/// What an upload's event says about the request.
protocol UploadContent {
  var origin: ReceiptUploaded.Origin { get }
  var countryCode: String? { get }
  var identifierForVendor: String? { get }
  var userIdentifier: String? { get }
  var ipAddress: String? { get }
  var metadata: [UInt8]? { get }
}

extension ReceiptUploaded: UploadContent {}
extension TransactionsReceived: UploadContent {}

extension UploadContent {
  /// Writes `via` to `metadata`, in the catalogue's order.
  func writeRequestMembers(to writer: inout JSONWriter) {
    origin.writeMembers(to: &writer)
    writer.member("country_code", ifPresent: countryCode)
    writer.member("identifier_for_vendor", ifPresent: identifierForVendor)
    writer.member("user_identifier", ifPresent: userIdentifier)
    writer.member("ip_address", ifPresent: ipAddress)
    guard let metadata else { return }
    writer.key("metadata")
    metadata.withUnsafeBytes { writer.raw($0) }
  }
}

extension ReceiptUploaded.Origin {
  /// Writes `via` and, for an import, the line.
  func writeMembers(to writer: inout JSONWriter) {
    switch self {
    case .http:
      writer.member("via", "http")
    case .importLine(let number, let sha256Hex):
      writer.member("via", "import")
      writer.member("line", number)
      writer.member("line_sha256", sha256Hex)
    case .fetch:
      writer.member("via", "fetch")
    }
  }
}
