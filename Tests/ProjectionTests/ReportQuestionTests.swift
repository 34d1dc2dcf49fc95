// Rules R9 and R10: questions that a report is asked: converted users, filters, order.
import Base
import JSON
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ReportQuestionTests {
  // MARK: users --in

  @Test(arguments: convertedUsers) func usersInACurrency(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static let convertedUsers = [
    RuleCase(
      "R10: what users brought in is converted line by line, and without a rate stays as it is",
      [
        .upload(
          reply(
            row("1"), row("2", on: "2026-01-07"),
            row("3", ["cancellation_date_ms": date("2026-01-09")])),
          user: "anna",
          metadata: prices(
            entry(transaction: "1", "10.00", "USD"), entry(transaction: "2", "3.00", "JPY"),
            entry(transaction: "3", "4.00", "USD"))),
        .upload(
          reply(row("4")), user: "bob", metadata: prices(entry(transaction: "4", "1.00")),
          receipt: "b"),
        .upload(
          reply(row("5")), user: nil, metadata: prices(entry(transaction: "5", "1.00", "JPY"))),
        .rates(source: "bank", ["2026-01-01 EUR USD 2", "2026-01-09 EUR USD 4"]),
      ],
      [
        "users user_identifier,net": ["anna,3 JPY 10.00 USD", "bob,1.00 EUR"],
        // 10 ÷ 2 + 4 ÷ 2 − 4 ÷ 4.
        "users user_identifier,net --in EUR": ["anna,6.00 EUR 3 JPY", "bob,1.00 EUR"],
        "users user_identifier,net --in EUR --rates-max-age 3": [
          "anna,-1.00 EUR 3 JPY 14.00 USD", "bob,1.00 EUR",
        ],
      ])
  ]

  @Test func linesOfUsersWithoutARateAreCountedAndNoOthers() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("1")), user: "anna", metadata: prices(entry(transaction: "1", "1.00", "JPY"))),
      .upload(
        reply(row("2")), user: nil, metadata: prices(entry(transaction: "2", "1.00", "JPY")),
        receipt: "b"),
      .pending(
        .unified(.init("3")), user: "carl", metadata: prices(entry(transaction: "3", "2.00", "JPY"))
      ),
    ])
    let found = try ["users", "revenue"].map { report in
      let text = try fixture.json(
        ReportWords("\(report) --in EUR --include-pending").request, from: fixture.current())
      return try JSONValue(Array(text.utf8))["exceptions"]?["unconverted"]?.integerValue
    }
    #expect(found == [2, 3])
  }
}
