// Rules R2 to R8 one by one, worked out by hand, without a ledger and a database.
import Revenue
import TestSupport
import Testing

/// What happened, and the rules' expected result.
struct LoneRule: Sendable, CustomStringConvertible {
  /// The rule and the verdict.
  let description: String
  let steps: @Sendable (Books) throws -> Void
  var sales: [String]?
  var lines: [String]?
  var exceptions: [String] = []
}

@Suite struct RulesByNumberTests {
  @Test(arguments: identity + evidence + prices + cancellations)
  func ruleGivesWhatWasWorkedOutByHand(_ rule: LoneRule) throws {
    let books = Books()
    try rule.steps(books)
    try books.state.derive()
    if let sales = rule.sales { expectEqual(books.sales(), sales) }
    if let lines = rule.lines { expectEqual(books.lines(), lines) }
    expectEqual(books.exceptions, rule.exceptions)
  }

  private static let identity = [
    LoneRule(
      description: "R2: several rows of one key are one sale, the earlier purchase first",
      steps: { try $0.add(reply(row("9", on: "2026-01-06"), row("9", on: "2026-01-04"))) },
      lines: ["Sale 9 2026-01-04 1 -"]),
    LoneRule(
      description: "R2: a row without product or dates is malformed and nothing else",
      steps: {
        try $0.add(
          reply([
            "product_id": "coins", "transaction_id": "1",
          ]))
      },
      lines: [], exceptions: ["malformed_transaction purchase_date"]),
    LoneRule(
      description: "R3: a line item is a sale of its own, whatever its transaction",
      steps: { try $0.add(reply(row("1", line: "w1"), row("2", of: "1", line: "w2"))) },
      sales: ["w1 regular 1 - - none", "w2 regular 1 - - none"]),
    LoneRule(
      description: "R3: a line item of 0 is none: the original transaction is the key",
      steps: { try $0.add(reply(row("2", of: "1", line: "0"))) },
      sales: ["1 regular 1 - - none"]),
    LoneRule(
      description: "R3: a renewal without its line item would fall together with its first period",
      steps: {
        try $0.add(reply(row("2", of: "1", ["expires_date_ms": date("2026-02-05")])))
      },
      lines: ["Sale 1 2026-01-05 1 -"], exceptions: ["renewal_without_line_item 2"]),
    LoneRule(
      description: "R4: the first observation wins, and what disagrees is an exception",
      steps: {
        try $0.add(reply(row("1", ["quantity": "2"])))
        try $0.add(reply(row("1", product: "gems", ["quantity": "3"])))
      },
      sales: ["1 regular 2 - - none"],
      exceptions: ["conflicting_observation product_id", "conflicting_observation quantity"]),
    LoneRule(
      description: "R4: a quantity that is none counts as 1",
      steps: { try $0.add(reply(row("1", ["quantity": "11"]))) },
      sales: ["1 regular 1 - - none"], exceptions: ["bad_quantity 11"]),
    LoneRule(
      description: "R5: family sharing before trial before offer before regular",
      steps: {
        try $0.add(
          reply(
            row("1", ["in_app_ownership_type": "FAMILY_SHARED", "is_trial_period": "true"]),
            row("2", ["is_trial_period": "true", "is_in_intro_offer_period": "true"]),
            row("3", ["is_in_intro_offer_period": "1"]), row("4", ["promotional_offer_id": "p"]),
            row("5", ["offer_code_ref_name": "c"]), row("6", ["is_trial_period": "false"])))
      },
      sales: [
        "1 family_shared 1 - - ", "2 trial 1 - - ", "3 offer 1 - - none", "4 offer 1 - - none",
        "5 offer 1 - - none", "6 regular 1 - - none",
      ]),
  ]

  private static let evidence = [
    LoneRule(
      description: "R6: the first country and the first user that any upload names",
      steps: {
        try $0.add(reply(row("1")))
        try $0.add(reply(row("1")), country: "DE")
        try $0.add(reply(row("1")), user: "u1", country: "FR")
        try $0.add(reply(row("1")), user: "u2")
      },
      sales: ["1 regular 1 DE u1 none"], exceptions: ["claimed_by_other_user u2"])
  ]

  private static func first(_ metadata: JSONText, _ rows: JSONText...)
    -> @Sendable (Books) throws
    -> Void
  {
    { [rows] in try $0.add(reply(rows: rows.isEmpty ? [row("1")] : rows), metadata: metadata) }
  }

  private static let prices = [
    LoneRule(
      description: "R7.1: an entry of the transaction, at any verification",
      steps: {
        try $0.add(reply(row("1")))
        try $0.add(
          reply(row("1")), metadata: TestSupport.prices(entry(transaction: "1", "2.50")))
        try $0.add(
          reply(row("1")), metadata: TestSupport.prices(entry(transaction: "1", "3")))
      },
      sales: ["1 regular 1 - - client_transaction 2.50"], exceptions: ["price_conflict 3.00 EUR"]),
    LoneRule(
      description: "R7.2: an entry of the product, at the first observation alone",
      steps: {
        try $0.add(reply(row("1")), metadata: TestSupport.prices(entry(product: "coins", "2")))
        try $0.add(
          reply(row("1"), row("2")), metadata: TestSupport.prices(entry(product: "coins", "4")))
      },
      sales: ["1 regular 1 - - client_product 2.00", "2 regular 1 - - client_product 4.00"]),
    LoneRule(
      description: "R7.3: the shorthand, for the one new regular sale",
      steps: first(shorthand("1.99"), row("1"), row("2", ["is_trial_period": "true"])),
      sales: ["1 regular 1 - - client_single 1.99", "2 trial 1 - - "]),
    LoneRule(
      description: "R7.3: of two new sales the shorthand prices neither",
      steps: first(shorthand("1.99"), row("1"), row("2")),
      sales: ["1 regular 1 - - none", "2 regular 1 - - none"],
      exceptions: ["price_ambiguous 2 new sales at 1"]),
    LoneRule(
      description: "R7: a price more than 30 days after the sale is no evidence of its day",
      steps: {
        try $0.add(reply(row("1")), metadata: shorthand("1.99"), on: "2026-02-04")
        try $0.add(
          reply(row("2")), metadata: TestSupport.prices(entry(product: "coins", "2")),
          on: "2026-02-05")
      },
      sales: ["1 regular 1 - - client_single 1.99", "2 regular 1 - - none"],
      exceptions: ["price_observed_late client_product"]),
    LoneRule(
      description: "R7.4: a line item takes the price of the latest earlier one of its chain",
      steps: {
        try $0.add(reply(row("1", line: "w1")), metadata: shorthand("4.99"))
        try $0.add(reply(row("2", of: "1", line: "w2", on: "2026-02-05")))
      },
      sales: [
        "w1 regular 1 - - client_single 4.99", "w2 regular 1 - - carried_forward 4.99",
      ]),
    LoneRule(
      description: "R7.5: a price list prices what is left, from the day on which it takes effect",
      steps: {
        try $0.add(reply(row("1"), row("2", on: "2026-02-05")))
        try $0.declare("coins", micros: 990_000, from: "2026-02-01")
      },
      sales: ["1 regular 1 - - none", "2 regular 1 - - price_list 0.99"]),
    LoneRule(
      description: "R7: a localised price cannot be read", steps: first(shorthand("1,99")),
      sales: ["1 regular 1 - - none"], exceptions: ["price_unreadable client_single"]),
    LoneRule(
      description: "R7: forms that differ are no price",
      steps: first(shorthand("1.99", "EUR", ["price_micros": 1])),
      sales: ["1 regular 1 - - none"], exceptions: ["price_forms_disagree client_single"]),
    LoneRule(
      description: "R7: a client's 0 is no price", steps: first(shorthand("0")),
      sales: ["1 regular 1 - - none"], exceptions: ["price_zero client_single"]),
    LoneRule(
      description: "R7: a price needs a currency", steps: first(shorthand("1.99", .absent)),
      sales: ["1 regular 1 - - none"], exceptions: ["currency_missing client_single"]),
    LoneRule(
      description: "R7: and one of ISO 4217", steps: first(shorthand("1.99", "XTS")),
      sales: ["1 regular 1 - - none"], exceptions: ["currency_unknown client_single"]),
  ]

  private static let cancelled = row(
    "1", ["quantity": "3", "cancellation_date_ms": date("2026-01-20")])
  private static let whole = row("1", ["quantity": "3"])
  private static let sale = "Sale 1 2026-01-05 3 6"
  private static let returned = "Return 1 2026-01-20 -3 -6"

  private static func add(_ row: JSONText, _ day: String, to books: Books) throws {
    try books.add(reply(row, requested: day), metadata: shorthand("2"), on: day)
  }

  private static let cancellations = [
    LoneRule(
      description: "R8: a Return on the date of the cancellation, once",
      steps: {
        for day in ["2026-01-21", "2026-01-22"] { try add(cancelled, day, to: $0) }
      },
      lines: [sale, returned]),
    LoneRule(
      description: "R8: a newer reply without it reverses, at its verification",
      steps: {
        try add(cancelled, "2026-01-21", to: $0)
        try add(whole, "2026-01-20", to: $0)
        try add(whole, "2026-01-23", to: $0)
      },
      lines: [sale, returned, "Reversal 1 2026-01-23 3 6"]),
    LoneRule(
      description: "R8: a second Return needs a reply newer than the one that reversed",
      steps: {
        try add(cancelled, "2026-01-21", to: $0)
        try add(whole, "2026-01-23", to: $0)
        try add(cancelled, "2026-01-22", to: $0)
        try add(cancelled, "2026-01-24", to: $0)
      },
      lines: [sale, returned, "Reversal 1 2026-01-23 3 6", returned]),
    LoneRule(
      description: "R8: an upgrade's cancellation gives an exception and no line",
      steps: {
        try add(row("1", ["quantity": "3", "is_upgraded": "true"]), "2026-01-21", to: $0)
        try add(cancelled, "2026-01-22", to: $0)
      },
      lines: [sale], exceptions: ["upgrade_credit_unknown "]),
    LoneRule(
      description: "R8: a trial's Return has no amount",
      steps: {
        try $0.add(
          reply(row("1", ["is_trial_period": "1", "cancellation_date_ms": date("2026-01-07")])))
      },
      lines: ["Sale 1 2026-01-05 1 0", "Return 1 2026-01-07 -1 0"]),
  ]
}
