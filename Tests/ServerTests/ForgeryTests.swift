// How much is kept of uploads that are frauds by themselves.
import AppStoreAuthority
import Base
import Intake
import Ledger
import Server
import TestSupport
import Testing

@Suite("Evidence of forgeries") struct ForgeryTests {
  private let sign = SignedSample()

  /// A receipt file of this many bytes, most of them in the name of a product.
  private static func file(_ transaction: String, byteCount: Int) -> [UInt8] {
    func file(_ nameByteCount: Int) -> [UInt8] {
      let name = String(repeating: "x", count: nameByteCount)
      let genuine = (0..<30).map { ReceiptFileText.Purchase("\(transaction)\($0)") }
      return ReceiptFileText.unified(genuine + [.init(transaction, product: name)]).bytes
    }
    let about = file(byteCount - 3_000)
    return file(byteCount - 3_000 + byteCount - about.count)
  }

  private func isReduced(_ event: WorkflowFixture.Recorded) -> Bool {
    event.version == 2 && event.data["receipt"]?["purchases"] != nil
  }

  private func isWhole(_ event: WorkflowFixture.Recorded) -> Bool {
    event.version == 1 && event.data["receipt"]?.stringValue != nil
  }

  private func uploads(_ fixture: WorkflowFixture) throws -> [WorkflowFixture.Recorded] {
    try fixture.events().filter { $0.type == "receipt.uploaded" }
  }

  private func kept(_ fixture: WorkflowFixture) -> [String: Int] {
    var counts: [String: Int] = [:]
    let text = String(decoding: fixture.metrics.exposition(), as: UTF8.self)
    for word in ["whole", "reduced", "refused"] {
      let line = text.split(separator: "\n").first {
        $0.hasPrefix("receipt_ledger_forgeries_total{kept=\"\(word)\"} ")
      }
      counts[word] = line.flatMap { Int($0.split(separator: " ").last ?? "") }
    }
    return counts
  }

  private static func answers(_ answer: ClientResponse, afterSeconds seconds: Int) -> Bool {
    if case .unavailable(let found) = answer { found == seconds } else { false }
  }

  // MARK: Large receipts

  @Test(
    "an altered receipt of 256 KiB is reduced to digest and facts; a byte less, and all is kept")
  func size() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))), checker: .signatureInvalid)
    let limit = 256 << 10
    let large = Self.file("7", byteCount: limit)
    try #require(large.count == limit)
    let answer = try fixture.send(large, user: "u1").wait()
    expectEqual(answer.status, 402)
    expectEqual(answer.body?["fraud_reason"]?.stringValue, "signature_invalid")
    expectEqual(answer.body?["user_identifier"], .string("u1"))
    try expectEqual(fixture.look(answer).status, 402)
    try expectEqual(fixture.send(Self.file("8", byteCount: limit - 1)).wait().status, 402)
    let events = try uploads(fixture)
    try #require(events.count == 2)
    #expect(isReduced(events[0]) && isWhole(events[1]))
    let data = events[0].data
    expectEqual(data["receipt_sha256"], .string(large.withUnsafeBytes { SHA256.hash($0) }.hex))
    expectEqual(data["receipt"]?["purchases"]?.arrayValue?.count, 20)
    expectEqual(data["receipt"]?["purchases"]?.arrayValue?[0]["transaction_id"], .string("70"))
    #expect(data.bytes.count < 8_192)
    expectEqual(kept(fixture), ["whole": 1, "reduced": 1, "refused": 0])
    expectEqual(fixture.notes.lines, [])
    try expectEqual(fixture.waitingAfterRebuild(), 0)
    try expectEqual(fixture.look(answer).status, 402)
  }

  @Test(
    "a receipt that another trust or registration may accept is kept whole, however large",
    arguments: [LocalVerification.signatureUntrusted, .timeOnly("certificate_expired"), .valid])
  func trust(_ verdict: LocalVerification) throws {
    let fixture = try WorkflowFixture(.saying(.status(21003)), checker: verdict)
    let status = try fixture.send(Self.file("7", byteCount: 300_000)).wait().status
    expectEqual(status, 402)
    #expect(try uploads(fixture).allSatisfy { isWhole($0) })
    expectEqual(kept(fixture)["whole"], (verdict.outcome == .invalid ? 1 : 0))
  }

  // MARK: The daily limit

  @Test("over the daily limit, altered receipts are reduced, with an alarm, until the next day")
  func bound() throws {
    let ahead = MovableClock()
    let clock = WorkflowClock(
      nowMs: { ms("2026-01-05") + ahead.monotonicOffsetMs },
      monotonicMs: WorkflowClock().monotonicMs)
    let fixture = try WorkflowFixture(
      .saying(.reply(row("1"))), checker: .signatureInvalid, clock: clock
    ) { $0.verification.forgedBytesDailyMax = 30_000 }
    for transaction in ["1", "2", "3"] {
      let answer = try fixture.send(Self.file(transaction, byteCount: 10_000)).wait()
      expectEqual(answer.status, 402)
    }
    try expectEqual(uploads(fixture).map { isReduced($0) }, [false, false, true])
    expectEqual(kept(fixture), ["whole": 2, "reduced": 1, "refused": 0])
    expectEqual(
      fixture.notes.lines,
      [
        "app family \(WorkflowFixture.familyText): more forgeries were uploaded today than "
          + "verification.forged_bytes_daily_max keeps whole (forgeries_bounded): the access log shows their senders"
      ])
    ahead.set(aheadMs: 86_400_000)
    try expectEqual(fixture.send(Self.file("4", byteCount: 10_000)).wait().status, 402)
    #expect(try uploads(fixture).last.map { isWhole($0) } == true)
  }

  @Test(
    "over the daily limit, what may become valid later is not stored, and the client is asked to retry"
  )
  func refused() throws {
    let untrusted = try WorkflowFixture(.saying(.reply(row("1"))), checker: .signatureUntrusted) {
      $0.verification.forgedBytesDailyMax = 20_000
    }
    try expectEqual(untrusted.send(Self.file("1", byteCount: 10_000)).wait().status, 402)
    let answer = try untrusted.send(Self.file("2", byteCount: 10_000)).wait()
    #expect(Self.answers(answer, afterSeconds: 3_600))
    try expectEqual(uploads(untrusted).count, 1)
    expectEqual(kept(untrusted), ["whole": 1, "reduced": 0, "refused": 1])

    let signed = try WorkflowFixture.signed { $0.verification.forgedBytesDailyMax = 0 }
    let forged = try sign.sign(sign.payload("2"), by: .stranger.get())
    let good = try sign.transaction()
    #expect(Self.answers(try signed.sendTransactions([good, forged]), afterSeconds: 3_600))
    try expectEqual(signed.events().count, 1)
    try expectEqual(signed.sendTransactions([good]).status, 200)
    expectEqual(kept(signed), ["whole": 0, "reduced": 0, "refused": 1])
  }
}
