// The App Store's replies, what is recorded of them, and the response to the client.
import AppStore
import Base
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import TestSupport
import Testing

/// The table of statuses, a row each.
struct StatusCase: Sendable, CustomTestStringConvertible {
  var says: String
  var contents: [VerifyReceiptResponse.Content]
  var answer: Int
  /// The App Store's verification as `WorkflowFixture.verdicts` shows it, without the position.
  var recorded: String
  /// At least this many calls; the queue may have made more.
  var calls: Int

  init(
    _ says: String, _ contents: VerifyReceiptResponse.Content..., answer: Int, recorded: String,
    calls: Int = 1
  ) {
    self.says = says
    self.contents = contents
    self.answer = answer
    self.recorded = recorded
    self.calls = calls
  }

  var testDescription: String { says }

  static let all: [StatusCase] =
    [
      .init("0", .reply(row("1")), answer: 200, recorded: "valid 0"),
      .init("0 without purchases", .reply(), answer: 200, recorded: "valid 0"),
      .init("21000", .status(21000), answer: 206, recorded: "unreachable 21000"),
      .init("21001", .status(21001), answer: 206, recorded: "unreachable 21001"),
      .init("21002", .status(21002), answer: 206, recorded: "unreachable 21002"),
      .init(
        "21003 twice", .status(21003), answer: 402, recorded: "invalid not_authenticated 21003",
        calls: 2),
      .init(
        "21003, then 0", .status(21003), .reply(row("1")), answer: 200, recorded: "valid 0",
        calls: 2),
      .init(
        "21003, then no answer", .status(21003), .none(.timeout), answer: 206,
        recorded: "unreachable timeout", calls: 2),
      .init("21004", .status(21004), answer: 206, recorded: "unreachable 21004"),
      .init("21005", .status(21005), answer: 206, recorded: "unreachable 21005"),
      .init(
        "21006", .status(21006, #","receipt":{"bundle_id":"app","in_app":[]}"#), answer: 200,
        recorded: "valid 21006"),
      .init("21007 from both", .status(21007), answer: 206, recorded: "unreachable 21007"),
      .init("21009", .status(21009), answer: 206, recorded: "unreachable 21009"),
      .init("21010", .status(21010), answer: 200, recorded: "invalid 21010"),
      .init("21100", .status(21100), answer: 206, recorded: "unreachable 21100"),
      .init(
        "21104, to be tried again", .status(21104, #","is_retryable":true"#), answer: 206,
        recorded: "unreachable 21104"),
      .init(
        "21199, for good", .status(21199, #","is-retryable":"0""#), answer: 206,
        recorded: "invalid 21199"),
      .init("no status", .json(Array("{}".utf8)), answer: 206, recorded: "unreachable no_status"),
      .init("an array", .json(Array("[]".utf8)), answer: 206, recorded: "unreachable no_status"),
      .init("no JSON", .other(Array("<html>".utf8)), answer: 206, recorded: "unreachable not_json"),
    ]
    + AppStoreFailure.allCases.map {
      StatusCase(
        $0.rawValue, .none($0), answer: 206, recorded: "unreachable \($0.rawValue)")
    }
}

@Suite("workflow responses", .bounded) struct WorkflowResponseTests {
  @Test("each status is recorded and answered as the table says", arguments: StatusCase.all)
  func status(_ statusCase: StatusCase) throws {
    let contents = statusCase.contents
    let appStore = ScriptedAppStore { _, call in contents[min(call, contents.count - 1)] }
    // No second attempt during the test.
    let fixture = try WorkflowFixture(appStore) {
      $0.verification.retryFirstMs = 3_600_000
      $0.verification.retryCeilingMs = 3_600_000
    }
    let answer = try fixture.upload("1", user: "u1")
    expectEqual(answer.status, statusCase.answer)
    expectEqual(answer.body?["is_fraud"], .boolean(statusCase.answer == 402))
    try expectEqual(fixture.verdicts(), ["1 \(statusCase.recorded)"])
    expectEqual(appStore.calls, statusCase.calls)
    let types = try fixture.events().map(\.type)
    expectEqual(
      types, ["app.registered", "receipt.uploaded", "receipt.verified", "receipt.verified"])
    try expectEqual(fixture.look(answer).status, statusCase.answer)
  }

  @Test("the first event of an upload has all that the request had, and how it came")
  func uploaded() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let answer = try fixture.upload("1", user: "u1")
    let events = try fixture.events()
    let data = events[1].data
    expectEqual(data["via"]?.stringValue, "http")
    expectEqual(data["user_identifier"]?.stringValue, "u1")
    expectEqual(data["country_code"]?.stringValue, "DE")
    expectEqual(data["ip_address"]?.stringValue, "192.0.2.7")
    expectEqual(data["bundle_id"]?.stringValue, "app")
    expectEqual(data["receipt_id"], answer.body?["id"])
    expectEqual(data["app_family_id"]?.stringValue, WorkflowFixture.familyText)
    expectEqual(events[2].data["authority"]?.stringValue, "local")
    expectEqual(events[2].data["upload"]?.integerValue, 1)
    expectEqual(events[2].data["outcome"]?.stringValue, "valid")
    expectEqual(events[3].data["reply"]?["status"]?.integerValue, 0)
    expectEqual(events[3].data["endpoint"]?.stringValue, "production")
    expectEqual(events[3].data["attempt"]?.integerValue, 1)
  }

  static let foreignReplies: [(JSONText, String)] = [
    (reply(row("1"), receipt: ["bundle_id": "other"]), "bundle"),
    (reply(receipt: ["bundle_id": "other"]), "bundle"),
    (reply(row("2"), receipt: ["bundle_id": .null]), "bundle"),
    (reply(receipt: ["bundle_id": .null]), "bundle"), (reply(row("2")), "transactions"),
    (reply(row("2"), status: 21006), "transactions"),
  ]

  @Test(
    "a reply about something else books nothing, raises an alarm, and is requested again until one fits",
    arguments: foreignReplies)
  func mismatch(_ foreign: JSONText, _ detail: String) throws {
    let appStore = ScriptedAppStore { _, call in
      call < 3 ? .json(foreign.bytes) : call < 4 ? nil : .reply(row("1"))
    }
    let fixture = try WorkflowFixture(appStore)
    let answer = try fixture.upload("1")
    expectEqual(answer.status, 206)
    expectEqual(answer.body?["in_app_purchases"]?.arrayValue?.first?["version"]?.integerValue, 0)
    try waitUntil { appStore.heldCount == 1 }
    let recorded = try #require(try fixture.events().last?.data)
    expectEqual(recorded["outcome"]?.stringValue, "unreachable")
    expectEqual(recorded["reason"]?.stringValue, "reply_mismatch")
    expectEqual(recorded["mismatch"]?.stringValue, detail)
    expectEqual(recorded["reply"], (try JSONValue(foreign.bytes)))
    expectEqual(
      fixture.notes.lines,
      [
        "app family \(WorkflowFixture.familyText): a reply does not match its receipt "
          + "(reply_mismatch): check the App Store's URL, and that no proxy mixes up replies"
      ])
    try expectEqual(fixture.waitingAfterRebuild(), 1)
    appStore.release(.reply(row("1")))
    try waitUntil { try fixture.look(answer).status == 200 }
    try expectEqual(fixture.verdicts().last, "1 valid 0")
    try expectEqual(fixture.events().last?.data["mismatch"]?.stringValue, "none")
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("a reply that is not JSON is kept in base64")
  func otherReply() throws {
    let fixture = try WorkflowFixture(.saying(.other(Array("<html>".utf8))))
    try fixture.upload("1")
    try expectEqual(fixture.events()[3].data["reply_base64"]?.stringValue, "PGh0bWw+")
  }

  @Test("a receipt that cannot be decoded is refused and leaves nothing", arguments: [0, 1])
  func malformed(index: Int) throws {
    let files: [[UInt8]] = [
      Array("hello".utf8), Array(WorkflowFixture.file("1").dropLast(9)),
    ]
    let fixture = try WorkflowFixture(.saying(.reply()))
    let answer = try fixture.send(files[index]).wait()
    guard case .refused(let problems) = answer else {
      Issue.record("not refused")
      return
    }
    expectEqual(problems.map(\.field), ["receipt"])
    expectEqual(problems.map(\.code), [.receiptMalformed])
    try expectEqual(fixture.events().count, 1)
    expectEqual(fixture.appStore.calls, 0)
  }

  @Test("an invalid signature is kept as evidence, answered 402, and the App Store is not asked")
  func forged() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), checker: .signatureInvalid)
    let answer = try fixture.upload("1")
    expectEqual(answer.status, 402)
    expectEqual(answer.body?["fraud_reason"]?.stringValue, "signature_invalid")
    try expectEqual(fixture.events().count, 3)
    expectEqual(fixture.appStore.calls, 0)
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("another app's receipt is kept as evidence and answered 402")
  func otherApp() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let file = ReceiptFileText.transaction(.init("1")).bytes
    let text = String(decoding: file, as: UTF8.self)
    // The same file under another bundle id: "bid" = "app" in the base64 of the purchase info.
    let info = try #require(text.split(separator: "\"").map(String.init).first { $0.count > 40 })
    let plain = String(decoding: try Base64.decode(Array(info.utf8)), as: UTF8.self)
    let other = plain.replacing("\"app\"", with: "\"other\"")
    let forged = text.replacing(info, with: Base64.text(Array(other.utf8)))
    let answer = try fixture.send(Array(forged.utf8)).wait()
    expectEqual(answer.status, 402)
    expectEqual(answer.body?["fraud_reason"]?.stringValue, "bundle_id_mismatch")
    expectEqual(fixture.appStore.calls, 0)
  }

  @Test("a certificate that fails for time alone leaves the verdict to the App Store")
  func timeOnly() throws {
    let fixture = try WorkflowFixture(
      .saying(.reply(row("1"))), checker: .timeOnly("certificate_expired"))
    try expectEqual(fixture.upload("1").status, 200)
    try expectEqual(fixture.events()[2].data["reason"]?.stringValue, "certificate_expired")
  }

  @Test("two users' uploads of one consumable at one instant: one 200, one 402, also when rebuilt")
  func replayedTransaction() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(
      appStore, products: [.init(id: "coins", type: .consumable)])
    // Two receipts of one transaction, as from two devices.
    let files = [
      ReceiptFileText.unified(.init("1")).bytes,
      ReceiptFileText.unified(.init("1"), environment: "ProductionSandbox").bytes,
    ]
    let answers = try files.enumerated().map { try fixture.send($1, user: "u\($0)") }
    try waitUntil { appStore.heldCount == 2 }
    appStore.release(.reply(row("1")))
    let statuses = try answers.map { try $0.wait().status }
    expectEqual(statuses.sorted(), [200, 402])
    let positions = try fixture.events().filter { $0.type == "receipt.uploaded" }.map(\.position)
    let users = try fixture.events().filter { $0.type == "receipt.uploaded" }
      .map { $0.data["user_identifier"]?.stringValue }
    fixture.stop()
    try Projector(try LogReader(fixture.directory)).rebuild()
    let rebuilt = try LiveProjections(fixture.directory)
    for (position, user) in zip(positions, users) {
      let isFraud = try #require(try rebuilt.answer(upload: position)).isFraud
      expectEqual(isFraud, (statuses[user == "u0" ? 0 : 1] == 402))
    }
  }

  @Test(
    "an undeclared product that sells is counted, and reported with the command that declares it")
  func undeclaredProduct() throws {
    let appStore = ScriptedAppStore { _, _ in .reply(row("1", ["product_id": "pro.year"])) }
    let fixture = try WorkflowFixture(
      appStore, products: [.init(id: "coins", type: .consumable)])
    func gauge() -> String? {
      String(decoding: fixture.metrics.exposition(), as: UTF8.self).split(separator: "\n")
        .first { $0.hasPrefix("receipt_ledger_undeclared_products ") }.map(String.init)
    }
    try waitUntil { gauge() == "receipt_ledger_undeclared_products 0" }
    try expectEqual(fixture.upload("1").status, 402)
    // A server reports what it finds at its start, and looks again from time to time.
    fixture.stop()
    try fixture.start()
    try waitUntil { gauge() == "receipt_ledger_undeclared_products 1" }
    expectEqual(
      fixture.notes.lines,
      [
        "app family \(WorkflowFixture.familyText): product pro.year is sold but not declared, so its "
          + "buyers get 402: ledgerctl app edit app --product pro.year=TYPE"
      ])
    let app = AppRegistered(
      appFamilyID: WorkflowFixture.familyText, name: "App", bundleIDs: ["app"],
      products: [
        .init(id: "coins", type: .consumable), .init(id: "pro.year", type: .autoRenewable),
      ])
    _ = try fixture.writer.append([
      EventDraft(type: EventType.appRegistered.rawValue, version: 1, data: app.data)
    ])
    fixture.stop()
    try fixture.start()
    try waitUntil { gauge() == "receipt_ledger_undeclared_products 0" }
    try expectEqual(fixture.upload("1").status, 200)
  }

  @Test("the very same receipt by two users at one instant: one 200, one 402, by one call")
  func replayedReceipt() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(
      appStore, products: [.init(id: "coins", type: .consumable)]
    ) { $0.verification.reuseReplyMs = 60_000 }
    let first = try fixture.send(WorkflowFixture.file("1"), user: "u1")
    let second = try fixture.send(WorkflowFixture.file("1"), user: "u2")
    try waitUntil { try fixture.events().count == 5 && appStore.heldCount == 1 }
    appStore.release(.reply(row("1")))
    expectEqual([try first.wait().status, try second.wait().status].sorted(), [200, 402])
    expectEqual(appStore.calls, 1)
    // The reply and its reuse name the host that answered; a local verification names none.
    let hosts = try fixture.events().map { $0.data["host"]?.stringValue }
    expectEqual(hosts.compactMap(\.self), ["buy.itunes.apple.com", "buy.itunes.apple.com"])
  }

  @Test(
    "a Sandbox receipt is refused where the app does not accept the Sandbox",
    arguments: [
      (ReceiptFileText.unified(.init("1"), environment: "ProductionSandbox"), false, 422),
      (ReceiptFileText.transaction(.init("1"), environment: "Sandbox"), false, 422),
      (ReceiptFileText.unified(.init("1")), false, 200),
      (ReceiptFileText.transaction(.init("1")), false, 200),
      (ReceiptFileText.unified(.init("1"), environment: "ProductionSandbox"), true, 200),
    ])
  func sandboxNotAccepted(_ file: ReceiptFileText, _ isAccepted: Bool, _ status: Int) throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1")))) {
      var app = Configuration.App()
      app.acceptsSandbox = isAccepted
      $0.apps = [WorkflowFixture.familyText: app]
    }
    let answer = try fixture.send(file.bytes).wait()
    expectEqual(answer.status, status)
    // What is refused is not stored.
    try expectEqual(fixture.events().count, (status == 422 ? 1 : 4))
    if case .refused(let problems) = answer {
      expectEqual(problems.map(\.code), [.sandboxNotAccepted])
    }
  }
}
