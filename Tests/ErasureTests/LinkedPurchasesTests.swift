// Data of a person that no upload links to that person: tokens, accounts, transactions, wherever they occur.
import Base
import Erasure
import Ledger
import Projections
import TestSupport
import Testing

private let anna = accountToken(1)
private let bob = accountToken(2)

private func rowToken(_ text: String) -> Members {
  ["app_account_token": JSONText(stringLiteral: text)]
}

private func signedToken(_ text: String) -> Members {
  ["appAccountToken": JSONText(stringLiteral: text)]
}

private func account(_ text: String) -> Members {
  ["appTransactionId": JSONText(stringLiteral: text)]
}

/// The same reply with renewal information.
private func reply(_ rows: JSONText, renewal: JSONText) -> JSONText {
  [
    "status": 0, "environment": "Production", "receipt": ["bundle_id": "app", "in_app": [rows]],
    "pending_renewal_info": [renewal],
  ]
}

@Suite struct LinkedPurchasesTests {
  private static let app = TestEvent.app(
    AppRegistered(
      appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: []))

  /// Anna's purchase 500 with her token is at positions 1 and 2.
  private static func fixture(_ more: [TestEvent]) throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append(
      [app, .upload(reply(row("500", rowToken(anna))), user: "anna", receipt: "anna's")] + more)
    return fixture
  }

  // MARK: Tokens

  private struct Place: CustomTestStringConvertible {
    let testDescription: String
    let events: [TestEvent]
    /// The users of the sales afterwards.
    var users = ["500 (redacted R)", "600 bob"]
  }

  private static let places: [Place] = [
    Place(
      testDescription: "a row of another user's reply, in capitals",
      events: [
        .upload(
          reply(row("600", rowToken(anna.uppercased()))), user: "bob", receipt: "bob's")
      ]),
    Place(
      testDescription: "a row of a reply of nobody, with another user's",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .upload(reply(row("600", rowToken(bob)), row("500", rowToken(anna))), receipt: "both"),
      ]),
    Place(
      testDescription: "renewal information of another user's reply",
      events: [
        .upload(
          reply(
            row("600"),
            renewal: ["original_transaction_id": "600", "app_account_token": "\(anna)"]),
          user: "bob", receipt: "bob's")
      ]),
    Place(
      testDescription: "the reply about a receipt that both uploaded",
      events: [
        .upload(
          reply(row("500", rowToken(anna)), row("600", rowToken(bob))), user: "bob",
          receipt: "anna's")
      ]),
    Place(
      testDescription: "a notification about another transaction",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .notification("REFUND", uuid: "n-1", signed("700", signedToken(anna.uppercased()))),
      ], users: ["500 (redacted R)", "600 bob", "700 token:(redacted R)"]),
    Place(
      testDescription: "renewal information of a notification alone",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .notification(
          "DID_CHANGE_RENEWAL_STATUS", uuid: "n-1", nil,
          renewal: [
            "originalTransactionId": "600", "autoRenewStatus": 1, "appAccountToken": "\(anna)",
          ]),
      ]),
    Place(
      testDescription: "a fetched transaction and fetched renewal information",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .fetched(
          [SignedObjectPlan(signed("600", signedToken(anna))), SignedObjectPlan(signed("600"))],
          renewals: [
            SignedObjectPlan(["originalTransactionId": "600", "appAccountToken": "\(anna)"])
          ], .statuses),
      ]),
    Place(
      testDescription: "another user's upload of signed transactions",
      events: [
        .signedUpload(
          signed("600", signedToken(bob)), signed("600", signedToken(anna)), user: "bob")
      ]),
  ]

  @Test("A token is erased wherever it occurs, and others keep their sales", arguments: places)
  private func tokens(_ place: Place) throws {
    let fixture = try Self.fixture(place.events)
    #expect(try !fixture.positions(holding: anna).isEmpty)
    let erasure = fixture.eventCount
    let record = try fixture.erase("anna")
    try expectEqual(fixture.positions(holding: anna), [])
    expectEqual(record.certificate?.remaining, 0)
    try expectEqual(
      fixture.salesUsers(), place.users.map { $0.replacing("R)", with: "\(erasure))") })
  }

  @Test("A token belongs to the user who showed it first: another user's token stays")
  func firstShown() throws {
    let fixture = try Self.fixture([
      .upload(reply(row("600", rowToken(bob))), user: "bob", receipt: "bob's"),
      // Anna shows what was bought with Bob's token.
      .upload(reply(row("700", rowToken(bob))), user: "anna", receipt: "anna's"),
    ])
    try fixture.erase("anna")
    try expectEqual(fixture.positions(holding: anna), [])
    try expectEqual(fixture.positions(holding: bob), [4, 6])
    try expectEqual(fixture.salesUsers(), ["500 (redacted 7)", "600 bob", "700 (redacted 7)"])
  }

  @Test("A token is a user, in either case", arguments: [anna, anna.uppercased()])
  func tokenUser(_ token: String) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .upload(reply(row("500", rowToken(anna))), receipt: "one"),
      .notification("REFUND", uuid: "n-1", signed("700", signedToken(anna))),
    ])
    try expectEqual(fixture.salesUsers(), ["500 token:\(anna)", "700 token:\(anna)"])
    let record = try fixture.erase("token:\(token)")
    expectEqual(record.certificate?.eventCount, 3)
    try expectEqual(fixture.positions(holding: anna), [])
    try expectEqual(fixture.salesUsers(), ["500 token:(redacted 4)", "700 token:(redacted 4)"])
  }

  @Test(
    "Purchases by an erased person's Apple Account stay that person's, and give a later user nothing"
  )
  func accountOfErased() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(signed("500", account("71")), user: "anna"),
      .notification("ONE_TIME_CHARGE", uuid: "n-1", signed("510", account("71"))),
    ])
    try expectEqual(fixture.salesUsers(), ["500 anna", "510 anna"])
    try fixture.erase("anna")
    try expectEqual(fixture.salesUsers(), ["500 (redacted 3)", "510 (redacted 3)"])
    try fixture.append([
      .signedUpload(signed("500", account("71")), user: "carla"),
      .notification("ONE_TIME_CHARGE", uuid: "n-2", signed("520", account("71"))),
    ])
    let kept = ["500 (redacted 3)", "510 (redacted 3)"]
    try expectEqual(fixture.salesUsers(), kept + ["520 -"])
    try fixture.append([.signedUpload(signed("530", account("71")), user: "carla")])
    try expectEqual(fixture.salesUsers(), kept + ["520 carla", "530 carla"])
  }

  @Test(
    "A purchase with the person's token and another user's Apple Account stays the other user's")
  func otherAccountOfToken() throws {
    let fixture = try Self.fixture([
      .signedUpload(signed("600", account("72")), user: "bob"),
      .signedUpload(signed("700", ["appTransactionId": "72", "appAccountToken": "\(anna)"])),
    ])
    let users = ["500 anna", "600 bob", "700 bob"]
    try expectEqual(fixture.salesUsers(), users)
    try fixture.erase("anna")
    try expectEqual(fixture.salesUsers(), ["500 (redacted 5)"] + users.dropFirst())
    try expectEqual(fixture.positions(holding: anna), [])
  }

  @Test("An erasure within an app family leaves events of others, even with the same token")
  func family() throws {
    let notice = TestEvent.notification("REFUND", uuid: "n-1", signed("700", signedToken(anna)))
    guard case .raw(let type, let version, let data) = notice else { throw CancellationError() }
    let other = data.text.replacing(
      TestEvent.signedFamily, with: "11111111-2222-4333-8444-555555555555")
    let fixture = try Self.fixture([
      .raw(type: type, version: version, JSONText(raw: other)),
      .notification("REFUND", uuid: "n-2", signed("800", signedToken(anna))),
    ])
    try fixture.erase("anna", appFamily: UUID16(TestEvent.signedFamily))
    try expectEqual(fixture.positions(holding: anna), [3])
    try expectEqual(
      fixture.salesUsers(),
      [
        "500 (redacted 5)", "700 token:\(anna)", "800 token:(redacted 5)",
      ])
  }

  // MARK: Accounts

  @Test(
    "An account gets one name; an account of two users is erased from statements without a user")
  func accounts() throws {
    let fixture = try Self.fixture([
      .signedUpload(signed("500", account("71")), signed("501", account("72")), user: "anna"),
      .signedUpload(signed("600", account("72")), user: "bob"),
      // Without a user: first with Anna's account alone, then with the account of both.
      .notification("REFUND", uuid: "n-1", signed("510", account("71"))),
      .notification("REFUND", uuid: "n-2", signed("520", account("72"))),
    ])
    try fixture.erase("anna")
    try expectEqual(
      fixture.accounts(),
      [
        "500 (redacted 7)", "501 (redacted 7.2)", "510 (redacted 7)", "520 ", "600 72",
      ])
  }

  @Test("Types of products stay as Apple signs them, others become a mark")
  func types() throws {
    let types = [
      "Auto-Renewable Subscription", "Non-Renewing Subscription", "Non-Consumable", "Consumable",
      "Jane's",
    ]
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app,
      .signedUpload(
        types.enumerated().map { index, type in
          SignedObjectPlan(signed("\(index)", ["type": JSONText(stringLiteral: type)]))
        }, user: "anna"),
    ])
    try fixture.erase("anna")
    let line = try LogReader(fixture.directory).event(at: 1)
    let kept = line.withUnsafeBytes { EventLine($0).map { Array($0.data) } }
    let objects = try JSONValue(try #require(kept))["transactions"]?.arrayValue ?? []
    expectEqual(objects.map { $0["payload"]?["type"]?.stringValue }, types.dropLast() + ["?"])
  }

  // MARK: Uploads without a user

  private struct Unnamed: CustomTestStringConvertible {
    let testDescription: String
    let events: [TestEvent]
    let reason: InclusionReason?
    /// Whether it shows another user's purchases too.
    var isShared = false
    /// The position of the upload.
    var position = 3
  }

  private static let renewal = signed("700", of: "500")

  private static let unnamed: [Unnamed] = [
    Unnamed(
      testDescription: "the same receipt",
      events: [.upload(reply(row("500")), receipt: "anna's")], reason: .receipt),
    Unnamed(
      testDescription: "another receipt with the transaction",
      events: [.upload(reply(row("500")), receipt: "later")], reason: .transaction),
    Unnamed(
      testDescription: "another receipt with the subscription",
      events: [.upload(reply(row("700", of: "500", line: "9")), receipt: "later")],
      reason: .originalTransaction),
    Unnamed(
      testDescription: "another receipt with the token of a sale that nobody else has",
      events: [.upload(reply(row("700", rowToken(anna))), receipt: "later")], reason: .transaction),
    Unnamed(
      testDescription: "renewal information with the token",
      events: [
        .upload(
          reply(row("700"), renewal: ["app_account_token": "\(anna)"]), receipt: "later")
      ], reason: .appAccountToken),
    Unnamed(
      testDescription: "signed transactions with the account",
      events: [
        .signedUpload(signed("500", account("71")), user: "anna"),
        .signedUpload(signed("800", account("71"))),
      ], reason: .account, position: 4),
    Unnamed(
      testDescription: "a receipt that waits, with the transaction",
      events: [.pending(.transaction(.init("500")))], reason: .transaction),
    Unnamed(
      testDescription: "a receipt that is linked by a purchase of another such receipt",
      events: [
        .upload(reply(row("500"), row("900")), receipt: "later"),
        .upload(reply(row("900")), receipt: "latest"),
      ], reason: .transaction, position: 5),
    Unnamed(
      testDescription: "a receipt that also shows another user's purchase",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .upload(reply(row("500"), row("600")), receipt: "both"),
      ], reason: .transaction, isShared: true, position: 5),
    Unnamed(
      testDescription: "a receipt that another user uploaded too",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .upload(reply(row("500")), receipt: "bob's"),
      ], reason: .transaction, isShared: true, position: 5),
    Unnamed(
      testDescription: "signed transactions of which one is another user's",
      events: [
        .signedUpload(signed("600"), user: "bob"), .signedUpload(signed("500"), signed("600")),
      ], reason: .transaction, isShared: true, position: 4),
    Unnamed(
      testDescription: "a receipt with purchases of nobody",
      events: [.upload(reply(row("900")), receipt: "nobody's")], reason: nil),
    Unnamed(
      testDescription: "a receipt with another user's purchase",
      events: [
        .upload(reply(row("600")), user: "bob", receipt: "bob's"),
        .upload(reply(row("600")), receipt: "bob's other"),
      ], reason: nil, position: 5),
  ]

  @Test(
    "An upload without a user is erased if it shows the person's purchases and no other user's",
    arguments: unnamed)
  private func withoutUser(_ upload: Unnamed) throws {
    let fixture = try Self.fixture(upload.events)
    let before = try everyReport.map { try fixture.figures($0, at: fixture.eventCount) }
    let end = fixture.eventCount
    let preview = try ErasurePreview.of(
      .user("anna", appFamily: nil), LogReader(fixture.directory), fixture.current(), isExact: true)
    expectEqual(preview.withoutUser.first { $0.position == upload.position }?.reason, upload.reason)
    try fixture.erase("anna")
    let line = try LogReader(fixture.directory).event(at: upload.position)
    let text = String(decoding: line, as: UTF8.self)
    expectEqual(text.contains("\"redacted\""), (upload.reason != nil))
    // The receipt, or another user's signed object, stays as evidence of the other's purchases.
    let hasEvidence = text.contains("\"receipt_sha256\"") || text.contains("\"signature\"")
    expectEqual(hasEvidence, (upload.isShared || upload.reason == nil))
    for (name, (old, report)) in zip(everyReport, zip(before, everyReport)) {
      try expectEqual(fixture.figures(report, at: end), old, "\(name)")
    }
  }
}

extension LedgerFixture {
  /// Erases a user as a request does.
  @discardableResult
  func erase(_ user: String, appFamily: UUID16? = nil) throws -> ErasureRecord {
    _ = try current()
    try ErasureQueue(directory).add(
      ErasureRecord(
        .user(user, appFamily: appFamily), reason: "user_request", requestedAtMs: 0,
        isUrgent: true))
    let writer = try LedgerWriter.open(directory, options: WriterOptions())
    let records = try Eraser(directory, writer, projections: .standard).run()
    try writer.close()
    let record = try #require(records.first)
    expectEqual(record.state, .done)
    return record
  }

  /// The events that hold a text in either case, also inside base64.
  func positions(holding text: String) throws -> [Position] {
    var positions: [Position] = []
    try LogReader(directory).read(from: 0) { chunk in
      try chunk.forEachEvent { event in
        let line = String(decoding: event.bytes, as: UTF8.self)
        let isBase64: (Character) -> Bool = {
          $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-")
        }
        let decoded = line.split(whereSeparator: { !isBase64($0) }).filter { $0.count >= 32 }
          .compactMap { try? Base64.decode(Array($0.utf8), .url) }
          .map { String(decoding: $0, as: UTF8.self) }
        if ([line] + decoded).contains(where: { $0.lowercased().contains(text) }) {
          positions.append(event.position)
        }
      }
      return true
    }
    return positions
  }

  /// The key and the user of each sale.
  func salesUsers() throws -> [String] {
    let rows = try current().prepare(
      """
      SELECT sale_key || ' ' || coalesce((SELECT user_identifier FROM users WHERE id = s.user), '-')
      FROM sales s ORDER BY sale_key
      """)
    var sales: [String] = []
    while try rows.step() { sales.append(rows.text(0)) }
    return sales
  }

  /// The id and the account of each signed transaction, once.
  func accounts() throws -> [String] {
    var found: Set<String> = []
    try LogReader(directory).read(from: 0) { chunk in
      try chunk.forEachEvent { event in
        for purchase in PurchaseFacts.all(of: event)
        where EventType(event.type) != .receiptVerified && !purchase.isRenewal {
          let id = String(decoding: purchase.transactionID ?? [], as: UTF8.self)
          let account = String(decoding: purchase.appTransactionID ?? [], as: UTF8.self)
          found.insert("\(id) \(account)")
        }
      }
      return true
    }
    return found.sorted()
  }
}
