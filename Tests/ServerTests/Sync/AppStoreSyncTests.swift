// Synchronizations with the App Store Server API: what is asked, what is appended, how errors are handled.
import AppStore
import Base
import Foundation
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite(.bounded) struct AppStoreSyncTests {
  private static func uploads(_ transactions: String...) -> [TestEvent] {
    transactions.map { .signedUpload(signed($0)) }
  }

  private static func transaction(
    _ id: String, _ changes: [String: String?] = [:]
  ) throws -> String {
    try SignedSample().transaction(id, changes)
  }

  // MARK: Histories

  @Test func everyCustomersHistoryIsFetchedPageByPageAndNotAgain() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2"))
    let (one, other) = (try Self.transaction("1"), try Self.transaction("3"))
    let service = ScriptedServerAPI { call, _, _ in
      switch call {
      case .history("1", nil): .page([one], revision: "r1", hasMore: true)
      case .history("1", "r1"): .page([other], revision: "r2")
      default: .page([], revision: "s")
      }
    }
    let summary = try fixture.run(service)
    expectEqual(
      Set(service.calls),
      [
        "production history 1 -", "production history 1 r1", "production history 2 -",
      ])
    #expect(summary.pages == 3 && summary.calls == 3)
    #expect(summary.histories == 2 && summary.newSales == 1 && summary.isWhole)
    try expectEqual(
      Set(fixture.pages),
      [
        "Production history 1 r1 - 1", "Production history 1 r2 - 0", "Production history 2 s - 0",
      ])
    try expectEqual(fixture.texts("SELECT sale_key FROM sale_view ORDER BY 1"), ["1", "2", "3"])
    // Transaction 3 is in a history that was fetched whole.
    let again = ScriptedServerAPI { _, _, _ in .notFound }
    let second = try fixture.run(again)
    expectEqual(again.calls, [])
    #expect(second.knownHistories == 2 && second.pages == 0)
  }

  /// A customer with two subscriptions reports one alone: the history has the other.
  @Test func theOtherSubscriptionOfAnAppleAccountIsItsUsers() throws {
    func month(_ id: String, _ product: String) -> String {
      SignedSample().payload(
        id,
        [
          "webOrderLineItemId": "\"w\(id)\"", "productId": "\"\(product)\"",
          "type": "\"Auto-Renewable Subscription\"", "appTransactionId": "\"70\"",
          "expiresDate": "\(ms("2026-02-05"))",
        ])
    }
    let (music, video) = (month("1", "music"), month("2", "video"))
    let fixture = try SyncFixture([.signedUpload(JSONText(raw: music), user: "anna")])
    let both = [try SignedSample().sign(music), try SignedSample().sign(video)]
    try fixture.run(ScriptedServerAPI { _, _, _ in .page(both, revision: "r1") })
    let live = try LiveProjections(fixture.ledger.directory)
    let answer = try live.answer(
      .purchases(after: nil, limit: 10), about: "anna",
      of: try #require(UUID16(TestEvent.signedFamily)), atMs: ms("2026-01-20"))
    guard case .found(let body) = answer else { throw CancellationError() }
    let text = String(decoding: body.bytes, as: UTF8.self)
    #expect(text.contains(#""product_id":"music""#) && text.contains(#""product_id":"video""#))
    try expectEqual(
      fixture.texts("SELECT user_identifier || ' ' || user_basis FROM sale_view ORDER BY sale"),
      ["anna upload", "anna account"])
  }

  @Test func aCustomerWhoseHistoryShowsTheOtherSalesIsAskedAboutOnce() throws {
    let events: [TestEvent] = (0..<6).map { customer in
      .signedUpload(signed("\(customer)1"), signed("\(customer)2"), signed("\(customer)3"))
    }
    let fixture = try SyncFixture(events)
    fixture.options.callsMax = 3
    var histories: [String: [String]] = [:]
    for customer in 0..<6 {
      let ids = (1...3).map { "\(customer)\($0)" }
      let texts = try ids.map { try Self.transaction($0) }
      for id in ids { histories[id] = texts }
    }
    let service = ScriptedServerAPI { [histories] call, _, _ in
      guard case .history(let id, _) = call else { return .notFound }
      return .page(histories[id] ?? [])
    }
    let summary = try fixture.run(service)
    #expect(service.calls.count == 6 && summary.histories == 6)
    expectEqual(Set(service.calls.map { $0.split(separator: " ")[2].prefix(1) }).count, 6)
  }

  @Test func whatWasInterruptedGoesOnWhereItStopped() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let (one, other) = (try Self.transaction("1"), try Self.transaction("3"))
    let stop = StopFlag()
    let summary = try fixture.run(
      ScriptedServerAPI { _, _, _ in
        stop.set()
        return .page([one], revision: "r1", hasMore: true)
      }, stop: stop)
    #expect(summary.isInterrupted)
    let next = ScriptedServerAPI { _, _, _ in .page([other], revision: "r2") }
    try expectEqual(fixture.run(next).histories, 1)
    expectEqual(
      next.calls.first, (summary.pages == 1 ? "production history 1 r1" : "production history 1 -"))
  }

  @Test func withAMomentOlderHistoriesAreAskedForWhatIsNew() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let one = try Self.transaction("1")
    try fixture.run(ScriptedServerAPI { _, _, _ in .page([one], revision: "r1") })
    fixture.options.sinceMs = Timestamp.now() - 3_600_000
    let newer = ScriptedServerAPI { _, _, _ in .notFound }
    try expectEqual(fixture.run(newer).knownHistories, 1)
    expectEqual(newer.calls, [])
    fixture.options.sinceMs = Timestamp.now() + 3_600_000
    let refunded = try Self.transaction(
      "1", ["signedDate": "\(ms("2026-01-06"))", "revocationDate": "\(ms("2026-01-06"))"])
    let older = ScriptedServerAPI { _, _, _ in .page([refunded], revision: "r2") }
    try expectEqual(fixture.run(older).pages, 1)
    expectEqual(older.calls, ["production history 1 r1"])
    try expectEqual(fixture.texts("SELECT cancelled FROM sale_view"), ["1"])
  }

  @Test func whatProductionDoesNotKnowIsAskedOfTheSandboxOnce() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2"))
    let sandbox = try Self.transaction("2", ["environment": "\"Sandbox\""])
    let service = ScriptedServerAPI { call, endpoint, _ in
      if endpoint == .production { return .notFound }
      return call == .history(transactionID: "2", revision: nil) ? .page([sandbox]) : .notFound
    }
    let summary = try fixture.run(service)
    #expect(service.calls.count == 4 && summary.unknownTransactions == 2 && summary.isWhole)
    try expectEqual(
      Set(fixture.pages),
      [
        "Production history 1 - 4040010 0", "Production history 2 - 4040010 0",
        "Sandbox history 2 - - 0",
      ])
    let again = ScriptedServerAPI { _, _, _ in .notFound }
    try fixture.run(again)
    expectEqual(again.calls, [])
  }

  /// The same with another signature.
  private static func forged(_ good: String) throws -> String {
    let end = try #require(good.lastIndex(of: "."))
    let signature = good[good.index(after: end)...]
    return String(good[...end] + (signature.hasPrefix("A") ? "B" : "A") + signature.dropFirst())
  }

  /// A history of three pages.
  private static func history(
    _ first: [String], _ second: [String], _ third: [String]
  ) -> ScriptedServerAPI {
    ScriptedServerAPI { call, _, _ in
      switch call {
      case .history("1", nil): .page(first, revision: "r1", hasMore: true)
      case .history("1", "r1"): .page(second, revision: "r2", hasMore: true)
      case .history("1", "r2"): .page(third, revision: "r3")
      default: .page([])
      }
    }
  }

  private static let asked = [
    "production history 1 -", "production history 1 r1", "production history 1 r2",
  ]

  @Test func aPageWithAForgedObjectCountsOnceAndIsAskedForAgainUntilItIsGood() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let (good, other) = (try Self.transaction("3"), try Self.transaction("4"))
    let (one, last) = (try Self.transaction("1"), try Self.transaction("5"))
    let forged = try Self.forged(good)
    let first = Self.history([one], [forged, other], [last])
    let summary = try fixture.run(first)
    expectEqual(first.calls, Self.asked)
    #expect(summary.pages == 3 && summary.newSales == 2 && summary.failures == 1)
    #expect(summary.refusedTransactions == 1 && !summary.isWhole)
    expectEqual(
      summary.problems,
      [
        "app, Production, a history: refused: the signature does not match the content"
      ])
    let sales = "SELECT sale_key FROM sale_view ORDER BY 1"
    try expectEqual(fixture.texts(sales), ["1", "4", "5"])
    let pages = [
      "Production history 1 r1 - 1", "Production history 1 r1 - 1", "Production history 1 r1 - 1",
    ]
    try expectEqual(fixture.pages, pages)
    // Nothing has changed: the same pages are requested, and nothing is appended.
    let second = Self.history([one], [forged, other], [last])
    let again = try fixture.run(second)
    expectEqual(second.calls, Array(Self.asked.dropFirst()))
    #expect(again.pages == 0 && again.failures == 1 && !again.isWhole)
    try expectEqual(fixture.pages, pages)
    let third = try fixture.run(Self.history([one], [good, other], [last]))
    #expect(third.isWhole && third.pages == 2 && third.newSales == 1)
    try expectEqual(fixture.texts(sales), ["1", "3", "4", "5"])
    let done = ScriptedServerAPI { _, _, _ in .notFound }
    #expect(try fixture.run(done).isWhole)
    expectEqual(done.calls, [])
  }

  @Test func aHistoryWhoseRootIsPinnedLaterCountsThen() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let pinned = fixture.verifier
    fixture.verifier = SignedObjectVerifier(pinnedRoots: [])
    let two = try Self.transaction("2")
    let service = ScriptedServerAPI { _, _, _ in .page([two], revision: "r") }
    for pages in [1, 0] {
      let summary = try fixture.run(service)
      #expect(!summary.isWhole && summary.pages == pages && summary.newSales == 0)
    }
    fixture.verifier = pinned
    let summary = try fixture.run(service)
    #expect(summary.isWhole && summary.newSales == 1)
    expectEqual(service.calls, Array(repeating: "production history 1 -", count: 3))
  }

  @Test func againAcceptsWhatIsInTheLogBeforeItAsks() throws {
    // The customer's only sale was refused in two pages, as an earlier version recorded them.
    let signer = try Self.transaction("1")
    let (object, other) = (try Self.plan(signer), try Self.plan(try Self.forged(signer)))
    let fixture = try SyncFixture([
      .fetched([other, object], about: "1"), .fetched([other], about: "1"),
      .fetched([SignedObjectPlan(signed("5")), object], about: "1"),
    ])
    let service = ScriptedServerAPI { _, _, _ in .page([signer], revision: "r9") }
    try expectEqual(fixture.run(service).newSales, 0)
    fixture.options.isAgain = true
    let pinned = fixture.verifier
    fixture.verifier = SignedObjectVerifier(pinnedRoots: [])
    try expectEqual(fixture.run(ScriptedServerAPI { _, _, _ in .page([]) }).acceptedObjects, 0)
    fixture.verifier = pinned
    let summary = try fixture.run(service)
    #expect(summary.acceptedObjects == 2 && summary.newSales == 1 && summary.isWhole)
    #expect(service.calls.filter { $0 == "production history 1 -" }.count >= 1)
    let first = "SELECT sale_key || ' ' || first_position FROM sale_view WHERE sale_key = '1'"
    let accepted = "SELECT position || ' ' || page FROM signature_acceptances ORDER BY 1"
    let rows = try fixture.texts(accepted)
    #expect(rows.count == 2 && rows[0].hasSuffix(" 1") && rows[1].hasSuffix(" 3"))
    try expectEqual(fixture.texts(first), ["1 \(rows[0].prefix { $0 != " " })"])
    // A second run finds nothing more to do.
    try expectEqual(fixture.run(service).acceptedObjects, 0)
  }

  /// An object in the log, refused because its root was not trusted.
  private static func plan(_ text: String) throws -> SignedObjectPlan {
    try SignedObjectPlan(jws: text, .invalid(reason: "untrusted_root"))
  }

  @Test func againAsksForAllOfAHistoryThatAnEarlierVersionTookForFetched() throws {
    // Complete, with a revision, although a sale in it was refused.
    let fixture = try SyncFixture(
      Self.uploads("1") + [.fetched(signed("1"), about: "1", revision: "r9")])
    let two = try Self.transaction("2")
    let service = ScriptedServerAPI { call, _, _ in
      call == .history(transactionID: "1", revision: nil) ? .page([two], revision: "r9") : .page([])
    }
    try expectEqual(fixture.run(service).newSales, 0)
    expectEqual(service.calls, [])
    fixture.options.isAgain = true
    let summary = try fixture.run(service)
    #expect(summary.newSales == 1 && summary.isWhole)
    expectEqual(service.calls, ["production history 1 -"])
  }

  @Test func pagesAfterSeveralBadOnesAreReachedAndTheNextRunBeginsWithTheFirst() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let forged = try Self.forged(try Self.transaction("9"))
    let last = try Self.transaction("2")
    let service = Self.history([forged], ["no.jws"], [last])
    try expectEqual(fixture.run(service).newSales, 1)
    try expectEqual(fixture.run(service).pages, 0)
    expectEqual(service.calls, Self.asked + Self.asked)
  }

  @Test(arguments: [true, false])
  func pagesWithoutNewsEnd(_ areEmpty: Bool) throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let one = try Self.transaction("1")
    let service = ScriptedServerAPI { _, _, index in
      .page(areEmpty ? [] : [one], revision: "r\(index)", hasMore: true)
    }
    let summary = try fixture.run(service)
    expectEqual(service.calls.count, (areEmpty ? 100 : 101))
    expectEqual(summary.problems, ["app, Production, a history: its pages have no end"])
  }

  @Test(arguments: [
    (
      "what is no signed object", ServerAPIResponse.page(["no.jws"]),
      "refused: not three parts with a dot between them"
    ),
    ("the same revision again", .page([], revision: "r", hasMore: true), "its pages have no end"),
    ("an error", .failure(.status(400, errorCode: 4_000_002)), "HTTP status 400, error 4000002"),
    ("an error that stays", .failure(.status(500, errorCode: nil)), "HTTP status 500"),
  ])
  func aHistoryThatCannotBeFetchedIsNamed(
    _ situation: String, _ answer: ServerAPIResponse, _ cause: String
  ) throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let service = ScriptedServerAPI { _, _, _ in answer }
    let summary = try fixture.run(service)
    #expect(summary.failures == 1 && !summary.isWhole)
    expectEqual(summary.problems, ["app, Production, a history: \(cause)"])
    expectEqual(
      service.calls.count, (cause == "HTTP status 500" ? 4 : cause.hasPrefix("its") ? 2 : 1))
  }

  @Test func aPageThatIsTooLargeForAnEventIsNamedAndTheOthersAreFetched() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2"))
    let padding = "\"" + String(repeating: "a", count: 90_000) + "\""
    let large = try Self.transaction("1", ["padding": padding])
    let small = try Self.transaction("2")
    let summary = try fixture.run(
      ScriptedServerAPI { call, _, _ in
        guard case .history("1", _) = call else { return .page([small]) }
        return .page(Array(repeating: large, count: 190))
      })
    #expect(summary.failures == 1 && summary.pages == 1)
    try expectEqual(fixture.pages, ["Production history 2 - - 0"])
  }

  @Test func aRevisionThatIsTooOldIsGivenUp() throws {
    let fixture = try SyncFixture(
      Self.uploads("1") + [.fetched(signed("1"), about: "1", revision: "old", hasMore: true)])
    let one = try Self.transaction("1")
    let service = ScriptedServerAPI { call, _, _ in
      call == .history(transactionID: "1", revision: "old")
        ? .failure(.status(400, errorCode: 4_000_005)) : .page([one])
    }
    #expect(try fixture.run(service).isWhole)
    expectEqual(service.calls, ["production history 1 old", "production history 1 -"])
  }

  // MARK: Errors of the service

  @Test func afterTooManyCallsTheSameCallIsMadeLater() throws {
    let fixture = try SyncFixture(Self.uploads("1"))
    let one = try Self.transaction("1")
    let service = ScriptedServerAPI { _, _, index in
      index == 0 ? .rateLimited(pauseMs: 5) : .page([one])
    }
    #expect(try fixture.run(service).isWhole)
    expectEqual(service.calls.count, 2)
    expectEqual(fixture.pauses, ["production.example 5"])
  }

  @Test func aStrayRefusalIsFollowedByTheSameCallAndALastingOneFailsItsJobAlone() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2", "3"))
    fixture.options.callsMax = 1
    let service = ScriptedServerAPI { call, _, index in
      if index == 0 { return .unauthorized }
      return call == .history(transactionID: "2", revision: nil) ? .unauthorized : .page([])
    }
    let summary = try fixture.run(service)
    expectEqual(service.calls.count, 5)
    #expect(summary.histories == 2 && summary.failures == 1 && summary.problems.count == 1)
  }

  @Test func aKeyThatIsNeverAcceptedEndsTheAppsCalls() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2", "3", "4"))
    fixture.options.callsMax = 1
    fixture.options.failuresMax = 2
    let service = ScriptedServerAPI { _, _, _ in .unauthorized }
    let summary = try fixture.run(service)
    #expect(service.calls.count == 4 && summary.failures == 4)
    expectEqual(summary.problems.count, 1)
    #expect(summary.problems[0].contains("does not accept key KEY1 for app"))
  }

  @Test func anAppStoreThatDoesNotAnswerIsGivenUp() throws {
    let fixture = try SyncFixture(Self.uploads("1", "2", "3", "4", "5"))
    fixture.options.failuresMax = 6
    let service = ScriptedServerAPI { _, _, _ in .failure(.transport(.connectionFailed)) }
    let summary = try fixture.run(service)
    expectEqual(summary.failures, 5)
    #expect(service.calls.count < 20)
    #expect(
      summary.problems.contains {
        $0 == "production.example does not reply: cannot connect, or the connection was lost"
      })
  }

  // MARK: Notifications

  private static func notification(
    _ uuid: String, bundle: String = "app", at signedMs: Int64 = ms("2026-01-06")
  ) throws -> String {
    let inner = try transaction("9", ["bundleId": "\"\(bundle)\""])
    return try SignedSample().sign(
      #"{"notificationType":"ONE_TIME_CHARGE","notificationUUID":"\#(uuid)","version":"2.0","#
        + #""signedDate":\#(signedMs),"data":{"bundleId":"\#(bundle)","environment":"Production","#
        + #""signedTransactionInfo":"\#(inner)"}}"#)
  }

  @Test func missingNotificationsAreAppendedAfterTheirPage() throws {
    let fixture = try SyncFixture([.notification("TEST", uuid: "known", nil)])
    fixture.options.fetchesNotifications = true
    let known = try Self.notification("known")
    let (one, two) = (
      try Self.notification("n1"), try Self.notification("n2", at: ms("2026-01-07"))
    )
    let foreign = try Self.notification("n3", bundle: "elsewhere")
    fixture.foreignUUIDs = ["n4"]
    let claimed = try Self.notification("n4")
    let service = ScriptedServerAPI { call, endpoint, _ in
      guard case .notificationHistory(_, _, let token) = call, endpoint == .production else {
        return endpoint == .sandbox ? .told([]) : .page([])
      }
      return token == nil
        ? .told([known, one, one, foreign, claimed], token: "p1", hasMore: true)
        : .told([one, two])
    }
    let summary = try fixture.run(service)
    #expect(summary.newNotifications == 2 && summary.knownNotifications == 4)
    #expect(summary.refusedNotifications == 1 && summary.newSales == 1)
    expectEqual(
      summary.problems, ["app, Production, the notification history: refused: of another app"])
    let gap = try #require(summary.gaps.first)
    #expect(summary.gaps.count == 1 && gap.bundleID == "app" && gap.environment == "Production")
    expectEqual(gap.notifications, 2)
    #expect(gap.firstMs == ms("2026-01-06") && gap.lastMs == ms("2026-01-07"))
    try expectEqual(
      fixture.texts("SELECT notification_uuid FROM notification_view ORDER BY position"),
      ["known", "n1", "n2"])
    let reader = try LogReader(fixture.ledger.directory)
    let position = try #require(
      Int(
        try fixture.texts("SELECT position FROM notification_view WHERE notification_uuid = 'n1'")[
          0]))
    #expect(fixture.ends["known"] == .known && fixture.ends["n1"] == .durable(position))
    let line = String(decoding: try reader.event(at: position), as: UTF8.self)
    #expect(line.contains(#""via":"fetch","type":"ONE_TIME_CHARGE""#))
    let before = String(decoding: try reader.event(at: position - 1), as: UTF8.self)
    #expect(before.contains(#""call":"notification_history","host":"production.example""#))
  }

  @Test func theNextRunAsksFromAnHourBeforeTheLastAndAnInterruptedRangeIsFinished() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let (start, end) = (Timestamp.now() - 86_400_000, Timestamp.now() - 7_200_000)
    try fixture.ledger.append([
      .fetched(
        [], .notificationHistory, about: nil, revision: "p", hasMore: true, range: start...end)
    ])
    let ranges = Monitor<[[Int64]]>([])
    let service = ScriptedServerAPI { call, endpoint, _ in
      if case .notificationHistory(let fromMs, let toMs, let token) = call, endpoint == .production
      {
        ranges.withLock { $0.append([fromMs, toMs, token == "p" ? 1 : 0]) }
      }
      return .told([])
    }
    try fixture.run(service)
    let asked = ranges.withLock { $0 }
    try #require(asked.count == 2)
    expectEqual(asked[0], [start, end, 1])
    #expect(asked[1][0] == end - 3_600_000 && asked[1][2] == 0)
    #expect(asked[1][1] > end)
  }

  /// Gives every call to Production this answer, and records the start of its range.
  private static func notifications(
    _ answer: ServerAPIResponse, _ starts: Monitor<[Int64]>
  ) -> ScriptedServerAPI {
    ScriptedServerAPI { call, endpoint, _ in
      guard case .notificationHistory(let fromMs, _, _) = call, endpoint == .production else {
        return .told([])
      }
      starts.withLock { $0.append(fromMs) }
      return answer
    }
  }

  @Test func theMarkStaysBeforeARefusedNotificationWhichIsAskedForDaily() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let startMs = Timestamp.now()
    let signedMs = startMs - 3 * 86_400_000
    let good = try Self.notification("n1", at: signedMs)
    let forged = try Self.forged(good)
    let starts = Monitor<[Int64]>([])
    let summary = try fixture.run(Self.notifications(.told([forged]), starts))
    #expect(summary.refusedNotifications == 1 && !summary.isWhole)
    expectEqual(
      summary.problems,
      [
        "app, Production, the notification history: refused: the signature does not match the content"
      ])
    // Within a day only newer ones are requested, however often.
    for _ in 0..<2 { try fixture.run(Self.notifications(.told([]), starts)) }
    let known = starts.withLock { $0 }
    #expect(known.count == 3 && known.dropFirst().allSatisfy { $0 >= startMs - 3_600_000 })
    // A day later, twice: first it is refused again, then it is good.
    for (days, answer, refused) in [(1, [forged], 1), (2, [good], 0)] {
      let nowMs = startMs + Int64(days) * 86_400_000
      fixture.options.clock.nowMs = { nowMs }
      let summary = try fixture.run(Self.notifications(.told(answer), starts))
      expectEqual(summary.refusedNotifications, refused)
      #expect(starts.withLock { $0.last } == signedMs - 1)
    }
    try expectEqual(fixture.texts("SELECT notification_uuid FROM notification_view"), ["n1"])
    fixture.options.clock.nowMs = { startMs + 3 * 86_400_000 }
    try fixture.run(Self.notifications(.told([]), starts))
    #expect(starts.withLock { $0.last } == startMs + 2 * 86_400_000 - 3_600_000)
  }

  @Test func theRangesOfAPageEndBeforeItsFirstRefusedAndBeginAfterItsLast() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let firstMs = Timestamp.now() - 3 * 86_400_000
    let lastMs = firstMs + 86_400_000
    let refused = try [lastMs, firstMs].map { atMs in
      try Self.forged(try Self.notification("n\(atMs)", at: atMs))
    }
    try fixture.run(Self.notifications(.told(refused), Monitor<[Int64]>([])))
    let ranges = try fixture.texts(
      """
      SELECT from_ms || ' ' || to_ms FROM fetched_pages WHERE environment =
      (SELECT id FROM symbols WHERE text = 'Production') ORDER BY position
      """)
    try #require(ranges.count == 2)
    #expect(ranges[0].hasSuffix(" \(firstMs - 1)") && ranges[1].hasPrefix("\(lastMs + 1) "))
  }

  @Test func aRangeThatWasInterruptedAfterARefusalBeginsAgain() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let forged = try Self.forged(try Self.notification("n1"))
    let stop = StopFlag()
    try fixture.run(
      ScriptedServerAPI { _, endpoint, _ in
        if endpoint == .sandbox { return .told([]) }
        stop.set()
        return .told([forged], token: "p1", hasMore: true)
      }, stop: stop)
    let service = ScriptedServerAPI { _, _, _ in .told([]) }
    try fixture.run(service)
    expectEqual(service.calls.first { $0.hasPrefix("production") }, "production notifications -")
    #expect(!service.calls.contains("production notifications p1"))
  }

  @Test func withAMomentNotificationsAreAskedForSinceThen() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let starts = Monitor<[Int64]>([])
    try fixture.run(Self.notifications(.told([]), starts))
    let sinceMs = Timestamp.now() - 5 * 86_400_000
    fixture.options.sinceMs = sinceMs
    try fixture.run(Self.notifications(.told([]), starts))
    #expect(starts.withLock { $0.last } == sinceMs)
    // No further back than the App Store keeps them.
    fixture.options.sinceMs = 0
    try fixture.run(Self.notifications(.told([]), starts))
    #expect(starts.withLock { $0.last }! > sinceMs - 180 * 86_400_000)
  }

  @Test func aFirstRunGoesBackAsFarAsTheAppStoreDoes() throws {
    let fixture = try SyncFixture([])
    fixture.options.fetchesNotifications = true
    let days = Monitor<[AppStoreEndpoint: Int64]>([:])
    let service = ScriptedServerAPI { call, endpoint, _ in
      if case .notificationHistory(let fromMs, let toMs, _) = call {
        days.withLock { $0[endpoint] = (toMs - fromMs) / 3_600_000 }
      }
      return .told([])
    }
    try fixture.run(service)
    let hours: [AppStoreEndpoint: Int64] = days.withLock { $0 }
    expectEqual(hours[.production], 4_319)
    expectEqual(hours[.sandbox], 719)
  }
}
