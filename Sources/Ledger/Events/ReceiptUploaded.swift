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

  /// The members, in the catalogue's order; `receipt` is the last in an event.
  package enum Member: MemberName, EventMember {
    case receiptID = "receipt_id"
    case appFamilyID = "app_family_id"
    case style = "style"
    case bundleID = "bundle_id"
    case receiptSHA256 = "receipt_sha256"
    case occurredAt = "occurred_at"
    case via = "via"
    case line = "line"
    case lineSHA256 = "line_sha256"
    case countryCode = "country_code"
    case identifierForVendor = "identifier_for_vendor"
    case userIdentifier = "user_identifier"
    case ipAddress = "ip_address"
    case metadata = "metadata"
    case receipt = "receipt"
    /// Of redacted events alone.
    case receiptUntil = "receipt_until"
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
    writer.member(Member.receiptID.name, receiptID)
    writer.member(Member.appFamilyID.name, appFamilyID)
    writer.member(Member.style.name, style)
    writer.member(Member.bundleID.name, bundleID)
    writer.member(Member.receiptSHA256.name, receiptSHA256Hex)
    writer.member(Member.occurredAt.name, Timestamp.fixedText(ms: occurredAtMs))
    writeRequestMembers(to: &writer)
    writer.key(Member.receipt.name)
    write(&writer)
    writer.endObject()
    return writer.bytes
  }
}

/// An upload as the fold reads it: its members point into the event's bytes.
package struct ReceiptUploadedView: EventView {
  typealias Member = ReceiptUploaded.Member

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

  private let isRedacted: Bool
  private let isReduced: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameters:
  ///   - isRedacted: whether the data is what a redaction kept.
  ///   - version: the event's.
  package init(data: JSONBytes, isRedacted: Bool = false, version: Int = 1) throws(EventError) {
    self.isRedacted = isRedacted
    isReduced = version == ReceiptUploaded.reducedVersion
    // A redacted event may have neither the receipt nor its SHA-256.
    let required = MemberSet<Member>.through(.via)
    try read(
      data, of: .receiptUploaded,
      required: isRedacted ? required.without(.receiptSHA256) : required.with(.receipt))
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

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .receiptID: return try cursor.read(uuid: &receiptID)
    case .appFamilyID: return try cursor.read(uuid: &appFamilyID)
    case .style:
      style = try cursor.readStringOrSkip()
      return style == "unified" || style == "transaction"
    case .bundleID: return try cursor.read(&bundleID)
    case .receiptSHA256: return try cursor.read(&receiptSHA256Hex)
    case .occurredAt: return try cursor.read(timeMs: &occurredAtMs)
    case .via:
      let word = try cursor.readStringOrSkip()
      isImport = word == "import"
      return isImport || word == "http"
    case .line: return try cursor.read(&line)
    case .lineSHA256: return try cursor.read(&lineSHA256Hex)
    case .countryCode: return try cursor.read(possiblyEmpty: &countryCode)
    case .identifierForVendor: return try cursor.read(&identifierForVendor)
    case .userIdentifier: return try cursor.read(&userIdentifier)
    case .ipAddress: return try cursor.read(&ipAddress)
    case .metadata: return try cursor.read(object: &metadata)
    case .receipt:
      // It is base64; a caller that needs it decodes it strictly.
      let last = try cursor.readLast()
      if isRedacted || isReduced, let facts = Self.lastObject(last) {
        (lastMember, hasFacts) = (JSONString(raw: facts, hasEscapes: false), true)
      } else if !isReduced {
        lastMember = Self.lastString(last)
      }
      return lastMember != nil
    case .receiptUntil:
      let isValid = try cursor.read(timeMs: &receiptUntilMs)
      if !isRedacted { receiptUntilMs = nil }
      return isValid || !isRedacted
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
    typealias Member = ReceiptUploaded.Member
    origin.writeMembers(to: &writer)
    writer.member(Member.countryCode.name, ifPresent: countryCode)
    writer.member(Member.identifierForVendor.name, ifPresent: identifierForVendor)
    writer.member(Member.userIdentifier.name, ifPresent: userIdentifier)
    writer.member(Member.ipAddress.name, ifPresent: ipAddress)
    if let metadata { writer.member(Member.metadata.name, json: metadata) }
  }
}

extension ReceiptUploaded.Origin {
  /// Writes `via` and, for an import, the line: other types call these members the same.
  func writeMembers(to writer: inout JSONWriter) {
    typealias Member = ReceiptUploaded.Member
    switch self {
    case .http: writer.member(Member.via.name, "http")
    case .importLine(let number, let sha256Hex):
      writer.member(Member.via.name, "import")
      writer.member(Member.line.name, number)
      writer.member(Member.lineSHA256.name, sha256Hex)
    case .fetch: writer.member(Member.via.name, "fetch")
    }
  }
}
