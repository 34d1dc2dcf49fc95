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

  /// The members, in the catalogue's order.
  package enum Member: MemberName, EventMember {
    case appFamilyID = "app_family_id"
    case bundleID = "bundle_id"
    case environment = "environment"
    case occurredAt = "occurred_at"
    case call = "call"
    case host = "host"
    case transactionID = "transaction_id"
    case from = "from"
    case to = "to"
    case revision = "revision"
    case errorCode = "error_code"
    case hasMore = "has_more"
    case transactions = "transactions"
    case renewals = "renewals"
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
    writer.member(Member.appFamilyID.name, appFamilyID)
    writer.member(Member.bundleID.name, bundleID)
    writer.member(Member.environment.name, environment)
    writer.member(Member.occurredAt.name, Timestamp.fixedText(ms: occurredAtMs))
    writer.member(Member.call.name, call.rawValue)
    writer.member(Member.host.name, host)
    writer.member(Member.transactionID.name, ifPresent: transactionID)
    if let fromMs { writer.member(Member.from.name, Timestamp.fixedText(ms: fromMs)) }
    if let toMs { writer.member(Member.to.name, Timestamp.fixedText(ms: toMs)) }
    writer.member(Member.revision.name, ifPresent: revision)
    writer.member(Member.errorCode.name, ifPresent: errorCode)
    writer.key(Member.hasMore.name)
    writer.boolean(hasMore)
    writer.key(Member.transactions.name)
    transactions.write(to: &writer)
    writer.key(Member.renewals.name)
    renewals.write(to: &writer)
    writer.endObject()
    return writer.bytes
  }
}

/// A fetched page as the fold reads it: its members point into the event's bytes.
package struct TransactionsFetchedView: EventView {
  typealias Member = TransactionsFetched.Member

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

  private let isRedacted: Bool

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter isRedacted: whether the data is what a redaction kept.
  package init(data: JSONBytes, isRedacted: Bool = false) throws(EventError) {
    self.isRedacted = isRedacted
    try read(
      data, of: .transactionsFetched,
      required: .through(.host).with(.hasMore).with(.transactions).with(.renewals))
  }

  mutating func read(_ member: Member, _ cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch member {
    case .appFamilyID: return try cursor.read(uuid: &appFamilyID)
    case .bundleID: return try cursor.read(&bundleID)
    case .environment:
      environment = try cursor.readStringOrSkip()
      return environment == "Production" || environment == "Sandbox"
    case .occurredAt: return try cursor.read(timeMs: &occurredAtMs)
    case .call:
      let word = try cursor.readStringOrSkip().flatMap { TransactionsFetched.Call($0) }
      call = word ?? .history
      return word != nil
    case .host: return try cursor.read(nonEmpty: &host)
    case .transactionID: return try cursor.read(&transactionID)
    case .from: return try cursor.read(timeMs: &fromMs)
    case .to: return try cursor.read(timeMs: &toMs)
    case .revision: return try cursor.read(&revision)
    case .errorCode: return try cursor.read(&errorCode)
    case .hasMore:
      let isBoolean = try cursor.kind() == .boolean
      if isBoolean { hasMore = try cursor.readBoolean() } else { try cursor.skipValue() }
      return isBoolean
    case .transactions: return try read(&transactions, &cursor)
    case .renewals: return try read(&renewals, &cursor)
    }
  }

  private func read(
    _ objects: inout [SignedObjectView], _ cursor: inout JSONCursor
  ) throws(JSONError) -> Bool {
    let list = try SignedObjectView.list(
      &cursor, max: TransactionsFetched.objectCountMax, isRedacted: isRedacted)
    objects = list ?? []
    return list != nil
  }
}
