// transactions.fetched: what one call of the App Store Server API gave.
package import Base

/// The content of the event that records one page of an answer, or the error that settles a question.
package struct TransactionsFetched: Sendable {
  /// How many signed objects each list of an event holds at most.
  package static let objectCountMax = 1000

  /// Which call it was.
  package enum Call: String, CaseIterable, Sendable {
    case history
    case transaction
    case statuses
    case refundLookup = "refund_lookup"
    case notificationHistory = "notification_history"

    init?(_ word: JSONString) {
      self.init(rawValue: word.string)
    }
  }

  package var appFamilyID: String
  /// The page's.
  package var bundleID: String
  /// `Production` or `Sandbox`.
  package var environment: String
  /// When the answer came, in epoch milliseconds.
  package var occurredAtMs: Int64
  package var call: Call
  /// The host that answered, with its port unless it is the scheme's own.
  package var host: String
  /// The transaction that was asked about; nil for a notification history.
  package var transactionID: String?
  /// The range of a notification history, in epoch milliseconds.
  package var fromMs: Int64?
  package var toMs: Int64?
  /// What the next page, or a later call for what is new, is asked with.
  package var revision: String?
  /// The App Store's number of the error that settles the question.
  package var errorCode: Int64?
  /// Whether a next page follows.
  package var hasMore: Bool
  /// At most `objectCountMax`, in the order of the page.
  package var transactions: [SignedObjectRecord]
  package var renewals: [SignedObjectRecord]

  package init(
    appFamilyID: String, bundleID: String, environment: String, occurredAtMs: Int64, call: Call,
    host: String, transactionID: String? = nil, hasMore: Bool = false,
    transactions: [SignedObjectRecord] = [], renewals: [SignedObjectRecord] = []
  ) {
    self.appFamilyID = appFamilyID
    self.bundleID = bundleID
    self.environment = environment
    self.occurredAtMs = occurredAtMs
    self.call = call
    self.host = host
    self.transactionID = transactionID
    self.hasMore = hasMore
    self.transactions = transactions
    self.renewals = renewals
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.reserve((transactions + renewals).reduce(640) { $0 + $1.byteCount })
    writer.beginObject()
    writer.member("app_family_id", appFamilyID)
    writer.member("bundle_id", bundleID)
    writer.member("environment", environment)
    writer.member("occurred_at", Timestamp.fixedText(ms: occurredAtMs))
    writer.member("call", call.rawValue)
    writer.member("host", host)
    writer.member("transaction_id", ifPresent: transactionID)
    writer.member("from", ifPresent: fromMs.map { Timestamp.fixedText(ms: $0) })
    writer.member("to", ifPresent: toMs.map { Timestamp.fixedText(ms: $0) })
    writer.member("revision", ifPresent: revision)
    writer.member("error_code", ifPresent: errorCode)
    writer.key("has_more")
    writer.boolean(hasMore)
    func list(_ name: StaticString, _ objects: [SignedObjectRecord]) {
      writer.key(name)
      writer.beginArray()
      for object in objects { object.write(to: &writer) }
      writer.endArray()
    }
    list("transactions", transactions)
    list("renewals", renewals)
    writer.endObject()
    return writer.bytes
  }
}

/// A fetched page as the fold reads it: its members point into the event's bytes.
package struct TransactionsFetchedView {
  package private(set) var appFamilyID: JSONString?
  package private(set) var bundleID: JSONString?
  package private(set) var environment: JSONString?
  /// Epoch milliseconds; nil if the event does not contain it. So are `fromMs` and `toMs`.
  package private(set) var occurredAtMs: Int64?
  package private(set) var call = TransactionsFetched.Call.history
  package private(set) var host: JSONString?
  package private(set) var transactionID: JSONString?
  package private(set) var fromMs: Int64?
  package private(set) var toMs: Int64?
  package private(set) var revision: JSONString?
  package private(set) var errorCode: Int64?
  package private(set) var hasMore = false
  package private(set) var transactions: [SignedObjectView] = []
  package private(set) var renewals: [SignedObjectView] = []

  /// The members in the catalogue's order.
  package static let members = [
    "app_family_id", "bundle_id", "environment", "occurred_at", "call", "host", "transaction_id",
    "from", "to", "revision", "error_code", "has_more", "transactions", "renewals",
  ]
  private static var required: UInt32 { 0b11_1000_0011_1111 }

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
    } catch { throw .malformed(.transactionsFetched, error) }
    try review.check(.transactionsFetched, required: Self.required, Self.members)
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    switch key.raw.count {
    case 8 where key == "has_more":
      let isBoolean = try cursor.kind() == .boolean
      if isBoolean { hasMore = try cursor.readBoolean() } else { try cursor.skipValue() }
      review.mark(11, isRight: isBoolean)
    case 8 where key == "renewals":
      let list = try SignedObjectView.list(
        &cursor, max: TransactionsFetched.objectCountMax, isRedacted: isRedacted)
      renewals = list ?? []
      review.mark(13, isRight: list != nil)
    case 10 where key == "error_code":
      errorCode = try cursor.readIntegerOrSkip()
      review.mark(10, isRight: errorCode != nil)
    case 12 where key == "transactions":
      let list = try SignedObjectView.list(
        &cursor, max: TransactionsFetched.objectCountMax, isRedacted: isRedacted)
      transactions = list ?? []
      review.mark(12, isRight: list != nil)
    default: try readText(key, &cursor, &review)
    }
  }

  private mutating func readText(
    _ key: JSONString, _ cursor: inout JSONCursor, _ review: inout MemberValidator
  ) throws(JSONError) {
    let text = try cursor.readStringOrSkip()
    switch key.raw.count {
    case 2 where key == "to":
      toMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(8, isRight: toMs != nil)
    case 4 where key == "call":
      let word = text.flatMap { TransactionsFetched.Call($0) }
      call = word ?? .history
      review.mark(4, isRight: word != nil)
    case 4 where key == "from":
      fromMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(7, isRight: fromMs != nil)
    case 4 where key == "host":
      host = text
      review.mark(5, isRight: text.map { !$0.raw.isEmpty } ?? false)
    case 8 where key == "revision":
      revision = text
      review.mark(9, isRight: text != nil)
    case 9 where key == "bundle_id":
      bundleID = text
      review.mark(1, isRight: text != nil)
    case 11 where key == "environment":
      environment = text
      let isApples = text.map { $0 == "Production" || $0 == "Sandbox" } ?? false
      review.mark(2, isRight: isApples)
    case 11 where key == "occurred_at":
      occurredAtMs = text.flatMap { Timestamp.parseFixed($0.raw) }
      review.mark(3, isRight: occurredAtMs != nil)
    case 13 where key == "app_family_id":
      appFamilyID = text
      review.mark(0, isRight: text.map { EventUUID.isOne($0.raw) } ?? false)
    case 14 where key == "transaction_id":
      transactionID = text
      review.mark(6, isRight: text != nil)
    default: break
    }
  }
}
