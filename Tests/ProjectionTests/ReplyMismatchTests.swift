// Rule R9, `reply_mismatch`: replies about something else than their receipt, in logs of any version.
import Ledger
import TestSupport
import Testing

@Suite struct ReplyMismatchTests {
  @Test(arguments: cases) func mismatch(_ rule: RuleCase) throws { try rule.check() }

  private static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"

  /// A reply to an upload, as recorded by programs that did not compare it with the receipt.
  private static func booked(_ upload: Int, _ reply: JSONText) -> TestEvent {
    .verified(VerificationPlan(upload: upload, occurredAtMs: ms("2026-01-11"), reply: .json(reply)))
  }

  private static func app(_ bundles: String...) -> TestEvent {
    .app(AppRegistered(appFamilyID: family, name: "App", bundleIDs: bundles, products: []))
  }

  private static func compared(
    _ upload: Int, _ reply: JSONText, mismatch: String, outcome: Outcome
  ) -> TestEvent {
    var plan = VerificationPlan(
      upload: upload, occurredAtMs: ms("2026-01-11"), reply: .json(reply))
    plan.outcome = outcome
    plan.mismatch = mismatch
    if outcome == .unreachable { plan.reason = "reply_mismatch" }
    return .verified(plan)
  }

  private static let exceptionsReport =
    "exceptions exception,environment,bundle_id,sale_key,position,detail"

  private static let cases = [
    RuleCase(
      "R9: what an earlier version booked keeps its figures, and is listed",
      [
        app("app", "sister"), .pending(.unified(.init("1"))),
        booked(1, reply(row("2"))),
        .pending(.unified(.init("3"))), booked(4, reply(row("3"), receipt: ["bundle_id": "other"])),
        .pending(.unified(.init("5"))),
        booked(7, reply(row("5"), receipt: ["bundle_id": "sister"])),
        .pending(.unified(.init("6", line: 66))),
        booked(10, reply(row("8", line: "66"), row("9"))),
        .pending(.unified(.init("7"))), booked(13, reply()),
      ],
      [
        "sales bundle_id,sale_key": ["app,2", "app,66", "app,9", "other,3", "sister,5"],
        "exceptions exception,environment,bundle_id,sale_key,position,detail --environment all": [
          "reply_mismatch,Production,app,,3,transactions", "unpriced,Production,app,2,3,no_price",
          "reply_mismatch,Production,other,,6,bundle", "unpriced,Production,other,3,6,no_price",
          "unpriced,Production,sister,5,9,no_price", "unpriced,Production,app,66,12,no_price",
          "unpriced,Production,app,9,12,no_price",
        ],
      ]),
    RuleCase(
      "R9: a receipt that can't be read, or shows nothing, fits any transactions",
      [
        .upload(reply(row("2"))), .pending(.unified()), booked(2, reply(row("3"))),
      ],
      ["exceptions exception,sale_key": ["unpriced,2", "unpriced,3"]]),
    RuleCase(
      "R1: a reply about something else leaves the answer owed, and gives no sale",
      [
        .pending(.unified(.init("1"))),
        compared(0, reply(row("2")), mismatch: "transactions", outcome: .unreachable),
      ],
      [
        "sales sale_key,pending --include-pending": ["1,true"],
        exceptionsReport: [
          "pending_sale,Production,app,1,1,", "reply_mismatch,Production,app,,2,transactions",
          "reply_not_valid,Production,app,,2,status 0 at 2",
        ],
        "receipts state": ["pending"],
      ]),
    RuleCase(
      "R9: what an operator accepted gives its sale, and is listed; what was found to fit is not",
      [
        .pending(.unified(.init("1"))),
        compared(0, reply(row("2")), mismatch: "transactions", outcome: .valid),
        .pending(.unified(.init("3"))),
        compared(3, reply(row("4")), mismatch: "none", outcome: .valid),
      ],
      [
        "exceptions exception,sale_key,detail": [
          "reply_mismatch,,transactions", "unpriced,2,no_price", "unpriced,4,no_price",
        ]
      ]),
  ]
}
