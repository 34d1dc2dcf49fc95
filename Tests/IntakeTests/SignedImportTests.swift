// Import lines with signed transactions and notifications: what is accepted, and every reason for refusing one.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite("Import lines with signed objects") struct SignedImportTests {
  private let sign = SignedSample.app

  private func reasons(_ problems: [ImportProblem], _ severity: ImportProblem.Severity) -> [String]
  {
    problems.filter { $0.severity == severity }.flatMap(\.reasons).map(\.description)
  }

  // MARK: Signed transactions

  @Test("a list is one event, with the verdict on each object and all the line's fields")
  func list() throws {
    let run = try ImportRun.signed()
    let first = try sign.transaction()
    let second = try sign.transaction(
      "2", ["signedDate": "\(SignedSample.signedDateMs + 1000)"])
    let line = sign.line(
      [first, second],
      #""country_code":"de","user_identifier":"42","identifier_for_vendor":"v","ip_address":"::1","#
        + #""metadata":{ "p" : [1.50] }"#)
    let (summary, problems) = try run(lines: line)
    #expect(problems.isEmpty)
    expectEqual(summary.uploads, 1)
    expectEqual(summary.notifications, 0)
    expectEqual(summary.exitCode, .done)
    try #require(run.appender.events.map(\.type) == ["transactions.received"])
    let data = run.appender.events[0].data
    let family = try #require(UUID16(FakeFamilies.id))
    let expected = [
      "upload_id": TransactionsReceived.uploadID(
        of: [Array(first.utf8), Array(second.utf8)], in: family
      ).description,
      "app_family_id": FakeFamilies.id, "via": "import", "line_sha256": Sample.hex(line),
      "country_code": "DE", "user_identifier": "42", "identifier_for_vendor": "v",
      "ip_address": "::1", "outcome": "valid",
      // The greatest signedDate.
      "occurred_at": Timestamp.fixedText(ms: SignedSample.signedDateMs + 1000),
    ]
    for (key, value) in expected { expectEqual(data[key], .string(value), "\(key)") }
    expectEqual(data["line"], .number("1"))
    #expect(data["fraud_reason"] == nil)
    expectEqual(
      data["metadata"].map { String(decoding: $0.bytes, as: UTF8.self) }, #"{"p":[1.50]}"#)
    guard case .array(let objects) = try #require(data["transactions"]) else { return }
    try #require(objects.count == 2)
    let root = try SignedSample.authority.get().root.fingerprint.hex
    #expect(objects.allSatisfy { $0["outcome"] == .string("valid") })
    #expect(objects.allSatisfy { $0["root_sha256"] == .string(root) })
    expectEqual(objects[1]["payload"]?["transactionId"], .string("2"))
  }

  @Test(
    "the operator's environment is recorded for objects that name none, in version 2 of the event"
  )
  func statedEnvironment() throws {
    let nameless = try sign.transaction("1", ["environment": nil])
    let named = try sign.transaction("2")
    // (the line, what is recorded, why it is refused)
    let cases: [(String, String?, [String])] = [
      (sign.line([nameless], #""environment":"Sandbox""#), "Sandbox", []),
      (sign.line([nameless, named], #""environment":"Production""#), "Production", []),
      (sign.line([named], #""environment":"Production""#), nil, []),
      (
        sign.line([nameless, named], #""environment":"Sandbox""#), nil,
        ["environment is not that of signed_transactions[1]"]
      ),
      (
        sign.line([nameless], #""environment":"sandbox""#), nil,
        [#"environment is neither "Production" nor "Sandbox""#]
      ),
      (
        sign.line([nameless], #""environment":null"#), nil,
        [Self.refused("signed_transactions[0]", .missingEnvironment)]
      ),
    ]
    for (line, recorded, refusals) in cases {
      let run = try ImportRun.signed()
      let (summary, problems) = try run(lines: line)
      expectEqual(reasons(problems, .refused), refusals, "\(line.suffix(60))")
      expectEqual(summary.uploads, (refusals.isEmpty ? 1 : 0))
      guard refusals.isEmpty else { continue }
      expectEqual(run.appender.events.last?.data["environment"]?.stringValue, recorded)
      expectEqual(run.appender.submissions.last?.last?.version, (recorded == nil ? 1 : 2))
    }
  }

  @Test("objects inside a notification that name no environment have that of the notification")
  func environmentOfTheNotification() throws {
    let run = try ImportRun.signed()
    let renewal = try sign.sign(#"{"signedDate":1779999999000}"#)
    let line = sign.line(
      notification: try sign.notification(
        transaction: try sign.transaction("1", ["environment": nil]), renewal: renewal))
    let (summary, problems) = try run(lines: line)
    #expect(problems.isEmpty)
    expectEqual(summary.notifications, 1)
    let data = try #require(run.appender.events.last).data
    expectEqual(data["transaction"]?["outcome"], .string("valid"))
    expectEqual(data["renewal"]?["outcome"], .string("valid"))
    expectEqual(data["environment"], .string("Production"))
  }

  @Test("occurred_at is the line's, if it has one") func occurredAt() throws {
    let run = try ImportRun.signed()
    _ = try run(
      lines: sign.line([try sign.transaction()], #""occurred_at":1000"#),
      sign.line(notification: try sign.notification(), #""occurred_at":2000"#))
    let times = run.appender.events.map { $0.data["occurred_at"]?.stringValue }
    expectEqual(times, [1000, 2000].map { Timestamp.fixedText(ms: $0) })
  }

  @Test("an app transaction may accompany a list") func appTransaction() throws {
    let run = try ImportRun.signed()
    let app = try sign.sign(
      #"{"receiptType":"Production","bundleId":"com.example.app","receiptCreationDate":1779000000000}"#
    )
    let (summary, problems) = try run(
      lines: sign.line([try sign.transaction()], #""app_transaction":"\#(app)""#))
    #expect(problems.isEmpty)
    expectEqual(summary.uploads, 1)
    let object = run.appender.events.first?.data["app_transaction"]
    expectEqual(object?["payload"]?["receiptType"], .string("Production"))
  }

  @Test("the same line, and the same list in the ledger, append nothing") func knownLine() throws {
    let run = try ImportRun.signed()
    let line = sign.line([try sign.transaction()])
    let old = sign.line([try sign.transaction("2")])
    run.known.digests = [Array(old.utf8).withUnsafeBytes { SHA256.hash($0) }]
    let (summary, _) = try run(lines: line, old, line)
    expectEqual(summary.uploads, 1)
    expectEqual(summary.known, 2)
  }

  // MARK: Notifications

  @Test("a notification is one event, with the verdicts on the objects inside") func notification()
    throws
  {
    let run = try ImportRun.signed()
    let renewal = try sign.sign(#"{"environment":"Production","signedDate":1779999999000}"#)
    let line = sign.line(
      notification: try sign.notification(transaction: try sign.transaction(), renewal: renewal))
    let (summary, problems) = try run(lines: line)
    #expect(problems.isEmpty)
    expectEqual(summary.uploads, 0)
    expectEqual(summary.notifications, 1)
    expectEqual(summary.positions, 0...0)
    try #require(run.appender.events.map(\.type) == ["notification.received"])
    let data = run.appender.events[0].data
    let expected = [
      "notification_uuid": SignedSample.uuid, "app_family_id": FakeFamilies.id,
      "bundle_id": Sample.bundleID, "environment": "Production", "via": "import",
      "line_sha256": Sample.hex(line), "type": "DID_RENEW", "subtype": "BILLING_RECOVERY",
      "occurred_at": Timestamp.fixedText(ms: SignedSample.signedDateMs),
    ]
    for (key, value) in expected { expectEqual(data[key], .string(value), "\(key)") }
    for key in ["transaction", "renewal", "notification"] {
      expectEqual(data[key]?["outcome"], .string("valid"), "\(key)")
    }
    expectEqual(data["renewal"]?["signed_at"], .string(Timestamp.fixedText(ms: 1_779_999_999_000)))
  }

  @Test("a known UUID appends nothing, whether from the ledger or from the same import")
  func knownNotification() throws {
    let run = try ImportRun.signed()
    let old = "11111111-51f5-4503-b5a8-c3a1af68eb20"
    run.known.notifications = [old]
    let directory = try TemporaryDirectory()
    let again = sign.line(notification: try sign.notification())
    let lines = [
      again, sign.line(notification: try sign.notification()),
      sign.line(notification: try sign.notification(uuid: old)),
    ]
    let paths = [
      try directory.write("a.ndjson", lines.joined(separator: "\n")),
      try directory.write("b.ndjson", sign.line(notification: try sign.notification())),
    ]
    let (summary, problems) = try run.run(paths)
    #expect(problems.isEmpty)
    expectEqual(summary.lines, 4)
    expectEqual(summary.notifications, 1)
    expectEqual(summary.known, 3)
    expectEqual(summary.exitCode, .done)
  }

  @Test("a forged notification with a known UUID is refused, not known") func forgedKnown() throws {
    let run = try ImportRun.signed()
    run.known.notifications = [SignedSample.uuid]
    let forged = try sign.sign(sign.notificationPayload(), by: .stranger.get())
    let (summary, _) = try run(lines: sign.line(notification: forged))
    expectEqual(summary.refused, 1)
    expectEqual(summary.known, 0)
  }

  @Test("other members of a notification's line are ignored with a warning, good or bad")
  func besideNotification() throws {
    let run = try ImportRun.signed()
    let (summary, problems) = try run(
      lines: sign.line(
        notification: try sign.notification(),
        #""country_code":7,"user_identifier":"4","ip_address":null,"verification":{"reply":7},"x":1"#
      )
    )
    expectEqual(summary.notifications, 1)
    expectEqual(summary.refused, 0)
    expectEqual(
      reasons(problems, .warning),
      [
        "x is unknown and was ignored",
        "country_code was ignored: it does not belong next to notification",
        "user_identifier was ignored: it does not belong next to notification",
        "verification was ignored: it does not belong next to notification",
      ])
    #expect(run.appender.events.first?.data["country_code"] == nil)
  }

  @Test("members that do not belong to a line's subject are ignored with a warning")
  func besideOthers() throws {
    let run = try ImportRun.signed()
    let (summary, problems) = try run(
      lines: sign.line([try sign.transaction()], #""verification":{"reply":7}"#),
      Sample.line(#""app_transaction":"x""#))
    expectEqual(summary.uploads, 2)
    expectEqual(
      reasons(problems, .warning),
      [
        "verification was ignored: it does not belong next to signed_transactions",
        "app_transaction was ignored: it does not belong next to receipt",
      ])
  }

  // MARK: Apps and trust

  @Test("--register-apps registers each bundle that it meets, once") func registers() throws {
    var run = try ImportRun.signed()
    run.families.bundles = []
    run.options.registersApps = true
    let other = ["bundleId": "\"com.example.other\""]
    let (summary, problems) = try run(
      lines: sign.line([try sign.transaction(), try sign.transaction("2")]),
      sign.line([try sign.transaction("3")]), Sample.line(),
      sign.line(
        notification: try SignedSample(bundleID: "com.example.other").notification(
          transaction: try sign.transaction("1", other))))
    #expect(problems.isEmpty)
    expectEqual(summary.registered, 2)
    expectEqual(
      run.appender.submissions.map { $0.map(\.type) },
      [
        ["app.registered", "transactions.received"], ["transactions.received"],
        ["receipt.uploaded", "receipt.verified"], ["app.registered", "notification.received"],
      ])
    let events = run.appender.events.map(\.data)
    expectEqual(events[1]["app_family_id"], events[0]["app_family_id"])
    expectEqual(events[2]["app_family_id"], events[0]["app_family_id"])
  }

  @Test("trust is recorded once, before the first signature") func trust() throws {
    var run = try ImportRun.signed()
    run.trust = TrustDeclared(
      productionHost: "a", sandboxHost: "b", roots: [.appleRoot], intermediates: [],
      localTestingSigners: [])
    _ = try run(
      lines: Sample.recorded(), sign.line(notification: try sign.notification()),
      sign.line([try sign.transaction()]))
    expectEqual(
      run.appender.submissions.map { $0.map(\.type) },
      [
        ["receipt.uploaded", "receipt.verified"], ["trust.declared", "notification.received"],
        ["transactions.received"],
      ])
  }

  @Test("--strict appends nothing if one signature is bad") func strict() throws {
    var run = try ImportRun.signed()
    run.options.isStrict = true
    let forged = try sign.sign(sign.payload(), by: .stranger.get())
    let good = sign.line([try sign.transaction()])
    let (summary, _) = try run(lines: good, sign.line([forged]))
    #expect(summary.isRefusedAsWhole)
    #expect(run.appender.events.isEmpty)
    try expectEqual(
      run(lines: good, sign.line(notification: try sign.notification())).summary.notifications, 1)
  }

  // MARK: Bad lines

  /// The end of a refused object's report.
  private static func refused(_ place: String, _ fault: SignedObjectFault) -> String {
    "\(place) is refused: \(fault) (\(fault.rawValue))"
  }

  @Test("a bad object refuses its whole list, named by its index")
  func badObjects() throws {
    let good = try sign.transaction()
    let parts = good.split(separator: ".").map(String.init)
    var derForm = SignedObjectForm()
    derForm.signature = .der
    var none = SignedObjectForm()
    none.algorithm = "none"
    var early = SignedObjectAuthority.Plan()
    early.leaf.notAfter = "200101000000Z"
    let expired = try SignedObjectAuthority(early)
    let cases: [(String, SignedObjectFault)] = [
      (parts[0] + "." + parts[1], .notThreeParts), (good + ".", .notThreeParts),
      ("!" + good, .notBase64URL), (good + "=", .notBase64URL), ("", .notThreeParts),
      (String(repeating: "A", count: 131_073), .tooLarge),
      (try sign.sign(sign.payload(), none), .wrongAlgorithm),
      (try sign.sign(sign.payload(), derForm), .malformedSignature),
      (try sign.sign("[]"), .payloadNotJSON),
      (try sign.sign(#"{"a":1,"a":2}"#), .payloadNotJSON),
      (try sign.transaction("1", ["signedDate": nil]), .missingSignedDate),
      (try sign.transaction("1", ["bundleId": nil]), .missingBundleID),
      (try sign.transaction("1", ["environment": nil]), .missingEnvironment),
      (try sign.transaction("1", ["environment": "\"Moon\""]), .unknownEnvironment),
      (try sign.transaction("1", ["environment": "\"Xcode\""]), .localTestingEnvironment),
      (try sign.transaction("1", ["environment": "\"LocalTesting\""]), .localTestingEnvironment),
      (try sign.transaction("1", ["signedDate": "\(Sample.nowMs + 60_001)"]), .signedInFuture),
      (try sign.sign(sign.payload(), by: .stranger.get()), .untrustedRoot),
    ]
    for (text, fault) in cases {
      let run = try ImportRun.signed()
      let (summary, problems) = try run(
        lines: sign.line([good, text, good]), sign.line([good], #""user_identifier":"2""#))
      expectEqual(summary.uploads, 1)
      expectEqual(
        reasons(problems, .refused), [Self.refused("signed_transactions[1]", fault)], "\(fault)")
      #expect(!problems.contains { $0.description.contains(parts[1]) })
    }
    var run = try ImportRun.signed()
    run.signedObjects = expired.verifier
    let (_, problems) = try run(lines: sign.line([try sign.sign(sign.payload(), by: expired)]))
    expectEqual(
      reasons(problems, .refused),
      [
        Self.refused("signed_transactions[0]", .certificateExpired)
      ])
  }

  @Test("an object of a configured testing certificate is not accepted into a history")
  func localTesting()
    throws
  {
    var run = try ImportRun.signed()
    let authority = try SignedSample.authority.get()
    run.signedObjects = SignedObjectVerifier(
      pinnedRoots: [authority.root.fingerprint], localTestingSigners: [authority.leaf.fingerprint])
    let (summary, problems) = try run(
      lines: sign.line([try sign.transaction("1", ["environment": "\"Xcode\""])]))
    expectEqual(summary.refused, 1)
    expectEqual(
      reasons(problems, .refused),
      [
        Self.refused("signed_transactions[0]", .localTestingEnvironment)
      ])
  }

  @Test("an object inside a notification is named by its place") func badInner() throws {
    let forged = try sign.sign(sign.payload(), by: .stranger.get())
    let cases: [(String, [String])] = [
      (
        try sign.notification(transaction: forged, renewal: "x"),
        [
          Self.refused("notification.data.signedRenewalInfo", .notThreeParts),
          Self.refused("notification.data.signedTransactionInfo", .untrustedRoot),
        ]
      ),
      (
        try sign.sign(sign.notificationPayload(uuid: nil)),
        [Self.refused("notification", .missingNotificationUUID)]
      ),
      (
        try sign.sign(sign.notificationPayload(["environment": "\"Xcode\""])),
        [Self.refused("notification", .localTestingEnvironment)]
      ),
      (
        try sign.sign(sign.notificationPayload(signedDate: "null")),
        [Self.refused("notification", .missingSignedDate)]
      ),
      (
        try sign.sign(sign.notificationPayload(uuid: String(repeating: "x", count: 256))),
        ["notification has a UUID, a type or a subtype of more than 255 bytes"]
      ),
      (
        try sign.notification(["bundleId": "\"com.example.other\""]),
        ["notification has a bundle id that no app has registered"]
      ),
    ]
    for (text, expected) in cases {
      let run = try ImportRun.signed()
      let (summary, problems) = try run(lines: sign.line(notification: text))
      expectEqual(summary.refused, 1)
      expectEqual(reasons(problems, .refused), expected)
      #expect(run.appender.events.isEmpty)
    }
  }

  @Test("a bad line is refused with all its reasons") func badLines() throws {
    let good = try sign.transaction()
    let other = try sign.transaction("1", ["bundleId": "\"com.example.other\""])
    let subjects = "receipt, signed_transactions, notification and notification_v1"
    let cases: [(String, [String])] = [
      (#"{"signed_transactions":7}"#, ["signed_transactions is not an array"]),
      (#"{"signed_transactions":[]}"#, ["signed_transactions is empty"]),
      (#"{"signed_transactions":null}"#, ["has none of \(subjects)"]),
      (
        #"{"signed_transactions":[null,7,{}]}"#,
        (0..<3).map { "signed_transactions[\($0)] is not a string" }
      ),
      (
        sign.line(Array(repeating: good, count: 101)),
        ["signed_transactions has more than 100 entries"]
      ),
      (
        sign.line([good], #""country_code":"UK","app_transaction":7,"occurred_at":true"#),
        [
          "country_code is neither an ISO 3166-1 alpha-2 code nor XK",
          "app_transaction is not a string",
          "occurred_at is neither an RFC 3339 time with up to milliseconds nor an integer of epoch "
            + "milliseconds",
        ]
      ),
      (#"{"notification":{}}"#, ["notification is not a string"]),
      (
        #"{"notification":"a.b"}"#, [Self.refused("notification", .notThreeParts)]
      ),
      (
        sign.line([good], #""receipt":"AAAA""#), ["has more than one of \(subjects)"]
      ),
      (
        sign.line([good], #""notification":"\#(good)""#), ["has more than one of \(subjects)"]
      ),
      (
        #"{"receipt":"\#(good)"}"#,
        [
          "receipt is a signed object (JWS), not a receipt: it belongs in signed_transactions, or in "
            + "notification if it is a notification's signedPayload"
        ]
      ),
      (
        sign.line([other]),
        ["signed_transactions[0] has a bundle id that no app has registered"]
      ),
      (
        sign.line([good, other, other]),
        (1...2).map { "signed_transactions[\($0)] has a bundle id that no app has registered" }
      ),
      (
        sign.line([
          try sign.transaction("1", ["bundleId": "\"\(String(repeating: "x", count: 256))\""])
        ]
        ),
        ["signed_transactions[0] has a bundle id of more than 255 bytes"]
      ),
    ]
    for (line, expected) in cases {
      let run = try ImportRun.signed()
      let (summary, problems) = try run(lines: line)
      expectEqual(summary.refused, 1)
      expectEqual(reasons(problems, .refused), expected)
      #expect(run.appender.events.isEmpty)
    }
  }

  @Test("a notification of Production must name the number that the app declares") func appAppleID()
    throws
  {
    let right = try sign.sign(sign.notificationPayload(["appAppleId": "7"]))
    let wrong = try sign.sign(
      sign.notificationPayload(uuid: "u2", ["appAppleId": "8"]))
    let none = try sign.sign(sign.notificationPayload(uuid: "u3"))
    let sandbox = try sign.sign(
      sign.notificationPayload(uuid: "u4", ["environment": "\"Sandbox\""]))
    var run = try ImportRun.signed()
    run.families.appAppleID = 7
    let (summary, problems) = try run(
      lines: sign.line(notification: right), sign.line(notification: wrong),
      sign.line(notification: none), sign.line(notification: sandbox))
    expectEqual(summary.notifications, 2)
    expectEqual(problems.map(\.line), [2, 3])
    expectEqual(problems.flatMap(\.reasons).map(\.code), [.wrongAppAppleID, .wrongAppAppleID])
  }

  @Test("a list of two apps is refused, and registers none of them") func twoApps() throws {
    var run = try ImportRun.signed()
    run.options.registersApps = true
    let other = try sign.transaction("1", ["bundleId": "\"com.example.other\""])
    let (_, problems) = try run(lines: sign.line([try sign.transaction(), other]))
    expectEqual(
      reasons(problems, .refused),
      [
        "signed_transactions[1] belongs to another app than signed_transactions[0]"
      ])
    #expect(run.appender.events.isEmpty)
  }
}
