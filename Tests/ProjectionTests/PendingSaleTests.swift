// Rule R1, pending: sales of receipts that the App Store has not answered yet.
import Ledger
import TestSupport
import Testing

@Suite struct PendingSaleTests {
  @Test(arguments: cases) func pending(_ rule: RuleCase) throws { try rule.check() }

  private static func answer(
    _ upload: Int, _ reply: JSONText, outcome: Outcome, status: Int64?
  ) -> TestEvent {
    var plan = VerificationPlan(upload: upload, occurredAtMs: ms("2026-01-11"), reply: .json(reply))
    plan.outcome = outcome
    plan.status = status
    return .verified(plan)
  }

  private static let cases = [
    RuleCase(
      "R1: a pending sale is counted as an exception and shown on request alone",
      [
        .pending(
          .unified(.init("1", quantity: 2), .init("2", of: "9", line: 77, product: "pro")),
          user: "u",
          metadata: prices(entry(transaction: "1", "2.00"), entry(product: "pro", "9.99")))
      ],
      [
        "revenue": [], "sales": [], "journal": [],
        "exceptions": [
          "pending_sale,Production,app,1,coins,1,1,,2026-01-05T00:00:00.000Z,DE,u",
          "pending_sale,Production,app,77,pro,2,1,,2026-01-05T00:00:00.000Z,DE,u",
        ],
        "sales sale_key,quantity,unit_price,price_basis,country_code,user_identifier,pending --include-pending":
          [
            "1,2,2.00,client_transaction,DE,u,true", "77,1,9.99,client_product,DE,u,true",
          ],
        "journal line,sale_key,amount --include-pending": ["Sale,1,4.00", "Sale,77,9.99"],
        "revenue units,gross --include-pending": ["3,13.99"],
        "users user_identifier,sales,net --include-pending": ["u,2,13.99 EUR"],
        "receipts state,environment,purchases": ["pending,Production,0"],
      ]),
    RuleCase(
      "R1: ProductionSandbox is Sandbox",
      [.pending(.unified(.init("1"), environment: "ProductionSandbox"))],
      [
        "sales --include-pending": [], "exceptions": [],
        "sales environment,sale_key --include-pending --environment Sandbox": ["Sandbox,1"],
        "exceptions exception,environment --environment all": ["pending_sale,Sandbox"],
        "receipts": [], "receipts environment --environment Sandbox": ["Sandbox"],
      ]),
    RuleCase(
      "R1: a legacy receipt's environment is unknown until the App Store says which it is",
      [
        .pending(.transaction(.init("2", of: "1"))),
        .pending(.transaction(.init("3"), environment: "Production")),
        .pending(.transaction(.init("4"))), .verify(4, reply(row("4"))),
      ],
      [
        "sales environment,sale_key,transaction_ids --include-pending --environment all": [
          "Production,4,4", "Unknown,1,1 2", "Unknown,3,3",
        ],
        "sales sale_key --include-pending": ["4"],
        "sales sale_key --include-pending --environment Unknown": ["1", "3"],
        "exceptions exception,sale_key --environment Unknown": [
          "pending_sale,1", "pending_sale,3",
        ],
        "receipts environment,state": ["Unknown,pending", "Unknown,pending", "Production,valid"],
      ]),
    RuleCase(
      "R1: a legacy receipt that says Sandbox is Sandbox",
      [.pending(.transaction(.init("1"), environment: "Sandbox"))],
      [
        "sales --include-pending": [], "receipts": [],
        "sales environment,sale_key --include-pending --environment Sandbox": ["Sandbox,1"],
        "receipts environment,state --environment Sandbox": ["Sandbox,pending"],
      ]),
    RuleCase(
      "R1: several uploads of one pending receipt are one sale; the first country and user hold",
      [
        .pending(.unified(.init("1")), country: nil),
        .pending(.unified(.init("1")), country: "FR", user: "u"),
        .pending(
          .unified(.init("1")), user: "v", metadata: prices(entry(transaction: "1", "2.00"))),
      ],
      [
        "sales country_code,country_position,user_identifier,user_position,unit_price,first_position --include-pending":
          ["FR,2,u,2,2.00,1"],
        "exceptions exception": ["pending_sale"],
      ]),
    RuleCase(
      "R1: the App Store's answer makes the sale a confirmed one",
      [
        .pending(.unified(.init("1")), metadata: prices(entry(transaction: "1", "2.00"))),
        .verify(0, reply(row("1"))),
      ],
      [
        "sales sale_key,first_position,pending --include-pending": ["1,2,false"],
        "exceptions": [], "revenue gross": ["2.00"],
      ]),
    RuleCase(
      "R1: 21003 and 21010 are final: no sale is pending any more",
      [
        .pending(.unified(.init("1"))),
        answer(0, ["status": 21003], outcome: .invalid, status: 21003),
        .pending(.unified(.init("2"))),
        answer(3, ["status": 21010], outcome: .invalid, status: 21010),
      ],
      [
        "sales --include-pending": [],
        "exceptions exception,position": ["reply_not_valid,2", "reply_not_valid,5"],
        "receipts state": ["invalid", "unavailable"],
      ]),
    RuleCase(
      "R1: any other answer leaves the receipt pending",
      [
        .pending(.unified(.init("1"))),
        answer(0, ["status": 21005], outcome: .unreachable, status: 21005),
      ],
      [
        "sales sale_key,pending --include-pending": ["1,true"],
        "exceptions exception,position": ["pending_sale,1", "reply_not_valid,2"],
      ]),
    RuleCase(
      "R1: pending receipts never change a confirmed sale",
      [
        .upload(reply(row("1")), country: nil),
        .pending(
          .unified(.init("1", product: "gems", quantity: 3), .init("2")), country: "FR", user: "u",
          metadata: prices(entry(transaction: "1", "2.00"), entry(transaction: "2", "3.00"))),
      ],
      [
        "sales sale_key,product_id,quantity,country_code,user_identifier,unit_price,pending --include-pending":
          ["1,coins,1,ZZ,,,false", "2,coins,1,FR,u,3.00,true"],
        "exceptions exception,sale_key": ["unpriced,1", "pending_sale,2"],
      ]),
    RuleCase(
      "R7: confirmed periods and price lists price pending sales, not the other way round",
      [
        .upload(
          reply(row("1", line: "71", product: "pro", on: "2026-01-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
        .pending(
          .unified(
            .init("2", of: "1", line: 72, product: "pro", on: "2026-02-01"), .init("5"),
            .init("6", of: "1", line: 69, product: "pro", on: "2025-12-01")),
          metadata: prices(entry(transaction: "6", "1.00"))),
        .upload(
          reply(row("0", of: "1", line: "70", product: "pro", on: "2025-12-15")), receipt: "b"),
        .prices(["coins - USD 3.00 2026-01-01"]),
      ],
      [
        "sales sale_key,unit_price,price_basis,pending --include-pending": [
          "5,3.00,price_list,true", "69,1.00,client_transaction,true", "70,,none,false",
          "71,9.99,client_transaction,false", "72,9.99,carried_forward,true",
        ],
        "sales sale_key,price_basis": ["70,none", "71,client_transaction"],
      ]),
  ]
}
