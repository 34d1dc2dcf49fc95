// Drafts from commands that a server refuses because a fold could not read them.
import Base
import Foundation
import Ledger
import Server
import TestSupport
import Testing

/// Drafts as commands hand them over.
enum RemoteAppendDrafts {
  static func app(_ name: String) -> EventDraft {
    EventDraft(
      type: "app.registered", version: 1,
      data: AppRegistered(
        appFamilyID: "0e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: name, bundleIDs: ["app"],
        products: []
      ).data)
  }

  private static let digest = String(repeating: "0", count: 64)

  static let prices = EventDraft(
    .pricesDeclared,
    PricesDeclared(
      source: "p.csv", sourceSHA256Hex: digest,
      entries: [
        .init(
          productID: "coins", countryCode: "DE", currency: "EUR", price: "1.99",
          effectiveFrom: "2026-01-01")
      ]
    ).data)

  static let rates = EventDraft(
    .ratesDeclared,
    RatesDeclared(
      source: "r.csv", sourceSHA256Hex: digest,
      days: [
        .init(date: "2026-01-02", base: "EUR", rates: [.init(quote: "USD", rate: "1.1")])
      ]
    ).data)

  /// A good draft of each type, to be changed; the verification names the upload at position 0.
  static var goodOfEachType: [EventDraft] {
    let upload = TestEvent.upload(["status": 0]).drafts[0]
    let verification = TestEvent.verify(0, ["status": 0]).drafts[0]
    return [
      app("Tide"), upload, verification, TestEvent.signedUpload(signed("1")).drafts[0],
      TestEvent.notification("TEST", uuid: "1", nil).drafts[0],
      TestEvent.fetched(signed("1")).drafts[0],
      TestEvent.accepted(4, transactions: [0]).drafts[0],
      prices, rates,
      EventDraft(.pricesWithdrawn, DeclarationWithdrawn.data(position: 5)),
      EventDraft(.ratesWithdrawn, DeclarationWithdrawn.data(position: 6)),
      TrustDeclared(
        productionHost: "buy.itunes.apple.com", sandboxHost: "localhost:8443", roots: [],
        intermediates: [], localTestingSigners: []
      ).draft,
    ]
  }
}

@Suite struct RemoteAppendDraftTests {
  /// A served ledger that holds an upload at 0, its verification with a reply at 1, an app at 2, a malformed
  /// verification at 3, a page at 4 whose second transaction is good, prices at 5 and rates at 6.
  private func served() throws -> ServedLedger {
    let ledger = try ServedLedger()
    _ = try ledger.writer.append(TestEvent.upload(["status": 0]).drafts)
    _ = try ledger.writer.append([RemoteAppendDrafts.app("Tide")])
    _ = try ledger.writer.append([
      EventDraft(type: "receipt.verified", version: 1, data: Array("{}".utf8))
    ])
    _ = try ledger.writer.append(
      TestEvent.fetched([
        SignedObjectPlan(signed("1"), .invalid(reason: "untrusted_root")),
        SignedObjectPlan(signed("2")), SignedObjectPlan(signed("3"), .invalid(reason: "x")),
      ]).drafts)
    _ = try ledger.writer.append([RemoteAppendDrafts.prices, RemoteAppendDrafts.rates])
    return ledger
  }

  private func refusal(_ drafts: [EventDraft], by ledger: ServedLedger) throws -> LedgerError? {
    let session = try ledger.connect()
    let before = ledger.writer.nextPosition
    do throws(LedgerError) {
      _ = try session.submit(drafts)
      try session.close()
      return nil
    } catch {
      expectEqual(ledger.writer.nextPosition, before, "nothing was appended")
      return error
    }
  }

  private func changed(
    _ draft: EventDraft, _ member: String, _ value: JSONValue?
  ) throws -> EventDraft {
    guard case .object(var members) = try JSONValue(draft.data) else { return draft }
    members = members.compactMap { entry in
      guard entry.key == member else { return entry }
      return value.map { JSONValue.Member(member, $0) }
    }
    return EventDraft(
      type: draft.type, version: 1, data: JSONValue.object(members).bytes)
  }

  @Test func goodDraftsOfEachTypeAreTaken() throws {
    let ledger = try served()
    #expect(try refusal(RemoteAppendDrafts.goodOfEachType, by: ledger) == nil)
    expectEqual(ledger.writer.nextPosition, 19)
  }

  @Test func aDraftWithoutAMemberThatItNeedsIsRefused() throws {
    let ledger = try served()
    let optional: Set = [
      "line", "line_sha256", "country_code", "status", "endpoint", "reply", "transaction_id",
    ]
    for draft in RemoteAppendDrafts.goodOfEachType {
      guard case .object(let members) = try JSONValue(draft.data) else { continue }
      for member in members where !optional.contains(member.key) {
        let error = try refusal([try changed(draft, member.key, nil)], by: ledger)
        expectEqual(error?.kind, .invalidInput, "\(draft.type) \(member.key)")
        expectEqual(
          error?.cause, "a draft cannot be read: \(draft.type) has no valid \(member.key)")
      }
      for member in members where !["reply", "has_more"].contains(member.key) {
        let error = try refusal([try changed(draft, member.key, .boolean(true))], by: ledger)
        expectEqual(
          error?.cause, "a draft cannot be read: \(draft.type) has no valid \(member.key)")
      }
    }
  }

  @Test(arguments: [
    ("a page that is not there yet", TestEvent.accepted(9, transactions: [0]), "page"),
    ("what is no page", .accepted(2, transactions: [0]), "page"),
    ("a place that the page does not have", .accepted(4, transactions: [3]), "page"),
    ("renewal information that it does not have", .accepted(4, renewals: [0]), "page"),
    ("an object that counts already", .accepted(4, transactions: [0, 1]), "page"),
    ("an object that was altered", .accepted(4, transactions: [2]), "page"),
    ("the same object twice", .accepted(4, transactions: [0, 0]), "transactions"),
  ])
  func onlyWhatWasRefusedForTimeOrTrustIsAccepted(
    _ situation: String, _ event: TestEvent, _ member: String
  ) throws {
    try expectEqual(
      refusal(event.drafts, by: try served())?.cause,
      "a draft cannot be read: signatures.accepted has no valid \(member)", "\(situation)")
  }

  @Test(arguments: [(EventType.pricesWithdrawn, [6, 4, 99]), (.ratesWithdrawn, [5, 0, 99])])
  func onlyADeclarationOfItsOwnTypeIsWithdrawn(_ type: EventType, _ positions: [Int]) throws {
    let ledger = try served()
    for position in positions {
      let draft = EventDraft(type, DeclarationWithdrawn.data(position: position))
      expectEqual(
        try refusal([draft], by: ledger)?.cause,
        "a draft cannot be read: \(type.rawValue) has no valid position", "\(position)")
    }
  }

  @Test func anErasureAndARunOfAMergeAreRefused() throws {
    let ledger = try served()
    let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: "user_request")
    let line = DataRedacted.Line(position: 0, digest: SHA256Digest(1, 2, 3, 4))
    let listing = DataRedacted.Listing(
      erasure: 0, part: 1, partCount: 1, reason: "user_request", lines: [line])
    for event in [DataRedacted.opening(opening), .listing(listing)] {
      try expectEqual(
        refusal([EventDraft(.dataRedacted, event.data)], by: ledger)?.cause,
        "a draft cannot be read: data.redacted has no valid type")
    }
    let run = MergedFrom(
      beforeMs: 0, isByOperator: false, sources: [], eventCount: 0, erasures: [])
    try expectEqual(
      refusal([EventDraft(.mergedFrom, run.data)], by: ledger)?.cause,
      "a draft cannot be read: merged.from has no valid type")
  }

  private static func verification(
    _ members: String, references: [PositionReference] = []
  ) -> EventDraft {
    let rest =
      #""authority":"app_store","outcome":"valid","attempt":1,"occurred_at":"2026-01-10T00:00:00.000Z""#
    return EventDraft(
      type: "receipt.verified", version: 1, data: Array("{\(members),\(rest)}".utf8),
      references: references)
  }

  @Test(
    arguments: [
      ("an upload in the log", [verification(#""upload":0"#)], nil),
      ("a reply in the log", [verification(#""upload":0,"reply_of":1"#)], nil),
      (
        "an upload of the same submission",
        TestEvent.upload().drafts + [
          verification(
            #""upload":"#, references: [PositionReference(offsetBytes: 10, eventIndex: 0)])
        ], nil
      ),
      ("a verification as upload", [verification(#""upload":1"#)], "upload"),
      ("an app as upload", [verification(#""upload":2"#)], "upload"),
      ("a position beyond the head", [verification(#""upload":99"#)], "upload"),
      ("the largest number", [verification(#""upload":9223372036854775807"#)], "upload"),
      ("an upload as reply", [verification(#""upload":0,"reply_of":0"#)], "reply_of"),
      ("a malformed event's reply", [verification(#""upload":0,"reply_of":3"#)], "reply_of"),
      (
        "itself",
        [
          verification(
            #""upload":"#, references: [PositionReference(offsetBytes: 10, eventIndex: 0)])
        ], "upload"
      ),
      (
        "a later event of the submission",
        [
          verification(
            #""upload":"#, references: [PositionReference(offsetBytes: 10, eventIndex: 1)])
        ] + TestEvent.upload().drafts, "upload"
      ),
      (
        "an event of another type",
        [
          RemoteAppendDrafts.app("Tide"),
          verification(
            #""upload":"#, references: [PositionReference(offsetBytes: 10, eventIndex: 0)]),
        ], "upload"
      ),
    ] as [(String, [EventDraft], String?)])
  func whatAVerificationNamesMustBeThere(
    _ situation: String, _ drafts: [EventDraft], _ member: String?
  ) throws {
    let error = try refusal(drafts, by: try served())
    expectEqual(
      error?.cause, member.map { "a draft cannot be read: receipt.verified has no valid \($0)" })
  }

  @Test func aPositionThatIsPutInElsewhereIsRefused() throws {
    let drafts =
      TestEvent.upload().drafts + [
        Self.verification(
          #""upload":0,"status":"#,
          references: [PositionReference(offsetBytes: 21, eventIndex: 0)])
      ]
    try expectEqual(
      refusal(drafts, by: try served())?.cause,
      "a draft's position reference is neither upload nor reply_of")
  }
}
