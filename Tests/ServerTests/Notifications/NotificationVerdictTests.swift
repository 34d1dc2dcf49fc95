// Notifications: what is recorded of them, and the response to the App Store.
import AppStore
import AppStoreAuthority
import Base
import HTTPClient
import Intake
import Ledger
import Server
import TestSupport
import Testing

@Suite("Verdicts on notifications", .bounded) struct NotificationVerdictTests {
  private let sign = SignedSample()
  private let sample = SignedSample()

  private static let nowMs = ms("2026-01-06")
  private static let clock = WorkflowClock(
    nowMs: { nowMs }, monotonicMs: { MonotonicClock.nowMs() })

  private func fixture(
    appAppleID: Int64? = nil, set: (inout Configuration) -> Void = { _ in }
  ) throws -> WorkflowFixture {
    let root = try SignedSample.authority.get().root.fingerprint
    return try WorkflowFixture(.saying(.status(21000)), appAppleID: appAppleID, clock: Self.clock) {
      $0.trust.additionalRoots = [root]
      set(&$0)
    }
  }

  @Test("a good notification is one event, and its sale is folded") func good() throws {
    let fixture = try fixture()
    let text = try sample.notification([
      "signedTransactionInfo": "\"\(try sign.transaction())\"",
      "signedRenewalInfo": "\"\(try renewal())\"",
    ])
    try expectEqual(fixture.notify(text), .recorded)
    let events = try fixture.events()
    expectEqual(events.map(\.type), ["app.registered", "notification.received"])
    expectEqual(events[1].data["notification_uuid"], .string(SignedSample.uuid))
    expectEqual(events[1].data["via"], .string("http"))
    expectEqual(events[1].data["app_family_id"], .string(WorkflowFixture.familyText))
    expectEqual(events[1].data["occurred_at"], .string("2026-01-06T00:00:00.000Z"))
    try waitUntil { try fixture.notificationIsFolded(SignedSample.uuid) }
    expectEqual(fixture.notificationCounts, ["recorded": 1])
    expectEqual(fixture.appStore.calls, 0)
  }

  private func renewal() throws -> String {
    try sign.sign(
      #"{"autoRenewStatus":1,"originalTransactionId":"1","environment":"Production","#
        + #""signedDate":\#(ms("2026-01-05"))}"#)
  }

  @Test(
    "every type and every subject is kept",
    arguments: [
      ("TEST", "data"), ("RENEWAL_EXTENSION", "summary"), ("RESCIND_CONSENT", "appData"),
      ("EXTERNAL_PURCHASE_TOKEN", "externalPurchaseToken"), ("NOT_KNOWN_YET", "data"),
    ])
  func kinds(_ type: String, _ subject: String) throws {
    let fixture = try fixture()
    let isToken = subject == "externalPurchaseToken"
    let text = try sample.notification(
      type: type, subject: subject,
      isToken ? ["environment": nil, "externalPurchaseId": "\"1-2\""] : [:])
    try expectEqual(fixture.notify(text), .recorded)
    try expectEqual(fixture.events().last?.data["type"], .string(type))
    // Each type shows that its app is not registered.
    let other = try sample.notification(
      uuid: SignedSample.uuid(1), type: type, subject: subject,
      (isToken ? ["environment": nil, "externalPurchaseId": "\"1-2\""] : [:])
        .merging(["bundleId": "\"other\""]) { $1 })
    guard case .retry(let problem, _)? = try fixture.notify(other) else {
      Issue.record("no 503")
      return
    }
    expectEqual(problem?.code, .bundleNotRegistered)
    expectEqual(fixture.notificationCounts, ["recorded": 1, "unknown_bundle": 1])
  }

  /// Status, counted result, field and code of each refused notification.
  fileprivate struct Expected: Equatable {
    var status: Int
    var result: String
    var problems: [[String]]
  }

  private func outcome(_ text: String, _ fixture: WorkflowFixture) throws -> Expected {
    let before = fixture.notificationCounts
    let answer = try fixture.post(text).wait()
    let problems: [FieldProblem] =
      switch answer {
      case .notification(.refused(let problems)), .notification(.forged(let problems)): problems
      case .notification(.retry(let problem, let seconds)):
        seconds > 0 ? [problem].compactMap(\.self) : []
      default: []
      }
    let result = fixture.notificationCounts.first { $0.value != before[$0.key, default: 0] }
    for problem in problems {
      for secret in [text, SignedSample.uuid] where !secret.isEmpty {
        #expect(!problem.message.contains(secret))
      }
    }
    // docs/openapi.json names the codes of each status.
    let api = try OpenAPIDocument()
    let described = api.responses(method: "POST", path: "/app_store/notifications")?[
      "\(answer.status)"]
    let description = described.flatMap { api.checker.resolved($0)["description"]?.stringValue }
    for problem in problems {
      #expect(description?.contains("`\(problem.code.rawValue)`") == true, "\(problem.code)")
    }
    return Expected(
      status: answer.status, result: result?.key ?? "",
      problems: problems.map { [$0.field, $0.code.rawValue] })
  }

  @Test("a refused notification appends nothing, and the App Store learns whether to retry")
  func refused() throws {
    let fixture = try fixture(appAppleID: 7)
    let stranger = try SignedObjectAuthority.stranger.get()
    let good = try sample.notification(["appAppleId": "7"])
    let parts = good.split(separator: ".").map(String.init)
    let own = try sign.transaction()
    let alien = try sign.sign(sign.payload(), by: stranger)
    let forgery = try sign.sign(sample.notificationPayload(), by: stranger)
    let future = try sign.sign(sample.notificationPayload(signedDate: "\(Self.nowMs + 61_000)"))
    func inside(_ transaction: String) throws -> String {
      try sample.notification(["appAppleId": "7", "signedTransactionInfo": "\"\(transaction)\""])
    }
    let place = "signedPayload.data.signedTransactionInfo"
    let cases: [(String, String, Expected)] = [
      ("no JWS", "AAAA", .malformed()), ("empty", "", .malformed()),
      ("too large", String(repeating: "A", count: 131_073), .malformed()),
      ("no UUID", try sample.notification(uuid: nil), .malformed()),
      ("no type", try sample.notification(type: nil, ["appAppleId": "7"]), .malformed()),
      ("no bundle", try sample.notification(["bundleId": nil]), .malformed()),
      ("no environment", try sample.notification(["environment": nil]), .malformed()),
      (
        "Xcode", try sample.notification(["environment": "\"Xcode\""]),
        Expected(
          status: 422, result: "environment",
          problems: [["signedPayload", "environment_not_accepted"]])
      ),
      (
        "another environment", try sample.notification(["environment": "\"Moon\""]),
        Expected(
          status: 422, result: "environment",
          problems: [["signedPayload", "environment_not_accepted"]])
      ),
      ("a stranger's", forgery, .forged()),
      ("altered", "\(parts[0]).\(parts[1]).\(own.split(separator: ".")[2])", .forged()),
      ("a stranger's transaction inside", try inside(alien), .forged(place)),
      ("nonsense inside", try inside("AAAA"), .malformed(place)),
      (
        "another app's transaction inside",
        try inside(try sign.transaction("1", ["bundleId": "\"other\""])),
        Expected(status: 422, result: "malformed", problems: [[place, "bundle_id_mismatch"]])
      ),
      ("of the future", future, .later("out_of_time", "signature_out_of_time")),
      (
        "another app", try sample.notification(["bundleId": "\"other\""]),
        .later("unknown_bundle", "bundle_not_registered")
      ),
      (
        "another number", try sample.notification(["appAppleId": "8"]),
        .later("wrong_app", "wrong_app_apple_id")
      ),
      ("no number", try sample.notification(), .later("wrong_app", "wrong_app_apple_id")),
    ]
    for (situation, text, expected) in cases {
      try expectEqual(outcome(text, fixture), expected, "\(situation)")
    }
    try expectEqual(fixture.events().count, 1)
    try expectEqual(fixture.notify(try inside(own)), .recorded)
    try expectEqual(fixture.events().count, 2)
    for line in fixture.notes.lines {
      #expect(!line.contains(parts[1]) && !line.contains(SignedSample.uuid))
    }
  }

  @Test("an expired leaf and a transaction of the future are requested again") func times() throws {
    let fixture = try fixture()
    var plan = SignedObjectAuthority.Plan()
    plan.leaf.notAfter = "251231235959Z"
    let authority = try SignedSample.authority.get()
    let issued = try plan.leaf.issue(SigningKey(curve: .p256), by: authority.intermediate)
    let expired = SignedObjectAuthority(
      root: authority.root, intermediate: authority.intermediate, leaf: issued)
    let text = try sign.sign(sample.notificationPayload(), by: expired)
    try expectEqual(outcome(text, fixture), .later("out_of_time", "signature_out_of_time"))
    let inner = try sign.transaction("1", ["signedDate": "\(Self.nowMs + 61_000)"])
    let other = try sample.notification(["signedTransactionInfo": "\"\(inner)\""])
    let later = Expected.later(
      "out_of_time", "signature_out_of_time", "signedPayload.data.signedTransactionInfo")
    try expectEqual(outcome(other, fixture), later)
    try expectEqual(fixture.events().count, 1)
  }

  @Test("the Sandbox is refused where the app does not accept it") func sandboxNotAccepted() throws
  {
    let fixture = try fixture {
      var app = Configuration.App()
      app.acceptsSandbox = false
      $0.apps = [WorkflowFixture.familyText: app]
    }
    let text = try sample.notification(["environment": "\"Sandbox\""])
    let expected = Expected(
      status: 422, result: "environment", problems: [["signedPayload", "sandbox_not_accepted"]])
    try expectEqual(outcome(text, fixture), expected)
    try expectEqual(fixture.events().count, 1)
  }

  @Test("log lines say what to do, are few, and escape a stranger's bundle id") func notes()
    throws
  {
    let fixture = try fixture()
    for number in 0..<3 {
      _ = try fixture.notify(
        try sample.notification(uuid: SignedSample.uuid(number), ["bundleId": #""bad\u001b[2Jid""#])
      )
      _ = try fixture.notify(
        try sign.sign(
          sample.notificationPayload(uuid: SignedSample.uuid(number)),
          by: SignedObjectAuthority.stranger.get()))
    }
    expectEqual(
      fixture.notes.lines.sorted(),
      [
        "a forged notification: signedPayload is refused: the root certificate is not trusted "
          + "(untrusted_root)",
        "a notification was put off: its bundle id 'bad\u{FFFD}[2Jid' is not registered: "
          + "'ledgerctl app add' or 'app edit --bundle-id' registers it",
      ])
    for number in 0..<200 {
      _ = try fixture.notify(try sample.notification(["bundleId": "\"b\(number)\""]))
    }
    #expect(fixture.notes.lines.count <= 17)
  }
}

extension NotificationVerdictTests.Expected {
  fileprivate static func malformed(_ place: String = "signedPayload") -> Self {
    Self(status: 422, result: "malformed", problems: [[place, "signed_object_malformed"]])
  }

  fileprivate static func forged(_ place: String = "signedPayload") -> Self {
    Self(status: 403, result: "forged", problems: [[place, "signature_invalid"]])
  }

  fileprivate static func later(
    _ result: String, _ code: String, _ place: String = "signedPayload"
  ) -> Self {
    Self(status: 503, result: result, problems: [[place, code]])
  }
}
