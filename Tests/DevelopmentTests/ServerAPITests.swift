// The stand-in's App Store Server API: pages, tokens, errors, changes since a revision.
import AppStore
import AppStoreAuthority
import AppStoreStandIn
import Base
import TestSupport
import Testing

@Suite("The stand-in's App Store Server API")
struct ServerAPITests {
  func ids(_ transactions: [JSONValue]) -> [String] {
    transactions.compactMap { $0["transactionId"]?.stringValue }
  }

  @Test("a history comes in pages of 20, whole and once, whichever transaction is asked about")
  func pages() throws {
    let shop = try ServerAPIShop(customers: 2, transactions: 45)
    let known = shop.sales.statuses(customer: 0, atMs: ServerAPIShop.atMs, count: 45)
      .map(\.transaction.transactionID)
    let (pages, revision) = try shop.history(known[7])
    expectEqual(pages.map(\.count), [20, 20, known.count - 40])
    expectEqual(pages.flatMap { ids($0) }, known)
    try expectEqual(shop.history(known[44]).pages.flatMap { ids($0) }, known)
    let after = try shop.history(known[0], from: revision)
    #expect(after.pages == [[]] && after.revision == revision)
  }

  @Test("later changes follow the revision: a refund, its reversal, a renewal")
  func laterChanges() throws {
    let shop = try ServerAPIShop(controls: [#"{"renewals":false}"#])
    // Customer 0 has a subscription that renews, and a one-time purchase.
    let books = shop.sales.statuses(customer: 0, atMs: ServerAPIShop.atMs)
    let subscription = try #require(books.last { $0.transaction.isRenewal }).transaction
    let single = try #require(books.first { $0.transaction.expiresMs == nil }).transaction
    var (_, revision) = try shop.history(single.transactionID)
    func next(_ control: String) throws -> JSONValue {
      try shop.server.control(control)
      let later = try shop.history(single.transactionID, from: revision)
      revision = later.revision
      expectEqual(later.pages.map(\.count), [1], "\(control)")
      return try #require(later.pages.first?.first)
    }
    let refund = try next(#"{"refund":"\#(single.transactionID)","percentage":40000}"#)
    expectEqual(refund["revocationPercentage"], .number("40000"))
    expectEqual(refund["revocationType"], .string("REFUND_PRORATED"))
    let lookup = try shop.history(subscription.transactionID, call: "v2/refund/lookup")
    expectEqual(lookup.pages.map { ids($0) }, [[single.transactionID]])
    let undone = try next(#"{"undo_refund":"\#(single.transactionID)"}"#)
    #expect(undone["revocationDate"] == nil)
    expectEqual(undone["transactionId"], .string(single.transactionID))
    let renewal = try next(#"{"renew":"\#(subscription.originalTransactionID)"}"#)
    expectEqual(renewal["originalTransactionId"], .string(subscription.originalTransactionID))
    #expect(renewal["purchaseDate"]?.integerValue ?? 0 > subscription.purchaseMs)
    let id = try #require(renewal["transactionId"]?.stringValue)
    try expectEqual(shop.history(single.transactionID).pages.flatMap { ids($0) }.last, id)
  }

  @Test("a transaction in a history is as in the last notification about it")
  func sameAsNotifications() throws {
    let shop = try ServerAPIShop(customers: 60, controls: [#"{"renewals":false}"#])
    for customer in 0..<60 {
      var last: [String: Int64?] = [:]
      for told in shop.sales.notifications(customer: customer) {
        guard let transaction = told.transaction else { continue }
        last[transaction.transactionID] = .some(transaction.revocation?.dateMs)
      }
      let id = try #require(last.keys.sorted().first)
      let history = try shop.history(id).pages.flatMap { $0 }
      expectEqual(Set(ids(history)), Set(last.keys))
      for transaction in history {
        let id = try #require(transaction["transactionId"]?.stringValue)
        #expect(transaction["revocationDate"]?.integerValue == last[id] ?? nil)
      }
    }
  }

  @Test("responses are signed by its authority, now")
  func signatures() throws {
    let shop = try ServerAPIShop()
    let id = shop.sales.statuses(customer: 3, atMs: ServerAPIShop.atMs)[0].transaction
      .transactionID
    let answer = try shop.call("/inApps/v1/transactions/\(id)")
    let payload = try ServerAPIShop.payload(answer["signedTransactionInfo"])
    expectEqual(payload["transactionId"], .string(id))
    #expect((payload["signedDate"]?.integerValue ?? 0) > ServerAPIShop.atMs)
    let text = try #require(answer["signedTransactionInfo"]?.stringValue)
    let parts = text.split(separator: ".").map { Array($0.utf8) }
    let authority = try SignedObjectAuthority.shared.get()
    #expect(
      authority.leaf.key.verifies(
        es256: try Base64.decode(parts[2], .url), of: parts[0] + [0x2E] + parts[1]))
  }

  // MARK: Access

  @Test("only a token of the key, for this app and this hour, gives access")
  func tokens() throws {
    let shop = try ServerAPIShop(customers: 1)
    let now = ServerAPIShop.claims()["iat"] as? Int ?? 0
    func claims(_ name: String, _ value: Any) -> [String: Any] {
      ServerAPIShop.claims().merging([name: value]) { $1 }
    }
    func header(_ name: String, _ value: Any) -> [String: Any] {
      (ServerAPIShop.header as [String: Any]).merging([name: value]) { $1 }
    }
    let refused = try [
      shop.token(claims: claims("bid", "com.example.stranger")),
      shop.token(claims: claims("aud", "appstoreconnect-v2")),
      shop.token(claims: claims("exp", now + 3_601)), shop.token(claims: claims("exp", now - 1)),
      shop.token(claims: claims("iat", now + 600)), shop.token(claims: claims("iss", "")),
      shop.token(header: header("alg", "ES384")), shop.token(header: header("typ", "JWS")),
      shop.token(header: header("kid", "")), shop.token(by: SigningKey(curve: .p256)),
      "", "x.y.z", shop.token() + ".", String(shop.token().dropLast(2)),
    ]
    for token in refused {
      let answer = try shop.answer("/inApps/v2/history/1", authorization: "Bearer \(token)")
      #expect(answer.status == 401 && answer.text == "Unauthenticated\n", "\(token)")
    }
    try expectEqual(shop.answer("/inApps/v2/history/1", authorization: "Basic x").status, 401)
    try expectEqual(shop.errorCode("/inApps/v2/history/1"), 4_040_010)
    // Apple's own libraries omit when a token was made.
    func withoutIssue(_ claims: [String: Any]) -> [String: Any] {
      claims.filter { $0.key != "iat" }
    }
    for (expires, status) in [(now + 3_000, 404), (now + 7_200, 401)] {
      let token = try shop.token(claims: withoutIssue(claims("exp", expires)))
      let answer = try shop.answer("/inApps/v2/history/1", authorization: "Bearer \(token)")
      expectEqual(answer.status, status, "\(expires - now)")
    }
  }

  @Test("each environment knows its own customers alone")
  func environments() throws {
    let shop = try ServerAPIShop(customers: 60, environment: .mixed)
    var found: Set<String> = []
    for customer in 0..<60 {
      let transaction = shop.sales.statuses(customer: customer, atMs: ServerAPIShop.atMs)[0]
        .transaction
      let isSandbox = transaction.environment == "Sandbox"
      let path = "/inApps/v2/history/\(transaction.transactionID)"
      let page = try shop.call((isSandbox ? "/sandbox" : "") + path)
      expectEqual(page["environment"], .string(transaction.environment))
      expectEqual(page["bundleId"], .string("com.example.game"))
      expectEqual((page["appAppleId"] == nil), isSandbox)
      try expectEqual(shop.errorCode((isSandbox ? "" : "/sandbox") + path), 4_040_010)
      found.insert(transaction.environment)
    }
    expectEqual(found.count, 2)
  }

  // MARK: Subscriptions

  @Test("the status of a subscription goes from active over grace period and retry to expired")
  func statuses() throws {
    let shop = try ServerAPIShop(customers: 24, controls: [#"{"renewals":false}"#])
    let story = try #require(
      shop.sales.statuses(customer: 0, atMs: ServerAPIShop.atMs).last { $0.transaction.isRenewal })
    let original = story.transaction.originalTransactionID
    let expiresMs = try #require(story.transaction.expiresMs)
    func status() throws -> (Int64?, JSONValue) {
      let answer = try shop.call("/inApps/v1/subscriptions/\(original)")
      let last = try #require(
        answer["data"]?.arrayValue?.first?["lastTransactions"]?.arrayValue?[0])
      expectEqual(last["originalTransactionId"], .string(original))
      return (last["status"]?.integerValue, try ServerAPIShop.payload(last["signedRenewalInfo"]))
    }
    func count(_ query: String) throws -> Int? {
      try shop.call("/inApps/v1/subscriptions/\(original)?\(query)")["data"]?.arrayValue?.count
    }
    try expectEqual(count("status=1"), 1)
    try expectEqual(count("status=2&status=1"), 1)
    try expectEqual(count("status=2&status=5"), 0)
    try expectEqual(shop.errorCode("/inApps/v1/subscriptions/\(original)?status=6"), 4_000_031)
    let (active, renewal) = try status()
    #expect(active == 1 && renewal["autoRenewStatus"] == .number("1"))
    try shop.server.control(#"{"lapse":"\#(original)","cause":"billing"}"#)
    try shop.server.control(#"{"advance_ms":\#(expiresMs - ServerAPIShop.atMs)}"#)
    let (grace, inGrace) = try status()
    #expect(grace == 4 && inGrace["isInBillingRetryPeriod"] == .boolean(true))
    expectEqual(inGrace["gracePeriodExpiresDate"]?.integerValue, expiresMs + 16 * 86_400_000)
    try shop.server.control(#"{"advance_ms":\#(20 * 86_400_000)}"#)
    let (retry, inRetry) = try status()
    #expect(retry == 3 && inRetry["expirationIntent"] == .number("2"))
    try shop.server.control(#"{"advance_ms":\#(60 * 86_400_000)}"#)
    try expectEqual(status().0, 2)
    try shop.server.control(#"{"refund":"\#(story.transaction.transactionID)"}"#)
    try expectEqual(status().0, 5)
  }

  // MARK: Notifications

  /// Follows the pages of notification history.
  func notifications(
    _ shop: ServerAPIShop, _ fromMs: Int64, _ toMs: Int64, filter: String = "", path: String = ""
  ) throws -> [JSONValue] {
    var all: [JSONValue] = []
    var query = ""
    while true {
      let page = try shop.call(
        "\(path)/inApps/v1/notifications/history\(query)",
        body: #"{"startDate":\#(fromMs),"endDate":\#(toMs)\#(filter)}"#)
      let entries = try #require(page["notificationHistory"]?.arrayValue)
      #expect(entries.count <= 20)
      all += try entries.map { try ServerAPIShop.payload($0["signedPayload"]) }
      guard let token = page["paginationToken"]?.stringValue else { return all }
      query = "?paginationToken=\(token)"
      try #require(all.count < 2_000)
    }
  }

  @Test("notification history has the customers' events between two dates, in order and once")
  func notificationHistory() throws {
    let shop = try ServerAPIShop(customers: 30, environment: .mixed)
    let told = (0..<30).flatMap { shop.sales.notifications(customer: $0) }.map(\.payload)
    let (fromMs, toMs) = (ServerAPIShop.atMs - 8 * 86_400_000, ServerAPIShop.atMs - 86_400_000)
    for (path, environment) in [("", "Production"), ("/sandbox", "Sandbox")] {
      let found = try notifications(shop, fromMs, toMs, path: path)
      let times = found.compactMap { $0["signedDate"]?.integerValue }
      #expect(times == times.sorted() && times.count == found.count)
      let expected = told.filter {
        $0.environment == environment && $0.signedMs >= fromMs && $0.signedMs <= toMs
      }
      expectEqual(
        found.compactMap { $0["notificationUUID"]?.stringValue }.sorted(),
        expected.map(\.uuid).sorted())
      #expect(expected.count > (environment == "Production" ? 20 : 0))
    }
  }

  @Test("it is filtered by customer and type, and includes requested changes")
  func notificationFilters() throws {
    let shop = try ServerAPIShop()
    let id = shop.sales.statuses(customer: 4, atMs: ServerAPIShop.atMs)[0].transaction
      .transactionID
    let (fromMs, toMs) = (ServerAPIShop.atMs - 30 * 86_400_000, ServerAPIShop.atMs + 7_200_000)
    let told = shop.sales.notifications(customer: 4).map(\.payload.uuid)
    let own = try notifications(shop, fromMs, toMs, filter: #","transactionId":"\#(id)""#)
    expectEqual(own.compactMap { $0["notificationUUID"]?.stringValue }, told)
    try shop.server.control(#"{"refund":"\#(id)","reason":"1"}"#)
    let later = try notifications(shop, fromMs, toMs, filter: #","transactionId":"\#(id)""#)
    expectEqual(later.count, told.count + 1)
    let refund = try #require(later.last)
    expectEqual(refund["notificationType"], .string("REFUND"))
    let transaction = try ServerAPIShop.payload(refund["data"]?["signedTransactionInfo"])
    expectEqual(transaction["transactionId"], .string(id))
    expectEqual(transaction["revocationReason"], .number("1"))
    let refunds = try notifications(
      shop, fromMs, toMs, filter: #","notificationType":"REFUND""#)
    expectEqual(Set(refunds.compactMap { $0["notificationType"]?.stringValue }), ["REFUND"])
    expectEqual(refunds.last?["notificationUUID"], refund["notificationUUID"])
  }

  // MARK: Errors

  @Test("wrong requests get the App Store's codes")
  func errorCodes() throws {
    let shop = try ServerAPIShop(customers: 1)
    let id = shop.sales.statuses(customer: 0, atMs: ServerAPIShop.atMs)[0].transaction
      .transactionID
    for (path, code) in [
      ("/inApps/v2/history/x1", 4_000_006), ("/inApps/v2/history/", 4_000_006),
      ("/inApps/v1/transactions/7", 4_040_010), ("/inApps/v1/subscriptions/7", 4_040_010),
      ("/inApps/v2/refund/lookup/7", 4_040_010), ("/inApps/v2/history/\(id)?revision=x", 4_000_005),
      ("/inApps/v2/history/\(id)?sort=UP", 4_000_021),
      ("/inApps/v1/notifications/test/7", 4_040_008),
    ] as [(String, Int64)] {
      try expectEqual(shop.errorCode(path), code, "\(path)")
    }
    let now = ServerAPIShop.atMs
    for (query, body, code) in [
      ("", "x", 4_000_015), ("", #"{"endDate":1}"#, 4_000_015),
      ("", #"{"startDate":\#(now)}"#, 4_000_016),
      ("", #"{"startDate":\#(now),"endDate":\#(now)}"#, 4_000_013),
      ("", #"{"startDate":\#(now - 181 * 86_400_000),"endDate":\#(now)}"#, 4_000_012),
      ("?paginationToken=x", #"{"startDate":\#(now - 1),"endDate":\#(now)}"#, 4_000_014),
    ] as [(String, String, Int64)] {
      let path = "/inApps/v1/notifications/history" + query
      try expectEqual(shop.errorCode(path, body: body), code, "\(body)")
    }
    try expectEqual(shop.errorCode("/inApps/v1/notifications/test", body: ""), 4_040_007)
  }

  @Test("over the rate limit it answers 429 with the time, in epoch milliseconds, of the next call")
  func rate() throws {
    let shop = try ServerAPIShop(customers: 1, callsPerSecond: 1)
    try expectEqual(shop.errorCode("/inApps/v2/history/7"), 4_040_010)
    let answer = try shop.answer("/inApps/v2/history/7")
    expectEqual(answer.status, 429)
    try expectEqual(JSONValue(answer.body)["errorCode"], .number("4290000"))
    let freeAtMs = try #require(answer.retryAfter.flatMap { Int64($0) })
    #expect(freeAtMs > ServerAPIShop.atMs)
    // The other environment has its own.
    try expectEqual(shop.errorCode("/sandbox/inApps/v2/history/7"), 4_040_010)
  }

  @Test("behaviours that name the API hold there alone, and calls are counted by name")
  func behaviours() throws {
    let shop = try ServerAPIShop(customers: 1)
    let id = shop.sales.statuses(customer: 0, atMs: ServerAPIShop.atMs)[0].transaction
      .transactionID
    let path = "/inApps/v1/transactions/\(id)"
    try shop.server.control(#"{"behaviour":"api_error","count":1,"endpoint":"server_api"}"#)
    try expectEqual(shop.errorCode(path), 5_000_000)
    try shop.server.control(
      #"{"behaviour":"api_error","code":4290000,"retry_after":"7","count":1}"#)
    let limited = try shop.answer(path)
    #expect(limited.status == 429 && limited.retryAfter == "7")
    try shop.server.control(#"{"behaviour":"http_status","count":1,"endpoint":"server_api"}"#)
    #expect(try shop.answer(path).text.hasPrefix("<html>"))
    try shop.server.control(#"{"behaviour":"cut_body","count":1,"endpoint":"server_api"}"#)
    #expect(try shop.answer(path).isCut)
    try shop.server.control(#"{"behaviour":"cut","endpoint":"production"}"#)
    #expect(try shop.call(path)["signedTransactionInfo"] != nil)
    let counts = try JSONValue(shop.server.counts)["calls"]?["server_api"]
    expectEqual(counts?["total"], .number("5"))
    expectEqual(counts?["by_call"], .object([.init("transaction", .number("5"))]))
    expectEqual(
      counts?["by_status"],
      .object([
        .init("200", .number("2")), .init("429", .number("1")), .init("500", .number("1")),
        .init("503", .number("1")),
      ]))
  }
}
