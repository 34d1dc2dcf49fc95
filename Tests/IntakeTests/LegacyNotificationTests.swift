// Version 1 notifications as import lines: what is recorded of them, and why one is refused.
import AppStore
import Base
import Intake
import Ledger
import TestSupport
import Testing

@Suite("Import lines with version 1 notifications") struct LegacyNotificationTests {
  private static let secret = "5ecre75ecre7"

  private func row(_ transaction: Int = 1, _ rest: String = "") -> String {
    #"{"transaction_id":"\#(transaction)","original_transaction_id":"1","product_id":"pro","#
      + #""purchase_date_ms":"1700000000000","expires_date_ms":"1702592000000"\#(rest)}"#
  }

  /// A body; nil leaves out a default member.
  private func body(_ changes: [String: String?] = [:], rows: [String]? = nil) -> String {
    let reply =
      #"{"status":0,"environment":"Production","latest_receipt":"\#(Sample.receipt())","#
      + #""latest_receipt_info":[\#((rows ?? [row()]).joined(separator: ","))]}"#
    var members: [String: String?] = [
      "notification_type": #""DID_CHANGE_RENEWAL_STATUS""#, "password": "\"\(Self.secret)\"",
      "bid": "\"\(Sample.bundleID)\"", "bvrs": #""1.2""#, "environment": #""PROD""#,
      "auto_renew_status": #""false""#, "auto_renew_product_id": #""pro""#,
      "unified_receipt": reply,
    ]
    members.merge(changes) { $1 }
    let texts = members.compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return "{\(texts.sorted().joined(separator: ","))}"
  }

  private func line(_ body: String, _ rest: String = #","occurred_at":1701000000000"#) -> String {
    #"{"notification_v1":\#(body)\#(rest)}"#
  }

  private func reasons(_ problems: [ImportProblem]) -> [String] {
    problems.flatMap(\.reasons).map(\.description)
  }

  @Test("a body is a receipt with its recorded reply, and the members kept with them") func events()
    throws
  {
    let run = ImportRun()
    let (summary, problems) = try run(lines: line(body()))
    #expect(problems.isEmpty)
    expectEqual(summary.notifications, 1)
    expectEqual(summary.uploads, 0)
    try #require(run.appender.events.map(\.type) == ["receipt.uploaded", "receipt.verified"])
    expectEqual(run.appender.submissions[0].map(\.version), [1, 2])
    let (upload, result) = (run.appender.events[0].data, run.appender.events[1].data)
    let at = JSONValue.string(Timestamp.fixedText(ms: 1_701_000_000_000))
    expectEqual(upload["receipt"], .string(Sample.receipt()))
    expectEqual(upload["bundle_id"], .string(Sample.bundleID))
    #expect(upload["occurred_at"] == at && result["occurred_at"] == at)
    expectEqual(result["endpoint"], .string("production"))
    expectEqual(result["mismatch"], .string("none"))
    expectEqual(
      String(decoding: try #require(result["notification"]).bytes, as: UTF8.self),
      #"{"auto_renew_product_id":"pro","auto_renew_status":"false","bid":"com.example.app","#
        + #""environment":"PROD","notification_type":"DID_CHANGE_RENEWAL_STATUS"}"#)
    #expect(result["reply"]?["latest_receipt_info"] != nil)
  }

  @Test("no byte of the password is in an event or a report, wherever a body has it")
  func password()
    throws
  {
    let inside = body().replacing(
      #""latest_receipt_info""#, with: #""password":"\#(Self.secret)","latest_receipt_info""#)
    let bare = body(["auto_renew_status_change_date_ms": "1700000001000"])
    let bad = line(body(["bid": nil, "unified_receipt": "7", "environment": "[]"]))
    let run = ImportRun()
    let (summary, problems) = try run(lines: line(body()), line(inside), bare, bad)
    expectEqual(summary.notifications, 3)
    expectEqual(summary.refused, 1)
    for event in run.appender.submissions.joined() {
      #expect(!String(decoding: event.data, as: UTF8.self).contains(Self.secret))
      #expect(!String(decoding: event.data, as: UTF8.self).contains("password"))
    }
    #expect(!problems.contains { $0.description.contains(Self.secret) })
  }

  @Test("a bare body has the time of the latest event that it names") func bare() throws {
    // (the body, the time in milliseconds)
    let cases: [(String, Int64)] = [
      (body(), 1_700_000_000_000), (body(["occurred_at": "1701000000000"]), 1_701_000_000_000),
      (
        body(rows: [row(), row(2, #","cancellation_date_ms":"1700000005000""#)]), 1_700_000_005_000
      ),
      (body(["auto_renew_status_change_date_ms": #""1700000009000""#]), 1_700_000_009_000),
    ]
    for (body, ms) in cases {
      let run = ImportRun()
      let (summary, problems) = try run(lines: body, body)
      #expect(problems.isEmpty)
      expectEqual(summary.notifications, 1)
      expectEqual(summary.known, 1)
      expectEqual(run.appender.events[0].data["occurred_at"], .string(Timestamp.fixedText(ms: ms)))
    }
  }

  @Test("every reason for refusing a body") func refused() throws {
    let v1 = "notification_v1"
    let noTime = "occurred_at is missing: the body of a version 1 notification has no time"
    // (the line, the reasons)
    let cases: [(String, [String])] = [
      (line(body(), ""), [noTime]), (line(body(), #","occurred_at":null"#), [noTime]),
      (line("7"), ["\(v1) is not an object"]),
      (line(body(["unified_receipt": nil])), ["\(v1).unified_receipt is missing"]),
      (line(body(["unified_receipt": "[]"])), ["\(v1).unified_receipt is not an object"]),
      (
        line(body(["notification_type": nil])),
        ["\(v1).notification_type is missing or not a name"]
      ),
      (
        line(body(["notification_type": #""a b""#])),
        ["\(v1).notification_type is missing or not a name"]
      ),
      (
        line(body(["environment": nil]).replacing(#""environment":"Production","#, with: "")),
        ["\(v1).environment is missing, and unified_receipt names none either"]
      ),
      (
        line(body().replacing(#""latest_receipt":"#, with: #""other":"#)),
        ["\(v1).unified_receipt.latest_receipt is missing"]
      ),
      (
        line(body().replacing(Sample.receipt(), with: "*")),
        [
          "\(v1).unified_receipt.latest_receipt is not base64 (base64: length 1 is not a multiple of 4 "
            + "(missing padding, or truncated))"
        ]
      ),
      (
        line(body(["bid": #""com.example.other""#])),
        ["\(v1).unified_receipt is not about the receipt's app"]
      ),
      (
        line(body(["bid": nil], rows: [row(7).replacing(#""1""#, with: #""7""#)])),
        ["\(v1).unified_receipt names no bundle id and shows none of the receipt's transactions"]
      ),
      (
        body(rows: []),
        ["occurred_at is missing, and the body names no date"]
      ),
      (
        body(["occurred_at": "true"]),
        [
          "occurred_at is neither an RFC 3339 time with up to milliseconds nor an integer of epoch "
            + "milliseconds"
        ]
      ),
      (
        line(body(), #","occurred_at":1,"receipt":"AAAA""#),
        ["has more than one of receipt, signed_transactions, notification and notification_v1"]
      ),
    ]
    for (line, expected) in cases {
      let run = ImportRun()
      let (summary, problems) = try run(lines: line)
      expectEqual(reasons(problems), expected, "\(line)")
      expectEqual(summary.refused, 1)
      #expect(run.appender.events.isEmpty)
    }
  }

  @Test("a body without a bid gets its receipt's bundle if it shows something of that receipt")
  func noBundle()
    throws
  {
    let run = ImportRun()
    let (summary, problems) = try run(lines: line(body(["bid": nil])))
    #expect(problems.isEmpty)
    expectEqual(summary.notifications, 1)
    expectEqual(run.appender.events[1].data["mismatch"], .string("none"))
  }

  @Test("members that do not belong to a notification are ignored, with a warning") func beside()
    throws
  {
    let run = ImportRun()
    let rest = #","occurred_at":1701000000000,"user_identifier":"42","country_code":"moon""#
    let (summary, problems) = try run(lines: line(body(), rest))
    expectEqual(summary.notifications, 1)
    expectEqual(
      reasons(problems),
      ["user_identifier", "country_code"].map {
        "\($0) was ignored: it does not belong next to notification_v1"
      })
    #expect(run.appender.events[0].data["user_identifier"] == nil)
  }
}
