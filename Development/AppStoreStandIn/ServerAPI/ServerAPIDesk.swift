// The App Store Server API without its misbehaviour: a call in, an answer's body out.
import AppStore
package import AppStoreAuthority
import Base

/// What the stand-in needs to answer the App Store Server API.
package struct ServerAPIOptions: Sendable {
  /// Signs what the answers hold.
  package var authority: SignedObjectAuthority
  package var customers: CustomerReceipts
  package var customerCount: Int
  /// The app that all of them bought from.
  package var bundleID: String
  /// How many purchases each customer has made; nil for those of the first receipt, 2 to 5.
  package var transactionCount: Int?
  /// Whose tokens are good.
  package var key: SigningKey
  /// Of each environment; nil for no limit.
  package var callsPerSecond: Int?
  /// Who is notified of tests, and of what control requests make happen.
  package var notifications: NotificationTarget?

  package init(
    authority: SignedObjectAuthority, customers: CustomerReceipts, customerCount: Int,
    bundleID: String, key: SigningKey
  ) {
    self.authority = authority
    self.customers = customers
    self.customerCount = customerCount
    self.bundleID = bundleID
    self.key = key
  }
}

/// What came with a call.
struct ServerAPIRequest: Sendable {
  let call: ServerAPICall
  let environment: AppStoreEndpoint
  /// The header `Authorization`.
  var authorization: String?
  var revision: String?
  var sort: String?
  var paginationToken: String?
  /// Each `status` of the query.
  var statuses: [String] = []
  var body: [UInt8] = []
}

/// Answers calls about invented customers. Nothing of them is kept but numbers: payloads are made and signed for each
/// call.
struct ServerAPIDesk: Sendable {
  let options: ServerAPIOptions
  let sales: CustomerTransactions
  let index: CustomerIndex
  let token: BearerToken
  let signer: ObjectSigner
  /// Nil where there is nobody to notify.
  var dispatcher: NotificationDispatcher?

  static let pageCount = 20

  init(_ options: ServerAPIOptions) {
    self.options = options
    sales = CustomerTransactions(customers: options.customers)
    index = CustomerIndex(
      sales, count: options.customerCount, transactionCount: options.transactionCount)
    token = BearerToken(key: options.key, bundleID: options.bundleID)
    signer = ObjectSigner(authority: options.authority)
  }

  /// One call's moment: what was asked of the stand-in, and its times.
  struct Moment: Sendable {
    let memory: StoreMemory
    /// The stand-in's time: what has happened.
    let nowMs: Int64
    /// The machine's: when answers are signed, since nobody takes what is signed in the future.
    let signedMs: Int64
  }

  /// - Throws: `ServerAPIError`, or `AuthorityError` where nothing can be signed.
  func answer(_ request: ServerAPIRequest, _ moment: Moment) throws -> [UInt8] {
    switch request.call {
    case .history(let id): return try history(try owner(id, request), request, moment) { _ in true }
    case .refundLookup(let id):
      return try history(try owner(id, request), request, moment) {
        $0.transaction.revocation != nil
      }
    case .transaction(let id): return try transaction(id, try owner(id, request), moment)
    case .statuses(let id): return try statuses(try owner(id, request), request, moment)
    case .notificationHistory: return try notificationHistory(request, moment)
    case .requestTest: return try requestTest(request, moment)
    case .testStatus(let token): return try testStatus(token, request)
    }
  }

  /// Whose transaction it is.
  private func owner(
    _ id: String, _ request: ServerAPIRequest
  ) throws(ServerAPIError) -> CustomerIndex.Owner {
    guard !id.isEmpty, id.utf8.count <= 20, id.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else {
      throw ServerAPIError.transactionID
    }
    guard let number = UInt64(id), let owner = index.owner(of: number),
      owner.isSandbox == (request.environment == .sandbox)
    else { throw ServerAPIError.noTransaction }
    return owner
  }

  func books(_ customer: Int32, _ moment: Moment) -> CustomerBooks {
    CustomerBooks(
      sales, customer: Int(customer), transactionCount: options.transactionCount,
      memory: moment.memory, nowMs: moment.nowMs)
  }

  func signed(_ transaction: TransactionPayload, atMs: Int64) throws(AuthorityError) -> [UInt8] {
    var transaction = transaction
    transaction.signedMs = atMs
    return try signer.sign(transaction.json)
  }

  func signed(_ renewal: RenewalPayload, atMs: Int64) throws(AuthorityError) -> [UInt8] {
    var renewal = renewal
    renewal.signedMs = atMs
    return try signer.sign(renewal.json)
  }

  /// Who is spoken of: the app, in which environment.
  func writeApp(_ environment: AppStoreEndpoint, _ customer: Int32, to json: inout JSONWriter) {
    json.member("bundleId", options.bundleID)
    let receipt = options.customers.receipt(customer: Int(customer), ordinal: 0)
    if environment == .production { json.member("appAppleId", AppFacts(receipt).adamID) }
    json.member("environment", environment == .sandbox ? "Sandbox" : "Production")
  }

  // MARK: Transactions

  /// A page of a customer's transactions: those that changed after what the revision names.
  private func history(
    _ owner: CustomerIndex.Owner, _ request: ServerAPIRequest, _ moment: Moment,
    _ isWanted: (TransactionStatus) -> Bool
  ) throws -> [UInt8] {
    guard request.sort ?? "ASCENDING" == "ASCENDING" else { throw ServerAPIError.sort }
    let after = try request.revision.map(Revision.init)
    let rest = books(owner.customer, moment).statuses.filter { status in
      isWanted(status) && after.map { $0.isBefore(status) } ?? true
    }
    let page = rest.prefix(Self.pageCount)
    let isHistory = if case .history = request.call { true } else { false }
    var json = JSONWriter()
    json.beginObject()
    // An empty page leaves the caller where it was.
    json.member("revision", page.last.map { Revision($0).text } ?? request.revision ?? "0_0")
    json.key("hasMore")
    json.boolean(rest.count > page.count)
    if isHistory { writeApp(request.environment, owner.customer, to: &json) }
    json.key("signedTransactions")
    json.beginArray()
    for status in page {
      try signed(status.transaction, atMs: moment.signedMs).withUnsafeBytes { json.string($0) }
    }
    json.endArray()
    json.endObject()
    return json.bytes
  }

  private func transaction(
    _ id: String, _ owner: CustomerIndex.Owner, _ moment: Moment
  ) throws -> [UInt8] {
    guard let status = books(owner.customer, moment).status(of: id) else {
      throw ServerAPIError.noTransaction
    }
    var json = JSONWriter()
    json.beginObject()
    json.member(
      "signedTransactionInfo", text: try signed(status.transaction, atMs: moment.signedMs))
    json.endObject()
    return json.bytes
  }

  private func statuses(
    _ owner: CustomerIndex.Owner, _ request: ServerAPIRequest, _ moment: Moment
  ) throws -> [UInt8] {
    let wanted = try request.statuses.map { text throws(ServerAPIError) in
      guard let status = Int(text), (1...5).contains(status) else { throw .status }
      return status
    }
    let books = books(owner.customer, moment)
    var json = JSONWriter()
    json.beginObject()
    writeApp(request.environment, owner.customer, to: &json)
    json.key("data")
    json.beginArray()
    for original in books.originals {
      guard let last = books.latest(of: original) else { continue }
      let renewal = last.renewal ?? RenewalPayload(of: last.transaction)
      let status = Incident.status(of: last.transaction, renewal, atMs: moment.nowMs) ?? 1
      guard wanted.isEmpty || wanted.contains(status) else { continue }
      json.beginObject()
      json.member("subscriptionGroupIdentifier", last.transaction.subscriptionGroup ?? "")
      json.key("lastTransactions")
      json.beginArray()
      json.beginObject()
      json.member("originalTransactionId", original)
      json.member("status", status)
      json.member("signedRenewalInfo", text: try signed(renewal, atMs: moment.signedMs))
      json.member(
        "signedTransactionInfo", text: try signed(last.transaction, atMs: moment.signedMs))
      json.endObject()
      json.endArray()
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.bytes
  }
}

/// The place in a customer's history up to which a caller knows it.
private struct Revision {
  let order: (Int64, UInt64)

  init(_ status: TransactionStatus) { order = status.order }

  init(_ text: String) throws(ServerAPIError) {
    let parts = text.split(separator: "_", omittingEmptySubsequences: false)
    guard parts.count == 2, let changedMs = Int64(parts[0]), let transaction = UInt64(parts[1])
    else { throw ServerAPIError.revision }
    order = (changedMs, transaction)
  }

  var text: String { "\(order.0)_\(order.1)" }

  func isBefore(_ status: TransactionStatus) -> Bool { order < status.order }
}

extension ServerAPIDesk {
  /// A test notification of the app.
  func test(
    _ environment: AppStoreEndpoint, uuid: String, atMs: Int64
  ) -> CustomerTransactions.Notification {
    var receipt = options.customers.receipt(customer: 0, ordinal: 0)
    receipt.environment = environment == .sandbox ? "ProductionSandbox" : "Production"
    return sales.notification(Incident("TEST", nil, nil, atMs: atMs), of: receipt, uuid: uuid)
  }

  func requestTest(_ request: ServerAPIRequest, _ moment: Moment) throws -> [UInt8] {
    guard let dispatcher else { throw ServerAPIError.noNotificationURL }
    var json = JSONWriter()
    json.beginObject()
    json.member("testNotificationToken", try dispatcher.sendTest(request.environment, moment))
    json.endObject()
    return json.bytes
  }

  func testStatus(_ token: String, _ request: ServerAPIRequest) throws -> [UInt8] {
    guard let test = dispatcher?.test(token), test.isSandbox == (request.environment == .sandbox)
    else {
      throw ServerAPIError.noTest
    }
    var json = JSONWriter()
    json.beginObject()
    json.member("signedPayload", text: test.payload)
    Self.write(test.attempts, to: &json)
    json.endObject()
    return json.bytes
  }

  static func write(_ attempts: [NotificationDispatcher.Attempt], to json: inout JSONWriter) {
    json.key("sendAttempts")
    json.beginArray()
    for attempt in attempts {
      json.beginObject()
      json.member("attemptDate", attempt.atMs)
      json.member("sendAttemptResult", attempt.result.name)
      json.endObject()
    }
    json.endArray()
  }
}
