// Rule R8 by hand: Returns, Reversals, and what an upgrade does to them.
import Ledger
import TestSupport
import Testing

@Suite struct RevenueCancellationTests {
  /// A verification at noon of the day on which its reply was requested; position 2n + 1 for the nth.
  private static func shown(
    _ requested: String?, _ row: JSONText, on day: String = "2026-02-20"
  ) -> TestEvent {
    .upload(
      reply(row, requested: requested),
      metadata: prices(entry(transaction: "1", "2.00")), at: (requested ?? day) + "T12:00:00Z")
  }

  private static let whole = row("1", ["quantity": "3"])
  private static let cancelled = row(
    "1", ["quantity": "3", "cancellation_date_ms": date("2026-01-20"), "cancellation_reason": "1"])

  private static let sale = "2026-01-05T00:00:00.000Z,Sale,3,6.00,,1"
  private static func returned(_ position: Int) -> String {
    "2026-01-20T00:00:00.000Z,Return,-3,-6.00,1,\(position)"
  }
  private static func reversed(_ day: String, _ position: Int) -> String {
    "\(day)T12:00:00.000Z,Reversal,3,6.00,,\(position)"
  }
  private static let lines = "journal date,line,quantity,amount,reason,position"

  @Test(arguments: cases) func journal(_ rule: RuleCase) throws { try rule.check() }

  private static let cases = [
    RuleCase(
      "R8: a sale has one line until a cancellation is shown",
      [shown("2026-01-10", whole), shown("2026-01-11", whole)],
      [lines: [sale], "sales cancelled,cancellation_positions,reversal_positions": ["false,,"]]),
    RuleCase(
      "R8: a cancellation gives a Return on its date with its reason",
      [shown("2026-01-10", whole), shown("2026-01-21", cancelled), shown("2026-01-22", cancelled)],
      [
        lines: [sale, returned(3)],
        "sales cancelled,cancellation_positions,reversal_positions": ["true,3,"],
      ]),
    RuleCase(
      "R8: the first observation may show the cancellation",
      [shown("2026-01-21", cancelled)], [lines: [sale, returned(1)]]),
    RuleCase(
      "R8: a newer reply without it gives a Reversal when the verification happened",
      [shown("2026-01-10", whole), shown("2026-01-21", cancelled), shown("2026-01-25", whole)],
      [
        lines: [sale, returned(3), reversed("2026-01-25", 5)],
        "sales cancelled,cancellation_positions,reversal_positions": ["false,3,5"],
      ]),
    RuleCase(
      "R8: neither an older reply, nor one as old, nor one without a date reverses",
      [
        shown("2026-01-21", cancelled), shown("2026-01-20", whole), shown("2026-01-21", whole),
        shown(nil, whole),
      ],
      [lines: [sale, returned(1)]]),
    RuleCase(
      "R8: what counts is the newest reply that showed the cancellation",
      [
        shown("2026-01-21", cancelled), shown("2026-01-28", cancelled),
        shown("2026-01-24", cancelled), shown("2026-01-25", whole), shown("2026-01-29", whole),
      ],
      [lines: [sale, returned(1), reversed("2026-01-29", 9)]]),
    RuleCase(
      "R8: a new Return needs a reply newer than the one that reversed",
      [
        shown("2026-01-21", cancelled), shown("2026-01-25", whole),
        shown("2026-01-24", cancelled), shown("2026-01-25", cancelled), shown(nil, cancelled),
      ],
      [lines: [sale, returned(1), reversed("2026-01-25", 3)]]),
    RuleCase(
      "R8: and then may be reversed again",
      [
        shown("2026-01-21", cancelled), shown("2026-01-25", whole),
        shown("2026-01-26", cancelled), shown("2026-01-26", whole), shown("2026-01-27", whole),
      ],
      [
        lines: [
          sale, returned(1), returned(5), reversed("2026-01-25", 3), reversed("2026-01-27", 9),
        ],
        "sales cancelled,cancellation_positions,reversal_positions": ["false,1 5,3 9"],
        "revenue units,gross,returned_units,returns,reversed_units,reversals,net": [
          "3,6.00,6,12.00,6,12.00,6.00"
        ],
      ]),
    RuleCase(
      "R12: a reply without a date has the time of its cancellation, so that a newer one reverses",
      [shown(nil, cancelled), shown("2026-02-25", whole)],
      [lines: [sale, returned(1), reversed("2026-02-25", 3)]]),
    RuleCase(
      "R8: a later one that shows the cancellation changes nothing, and is the one to be newer than",
      [shown(nil, cancelled), shown("2026-02-25", cancelled), shown("2026-02-26", whole)],
      [lines: [sale, returned(1), reversed("2026-02-26", 5)]]),
    RuleCase(
      "R8: the first row in R2's order that shows a cancellation gives its date and reason",
      [
        .upload(
          reply(
            row("1", ["cancellation_date_ms": date("2026-01-22"), "cancellation_reason": "0"]),
            row("1", on: "2026-01-04", ["cancellation_date_ms": date("2026-01-23")]),
            latest: [row("1")]))
      ],
      [
        "journal line,date,reason": [
          "Sale,2026-01-05T00:00:00.000Z,", "Return,2026-01-23T00:00:00.000Z,",
        ]
      ]),
    RuleCase(
      "R8: an upgrade's cancellation gives no line but an exception",
      [
        shown("2026-01-10", row("1", ["quantity": "3", "is_upgraded": "true"])),
        shown("2026-01-21", cancelled), shown("2026-01-22", cancelled),
      ],
      [
        lines: [sale], "sales is_upgraded,cancelled": ["true,false"],
        "exceptions exception,sale_key,position,detail": ["upgrade_credit_unknown,1,3,"],
      ]),
    RuleCase(
      "R8: also where one row shows both",
      [
        shown(
          "2026-01-21",
          row(
            "1", ["quantity": "3", "is_upgraded": true, "cancellation_date_ms": date("2026-01-20")])
        )
      ],
      [lines: [sale], "exceptions exception,position": ["upgrade_credit_unknown,1"]]),
    RuleCase(
      "R8: a Return made before the upgrade was seen stays",
      [
        shown("2026-01-21", cancelled),
        shown(
          "2026-01-22",
          row("1", ["quantity": "3", "is_upgraded": 1, "cancellation_date_ms": date("2026-01-20")])),
      ],
      [
        lines: [sale, returned(1)], "sales is_upgraded,cancelled": ["true,true"],
        "exceptions exception,position": ["upgrade_credit_unknown,3"],
      ]),
    RuleCase(
      "R8: trials have their lines with amount 0, unpriced sales theirs without one",
      [
        .upload(
          reply(
            row(
              "1",
              ["is_trial_period": true, "cancellation_date_ms": date("2026-02-10")]),
            row("2", ["quantity": 2, "cancellation_date_ms": date("2026-02-10")])))
      ],
      [
        "journal line,kind,quantity,currency,unit_price,amount,price_basis": [
          "Sale,trial,1,,,0,", "Sale,regular,2,,,,none", "Return,trial,-1,,,0,",
          "Return,regular,-2,,,,none",
        ],
        // The Return of a trial changes no column.
        "revenue --by period": [
          "2026-01,,2,,0,,0,,,2,1,0", "2026-02,,0,,2,,0,,,0,0,0",
        ],
      ]),
    RuleCase(
      "R9: a period that holds nothing but the Return of a trial has no row",
      [
        .upload(
          reply(row("1", ["is_trial_period": true, "cancellation_date_ms": date("2026-02-10")])))
      ],
      ["revenue period,trials --by period": ["2026-01,1"]]),
    RuleCase(
      "R8: the journal's order is date, environment, bundle, key, position, line",
      [
        .upload(
          reply(
            row("b", ["cancellation_date_ms": date("2026-01-05")]), row("a"),
            row("c", on: "2026-01-04T23:59:59.999Z"))),
        .upload(reply(row("0"), receipt: ["bundle_id": "zoo"]), receipt: "b"),
        .upload(reply(row("1"), environment: "Beta"), receipt: "c"),
        .upload(reply(row("00")), receipt: "d"),
      ],
      [
        "journal environment,bundle_id,sale_key,line,position --environment all": [
          "Production,app,c,Sale,1", "Beta,app,1,Sale,5", "Production,app,00,Sale,7",
          "Production,app,a,Sale,1", "Production,app,b,Sale,1", "Production,app,b,Return,1",
          "Production,zoo,0,Sale,3",
        ]
      ]),
  ]
}
