// How the stand-in sends notifications: retries like the App Store's, and requested misbehaviour.
import AppStoreAuthority
import AppStoreStandIn
import Base
import Foundation
import TestSupport
import Testing

@Suite("Sending notifications", .bounded)
struct NotificationSenderTests {
  static let atMs: Int64 = 1_795_000_000_000

  func composer(_ environment: CustomerReceipts.Environment = .production) throws
    -> NotificationComposer
  {
    NotificationComposer(
      sales: CustomerTransactions(
        customers: CustomerReceipts(
          seed: 5, bundleID: "com.example.game", environment: environment, atMs: Self.atMs)),
      signer: ObjectSigner(authority: try SignedObjectAuthority.shared.get()),
      skewedMs: Self.atMs + 3_600_000)
  }

  func plan(
    _ server: ScriptedServer, customers: Int, connections: Int = 1, _ fault: SendFault? = nil
  ) throws -> SendPlan {
    var faults = FaultPlan(seed: 1)
    if let fault { faults.percents[fault] = 100 }
    let address = try #require(
      PostAddress("http://127.0.0.1:\(server.port)/app_store/notifications"))
    var plan = SendPlan(
      address: address, customerCount: customers, rate: fault == .disorder ? 1_000 : 100_000,
      faults: faults)
    plan.connections = connections
    plan.retryScale = 0
    return plan
  }

  /// The notifications that the server received, decoded.
  func told(_ server: ScriptedServer) throws -> [JSONValue] {
    try server.requests.map {
      try ServerAPIShop.payload(JSONValue($0.body)["signedPayload"])
    }
  }

  func uuids(_ told: [JSONValue]) -> [String] {
    told.compactMap { $0["notificationUUID"]?.stringValue }
  }

  func expected(_ composer: NotificationComposer, customers: Int) -> [String] {
    (0..<customers).flatMap { composer.sales.notifications(customer: $0) }.map(\.payload.uuid)
  }

  @Test("each comes once, in the order of the customers, as the App Store posts it")
  func once() throws {
    let server = try ScriptedServer { .answer($0.index % 2 == 0 ? 200 : 206) }
    defer { server.stop() }
    let composer = try composer()
    let counts = try NotificationSender(plan(server, customers: 12), composer).run()
    let all = expected(composer, customers: 12)
    expectEqual(uuids(try told(server)), all)
    #expect(counts.notifications == all.count && counts.delivered == all.count)
    #expect(counts.givenUp == 0 && counts.pending == 0 && server.connectionCount == 1)
    let head = try #require(server.requests.first).head
    expectEqual(head[0], "POST /app_store/notifications HTTP/1.1")
    #expect(head.contains("Content-Type: application/json"))
  }

  @Test("a refused notification comes again five times with the same UUID, but not after a 400")
  func retries() throws {
    for (status, attempts) in [(503, 6), (404, 6), (400, 1)] {
      let server = try ScriptedServer { _ in .answer(status) }
      defer { server.stop() }
      let composer = try composer()
      let counts = try NotificationSender(plan(server, customers: 2), composer).run()
      let all = expected(composer, customers: 2)
      let found = uuids(try told(server))
      expectEqual(found.count, all.count * attempts)
      #expect(all.allSatisfy { uuid in found.filter { $0 == uuid }.count == attempts })
      #expect(counts.givenUp == all.count && counts.answered == [status: found.count])
    }
  }

  @Test("the Sandbox is notified once")
  func sandbox() throws {
    let server = try ScriptedServer { _ in .answer(503) }
    defer { server.stop() }
    let composer = try composer(.sandbox)
    let counts = try NotificationSender(plan(server, customers: 3), composer).run()
    expectEqual(uuids(try told(server)), expected(composer, customers: 3))
    expectEqual(counts.givenUp, counts.notifications)
  }

  @Test("a connection that ends without a response, or with it, costs no notification")
  func brokenConnections() throws {
    let server = try ScriptedServer {
      [.close, .answerAndClose(200), .answer(503)][$0.index % 3]
    }
    defer { server.stop() }
    let composer = try composer()
    let counts = try NotificationSender(plan(server, customers: 8, connections: 2), composer).run()
    expectEqual(counts.delivered, counts.notifications - counts.givenUp)
    #expect(counts.delivered > 0 && counts.unanswered > 0)
    expectEqual(Set(uuids(try told(server))), Set(expected(composer, customers: 8)))
  }

  @Test("without a listener, each is tried six times and given up")
  func nobodyListens() throws {
    let server = try ScriptedServer { _ in .close }
    let plan = try plan(server, customers: 1)
    server.stop()
    let composer = try composer()
    let counts = try NotificationSender(plan, composer).run()
    #expect(counts.unanswered == 6 * counts.notifications && counts.delivered == 0)
  }

  @Test("misbehaviour shows in what comes", arguments: SendFault.allCases)
  func faults(fault: SendFault) throws {
    let server = try ScriptedServer { _ in .answer(200) }
    defer { server.stop() }
    let composer = try composer()
    let counts = try NotificationSender(plan(server, customers: 20, fault), composer).run()
    let (all, found) = (expected(composer, customers: 20), try told(server))
    #expect(counts.faults == [fault: all.count] && counts.notifications == all.count)
    switch fault {
    case .duplicate: expectEqual(uuids(found).sorted(), (all + all).sorted())
    case .loss: #expect(found.isEmpty && counts.attempts == 0)
    case .disorder:
      #expect(uuids(found).sorted() == all.sorted() && uuids(found) != all)
    case .delay: expectEqual(uuids(found).sorted(), all.sorted())
    case .wrongApp:
      #expect(found.allSatisfy { $0["data"]?["bundleId"] == .string("com.example.stranger") })
      let inner = try found.compactMap { $0["data"]?["signedTransactionInfo"] }
        .map(ServerAPIShop.payload)
      #expect(inner.allSatisfy { $0["bundleId"] == .string("com.example.stranger") })
      #expect(!inner.isEmpty)
    case .clockSkew:
      #expect(found.allSatisfy { $0["signedDate"]?.integerValue == Self.atMs + 3_600_000 })
    case .expiredLeaf:
      let first = try #require(server.requests.first)
      let body = try JSONValue(first.body)
      let text = try #require(body["signedPayload"]?.stringValue)
      let header = try JSONValue(
        Base64.decode(Array(text.prefix { $0 != "." }.utf8), .url))
      let authority = try SignedObjectAuthority.shared.get()
      let leaf = try #require(header["x5c"]?.arrayValue?.first?.stringValue)
      #expect(leaf != Base64.text(authority.leaf.der))
    }
  }

  @Test("faults occur as often as requested, independently and reproducibly")
  func faultShares() {
    var plan = FaultPlan(seed: 7)
    plan.percents = [.duplicate: 20, .loss: 50]
    let struck = (0..<2_000).map(plan.faults)
    let (twice, lost) = (
      struck.filter { $0.contains(.duplicate) }.count, struck.filter { $0.contains(.loss) }.count
    )
    let both = struck.filter { $0 == [.duplicate, .loss] }.count
    #expect(
      (340...460).contains(twice) && (900...1_100).contains(lost) && (140...260).contains(both))
    expectEqual((0..<2_000).map(plan.faults), struck)
  }

  @Test("a stopped sender reports what it left")
  func stopped() throws {
    let server = try ScriptedServer { _ in .answer(503) }
    defer { server.stop() }
    var plan = try plan(server, customers: 5)
    plan.retryScale = 1
    let composer = try composer()
    let all = expected(composer, customers: 5)
    let watched = StoppedSender(plan, composer, after: all.count)
    let counts = try #require(try watched.run())
    #expect(counts.attempts == all.count && counts.pending == all.count)
  }

  /// A sender that is stopped after this many attempts.
  private final class StoppedSender: Sendable {
    private let sender = Monitor<NotificationSender?>(nil)

    init(_ plan: SendPlan, _ composer: NotificationComposer, after count: Int) {
      let tried = Monitor(0)
      let made = NotificationSender(plan, composer) { [sender] _ in
        let isLast = tried.withLock { tried in
          tried += 1
          return tried == count
        }
        if isLast { sender.withLock { $0 }?.stop() }
      }
      sender.withLock { $0 = made }
    }

    func run() throws -> SendCounts? { try sender.withLock { $0 }?.run() }
  }

  @Test("the program logs each attempt and prints the counts")
  func program() throws {
    let directory = try SharedAuthority.directory.get()
    let server = try ScriptedServer { $0.index < 3 ? .answer(503) : .answer(200) }
    defer { server.stop() }
    let outcome = try Outcome(
      of: "app-store-stand-in",
      [
        "notify", "--url", "http://localhost:\(server.port)/x", "--authority", "authority",
        "--customers", "4", "--seed", "5", "--at", String(Self.atMs), "--rate", "1000",
        "--retry-scale", "0", "--log", "sent.ndjson",
      ], in: directory.path)
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let counts = try outcome.json()
    let all = expected(try composer(), customers: 4)
    expectEqual(counts["delivered"], .number(String(all.count)))
    expectEqual(counts["answered"]?["503"], .number("3"))
    let log = try String(contentsOfFile: directory.path("sent.ndjson"), encoding: .utf8)
      .split(separator: "\n").map { try JSONValue(Array($0.utf8)) }
    expectEqual(log.count, all.count + 3)
    let good = log.filter { $0["status"] == .number("200") }
    expectEqual(good.compactMap { $0["uuid"]?.stringValue }.sorted(), all.sorted())
    #expect(log.contains { $0["attempt"] == .number("2") })
  }

  @Test(
    "only plain HTTP to this machine is accepted as address",
    arguments: [
      ("http://127.0.0.1:8080/a/b", true), ("http://localhost:1", true),
      ("http://127.0.0.1/", true),
      ("https://127.0.0.1:8080/", false), ("http://example.com/", false),
      ("http://127.0.0.1:0/", false),
      ("http://127.0.0.1:70000/", false), ("http://127.0.0.1:80/a b", false), ("", false),
    ])
  func addresses(url: String, isGood: Bool) {
    expectEqual((PostAddress(url) != nil), isGood)
  }

  // MARK: A running stand-in

  /// Waits until the server has seen this many requests.
  func wait(for count: Int, _ server: ScriptedServer) {
    _ = eventually { server.requests.count >= count }
  }

  @Test("a test notification is sent on request, and its outcome is reported")
  func testNotification() throws {
    let server = try ScriptedServer { _ in .answer(200) }
    defer { server.stop() }
    let address = try #require(PostAddress("http://127.0.0.1:\(server.port)/n"))
    let shop = try ServerAPIShop(
      customers: 1, notifications: NotificationTarget(address: address, retryScale: 0))
    for path in ["/inApps/v1/notifications/test", "/sandbox/inApps/v1/notifications/test"] {
      let token = try #require(
        shop.call(path, body: "")["testNotificationToken"]?.stringValue)
      let limit = ContinuousClock.now + .seconds(300)
      var attempts: [JSONValue] = []
      var status = try shop.call("\(path)/\(token)")
      while attempts.isEmpty, .now < limit {
        status = try shop.call("\(path)/\(token)")
        attempts = try #require(status["sendAttempts"]?.arrayValue)
      }
      expectEqual(attempts.map { $0["sendAttemptResult"] }, [.string("SUCCESS")])
      let sent = try #require(told(server).last)
      let payload = try ServerAPIShop.payload(status["signedPayload"])
      #expect(sent == payload && payload["notificationType"] == .string("TEST"))
      let isSandbox = path.hasPrefix("/sandbox")
      expectEqual(payload["data"]?["environment"], .string(isSandbox ? "Sandbox" : "Production"))
      expectEqual((payload["data"]?["appAppleId"] == nil), isSandbox)
      try expectEqual(shop.errorCode("\(path)/\(token)x"), 4_040_008)
    }
  }

  @Test("changes of a customer's purchase by control requests are notified, until accepted")
  func controlRequests() throws {
    let server = try ScriptedServer { .answer($0.index == 0 ? 503 : 200) }
    defer { server.stop() }
    let shop = try ServerAPIShop(
      notifications: NotificationTarget(
        address: try #require(PostAddress("http://127.0.0.1:1/")), retryScale: 0))
    // Nothing listened at the first address; a new one is set before anything happens.
    try shop.server.control(#"{"notifications_url":"http://127.0.0.1:\#(server.port)/n"}"#)
    let id = shop.sales.statuses(customer: 3, atMs: ServerAPIShop.atMs)[0].transaction
      .transactionID
    try shop.server.control(#"[{"refund":"7"},{"refund":"\#(id)","reason":"1"}]"#)
    wait(for: 2, server)
    try shop.server.control(#"{"undo_refund":"\#(id)"}"#)
    wait(for: 3, server)
    let found = try told(server)
    expectEqual(
      found.compactMap { $0["notificationType"]?.stringValue },
      ["REFUND", "REFUND", "REFUND_REVERSED"])
    expectEqual(found[0]["notificationUUID"], found[1]["notificationUUID"])
    let inner = try found.map { try ServerAPIShop.payload($0["data"]?["signedTransactionInfo"]) }
    #expect(inner.allSatisfy { $0["transactionId"] == .string(id) })
    expectEqual(inner.map { $0["revocationDate"] != nil }, [true, true, false])
  }
}
