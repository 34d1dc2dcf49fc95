// Notification history: what the App Store has told, page by page, in the order of time.
import AppStore
import AppStoreAuthority
import Base

/// What a caller wants to see of it.
private struct HistoryQuery {
  let fromMs: Int64
  let toMs: Int64
  var customer: Int32?
  var type: String?
  var subtype: String?
  /// Those alone whose last attempt failed.
  var onlyFailures = false

  init(
    _ request: ServerAPIRequest, nowMs: Int64, _ customer: (String) throws(ServerAPIError) -> Int32
  ) throws(ServerAPIError) {
    // `try?`: a body that is no JSON has no dates either.
    let body = try? JSONValue(request.body)
    guard let fromMs = body?["startDate"]?.integerValue else { throw ServerAPIError.startDate }
    guard let toMs = body?["endDate"]?.integerValue else { throw ServerAPIError.endDate }
    guard fromMs < toMs, toMs < Int64.max else { throw ServerAPIError.startAfterEnd }
    let days: Int64 = request.environment == .sandbox ? 30 : 180
    // A minute: the caller's clock decided what is just within.
    guard fromMs >= nowMs - days * dayMs - minuteMs else { throw ServerAPIError.startTooEarly }
    self.fromMs = fromMs
    self.toMs = toMs
    if let id = body?["transactionId"]?.stringValue { self.customer = try customer(id) }
    type = body?["notificationType"]?.stringValue
    subtype = body?["notificationSubtype"]?.stringValue
    onlyFailures = body?["onlyFailures"] == .boolean(true)
  }

  func takes(_ payload: NotificationPayload) -> Bool {
    if let type, type != payload.type { return false }
    if let subtype, subtype != payload.subtype { return false }
    return payload.signedMs >= fromMs && payload.signedMs <= toMs
  }
}

extension ServerAPIDesk {
  /// The pagination token is the place to go on from: among the incidents of the customers' stories, and after them
  /// what was asked for of the stand-in.
  func notificationHistory(_ request: ServerAPIRequest, _ moment: Moment) throws -> [UInt8] {
    let query = try HistoryQuery(request, nowMs: moment.nowMs) { id throws(ServerAPIError) in
      guard let owner = UInt64(id).flatMap(index.owner) else { throw ServerAPIError.noTransaction }
      return owner.customer
    }
    let end = index.told.count + moment.memory.told.count
    let stop = index.firstTold(fromMs: query.toMs + 1)
    var place = index.firstTold(fromMs: query.fromMs)
    if let token = request.paginationToken {
      guard let given = Int(token), (0...end).contains(given) else {
        throw ServerAPIError.paginationToken
      }
      place = given
    }
    var found: [CustomerTransactions.Notification] = []
    // Where the page after this one begins.
    var next = place
    while place < end, found.count <= Self.pageCount {
      if (stop..<index.told.count).contains(place) {
        place = index.told.count
        continue
      }
      let told = try notification(at: place, query, request.environment, moment)
      place += 1
      guard let told, query.takes(told.payload),
        !query.onlyFailures || attempts(of: told).last?.result.isSuccess == false
      else { continue }
      found.append(told)
      if found.count <= Self.pageCount { next = place }
    }
    return try page(found, next: next, moment)
  }

  /// The notification at a place; nil where it is of the other environment, or told later.
  private func notification(
    at place: Int, _ query: HistoryQuery, _ environment: AppStoreEndpoint, _ moment: Moment
  ) throws -> CustomerTransactions.Notification? {
    guard place < index.told.count else {
      return control(
        moment.memory.told[place - index.told.count], query, environment, moment)
    }
    let told = index.told[place]
    guard told.isSandbox == (environment == .sandbox), told.atMs <= min(query.toMs, moment.nowMs),
      query.customer.map({ $0 == told.customer }) ?? true
    else { return nil }
    return sales.notifications(customer: Int(told.customer))[Int(told.ordinal)]
  }

  /// What is told of something that was asked of the stand-in.
  private func control(
    _ told: StoreMemory.Told, _ query: HistoryQuery, _ environment: AppStoreEndpoint,
    _ moment: Moment
  ) -> CustomerTransactions.Notification? {
    guard let owner = UInt64(told.transaction).flatMap(index.owner),
      owner.isSandbox == (environment == .sandbox),
      query.customer.map({ $0 == owner.customer }) ?? true
    else { return nil }
    return notification(told, of: owner.customer, moment)
  }

  /// The notification of something that was asked of the stand-in; nil where the customer has no such transaction.
  func notification(
    _ told: StoreMemory.Told, of customer: Int32, _ moment: Moment
  ) -> CustomerTransactions.Notification? {
    let books = books(customer, moment)
    let isRenewal = told.type == "DID_RENEW" || told.type == "DID_CHANGE_RENEWAL_STATUS"
    guard
      let status = isRenewal
        ? books.latest(of: told.transaction) : books.status(of: told.transaction)
    else { return nil }
    var transaction = status.transaction
    // As it was then, whatever was asked for since.
    if told.type == "REFUND_REVERSED" { transaction.revocation = nil }
    if told.type == "REFUND", transaction.revocation == nil { return nil }
    let renewal = status.renewal ?? Self.renewal(of: transaction)
    return sales.notification(
      Incident(told.type, told.subtype, transaction, renewal, atMs: told.atMs),
      of: options.customers.receipt(customer: Int(customer), ordinal: 0), uuid: told.uuid)
  }

  private static func renewal(of transaction: TransactionPayload) -> RenewalPayload? {
    transaction.type == .autoRenewable ? RenewalPayload(of: transaction) : nil
  }

  /// Signs a notification and what lies in it, at its own time.
  func signed(
    _ told: CustomerTransactions.Notification
  ) throws(AuthorityError) -> [UInt8] {
    var payload = told.payload
    if let transaction = told.transaction {
      payload.transaction = try signer.sign(transaction.json)
    }
    if let renewal = told.renewal { payload.renewal = try signer.sign(renewal.json) }
    return try signer.sign(payload.json)
  }

  /// What became of a notification. What this process did not send counts as taken at once.
  private func attempts(of told: CustomerTransactions.Notification) -> [NotificationDispatcher
    .Attempt]
  {
    dispatcher?.attempts(of: told.payload.uuid) ?? [(told.payload.signedMs, .status(200))]
  }

  private func page(
    _ found: [CustomerTransactions.Notification], next: Int, _ moment: Moment
  ) throws -> [UInt8] {
    let hasMore = found.count > Self.pageCount
    var json = JSONWriter()
    json.beginObject()
    if hasMore { json.member("paginationToken", String(next)) }
    json.key("hasMore")
    json.boolean(hasMore)
    json.key("notificationHistory")
    json.beginArray()
    for told in found.prefix(Self.pageCount) {
      json.beginObject()
      json.member("signedPayload", text: try signed(told))
      Self.write(attempts(of: told), to: &json)
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.bytes
  }
}
