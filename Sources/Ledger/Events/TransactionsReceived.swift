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

  /// The members, in the catalogue's order.
  package enum Member: MemberName, EventMember {
    case uploadID = "upload_id"
    case appFamilyID = "app_family_id"
    case occurredAt = "occurred_at"
    case via = "via"
    case line = "line"
    case lineSHA256 = "line_sha256"
    case countryCode = "country_code"
    case identifierForVendor = "identifier_for_vendor"
    case userIdentifier = "user_identifier"
    case ipAddress = "ip_address"
    case metadata = "metadata"
    case outcome = "outcome"
    case fraudReason = "fraud_reason"
    case transactions = "transactions"
    case appTransaction = "app_transaction"
    case environment = "environment"
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
    writer.member(Member.uploadID.name, uploadID)
    writer.member(Member.appFamilyID.name, appFamilyID)
    writer.member(Member.occurredAt.name, Timestamp.fixedText(ms: occurredAtMs))
    writeRequestMembers(to: &writer)
    writer.member(Member.outcome.name, fraudReason == nil ? "valid" : "invalid")
    writer.member(Member.fraudReason.name, ifPresent: fraudReason?.rawValue)
    writer.key(Member.transactions.name)
    transactions.write(to: &writer)
    if let appTransaction {
      writer.key(Member.appTransaction.name)
      appTransaction.write(to: &writer)
    }
    writer.member(Member.environment.name, ifPresent: environment)
    writer.endObject()
    return writer.bytes
  }
}

/// An upload of signed transactions as the fold reads it: its members point into the event's bytes.
package struct TransactionsReceivedView: EventView {
  typealias Member = TransactionsReceived.Member

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

  private let isRedacted: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter isRedacted: whether the data is what a redaction kept.
  package init(data: JSONBytes, isRedacted: Bool = false) throws(EventError) {
    self.isRedacted = isRedacted
    try read(
      data, of: .transactionsReceived,
      required: .through(.via).with(.outcome).with(.transactions))
  }

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .uploadID: return try cursor.read(uuid: &uploadID)
    case .appFamilyID: return try cursor.read(uuid: &appFamilyID)
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
    case .outcome:
      let word = try cursor.readStringOrSkip()
      isValid = word == "valid"
      return isValid || word == "invalid"
    case .fraudReason: return try cursor.read(&fraudReason)
    case .transactions:
      let max = TransactionsReceived.transactionCounts.upperBound
      transactions = try SignedObjectView.list(&cursor, max: max, isRedacted: isRedacted) ?? []
      return !transactions.isEmpty
    case .appTransaction:
      appTransaction = try SignedObjectView.object(&cursor, isRedacted: isRedacted)
      return appTransaction != nil
    case .environment:
      environment = try cursor.readStringOrSkip()
      return environment == "Production" || environment == "Sandbox"
    }
  }

  /// The signed objects, the app transaction last.
  package var objects: [SignedObjectView] { transactions + (appTransaction.map { [$0] } ?? []) }
}
