// Random histories: the purchases shown to users are the sales of the reports.
import Base
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

@Suite struct UserHistoryTests {
  /// Each sale of the app with its user; empty if it has none.
  private static let expected = """
    SELECT v.transaction_id, v.product_id, v.kind, v.quantity, v.sale_date, v.currency, v.amount_micros,
    v.cancelled, coalesce(u.user_identifier, '') AS owner
    FROM sale_view v JOIN sales s ON s.id = v.sale
    LEFT JOIN subscriptions x ON s.user IS NULL AND x.environment = s.environment AND x.bundle = s.bundle
    AND x.original_transaction_id = s.original_transaction_id AND x.statement_position IS NOT NULL
    LEFT JOIN users u ON u.id = coalesce(s.user, x.user)
    WHERE v.bundle_id IN (SELECT bundle_id FROM app_bundles) ORDER BY v.sale_date_ms DESC, v.sale DESC
    """

  /// A sale as one line, as the projections or a response show it.
  private struct Line: Equatable, CustomStringConvertible {
    let description: String

    init(_ row: Statement) {
      let currency = Currency.parse(row.bytes(5))
      let amount = row.optionalInteger(6).map { Amount.text(micros: $0, currency: currency) }
      description = [
        row.text(0), row.text(1), row.text(2), row.text(3), row.text(4),
        currency.map { "\($0)" } ?? "-",
        currency == nil ? "-" : amount ?? "-", row.integer(7) == 0 ? "" : "returned",
      ].joined(separator: " ")
    }

    init(_ purchase: JSONValue) {
      let texts = purchase.texts(
        "transaction_id", "product_id", "kind", "quantity", "purchased_at", "currency", "amount")
      let isReturned = purchase["refunded_at"] != .null
      description =
        texts.map { $0 ?? "-" }.joined(separator: " ") + (isReturned ? " returned" : " ")
    }
  }

  @Test(
    "each sale of a user is one purchase in the user's list, in its order",
    arguments: [1, 2, 3])
  func purchases(_ seed: UInt64) throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: seed)
    try fixture.append([LiveProjectionsTests.app([])] + generator.steps(150))
    let questions = try UserQuestions(fixture)
    let database = try fixture.current()
    var expected: [String: [Line]] = [:]
    let rows = try database.prepare(Self.expected)
    while try rows.step() { expected[rows.text(8), default: []].append(Line(rows)) }
    expected[""] = nil
    try #require(!expected.isEmpty)
    for (user, lines) in expected {
      var found: [Line] = []
      var next: String?
      repeat {
        let answer = try questions.answer(
          .purchases(after: next.flatMap { PurchaseCursor($0) }, limit: 3), about: user)
        found += (answer["purchases"]?.arrayValue ?? []).map { Line($0) }
        next = answer["next"]?.stringValue
      } while next != nil
      expectEqual(found, lines, "seed \(seed)")
    }
  }
}
