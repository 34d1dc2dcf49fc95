// transactions.received: an upload of signed transactions, with the request's optional fields.
package import Base

/// The content of an event of signed transactions.
package struct TransactionsReceived: Sendable {
  /// How many transactions an event holds.
  package static let transactionCounts = 1...100
  /// The version of an upload with `environment`, which older programs would pass over; that of all others is 1.
  package static let statedVersion = 2

  /// Why signed transactions count for nothing.
  package enum FraudReason: String, CaseIterable, Sendable {
    case signatureInvalid = "signature_invalid"
    case bundleIDMismatch = "bundle_id_mismatch"
  }

  /// `uploadID(of:in:)` of its signed objects.
  package var uploadID: String
  package var appFamilyID: String
  /// When the upload was received, in epoch milliseconds.
  package var occurredAtMs: Int64
  package var origin: ReceiptUploaded.Origin
  /// ISO 3166-1 alpha-2, upper case.
  package var countryCode: String?
  package var identifierForVendor: String?
  package var userIdentifier: String?
  package var ipAddress: String?
  /// One JSON object without white space, or nil.
  package var metadata: [UInt8]?
  /// Nil if the upload is valid.
  package var fraudReason: FraudReason?
  /// As many as `transactionCounts`, in the order of the list.
  package var transactions: [SignedObjectRecord]
  package var appTransaction: SignedObjectRecord?
  /// `Production` or `Sandbox`: an operator's word about objects that name none. Nil if each names its own.
  package var environment: String?

  /// The event's version.
  package var version: Int { environment == nil ? 1 : Self.statedVersion }

  package init(
    uploadID: String, appFamilyID: String, occurredAtMs: Int64, origin: ReceiptUploaded.Origin,
    transactions: [SignedObjectRecord], appTransaction: SignedObjectRecord? = nil
  ) {
    self.uploadID = uploadID
    self.appFamilyID = appFamilyID
    self.occurredAtMs = occurredAtMs
    self.origin = origin
    self.transactions = transactions
    self.appTransaction = appTransaction
  }

  /// The id of an upload: UUID version 5 in the app family, named by the hex SHA-256 of the objects' texts joined by
  /// line feeds.
  /// - Parameter texts: the objects as sent, in compact serialization; the app transaction, if there is one, last.
  package static func uploadID(of texts: [[UInt8]], in appFamily: UUID16) -> UUID16 {
    let digest = Array(texts.joined(separator: [0x0A])).withUnsafeBytes { SHA256.hash($0) }
    return Array(digest.hex.utf8).withUnsafeBytes { UUID16.named($0, in: appFamily) }
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    let objects = transactions + (appTransaction.map { [$0] } ?? [])
    writer.reserve(objects.reduce((metadata?.count ?? 0) + 640) { $0 + $1.byteCount })
    writer.beginObject()
    writer.member("upload_id", uploadID)
    writer.member("app_family_id", appFamilyID)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    writeRequestMembers(to: &writer)
    writer.member("outcome", fraudReason == nil ? "valid" : "invalid")
    writer.member("fraud_reason", ifPresent: fraudReason?.rawValue)
    writer.key("transactions")
    writer.beginArray()
    for transaction in transactions { transaction.write(to: &writer) }
    writer.endArray()
    if let appTransaction {
      writer.key("app_transaction")
      appTransaction.write(to: &writer)
    }
    writer.member("environment", ifPresent: environment)
    writer.endObject()
    return writer.bytes
  }
}

/// An upload of signed transactions as the fold reads it: its members point into the event's bytes.
package struct TransactionsReceivedView {
  package private(set) var uploadID: JSONString?
  package private(set) var appFamilyID: JSONString?
  /// Epoch milliseconds; nil if the event does not contain it.
  package private(set) var occurredAtMs: Int64?
  package private(set) var isImport = false
  package private(set) var line: Int64?
  package private(set) var lineSHA256Hex: JSONString?
  package private(set) var countryCode: JSONString?
  package private(set) var identifierForVendor: JSONString?
  package private(set) var userIdentifier: JSONString?
  package private(set) var ipAddress: JSONString?
  package private(set) var metadata: JSONBytes?
  package private(set) var isValid = false
  package private(set) var fraudReason: JSONString?
  package private(set) var transactions: [SignedObjectView] = []
  package private(set) var appTransaction: SignedObjectView?
  /// As an operator says of objects that name none.
  package private(set) var environment: JSONString?

  /// The members in the catalogue's order.
  package static let members = [
    "upload_id", "app_family_id", "occurred_at", "via", "line", "line_sha256", "country_code",
    "identifier_for_vendor", "user_identifier", "ip_address", "metadata", "outcome",
    "fraud_reason", "transactions", "app_transaction", "environment",
  ]
  private static var required: UInt32 { 0b010_1000_0000_1111 }

  private let isRedacted: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter isRedacted: whether the data is what a redaction kept.
  package init(data: JSONBytes, isRedacted: Bool = false) throws(EventError) {
    self.isRedacted = isRedacted
    var review = MemberValidator()
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      try cursor.beginObject()
      while let key = try cursor.nextKey() { try read(key, &cursor, &review) }
    } catch { throw .malformed(.transactionsReceived, error) }
    try review.check(.transactionsReceived, required: Self.required, Self.members)
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    switch key.raw.count {
    case 4 where key == "line":
      line = try cursor.readIntegerOrSkip()
      review.mark(4, isRight: line != nil)
    case 8 where key == "metadata":
      let isObject = try cursor.kind() == .object
      metadata = try cursor.readRaw()
      review.mark(10, isRight: isObject)
    case 12 where key == "transactions":
      let list = try SignedObjectView.list(
        &cursor, max: TransactionsReceived.transactionCounts.upperBound, isRedacted: isRedacted)
      transactions = list ?? []
      review.mark(13, isRight: !transactions.isEmpty)
    case 15 where key == "app_transaction":
      appTransaction = try SignedObjectView.object(&cursor, isRedacted: isRedacted)
      review.mark(14, isRight: appTransaction != nil)
    default: try readText(key, &cursor, &review)
    }
  }

  private mutating func readText(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    let text = try cursor.readStringOrSkip()
    // The length alone distinguishes most keys.
    switch key.raw.count {
    case 3 where key == "via":
      isImport = text.map { $0 == "import" } ?? false
      review.mark(3, isRight: isImport || text.map { $0 == "http" } ?? false)
    case 7 where key == "outcome":
      isValid = text.map { $0 == "valid" } ?? false
      review.mark(11, isRight: isValid || text.map { $0 == "invalid" } ?? false)
    case 9 where key == "upload_id":
      uploadID = text
      review.mark(0, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 10 where key == "ip_address":
      ipAddress = text
      review.mark(9, isRight: text != nil)
    case 11 where key == "occurred_at":
      occurredAtMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(2, isRight: occurredAtMs != nil)
    case 11 where key == "environment":
      environment = text
      review.mark(15, isRight: text.map { $0 == "Production" || $0 == "Sandbox" } ?? false)
    case 11 where key == "line_sha256":
      lineSHA256Hex = text
      review.mark(5, isRight: text != nil)
    case 12 where key == "country_code":
      countryCode = text.flatMap { $0.raw.isEmpty ? nil : $0 }
      review.mark(6, isRight: text != nil)
    case 12 where key == "fraud_reason":
      fraudReason = text
      review.mark(12, isRight: fraudReason != nil)
    case 13 where key == "app_family_id":
      appFamilyID = text
      review.mark(1, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 15 where key == "user_identifier":
      userIdentifier = text
      review.mark(8, isRight: text != nil)
    case 21 where key == "identifier_for_vendor":
      identifierForVendor = text
      review.mark(7, isRight: text != nil)
    default: break
    }
  }

  /// The signed objects, the app transaction last.
  package var objects: [SignedObjectView] { transactions + (appTransaction.map { [$0] } ?? []) }
}
