// A scan's output: every event once, related events connected, receipts only where they are needed.
import Base
import Ledger
import LedgerRules
import TestSupport
import Testing

/// A history in which many customers share nothing, and some share something late.
private func customers(_ count: Int) -> [TestEvent] {
  var steps: [TestEvent] = [.app(testApp)]
  for number in 0..<count {
    steps.append(
      .upload(
        reply(row("\(number)00"), row("\(number)01")), user: "u\(number)", receipt: "r\(number)"))
  }
  // One customer's purchases appear in another's reply.
  steps.append(.upload(reply(row("700"), row("300")), receipt: "late"))
  steps.append(.signedUpload(signedPayload("500"), signedPayload("999")))
  steps.append(.fetched(signedPayload("1000"), about: "999"))
  return steps
}

private func signedPayload(_ id: String) -> JSONText {
  .object([
    ("transactionId", JSONText(stringLiteral: id)),
    ("originalTransactionId", JSONText(stringLiteral: id)), ("bundleId", "app"),
    ("productId", "coins"), ("environment", "Production"), ("quantity", 1),
    ("purchaseDate", 1_767_571_200_000), ("signedDate", 1_767_571_200_000),
  ])
}

private let testApp = AppRegistered(
  appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: [])

@Suite struct ScanTests {
  /// Folding a component never needs an event of another: whatever two events both name joins them.
  @Test(arguments: [1, 2, 3, 4] as [UInt64], [0, 16 << 20])
  func whatEventsNameJoinsThem(_ seed: UInt64, _ waitingByteCount: Int) throws {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(customers(12) + generator.steps(40))
    let size = fixture.eventCount
    let cuts = [0, 7, size / 3, size / 2 + 1, size]
    let scans = try zip(cuts, cuts.dropFirst()).map {
      try scan(fixture.path, $0..<$1, waitingByteCount: waitingByteCount)
    }
    let components = Components(scans)
    var componentOfName: [String: Int] = [:]
    for event in scans.flatMap(\.events) {
      let component = try #require(components.component(of: event))
      for name in try names(in: event.line, ofLedger: "a") {
        expectEqual(
          componentOfName[name, default: component], component, "\(event.position): \(name)")
        componentOfName[name] = component
      }
    }
    #expect(components.count >= 5)
  }

  @Test func everyEventIsWrittenOnce() throws {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    var generator = HistoryGenerator(seed: 9)
    try fixture.append([.app(testApp)] + generator.steps(60))
    let size = fixture.eventCount
    let result = try scan(fixture.path, 0..<size, keepsReceipts: true)
    let reader = try LogReader(fixture.directory)
    let lines = try (0..<size).map { String(decoding: try reader.event(at: $0), as: UTF8.self) }
    let written =
      result.events.map { ($0.position, $0.line) }
      + result.declarations.map { ($0.position, $0.line) }
    expectEqual(written.sorted { $0.0 < $1.0 }.map(\.1), lines)
    expectEqual(result.events.map(\.position), result.events.map(\.position).sorted())
    #expect(result.declarations.contains { $0.line.contains("app.registered") })
    expectEqual(result.number("events"), Int64(result.events.count))
    expectEqual(result.number("declarations"), Int64(result.declarations.count))
    expectEqual(result.number("inflated_bytes"), Int64(lines.reduce(0) { $0 + $1.utf8.count + 1 }))
    expectEqual(result.text("root_after"), reader.head.root.hex)
    expectEqual(result.number("last_event_at_ms"), reader.head.lastEventAtMs)
    expectEqual(Set(result.edges).count, result.edges.count)
  }

  @Test func frontiersOfPartsFormAChain() throws {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    try fixture.append(customers(20))
    let size = fixture.eventCount
    let cuts = [0, 1, 8, 21, size]
    let scans = try zip(cuts, cuts.dropFirst()).map { try scan(fixture.path, $0..<$1) }
    for (earlier, later) in zip(scans, scans.dropFirst()) {
      expectEqual(earlier.summary["frontier_after"], later.summary["frontier_before"])
      expectEqual(earlier.text("root_after"), later.text("root_before"))
    }
    expectEqual(scans[0].summary["frontier_before"], .array([]))
    try expectEqual(scan(fixture.path, 5..<5).number("events"), 0)
  }

  @Test func aScanIsTheSameEachTime() throws {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    try fixture.append(customers(20))
    let (first, second) = try (
      scan(fixture.path, 3..<fixture.eventCount), scan(fixture.path, 3..<fixture.eventCount)
    )
    #expect(first.events == second.events && first.edges == second.edges)
  }

  @Test func receiptsAreLeftOutWhereNothingNeedsThem() throws {
    let fixture = try LedgerFixture()
    func compared(_ plan: VerificationPlan) -> VerificationPlan {
      var plan = plan
      plan.mismatch = "none"
      return plan
    }
    let answer = VerificationPlan(occurredAtMs: ms("2026-01-10"), reply: .json(reply(row("1"))))
    func upload(_ receipt: String, _ verification: VerificationPlan?) -> TestEvent {
      guard case .upload(var plan) = TestEvent.upload(receipt: receipt) else {
        preconditionFailure("an upload")
      }
      plan.verification = verification
      return .upload(plan)
    }
    var refused = answer
    (refused.outcome, refused.status, refused.reply) = (.invalid, 21003, .json(["status": 21003]))
    var unreached = answer
    (unreached.outcome, unreached.status, unreached.reply) = (.unreachable, nil, .none)
    var repeated = answer
    repeated.reply = .reused(1)
    var baseless = answer
    baseless.reply = .reused(0)
    try fixture.append([
      upload("compared", compared(answer)), upload("not compared", answer),
      upload("refused", refused), upload("unreached", unreached), upload("open", nil),
      upload("repeated", repeated), upload("baseless", baseless),
    ])
    let result = try scan(fixture.path, 0..<fixture.eventCount)
    let uploads = result.events.filter { $0.line.contains("receipt.uploaded") }
    let isLeftOut = uploads.map { $0.line.hasSuffix(#""receipt":""}}"#) }
    expectEqual(isLeftOut, [true, false, true, false, false, true, false])
    for upload in uploads {
      let line = Array(upload.line.utf8)
      try line.withUnsafeBytes { bytes in
        let event = try #require(EventLine(bytes))
        #expect(try ReceiptUploadedView(data: event.data).receiptID != nil)
      }
    }
    // Their verification comes later, in a range of its own.
    let apart = try scan(fixture.path, 0..<1)
    #expect(apart.events.first?.line.hasSuffix(#""receipt":""}}"#) == false)
  }

  @Test func whatIsRecordedFromATimeOnIsCheckedAndNotWritten() throws {
    let fixture = try LedgerFixture()
    guard case .upload(var upload) = TestEvent.upload(receipt: "open") else { return }
    upload.verification = nil
    var verification = VerificationPlan(
      upload: 1, occurredAtMs: ms("2026-01-10"), reply: .json(reply(row("1"))))
    verification.mismatch = "none"
    try fixture.append([.app(testApp), .upload(upload), .verified(verification)])
    let reader = try LogReader(fixture.directory)
    let size = fixture.eventCount
    let whole = try scan(fixture.path, 0..<size)
    expectEqual(whole.number("last_event_at_ms"), reader.head.lastEventAtMs)
    #expect(whole.events[0].line.hasSuffix(#""receipt":""}}"#))
    let cut = try scan(fixture.path, 0..<size, before: reader.head.lastEventAtMs)
    expectEqual(cut.declarations.map(\.position) + cut.events.map(\.position), [0, 1])
    // Its verification is not known yet.
    #expect(!cut.events[0].line.hasSuffix(#""receipt":""}}"#))
    expectEqual(cut.text("root_after"), reader.head.root.hex)
    expectEqual(cut.number("last_event_at_ms"), cut.events[0].recordedAtMs)
    try expectEqual(scan(fixture.path, 0..<size, before: 0).number("events"), 0)
  }

  /// A program that recorded no comparison again verifies an upload whose verification was final.
  @Test func receiptsThatAreNeededTooLateAreNamed() throws {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    guard case .upload(var plan) = TestEvent.upload(reply(row("1"))) else { return }
    plan.verification?.mismatch = "none"
    let between = [TestEvent](repeating: .upload(metadata: ["text": "abcdefgh"]), count: 20)
    try fixture.append([.upload(plan)] + between + [.verify(0, reply(row("1")))])
    let size = fixture.eventCount
    func needed(_ scanned: Scanned) -> JSONValue? { scanned.summary["receipts_needed"] }
    let position: JSONValue = .array([.number("0")])
    try expectEqual(needed(scan(fixture.path, 0..<size)), .array([]))
    try expectEqual(needed(scan(fixture.path, 0..<size, waitingByteCount: 0)), position)
    try expectEqual(needed(scan(fixture.path, 0..<2)), .array([]))
    try expectEqual(needed(scan(fixture.path, 2..<size)), position)
    let kept = try scan(fixture.path, 0..<size, keepsReceipts: true, waitingByteCount: 0)
    expectEqual(needed(kept), .array([]))
  }

  @Test func purchasesOfAPendingReceiptJoinIt() throws {
    let fixture = try LedgerFixture()
    let file = ReceiptFileText.unified(ReceiptFileText.Purchase("77"))
    try fixture.append([.pending(file), .upload(reply(row("77")), receipt: "other")])
    let scans = try [scan(fixture.path, 0..<2), scan(fixture.path, 2..<4)]
    let components = Components(scans)
    expectEqual(Set(scans.flatMap(\.events).map { components.component(of: $0) }).count, 1)
  }

  @Test func whatCannotBeDecodedStandsAlone() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .raw(type: "receipt.uploaded", ["receipt_id": 7]),
      .raw(type: "receipt.verified", ["upload": 0]),
      .raw(type: "prices.declared", ["source": 7]), .upload(reply(row("1"))),
    ])
    let result = try scan(fixture.path, 0..<fixture.eventCount)
    #expect(result.declarations.isEmpty)
    expectEqual(Components([result]).count, 4)
    let connected = Set(result.edges.map(\.component))
    expectEqual(
      result.events.map { connected.contains($0.component) }, [false, false, false, true, true])
  }

  @Test func ledgersHaveLabelsOfTheirOwn() throws {
    let fixtures = try [LedgerFixture(id: 1), LedgerFixture(id: 2)]
    let results = try fixtures.map { fixture in
      try fixture.append([.upload(reply(row("5")))])
      return try scan(fixture.path, 0..<2)
    }
    #expect(results[0].events[0].component != results[1].events[0].component)
    // They share the receipt and the id, but no event.
    let shared = Set(results[0].edges.map(\.node)).intersection(results[1].edges.map(\.node))
    expectEqual(shared.count, 2)
    expectEqual(Components(results).count, 1)
  }

  /// The vector of SipHash's authors: the key 00 to 0f, the text 00 to 0e.
  @Test func hashesAreThoseOfSipHash() {
    let text = (0..<15).map { UInt8($0) }
    let hash = text.withUnsafeBytes {
      NodeHash.sip(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908, $0)
    }
    expectEqual(hash, 0xA129_CA61_49BE_45E5)
  }
}
