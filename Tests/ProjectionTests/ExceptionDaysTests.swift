// Rule R9: which exceptions a report of certain days counts and lists.
import Base
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ExceptionDaysTests {
  @Test(arguments: cases) func days(_ rule: RuleCase) throws { try rule.check() }

  private static let canceled: Members = ["cancellation_date_ms": date("2026-02-10")]

  private static let cases = [
    RuleCase(
      "R9: an exception of a sale concerns the days of each of its lines",
      [.upload(reply(row("1", canceled), row("2", on: "2026-03-05")))],
      [
        "exceptions exception,sale_key": ["unpriced,1", "unpriced,2"],
        "exceptions exception,sale_key --to 2026-01-31": ["unpriced,1"],
        "exceptions exception,sale_key --from 2026-02-10 --to 2026-02-10": ["unpriced,1"],
        "exceptions exception,sale_key --from 2026-02-11 --to 2026-03-04": [],
        "exceptions exception,sale_key --from 2026-02-01": ["unpriced,1", "unpriced,2"],
        "exceptions exception,sale_key --from 2026-02-01 --refunds sale-date": ["unpriced,2"],
        "exceptions sale_key --from 2026-03-05 --timezone America/New_York": [],
      ]),
    RuleCase(
      "R9: what the fold met of a sale does so too",
      [.upload(reply(row("1", ["quantity": 0])), metadata: prices(entry(transaction: "1", "0")))],
      [
        "exceptions exception --to 2026-01-05": ["bad_quantity", "price_zero", "unpriced"],
        "exceptions exception --from 2026-01-06": [],
      ]),
    RuleCase(
      "R9: without a sale it is when the verification took place",
      [
        .upload(reply(row("1", ["product_id": ""])), at: "2026-02-10", verifiedAt: "2026-03-01"),
        .upload(
          ["status": 21010], at: "2026-03-31", receipt: "b", outcome: .invalid, status: 21010),
      ],
      [
        "exceptions exception --to 2026-02-28": [],
        "exceptions exception --from 2026-03-01 --to 2026-03-01": ["malformed_transaction"],
        "exceptions exception --from 2026-03-02": ["reply_not_valid"],
        "exceptions exception --from 2026-03-31 --timezone America/New_York": [],
        "exceptions exception --from 2026-03-31 --refunds sale-date": ["reply_not_valid"],
      ]),
    RuleCase(
      "R9: the first verification that met it",
      [
        .upload(reply(row("1", ["product_id": ""])), at: "2026-01-10"),
        .upload(reply(row("1", ["product_id": ""])), at: "2026-02-10", receipt: "b"),
      ],
      [
        "exceptions position --to 2026-01-31": ["1"], "exceptions position --from 2026-02-01": [],
      ]),
    RuleCase(
      "R9: a pending sale by its own date",
      [.pending(.unified(.init("1", on: "2026-01-20")), at: "2026-02-10")],
      [
        "exceptions exception --to 2026-01-31": ["pending_sale"],
        "exceptions exception --from 2026-02-01": [],
      ]),
    RuleCase(
      "R9, R10: of a sale without a rate the lines of those days alone",
      [
        .upload(reply(row("1", canceled)), metadata: prices(entry(transaction: "1", "2.00"))),
        .rates(source: "bank", ["2026-02-11 EUR USD 2"]),
      ],
      [
        "exceptions exception,detail --in USD": [
          "unconverted,Return EUR", "unconverted,Sale EUR",
        ],
        "exceptions exception,detail --in USD --to 2026-01-31": ["unconverted,Sale EUR"],
        "exceptions exception,detail --in USD --from 2026-02-01": ["unconverted,Return EUR"],
        "exceptions exception --in USD --from 2026-02-01 --refunds sale-date": [],
      ]),
  ]

  @Test func aReportOfSalesCountsThoseOfTheSalesItShows() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1", Self.canceled), row("2", on: "2026-02-05")))])
    try expectEqual(counts("sales --to 2026-01-31", fixture), ["unpriced": 1])
    try expectEqual(counts("sales --from 2026-02-01", fixture), ["unpriced": 1])
    try expectEqual(counts("revenue --from 2026-02-01", fixture), ["unpriced": 2])
    try expectEqual(counts("receipts", fixture), ["unpriced": 2])
  }

  /// The counts in a report equal the list of exceptions of the same days.
  @Test func countsAreThoseOfTheList() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(generator.steps(150))
    for _ in 0..<40 {
      var options = ""
      if random.chance(percent: 70) { options += " --from \(day(&random, month: 1...2))" }
      if random.chance(percent: 70) { options += " --to \(day(&random, month: 2...4))" }
      if random.chance(percent: 30) { options += " --timezone Pacific/Auckland" }
      if random.chance(percent: 30) { options += " --refunds sale-date" }
      if random.chance(percent: 50) { options += " --environment all" }
      if random.chance(percent: 30) { options += " --in USD" }
      if random.chance(percent: 30) { options += " --include-pending" }
      let list = try ReportWords("exceptions" + options).request
      let names = try ReportWords("exceptions exception").rows(
        of: fixture.csv(list, from: fixture.current()))
      let expected = names.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
      for report in ["revenue", "journal", "exceptions"] {
        try expectEqual(
          counts(report + options, fixture), expected, "seed \(seed): \(report + options)")
      }
    }
  }

  /// A manifest of version 1 has no days.
  @Test func filtersWithoutDaysAreOfAllDays() throws {
    let text = #"{"environment":["Production"],"include_pending":false}"#
    let request = try ReportRequest(.exceptions, filters: JSONValue(Array(text.utf8)))
    #expect(request.from == nil && request.to == nil && request.refunds == .eventDate)
    #expect(throws: ProjectionError.self) {
      try ReportRequest(.journal, filters: JSONValue(Array(text.utf8)))
    }
  }

  private func day(_ random: inout SeededRandom, month: ClosedRange<Int>) -> String {
    let number = Int.random(in: 1...28, using: &random)
    return "2026-0\(Int.random(in: month, using: &random))-\(number < 10 ? "0" : "")\(number)"
  }

  /// The counts of a JSON report.
  private func counts(_ line: String, _ fixture: LedgerFixture) throws -> [String: Int] {
    let text = try fixture.json(try ReportWords(line).request, from: fixture.current())
    guard case .object(let members) = try JSONValue(Array(text.utf8))["exceptions"] else {
      return [:]
    }
    return Dictionary(
      uniqueKeysWithValues: members.map { ($0.key, Int($0.value.integerValue ?? -1)) })
  }
}
