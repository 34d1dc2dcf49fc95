// The lines that are refused, with their messages, and the events of good lines.
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite struct ImportLineTests {
  @Test("a line with any number is accepted or refused by its time, and the next line is read")
  func boundaryNumbers() throws {
    let taken = { (number: String) in
      Int64(number).map { (0...Timestamp.rangeMs.upperBound).contains($0) } ?? false
    }
    let sample = SignedSample.app
    var lines: [String] = []
    var refused: [Int] = []
    for number in JSONText.boundaryNumbers.map(\.text) {
      let reply =
        #"{"status":\#(number),"environment":"Production","receipt":{"bundle_id":"com.example.app","#
        + #""request_date_ms":\#(number),"in_app":[{"transaction_id":"1","quantity":\#(number),"#
        + #""purchase_date_ms":\#(number),"expires_date_ms":\#(number)}]}}"#
      let prices = #""metadata":{"prices":[{"product_id":"coins","price":\#(number)}]}"#
      let notification = try sample.sign(
        sample.notificationPayload(signedDate: number, ["environment": "\"Xcode\""]))
      refused += ((taken(number) ? [] : [1, 2]) + [5, 7]).map { lines.count + $0 }
      lines += [
        Sample.line(#""occurred_at":\#(number)"#),
        Sample.recorded(#""occurred_at":\#(number)"#, transaction: 2),
        Sample.recorded(reply: reply), Sample.line(prices),
        sample.line([try sample.transaction("1", ["signedDate": number])]),
        sample.line([try sample.transaction("1", ["price": number, "expiresDate": number])]),
        sample.line(notification: notification), Sample.line(transaction: lines.count + 9),
      ]
    }
    let run = try ImportRun.signed()
    let (summary, problems) = try run(Array(lines.joined(separator: "\n").utf8))
    expectEqual(problems.filter { $0.severity == .refused }.map(\.line), refused)
    #expect(summary.lines == lines.count && summary.refused == refused.count)
  }

  // MARK: Bad lines

  private static let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
  private static func nested(_ levels: Int) -> String {
    String(repeating: #"{"a":"#, count: levels) + "1" + String(repeating: "}", count: levels)
  }

  private static func receipt(_ text: String) -> String { #"{"receipt":\#(text)}"# }

  @Test(
    arguments: [
      // Not JSON at all.
      ("nonsense", "is not JSON: unexpected byte at byte 1"),
      (#"{"receipt":"AAAA""#, "is not JSON: unexpected end at byte 17"),
      (#"{"receipt":"AAAA"} x"#, "is not JSON: unexpected bytes after the end at byte 19"),
      (#"{"a":1,"a":2}"#, "is not JSON: duplicate key at byte 8"),
      (#"{"a":1,"\u0061":2}"#, "is not JSON: duplicate key at byte 8"),
      ("{\"a\":\"\0\"}", "is not JSON: unescaped control character in a string at byte 6"),
      ("\0", "is not JSON: unexpected byte at byte 0"),
      (#"{"a":01}"#, "is not JSON: invalid number at byte 5"),
      (deep, "is not JSON: nested too deeply at byte 64"),
      ("[1]", "is not a JSON object"),
      ("7", "is not a JSON object"),
      // The receipt.
      ("{}", Self.noSubject),
      (receipt("null"), Self.noSubject),
      (receipt("7"), "receipt is not a string"),
      (receipt(#""""#), "receipt is empty"),
      (receipt(#""\r\n""#), "receipt is empty"),
      (
        receipt(#""AAA""#),
        "receipt is not base64 (base64: length 3 is not a multiple of 4 "
          + "(missing padding, or truncated))"
      ),
      (
        receipt(#""AA-_""#),
        "receipt is not base64 (base64: character at offset 2 is outside the alphabet)"
      ),
      (receipt(#""AA=A""#), "receipt is not base64 (base64: '=' at offset 2 is not at the end)"),
      (
        receipt(#""AAA\u0000""#),
        "receipt is not base64 (base64: character at offset 3 is outside the alphabet)"
      ),
      (
        receipt(#""AAAA""#),
        "receipt cannot be read: decode receipt: neither a PKCS#7 file nor a property list"
      ),
      // Other fields.
      (
        Sample.line(#""marketplace2":1,"country_code":"UK""#),
        "country_code is neither an ISO 3166-1 alpha-2 code nor XK"
      ),
      (
        Sample.line(#""country_code":"""#),
        "country_code is neither an ISO 3166-1 alpha-2 code nor XK"
      ),
      (Sample.line(#""country_code":49"#), "country_code is not a string"),
      (Sample.line(#""identifier_for_vendor":{}"#), "identifier_for_vendor is not a string"),
      (
        Sample.line(#""identifier_for_vendor":"\#(String(repeating: "é", count: 256))""#),
        "identifier_for_vendor is longer than 255 characters"
      ),
      (Sample.line(#""user_identifier":42"#), "user_identifier is not a string"),
      (
        Sample.line(#""user_identifier":"\#(String(repeating: "é", count: 256))""#),
        "user_identifier is longer than 255 characters"
      ),
      (
        Sample.line(#""user_identifier":"(redacted 7)""#),
        "user_identifier has the form of the name that an erasure gives"
      ),
      (
        Sample.line(#""user_identifier":"\u0074oken:7e3fb20b-4cdb-47cc-936d-99d65f608138""#),
        #"user_identifier begins with "token:", which names users by an appAccountToken"#
      ),
      (
        Sample.line(#""user_identifer":"token:""#),
        #"user_identifer begins with "token:", which names users by an appAccountToken"#
      ),
      (
        Sample.line(#""ip_address":"1.2.3""#),
        "ip_address is neither an IPv4 nor an IPv6 address"
      ),
      (
        Sample.line(#""ip_address":"1.2.3.4\u0000""#),
        "ip_address is neither an IPv4 nor an IPv6 address"
      ),
      (
        Sample.line(#""ip_address":"null""#),
        "ip_address is neither an IPv4 nor an IPv6 address"
      ),
      (Sample.line(#""ip_address":[]"#), "ip_address is not a string"),
      (Sample.line(#""metadata":[]"#), "metadata is not an object"),
      (Sample.line(#""metadata":\#(nested(33))"#), "metadata has more than 32 levels"),
      (
        Sample.line(#""metadata":{"a":"\#(String(repeating: "x", count: 65536))"}"#),
        "metadata is larger than 64 KiB"
      ),
      (Sample.line(#""occurred_at":"yesterday""#), badTime("occurred_at")),
      (Sample.line(#""occurred_at":"2026-01-02T03:04:05.6789Z""#), badTime("occurred_at")),
      (Sample.line(#""occurred_at":"2026-02-30T03:04:05Z""#), badTime("occurred_at")),
      (Sample.line(#""occurred_at":1.5"#), badTime("occurred_at")),
      (Sample.line(#""occurred_at":-1"#), "occurred_at is before 1970"),
      (Sample.line(#""occurred_at":"1969-12-31T23:59:59.999Z""#), "occurred_at is before 1970"),
      (Sample.line(#""occurred_at":253402300800000"#), "occurred_at is after the year 9999"),
      (
        Sample.recorded(#""occurred_at":"1966-03-14T10:00:00Z""#),
        "verification.occurred_at is before 1970"
      ),
      (Sample.line(#""occurred_at":true"#), badTime("occurred_at")),
      (
        #"{"marketplace":"play","receipt":"\#(Sample.receipt())"}"#,
        "marketplace is not \"itunes\""
      ),
      (#"{"marketplace":1,"receipt":"\#(Sample.receipt())"}"#, "marketplace is not \"itunes\""),
      // The verification.
      (Sample.line(#""verification":"yes""#), "verification is not an object"),
      (Sample.line(#""verification":{}"#), "verification.reply is missing"),
      (Sample.line(#""verification":{"reply":null}"#), "verification.reply is not an object"),
      (Sample.line(#""verification":{"reply":[]}"#), "verification.reply is not an object"),
      (
        Sample.recorded(#""endpoint":"Sandbox""#),
        "verification.endpoint is neither \"production\" nor \"sandbox\""
      ),
      (
        Sample.recorded(#""endpoint":1"#),
        "verification.endpoint is neither \"production\" nor \"sandbox\""
      ),
      (Sample.recorded(#""occurred_at":"""#), badTime("verification.occurred_at")),
      // Bundles.
      (
        #"{"receipt":"\#(Sample.receipt(bundleID: "com.other"))"}"#,
        "receipt has a bundle id that no app has registered"
      ),
      (
        #"{"receipt":"AAAA","verification":{"endpoint":"sandbox","reply":{"status":0}}}"#,
        "receipt has no bundle id, so it belongs to no app"
      ),
      (
        #"{"receipt":"\#(Sample.receipt(bundleID: String(repeating: "x", count: 256)))"}"#,
        "receipt has a bundle id of more than 255 bytes"
      ),
      // Everything at once.
      (
        #"{"country_code":"UK","user_identifier":1,"metadata":7,"occurred_at":"x","verification":1}"#,
        "country_code is neither an ISO 3166-1 alpha-2 code nor XK; "
          + "user_identifier is not a string; metadata is not an object; "
          + badTime("occurred_at") + "; verification is not an object; " + Self.noSubject
      ),
    ] as [(String, String)])
  func aBadLineIsRefusedWithItsReasons(_ line: String, _ reasons: String) throws {
    let run = ImportRun()
    let (summary, problems) = try run(lines: Sample.line(), line, Sample.line(transaction: 2))
    let refused = problems.filter { $0.severity == .refused }
    expectEqual(refused.count, 1)
    expectEqual(refused.first?.line, 2)
    #expect(refused.first?.description.hasSuffix(":2: " + reasons) == true, "\(refused)")
    expectEqual(summary.uploads, 2)
    expectEqual(summary.refused, 1)
    expectEqual(summary.lines, 3)
    expectEqual(summary.exitCode, .partlyDone)
    expectEqual(run.appender.submissions.count, 2)
  }

  private static let noSubject =
    "has none of receipt, signed_transactions, notification and notification_v1"

  private static func badTime(_ field: String) -> String {
    "\(field) is neither an RFC 3339 time with up to milliseconds nor an integer of epoch "
      + "milliseconds"
  }

  @Test func wrongUTF8IsRefused() throws {
    let line = Array(#"{"user_identifier":""#.utf8) + [0xC3, 0x28] + Array(#""}"#.utf8)
    let (summary, problems) = try ImportRun()(line)
    expectEqual(summary.refused, 1)
    expectEqual(problems[0].reasons.map(\.code), [.notJSON])
    #expect(problems[0].description.hasSuffix("is not JSON: invalid UTF-8 at byte 20"))
  }

  @Test func aReceiptOfMoreThan4MiBIsRefused() throws {
    let text = String(repeating: "A", count: (4 << 20) + 4)
    let (summary, problems) = try ImportRun()(lines: #"{"receipt":"\#(text)"}"#)
    expectEqual(summary.refused, 1)
    #expect(problems[0].description.hasSuffix(":1: receipt is larger than 4 MiB"))
  }

  @Test func aLineOfMoreThan16MiBIsRefusedAndTheNextIsTaken() throws {
    let long = #"{"receipt":"\#(String(repeating: "A", count: 16 << 20))"}"#
    let (summary, problems) = try ImportRun()(lines: long, Sample.line())
    expectEqual(summary.refused, 1)
    expectEqual(summary.uploads, 1)
    #expect(problems[0].description.hasSuffix(":1: is longer than 16 MiB"))
  }

  @Test func noSecretStandsInAReason() throws {
    let secret = "secretvalue"
    let lines = [
      Sample.line(#""country_code":"\#(secret)","ip_address":"\#(secret)""#),
      Sample.line(#""occurred_at":"\#(secret)","marketplace":"\#(secret)""#),
      #"{"receipt":"\#(secret)","user_identifier":["\#(secret)"]}"#,
      Sample.recorded(#""endpoint":"\#(secret)","occurred_at":"\#(secret)""#),
    ]
    let (summary, problems) = try ImportRun()(Array(lines.joined(separator: "\n").utf8))
    expectEqual(summary.refused, 4)
    for problem in problems { #expect(!problem.description.contains(secret)) }
  }

  // MARK: Good lines

  @Test func anUploadBearsAllItsFields() throws {
    let run = ImportRun()
    let line = Sample.line(
      #""country_code":"de","identifier_for_vendor":"V","user_identifier":"4\u00e92","#
        + #""ip_address":"::1","metadata":{ "p" : [1.50, {"x":null}] },"#
        + #""occurred_at":"2026-01-02T04:04:05.678+01:00""#)
    let (summary, problems) = try run(lines: line)
    #expect(problems.isEmpty)
    expectEqual(summary.exitCode, .done)
    expectEqual(summary.positions, 0...1)
    let upload = run.appender.events[0]
    expectEqual(upload.type, "receipt.uploaded")
    let receipt = Sample.receipt()
    let file = try #require(Data(base64Encoded: receipt))
    let expected = [
      "style": "transaction", "bundle_id": Sample.bundleID, "app_family_id": FakeFamilies.id,
      "receipt": receipt, "occurred_at": "2026-01-02T03:04:05.678Z", "via": "import",
      "line_sha256": Sample.hex(line), "country_code": "DE", "identifier_for_vendor": "V",
      "user_identifier": "4é2", "ip_address": "::1",
      "receipt_sha256": Array(file).withUnsafeBytes { SHA256.hash($0) }.hex,
    ]
    for (key, value) in expected { expectEqual(upload.data[key], .string(value), "\(key)") }
    expectEqual(upload.data["line"], .number("1"))
    expectEqual(
      upload.data["metadata"].map { String(decoding: $0.bytes, as: UTF8.self) },
      #"{"p":[1.50,{"x":null}]}"#)
    let local = run.appender.events[1]
    expectEqual(local.type, "receipt.verified")
    expectEqual(
      String(decoding: local.data.bytes, as: UTF8.self),
      #"{"upload":0,"authority":"local","outcome":"valid","attempt":1,"#
        + #""occurred_at":"2026-09-21T14:13:20.000Z"}"#)
  }

  @Test(
    arguments: [
      (#""ip_address":null"#, nil), (#""ip_address":"NULL""#, nil),
      (#""country_code":null"#, nil), (#""ip_address":"10.0.0.1""#, "10.0.0.1"),
    ] as [(String, String?)])
  func anAddressIsStoredOnlyWhereItMayBe(_ members: String, _ address: String?) throws {
    let run = ImportRun()
    _ = try run(lines: Sample.line(members))
    expectEqual(run.appender.events[0].data["ip_address"], address.map { .string($0) })
  }

  @Test func aDamagedReceiptIsMended() throws {
    let run = ImportRun()
    // A text with '+' as a form and a line-breaking encoder leave it.
    let receipt = Sample.receipt(bundleID: "com.example.app")
    let broken = receipt.prefix(20) + #"\r\n"# + receipt.dropFirst(20) + #"\t"#
    _ = try run(lines: #"{"receipt":"\#(broken)"}"#)
    expectEqual(run.appender.events[0].data["receipt"], .string(receipt))
  }

  @Test(
    arguments: [
      // (the line's other members, the upload's time, the verification's)
      (#""occurred_at":1000,"#, "", #""r":1"#, 1000, 1000),
      ("", "", #""r":1"#, Sample.nowMs, Sample.nowMs),
      ("", "", #""request_date_ms":"2000""#, 2000, 2000),
      ("", "", #""request_date_ms":2000"#, 2000, 2000),
      ("", "", #""request_date_ms":"soon""#, Sample.nowMs, Sample.nowMs),
      ("", #","occurred_at":3000"#, #""request_date_ms":"2000""#, 2000, 3000),
      (#""occurred_at":1000,"#, #","occurred_at":3000"#, #""request_date_ms":"2000""#, 1000, 3000),
      (#""occurred_at":null,"#, #","occurred_at":null"#, #""request_date_ms":"2000""#, 2000, 2000),
    ] as [(String, String, String, Int64, Int64)])
  func timesComeFromWhereTheyMay(
    _ ofLine: String, _ ofVerification: String, _ ofReceipt: String, _ upload: Int64,
    _ verification: Int64
  ) throws {
    let run = ImportRun()
    let reply =
      #"{"status":0,"environment":"Production","receipt":{"bundle_id":"\#(Sample.bundleID)",\#(ofReceipt)}}"#
    _ = try run(
      lines: Sample.line(#"\#(ofLine)"verification":{"reply":\#(reply)\#(ofVerification)}"#))
    try #require(run.appender.events.count == 2)
    expectEqual(time(run.appender.events[0].data), upload)
    expectEqual(time(run.appender.events[1].data), verification)
  }

  private func time(_ data: JSONValue) -> Int64? {
    let format = ISO8601DateFormatter()
    format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    return data["occurred_at"]?.stringValue.flatMap { format.date(from: $0) }
      .map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) }
  }

  @Test(
    arguments: [
      (#"{"status":0}"#, #""outcome":"valid","status":0"#, "production"),
      (#"{"status":"0"}"#, #""outcome":"valid","status":0"#, "production"),
      (#"{"status":21006}"#, #""outcome":"valid","status":21006"#, "production"),
      (
        #"{"status":21003}"#,
        #""outcome":"invalid","status":21003,"reason":"not_authenticated""#, "production"
      ),
      (#"{"status":21010}"#, #""outcome":"invalid","status":21010"#, "production"),
      (#"{"status":21002}"#, #""outcome":"unreachable","status":21002"#, "production"),
      (#"{"status":21007}"#, #""outcome":"unreachable","status":21007"#, "production"),
      (#"{"status":21150}"#, #""outcome":"unreachable","status":21150"#, "production"),
      (
        #"{"status":21100,"is_retryable":false}"#, #""outcome":"invalid","status":21100"#,
        "production"
      ),
      (
        #"{"status":21199,"is-retryable":"0"}"#, #""outcome":"invalid","status":21199"#,
        "production"
      ),
      (
        #"{"is_retryable":"true","status":21150}"#, #""outcome":"unreachable","status":21150"#,
        "production"
      ),
      (
        #"{"status":21002,"is_retryable":0}"#, #""outcome":"unreachable","status":21002"#,
        "production"
      ),
      (#"{"status":null}"#, #""outcome":"unreachable""#, "production"),
      (#"{}"#, #""outcome":"unreachable""#, "production"),
      (
        #"{"status":0,"environment":"Sandbox"}"#,
        #""outcome":"valid","environment":"Sandbox","status":0"#, "sandbox"
      ),
      (#"{"status":0,"environment":7}"#, #""outcome":"valid","status":0"#, "production"),
    ] as [(String, String, String)])
  func aReplyGivesItsOutcome(_ reply: String, _ middle: String, _ endpoint: String) throws {
    let run = ImportRun()
    // A reply with sales must name its app to be about the receipt.
    let isValid = middle.hasPrefix(#""outcome":"valid""#)
    let app = #","receipt":{"bundle_id":"\#(Sample.bundleID)","in_app":[]}}"#
    let reply = isValid ? reply.dropLast() + app : reply
    _ = try run(
      lines: Sample.recorded(#""endpoint":"\#(endpoint)","occurred_at":0"#, reply: reply))
    try #require(run.appender.events.count == 2)
    expectEqual(
      String(decoding: run.appender.events[1].data.bytes, as: UTF8.self),
      #"{"upload":0,"authority":"app_store",\#(middle),"attempt":1,"endpoint":"\#(endpoint)","#
        + (isValid ? #""mismatch":"none","# : "")
        + #""via":"import","occurred_at":"1970-01-01T00:00:00.000Z","reply":\#(reply)}"#)
    expectEqual(run.appender.submissions.map(\.count), [2])
  }

  @Test func aReplyIsKeptVerbatimButForWhiteSpace() throws {
    let run = ImportRun()
    let reply = #"{ "status":21005, "n" : 1.0E+2, "s" : "a\/b \u00e9 ", "b":[ true , null ] }"#
    _ = try run(lines: Sample.recorded(#""endpoint":"sandbox""#, reply: reply))
    let data = String(decoding: run.appender.submissions[0][1].data, as: UTF8.self)
    #expect(
      data.hasSuffix(
        #""reply":{"status":21005,"n":1.0E+2,"s":"a\/b \u00e9 ","b":[true,null]}}"#))
    #expect(data.contains(#""endpoint":"sandbox""#))
  }

  @Test(arguments: [
    (#"{"status":0,"receipt":{"bundle_id":"com.example.app","in_app":[]}}"#, "unified"),
    (#"{"status":21006,"receipt":{"bid":"com.example.app"}}"#, "transaction"),
  ])
  func anUnreadableReceiptIsTakenOnTheOperatorsWord(_ reply: String, _ style: String) throws {
    let run = ImportRun()
    let (summary, _) = try run(
      lines: #"{"receipt":"AAAA","verification":{"endpoint":"production","reply":\#(reply)}}"#)
    expectEqual(summary.uploads, 1)
    expectEqual(run.appender.events[0].data["bundle_id"], .string("com.example.app"))
    expectEqual(run.appender.events[0].data["style"], .string(style))
  }

  @Test(
    arguments: [
      (#"{"status":0}"#, nil, true),
      (#"{"status":21005,"environment":"Sandbox"}"#, "sandbox", false),
      (#"{"status":21005,"environment":"Production"}"#, "production", false),
    ] as [(String, String?, Bool)])
  func anEndpointThatNobodyNamesIsNotGuessed(
    _ reply: String, _ endpoint: String?, _ isRefused: Bool
  ) throws {
    let run = ImportRun()
    let (summary, problems) = try run(lines: Sample.recorded(reply: reply))
    expectEqual(summary.refused, (isRefused ? 1 : 0))
    if isRefused {
      #expect(
        problems[0].description.hasSuffix(
          "verification.endpoint is missing, and the reply names no environment"))
    } else {
      expectEqual(run.appender.events[1].data["endpoint"]?.stringValue, endpoint)
    }
  }
}
