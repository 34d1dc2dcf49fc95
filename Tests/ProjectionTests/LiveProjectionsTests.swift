// Live projections: their responses, and that they follow the log, whichever process folds it.
import AppStore
import Base
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct LiveProjectionsTests {
  static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  static var familyID: UUID16 {
    get throws { try #require(UUID16(family)) }
  }

  static func app(_ products: [(String, ProductType)]) -> TestEvent {
    .app(
      AppRegistered(
        appFamilyID: family, name: "App", bundleIDs: ["app"],
        products: products.map { .init(id: $0.0, type: $0.1) }))
  }

  /// The body as JSON.
  static func object(_ receipt: ClientReceipt?) throws -> [String: Any] {
    let body = try #require(receipt?.body).bytes
    return try #require(
      try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
  }

  static func purchases(_ receipt: ClientReceipt?) throws -> [[String: Any]] {
    try #require(try object(receipt)["in_app_purchases"] as? [[String: Any]])
  }

  @Test func aConfirmedReceiptShowsItsPurchases() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([("coins", .consumable)]),
      .upload(
        reply(row("1")), user: "u1", metadata: shorthand("2.00"), at: "2026-01-10"),
    ])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 1))
    #expect(!answer.isFraud && !answer.isPending && answer.fraudReason == nil)
    let object = try Self.object(answer)
    expectEqual(object["app_family_id"] as? String, Self.family)
    expectEqual(object["environment"] as? String, "production")
    expectEqual(object["user_identifier"] as? String, "u1")
    let purchase = try #require(try Self.purchases(answer).first)
    expectEqual(purchase["product_id"] as? String, "coins")
    expectEqual(purchase["type"] as? String, "consumable")
    expectEqual(purchase["currency_code"] as? String, "EUR")
    expectEqual((purchase["app_store"] as? [String: Any])?["transaction_id"] as? String, "1")
  }

  @Test(
    arguments: [
      (
        "an upload of signed transactions",
        TestEvent.signedUpload(signed("1"), metadata: ["campaign": "spring"]), "spring"
      ), ("a notification", .notification("ONE_TIME_CHARGE", uuid: "n", signed("1")), "summer"),
      ("an upload of a receipt", .rates(source: "bank", ["2026-01-01 EUR USD 1.2"]), "summer"),
    ] as [(String, TestEvent, String)])
  func aPurchasesMetadataIsThatOfTheUploadThatShowedItFirstOrOfThisOne(
    _ first: String, _ event: TestEvent, _ campaign: String
  ) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([]), event, .upload(reply(row("1")), metadata: ["campaign": "summer"]),
    ])
    let live = try LiveProjections(fixture.directory)
    let purchase = try #require(try Self.purchases(try live.answer(upload: 2)).first)
    expectEqual(
      (purchase["metadata"] as? [String: Any])?["campaign"] as? String, campaign, "\(first)")
  }

  @Test func aWaitingReceiptShowsItsFileAndWaits() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.pending(.unified(.init("1")), user: "u1")])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 0))
    #expect(answer.isPending && !answer.isFraud)
    let purchase = try #require(try Self.purchases(answer).first)
    #expect(purchase["app_store"] is NSNull)
    expectEqual(purchase["version"] as? Int, 0)
    let waiting = try live.waiting(limit: 10)
    expectEqual(waiting.map { $0.uploads.map(\.position) }, [[0]])
    #expect(try live.waiting(afterReceipt: waiting[0].number, limit: 10).isEmpty)
  }

  @Test func twoUsersOfOneConsumableAreJudgedByPosition() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([("coins", .consumable)]), .upload(reply(row("1")), user: "u1"),
      .upload(reply(row("1")), user: "u2"),
    ])
    let live = try LiveProjections(fixture.directory)
    #expect(try live.answer(upload: 1)?.isFraud == false)
    try expectEqual(live.answer(upload: 3)?.fraudReason, "transaction_replayed")
  }
}

extension LiveProjectionsTests {
  @Test func anUploadKeepsItsVerdictThoughTheReceiptIsTheSame() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([("coins", .consumable)]), .upload(reply(row("1")), user: "u1"),
    ])
    let live = try LiveProjections(fixture.directory)
    try fixture.append([.upload(reply(row("1")), user: "u2")])
    try live.catchUp()
    #expect(try live.answer(upload: 1)?.isFraud == false)
    let second = try #require(try live.answer(upload: 3))
    #expect(second.isFraud)
    let id = try #require(try Self.object(second)["id"] as? String)
    let receiptID = try #require(UUID16(id))
    try expectEqual(live.answer(receiptID: receiptID, appFamily: Self.familyID), second)
    #expect(try live.answer(receiptID: receiptID, appFamily: .random()) == nil)
    #expect(try live.answer(receiptID: .random(), appFamily: Self.familyID) == nil)
    #expect(try live.answer(upload: 2) == nil)
  }

  @Test func theQueueHoldsWhatTheAppStoreStillOwes() throws {
    let fixture = try LedgerFixture()
    let file = ReceiptFileText.unified(.init("1"))
    try fixture.append([.pending(file), .pending(file, user: "u1"), .pending(.unified(.init("2")))])
    let live = try LiveProjections(fixture.directory)
    let first = try #require(try live.waiting(limit: 1).first)
    expectEqual(first.uploads.map(\.position), [0, 2])
    let rest = try live.waiting(afterReceipt: first.number, limit: 5)
    expectEqual(rest.flatMap(\.uploads).map(\.position), [4])
    try expectEqual(live.waitingSummary().receipts, 2)
    var away = VerificationPlan(upload: 0, occurredAtMs: ms("2026-01-11"), reply: .none)
    (away.outcome, away.status) = (.unreachable, nil)
    try fixture.append([.verified(away), .verify(2, reply(row("1")), at: "2026-01-12")])
    try live.catchUp()
    let uploads = try live.waitingUploads(ofReceipt: first.receiptID, appFamily: first.appFamily)
    expectEqual(uploads.map(\.position), [0])
    expectEqual(uploads.map(\.isUnreachableRecorded), [true])
    let answered = try #require(
      try live.recentReply(
        ofReceipt: first.receiptID, appFamily: first.appFamily,
        givenInMs: ms("2026-01-12")...ms("2026-01-13")))
    #expect(answered.position == 7 && answered.outcome == .valid && answered.status == 0)
    #expect(
      try live.recentReply(
        ofReceipt: first.receiptID, appFamily: first.appFamily,
        givenInMs: ms("2026-01-13")...ms("2026-01-14"))
        == nil)
    try fixture.append([.reuse(7, for: 0)])
    try live.catchUp()
    #expect(try live.answer(upload: 0)?.isPending == false)
    try expectEqual(live.waitingSummary().receipts, 1)
  }

  @Test func aForgedReceiptNeitherWaitsNorShowsPurchases() throws {
    let fixture = try LedgerFixture()
    guard case .upload(var plan) = TestEvent.pending(.unified(.init("1"))) else { return }
    plan.verification?.outcome = .invalid
    try fixture.append([.upload(plan)])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 0))
    expectEqual(answer.fraudReason, "signature_invalid")
    #expect(try Self.purchases(answer).isEmpty)
    #expect(try live.waiting(limit: 1).isEmpty)
  }

  @Test func aSubscriptionShowsPeriodRenewalAndCancellation() throws {
    let fixture = try LedgerFixture()
    let info: JSONText = [
      [
        "original_transaction_id": "1", "auto_renew_status": "1",
        "grace_period_expires_date_ms": date("2026-03-01"),
      ]
    ]
    try fixture.append([
      Self.app([("pro", .autoRenewable)]),
      .upload(
        reply(
          row("1", line: "70", product: "pro", ["expires_date_ms": date("2026-02-05")]),
          row(
            "2", of: "1", line: "71", product: "pro", on: "2026-02-05",
            [
              "expires_date_ms": date("2026-03-05"), "cancellation_reason": "1",
              "cancellation_date_ms": date("2026-02-06"),
            ]), requested: "2026-02-20", also: ["pending_renewal_info": info])),
    ])
    let live = try LiveProjections(fixture.directory)
    let purchases = try Self.purchases(try live.answer(upload: 1))
    expectEqual(purchases.count, 2)
    let last = try #require(purchases.last)
    #expect(last["is_auto_renewing"] as? Bool == true)
    #expect(last["in_grace_period"] as? Bool == true)
    expectEqual(last["canceled_by"] as? String, "user")
    let end = try #require(last["current_period_end_at"] as? [String: Any])
    expectEqual(end["utc"] as? String, "2026-03-05 00:00:00 UTC")
    expectEqual(end["ms"] as? Int, Int(ms("2026-03-05")))
    expectEqual(Set(purchases.compactMap { $0["id"] as? String }).count, 2)
    #expect(purchases[0]["canceled_at"] is NSNull)
  }

  /// The types of the purchases, before the App Store has replied and afterwards; `-` where none is known.
  private static func types(
    _ file: ReceiptFileText, _ answer: JSONText, _ declared: [(String, ProductType)] = []
  ) throws -> [[String]] {
    let fixture = try LedgerFixture()
    try fixture.append([app(declared), .pending(file)])
    let live = try LiveProjections(fixture.directory)
    let before = try purchases(live.answer(upload: 1))
    try fixture.append([.verify(1, answer)])
    try live.catchUp()
    let receipt = try ReceiptFile.decode(file.bytes)
    let known = FoldedUpload(at: 1, filedTypes: FoldedUpload.types(in: receipt))
    try expectEqual(live.answers(uploads: [known]).first?.get(), live.answer(upload: 1))
    return [before, try purchases(live.answer(upload: 1))].map { purchases in
      purchases.map { $0["type"] as? String ?? "-" }
    }
  }

  @Test func theReceiptsWordForATypeOutlivesTheAppStoresAnswer() throws {
    let file = ReceiptFileText.unified(
      .init("1", on: "2026-01-01", type: 1),
      .init("2", line: 70, product: "pro", on: "2026-01-02", type: 3),
      .init("3", product: "level", on: "2026-01-03", type: 0),
      .init("4", product: "season", on: "2026-01-04", type: 2),
      .init("5", product: "free", on: "2026-01-05", type: 4))
    let answer = reply(
      row("1", on: "2026-01-01"), row("2", line: "70", product: "pro", on: "2026-01-02"),
      row("3", product: "level", on: "2026-01-03"), row("4", product: "season", on: "2026-01-04"),
      row("5", product: "free", on: "2026-01-05"))
    let said = ["consumable", "auto_renewable", "non_consumable", "non_renewing", "-"]
    try expectEqual(Self.types(file, answer), [said, said])
  }

  @Test func aRenewalThatTheFileDoesNotShowIsOfItsProductsType() throws {
    let file = ReceiptFileText.unified(.init("2", line: 70, product: "pro", type: 3))
    let answer = reply(
      row("2", line: "70", product: "pro"),
      row("3", of: "2", line: "71", product: "pro", on: "2026-02-05"),
      row("4", product: "other", on: "2026-03-01"))
    try expectEqual(
      Self.types(file, answer), [["auto_renewable"], ["auto_renewable", "auto_renewable", "-"]])
  }

  @Test func aDeclaredTypeWinsOverTheReceipts() throws {
    let file = ReceiptFileText.unified(
      .init("1", on: "2026-01-01", type: 1), .init("2", product: "gems", type: 1))
    let answer = reply(row("1", on: "2026-01-01"), row("2", product: "gems"))
    let declared = [("coins", ProductType.nonConsumable)]
    try expectEqual(
      Self.types(file, answer, declared),
      [["non_consumable", "consumable"], ["non_consumable", "consumable"]])
  }

  @Test func aTransactionReceiptSaysNoType() throws {
    let file = ReceiptFileText.transaction(.init("1"))
    try expectEqual(Self.types(file, reply(row("1"))), [["-"], ["-"]])
  }
}

/// Folds while the writer has not synced what it wrote.
@Suite struct DurableFoldTests {
  /// A ledger with a running writer, and a frame in the tail after what it has synced.
  private func ledgerWithUnsyncedFrame() throws -> (LedgerFixture, LedgerWriter) {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1"))), .upload(reply(row("2")), receipt: "b")])
    let folder = URL(fileURLWithPath: fixture.path + "/log")
    let tails = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.hasPrefix("tail-") }
    let tail = folder.appendingPathComponent(try #require(tails.first))
    let before = try Data(contentsOf: tail).count
    try fixture.append([.upload(reply(row("3")), receipt: "c")])
    let frame = try Data(contentsOf: tail).dropFirst(before)
    let shorter = try LedgerFixture()
    try shorter.append([.upload(reply(row("1"))), .upload(reply(row("2")), receipt: "b")])
    let writer = try LedgerWriter.open(shorter.directory)
    let handle = try FileHandle(
      forWritingTo: URL(fileURLWithPath: shorter.path + "/log/" + tail.lastPathComponent))
    try handle.seekToEnd()
    try handle.write(contentsOf: frame)
    try handle.close()
    return (shorter, writer)
  }

  @Test func neitherFoldRebuildNorSnapshotGoBeyondWhatTheWriterHasSynced() throws {
    let (fixture, writer) = try ledgerWithUnsyncedFrame()
    try expectEqual(LogReader(fixture.directory).head.size, 6, "the frame is there to be seen")
    let live = try LiveProjections(fixture.directory)
    expectEqual(live.position, 4)
    let projector = Projector(try LogReader(fixture.directory, .durable))
    try expectEqual(Report.head(of: projector.current()).size, 4)
    try projector.rebuild()
    try expectEqual(Report.head(of: projector.current()).size, 4)
    try expectEqual(projector.createSnapshot { _ in 6 }.header.size, 4)
    try writer.close()
    try live.catchUp()
    expectEqual(live.position, 6)
  }
}
