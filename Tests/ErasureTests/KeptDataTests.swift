// What is kept of each type of event, member by member.
import Base
import Erasure
import Ledger
import TestSupport
import Testing

@Suite struct KeptDataTests {
  private static let family = TestEvent.signedFamily
  private static let digest = Array("a line".utf8).withUnsafeBytes { SHA256.hash($0) }
  private static var hidden: String { KeptLine.hidden(digest).hex }

  /// What is kept of an event after a sale of `coins`; nil if nothing is erased. The erasure is at position 3.
  private static func kept(
    _ type: EventType, _ data: JSONText, _ extents: [ErasureExtent] = [.whole],
    ownership: Ownership = Ownership(), version: Int = 1
  ) throws -> String? {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(reply(row("500"))), .raw(type: type.rawValue, version: version, data),
    ])
    let kept = try fixture.redact(ownership: ownership) { event in
      event.position == 2 ? Taking(extents: extents) : nil
    }
    guard let text = kept[2].map({ String(decoding: $0, as: UTF8.self) }) else { return nil }
    if extents == [.whole] {
      for secret in ["Jane", "\"vendor\"", "192.0.2.1", token, digest.hex, "SmFuZQ"] {
        #expect(!text.contains(secret), "\(secret) is left")
      }
    }
    return text
  }

  private static func replaceID(_ text: String?, _ member: String) throws -> String? {
    guard let text else { return nil }
    let value = try JSONValue(Array(text.utf8))
    let id = try #require(value[member]?.stringValue)
    #expect(UUID16(id) != nil && id.dropFirst(14).first == "4", "\(member) is not random")
    return text.replacing(id, with: "NEW")
  }

  // MARK: receipt.uploaded

  private static func upload(
    user: String? = "Jane", metadata: JSONText = .absent, receipt: JSONText? = nil
  ) -> JSONText {
    let file = ReceiptFileText.transaction(
      .init("7", quantity: 2), environment: "Jane's own")
    return .object([
      ("receipt_id", "7c7cb1ba-6f6c-5b0e-8a73-000000000001"),
      ("app_family_id", JSONText(stringLiteral: family)), ("style", "transaction"),
      ("bundle_id", "app"), ("receipt_sha256", JSONText(stringLiteral: digest.hex)),
      ("occurred_at", "2026-01-10T00:00:00.000Z"), ("via", "import"), ("line", 5),
      ("line_sha256", JSONText(stringLiteral: digest.hex)), ("country_code", "DE"),
      ("identifier_for_vendor", "vendor"),
      ("user_identifier", user.map { JSONText(stringLiteral: $0) } ?? .absent),
      ("ip_address", "192.0.2.1"), ("metadata", metadata),
      ("nickname", "Jane"),
      (
        "receipt",
        receipt
          ?? JSONText(
            stringLiteral: String(decoding: Base64.encode(file.bytes), as: UTF8.self))
      ),
    ])
  }

  private static let head =
    #""app_family_id":"\#(family)","style":"transaction","bundle_id":"app","#
  private static let middle = #""occurred_at":"2026-01-10T00:00:00.000Z","via":"import","line":5,"#
  private static let facts =
    #"{"purchases":[{"quantity":"2","product_id":"coins","transaction_id":"7","original_transaction_id":"7","purchase_date_ms":1767571200000}]}"#

  @Test("Of an upload, the facts of its receipt, the country and names stay")
  func wholeUpload() throws {
    let kept = try Self.replaceID(
      try Self.kept(.receiptUploaded, Self.upload(metadata: ["note": "call Jane"])), "receipt_id")
    expectEqual(
      kept,
      #"{"receipt_id":"NEW",\#(Self.head)\#(Self.middle)"line_sha256":"\#(Self.hidden)","country_code":"DE","user_identifier":"(redacted 3)","receipt":\#(Self.facts)}"#
    )
  }

  @Test("Of a forgery that was reduced to facts, the facts stay, and its digest and id are erased")
  func reducedUpload() throws {
    let kept = try Self.replaceID(
      try Self.kept(
        .receiptUploaded, Self.upload(receipt: JSONText(raw: Self.facts)), version: 2), "receipt_id"
    )
    expectEqual(
      kept,
      #"{"receipt_id":"NEW",\#(Self.head)\#(Self.middle)"line_sha256":"\#(Self.hidden)","country_code":"DE","user_identifier":"(redacted 3)","receipt":\#(Self.facts)}"#
    )
  }

  @Test("A receipt that another user uploaded too stays with its ids")
  func sharedReceipt() throws {
    let kept = try #require(try Self.kept(.receiptUploaded, Self.upload(), [.names]))
    let value = try JSONValue(Array(kept.utf8))
    let before = try JSONValue(Self.upload().bytes)
    for name in ["receipt_id", "receipt_sha256", "receipt"] {
      expectEqual(value[name], before[name])
    }
    expectEqual(value["user_identifier"]?.stringValue, "(redacted 3)")
    for name in ["identifier_for_vendor", "ip_address", "nickname"] { #expect(value[name] == nil) }
    expectEqual(value["line_sha256"]?.stringValue, Self.hidden)
  }

  @Test(
    "What was kept for another user is erased with that user, the file or its facts",
    arguments: [1, 2])
  func laterErasure(version: Int) throws {
    let fixture = try LedgerFixture()
    let receipt = version == 1 ? nil : JSONText(raw: Self.facts)
    try fixture.append([
      .upload(reply(row("500"))),
      .raw(type: "receipt.uploaded", version: version, Self.upload(receipt: receipt)),
    ])
    try fixture.redact { event in event.position == 2 ? Taking(extents: [.names]) : nil }
    let reducer = try LineRedactor(
      erasure: fixture.eventCount, Ownership(), try fixture.rebuilt(),
      lineDigest: { KeptLine.hidden($0) })
    let line = try LogReader(fixture.directory).event(at: 2)
    let kept = try line.withUnsafeBytes { bytes in
      try reducer.kept(of: try #require(EventLine(bytes)), [.whole])
    }
    let value = try JSONValue(try #require(kept))
    #expect(value["receipt_sha256"] == nil)
    expectEqual(value["receipt_id"]?.stringValue?.dropFirst(14).first, "4")
    expectEqual(value["receipt"]?["purchases"]?.arrayValue?.count, 1)
  }

  @Test("Erasing a receipt keeps the user, and the id where another upload has it")
  func receiptAlone() throws {
    let kept = try #require(
      try Self.kept(.receiptUploaded, Self.upload(), [.receiptKeepingID]))
    let value = try JSONValue(Array(kept.utf8))
    expectEqual(value["user_identifier"]?.stringValue, "Jane")
    expectEqual(value["receipt_id"]?.stringValue, "7c7cb1ba-6f6c-5b0e-8a73-000000000001")
    #expect(value["receipt_sha256"] == nil && value["ip_address"] == nil)
  }

  @Test("Of an unreadable receipt nothing stays")
  func unreadableReceipt() throws {
    let kept = try #require(
      try Self.kept(.receiptUploaded, Self.upload(receipt: "bm90IGEgcmVjZWlwdA==")))
    #expect(try JSONValue(Array(kept.utf8))["receipt"] == nil)
  }

  @Test("Retention erases only a field, and the rest stays byte for byte")
  func retention() throws {
    let kept = try #require(try Self.kept(.receiptUploaded, Self.upload(), [.ipAddress]))
    let expected = Self.upload().text.replacing(#""ip_address":"192.0.2.1","#, with: "")
      .replacing(#""line_sha256":"\#(Self.digest.hex)""#, with: #""line_sha256":"\#(Self.hidden)""#)
    expectEqual(kept, expected)
  }

  @Test("An unreadable upload keeps only what is wrong with it")
  func malformed() throws {
    let data: JSONText = ["receipt_id": 7, "user_identifier": "Jane"]
    try expectEqual(Self.kept(.receiptUploaded, data), #"{"malformed":"receipt_id"}"#)
  }

  // MARK: Metadata

  @Test(
    "Of metadata, prices stay as the rules read them",
    arguments: [
      (["note": "call Jane"], nil),
      (["price": "9.99", "currency": "eur", "note": "x"], #"{"price":"9.99","currency":"EUR"}"#),
      (["price": "ask Jane", "currency": "quids"], #"{"price":"?","currency":"?2"}"#),
      (["price": JSONText(raw: "1.5"), "currency": " "], #"{"price":1.5,"currency":""}"#),
      (["price": "1.23456750000049151234"], #"{"price":"1.234568"}"#),
      (["price": JSONText(raw: "0.123456")], #"{"price":0.123456}"#),
      (["price": JSONText(raw: "0.12345678")], #"{"price":"0.123457"}"#),
      (
        ["price_micros": "5", "price_milliunits": 5], #"{"price_micros":"?","price_milliunits":5}"#
      ),
      (["price_micros": JSONText(raw: "5.5")], #"{"price_micros":"?"}"#),
      (["price": .null, "currency": "EUR"], nil),
      (["currency": "EUR", "product_id": "coins"], nil), (["prices": "free"], nil),
      (["prices": ["free", []]], nil),
      (
        ["price": 1, "product_id": "coins", "transaction_id": 12],
        #"{"product_id":"coins","transaction_id":"12","price":1}"#
      ),
      (
        [
          "prices": [
            ["product_id": "Jane", "kind": "gift", "price": 1, "to": "Jane"],
            ["transaction_id": "for Jane", "kind": "intro", "currency": 5],
          ]
        ],
        #"{"prices":[{"product_id":"?","kind":"?2","price":1},{"transaction_id":"?3","kind":"intro","currency":"?4"}]}"#
      ),
      (
        ["prices": [["product_id": "Jane", "price": "Jane"], ["product_id": "Joe"]]],
        #"{"prices":[{"product_id":"?","price":"?"},{"product_id":"?2"}]}"#
      ),
    ] as [(JSONText, String?)])
  func metadata(_ metadata: JSONText, expected: String?) throws {
    let kept = try #require(
      try Self.kept(.receiptUploaded, Self.upload(metadata: metadata), [.names]))
    let reduced = try JSONValue(Array(kept.utf8))["metadata"]
    expectEqual(reduced.map { String(decoding: $0.bytes, as: UTF8.self) }, expected)
  }

  // MARK: receipt.verified

  private static func verified(_ reply: JSONText, member: String = "reply") -> JSONText {
    .object([
      ("upload", 0), ("authority", "app_store"), ("outcome", "valid"), ("status", 0),
      ("attempt", 1), ("endpoint", "production"), ("mismatch", "none"),
      ("host", "buy.itunes.apple.com"), ("occurred_at", "2026-01-10T00:00:00.000Z"),
      (member, reply),
    ])
  }

  private static let result =
    #"{"upload":0,"authority":"app_store","outcome":"valid","status":0,"attempt":1,"endpoint":"production","mismatch":"none","host":"buy.itunes.apple.com","occurred_at":"2026-01-10T00:00:00.000Z","#

  @Test(
    "Of a reply's rows, what the rules read stays",
    arguments: [
      ([:], ""), (["app_account_token": "Jane", "device": "Jane"], ""),
      (["quantity": "2"], #","quantity":"2""#), (["quantity": "x"], #","quantity":"?""#),
      (["quantity": ""], #","quantity":"""#), (["quantity": "12345678"], #","quantity":"?""#),
      (["quantity": "0000000000000002"], #","quantity":"?""#),
      (["quantity": JSONText(raw: "-9223372036854775808")], #","quantity":"?""#),
      (["quantity": ["by": "Jane"]], #","quantity":"?""#), (["quantity": .null], ""),
      (["purchase_date": "2026-01-05 00:00:00 Etc/GMT"], #","purchase_date_ms":1767571200000"#),
      (
        ["purchase_date": "2026-01-05 00:00:00 Etc/GMT", "purchase_date_ms": "5"],
        #","purchase_date_ms":5"#
      ),
      (["expires_date": "then"], ""),
      (["expires_date_ms": "7"], #","expires_date_ms":7"#),
      (
        ["expires_date_formatted": "2026-02-04 16:00:01 America/Los_Angeles"],
        #","expires_date_ms":1770249601000"#
      ),
      (
        ["cancellation_date_ms": "7", "cancellation_reason": "Jane asked"],
        #","cancellation_date_ms":7,"cancellation_reason":"?""#
      ),
      (["cancellation_reason": 1], #","cancellation_reason":"1""#),
      (
        ["promotional_offer_id": "for-jane", "offer_code_ref_name": "Jane"],
        #","promotional_offer_id":"?","offer_code_ref_name":"?""#
      ),
      (["is_trial_period": "false", "is_upgraded": true], #","is_upgraded":"true""#),
      (["web_order_line_item_id": "0"], ""),
    ] as [(JSONText, String)])
  func rows(_ members: JSONText, expected: String) throws {
    var row = "{\"device\":\"Jane\",\"transaction_id\":\"9\""
    row += members.text == "{}" ? "}" : "," + members.text.dropFirst()
    let kept = try #require(
      try Self.kept(
        .receiptVerified,
        Self.verified(["status": 0, "receipt": ["bundle_id": "app", "in_app": [.init(raw: row)]]])))
    let value = try JSONValue(Array(kept.utf8))
    let found = try #require(value["reply"]?["receipt"]?["in_app"]?.arrayValue?.first)
    let object = try JSONValue(Array("{\"transaction_id\":\"9\"\(expected)}".utf8))
    guard case .object(let one) = found, case .object(let other) = object else {
      Issue.record("no object")
      return
    }
    expectEqual(
      Set(one.map { "\($0)" }), Set(other.map { "\($0)" }), "\(found) instead of \(object)")
    #expect(kept.hasPrefix(Self.result))
  }

  @Test("A flat receipt stays flat, and so does its renewal")
  func legacy() throws {
    let kept = try #require(
      try Self.kept(
        .receiptVerified,
        Self.verified([
          "status": 21006, "auto_renew_status": 1,
          "receipt": [
            "bid": "app", "product_id": "pro", "transaction_id": "9",
            "unique_vendor_identifier": "Jane",
          ],
          "latest_expired_receipt_info": ["product_id": "pro", "transaction_id": "8"],
        ])))
    expectEqual(
      kept,
      Self.result
        + #""reply":{"status":21006,"receipt":{"bid":"app","product_id":"pro","transaction_id":"9"},"latest_expired_receipt_info":{"product_id":"pro","transaction_id":"8"},"auto_renew_status":"1"}}"#
    )
  }

  @Test("Of a reply of another kind, only its existence stays")
  func otherReply() throws {
    try expectEqual(
      Self.kept(.receiptVerified, Self.verified("SmFuZQ==", member: "reply_base64")),
      Self.result + #""reply_base64":""}"#)
  }

  @Test("A verification without a reply loses nothing")
  func noReply() throws {
    #expect(try Self.kept(.receiptVerified, Self.verified(.absent)) == nil)
    #expect(try Self.kept(.receiptVerified, Self.verified(1, member: "reply_of")) == nil)
  }

  // MARK: Signed objects

  private static func data(_ event: TestEvent) throws -> JSONText {
    guard case .raw(_, _, let data) = event else { throw CancellationError() }
    return data
  }

  private static let token = "3f2a7c11-aaaa-4bbb-8ccc-000000000001"

  @Test("Of signed transactions, facts stay without headers and signatures")
  func signedUpload() throws {
    let transaction = signed(
      "9",
      [
        "appAccountToken": "\(Self.token)", "type": "Jane's", "price": "?", "storefront": "Mars",
        "offerIdentifier": "Jane",
      ])
    let kept = try Self.replaceID(
      try Self.kept(
        .transactionsReceived,
        try Self.data(
          .signedUpload(
            [
              SignedObjectPlan(transaction), SignedObjectPlan(transaction, .invalid(reason: "bad")),
            ],
            user: "Jane", fraud: .signatureInvalid))), "upload_id")
    let verdict =
      #""root_sha256":"\#(signedObjectRoot.hex)","signed_at":"2026-01-06T00:00:00.000Z""#
    expectEqual(
      kept,
      #"{"upload_id":"NEW","app_family_id":"\#(Self.family)","occurred_at":"2026-01-10T00:00:00.000Z","via":"http","country_code":"DE","user_identifier":"(redacted 3)","outcome":"invalid","fraud_reason":"signature_invalid","transactions":[{"outcome":"valid",\#(verdict),"payload":{"transactionId":"9","originalTransactionId":"9","bundleId":"app","productId":"coins","purchaseDate":1767571200000,"originalPurchaseDate":1767571200000,"quantity":"1","type":"?","signedDate":1767657600000,"environment":"Production","appAccountToken":"(redacted 3)","price":"?"}},{"outcome":"invalid","reason":"bad","signed_at":"2026-01-06T00:00:00.000Z","payload":{}}]}"#
    )
  }

  @Test("Of another user's upload, only the erased user's objects are reduced")
  func othersUpload() throws {
    let data = try Self.data(.signedUpload(signed("8"), signed("9"), user: "Joe"))
    var ownership = Ownership()
    ownership.transactionIDs = [Array("9".utf8)]
    let kept = try #require(
      try Self.kept(.transactionsReceived, data, [.objects], ownership: ownership))
    let (before, value) = (try JSONValue(data.bytes), try JSONValue(Array(kept.utf8)))
    let objects = try #require(value["transactions"]?.arrayValue)
    expectEqual(objects[0], before["transactions"]?.arrayValue?[0])
    #expect(objects[1]["signature"] == nil && objects[1]["payload"]?["transactionId"] != nil)
    expectEqual(value["user_identifier"]?.stringValue, "Joe")
    #expect(try Self.kept(.transactionsReceived, data, [.objects]) == nil)
  }

  @Test("Of a notification, its content stays as facts, with the verdicts")
  func notification() throws {
    let data = try Self.data(
      .notification(
        "REFUND", uuid: "n-1", signed("9", ["appAccountToken": "\(Self.token)"]),
        renewal: [
          "originalTransactionId": "9", "autoRenewStatus": 0, "appAccountToken": "\(Self.token)",
        ],
        about: ["consumptionRequestReason": "Jane"], line: "a line"))
    let kept = try #require(try Self.kept(.notificationReceived, data))
    let value = try JSONValue(Array(kept.utf8))
    expectEqual(value["notification_uuid"]?.stringValue, "n-1")
    expectEqual(value["line_sha256"]?.stringValue, Self.hidden)
    expectEqual(value["notification"]?["payload"], .object([]))
    #expect(value["notification"]?["signature"] == nil)
    expectEqual(value["transaction"]?["payload"]?["appAccountToken"]?.stringValue, "(redacted 3)")
    expectEqual(
      value["renewal"]?["payload"],
      .object([
        .init("originalTransactionId", .string("9")), .init("autoRenewStatus", .number("0")),
      ]))
  }

  @Test(
    "Of refused objects in a page, the facts stay if the reason was time or trust",
    arguments: [
      ("untrusted_root", true), ("signed_in_future", true), ("wrong_signature", false),
    ])
  func refused(_ reason: String, _ staysAsFacts: Bool) throws {
    let refused = SignedObjectRecord.Verdict.invalid(reason: reason)
    let data = try Self.data(
      .fetched(
        [SignedObjectPlan(signed("9", ["appAccountToken": "\(Self.token)"]), refused)],
        renewals: [
          SignedObjectPlan(["originalTransactionId": "9", "autoRenewStatus": 0], refused)
        ],
        .statuses))
    var ownership = Ownership()
    ownership.transactionIDs = [Array("9".utf8)]
    ownership.originalTransactionIDs = [Array("9".utf8)]
    let kept = try #require(
      try Self.kept(.transactionsFetched, data, [.objects], ownership: ownership))
    #expect(!kept.contains(Self.token) && !kept.contains(#""signature":"#))
    let value = try JSONValue(Array(kept.utf8))
    for (name, id) in [("transactions", "transactionId"), ("renewals", "originalTransactionId")] {
      let object = try #require(value[name]?.arrayValue?.first)
      expectEqual(object["reason"]?.stringValue, reason)
      expectEqual(object["payload"]?[id]?.stringValue, (staysAsFacts ? "9" : nil))
    }
  }

  @Test("Of a fetched page, objects about others stay as they were")
  func fetched() throws {
    let data = try Self.data(
      .fetched(
        [SignedObjectPlan(signed("8")), SignedObjectPlan(signed("9", of: "5"))],
        renewals: [
          SignedObjectPlan(["originalTransactionId": "5", "appAccountToken": "\(Self.token)"]),
          SignedObjectPlan(["originalTransactionId": "6"]),
        ], .statuses))
    var ownership = Ownership()
    ownership.originalTransactionIDs = [Array("5".utf8)]
    let kept = try #require(
      try Self.kept(.transactionsFetched, data, [.objects], ownership: ownership))
    let (before, value) = (try JSONValue(data.bytes), try JSONValue(Array(kept.utf8)))
    for (name, stays, goes) in [("transactions", 0, 1), ("renewals", 1, 0)] {
      let (old, new) = (
        try #require(before[name]?.arrayValue), try #require(value[name]?.arrayValue)
      )
      expectEqual(new[stays], old[stays])
      #expect(new[goes]["signature"] == nil && new[goes]["header"] == nil)
      expectEqual(new[goes]["payload"]?["originalTransactionId"]?.stringValue, "5")
    }
    #expect(!kept.contains(Self.token))
  }

  @Test("Declarations lose nothing")
  func declarations() throws {
    #expect(try Self.kept(.historyAccepted, ["log": ["size": 1, "root": "x"]]) == nil)
  }
}
