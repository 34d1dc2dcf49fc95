// Rule R7 by hand: every form of a price, and every problem that one may have.
import Ledger
import TestSupport
import Testing

@Suite struct RevenuePriceFormTests {
  /// Members of an entry, and the unit price that follows from them.
  private static let forms: [(members: JSONText, price: String)] = [
    (["price": "9.99", "currency": "EUR"], "9.99,EUR"),
    (["price": JSONText(raw: "9.990"), "currency": "EUR"], "9.99,EUR"),
    (["price": 12, "currency": "EUR"], "12.00,EUR"),
    (["price": "0.99000000000000000444", "currency": "EUR"], "0.99,EUR"),
    (["price": JSONText(raw: "0.99000000000000000444"), "currency": "EUR"], "0.99,EUR"),
    (["price": "1.0000005", "currency": "EUR"], "1.00,EUR"),
    (["price": "1.0000015", "currency": "EUR"], "1.000002,EUR"),
    (["price": "1.00000050001", "currency": "EUR"], "1.000001,EUR"),
    (["price": "007.50", "currency": "EUR"], "7.50,EUR"),
    (["price": "99999999999.999999", "currency": "USD"], "99999999999.999999,USD"),
    (["price_micros": 9_990_000, "currency": "EUR"], "9.99,EUR"),
    (["price_micros": 12_345_678_901_234_567, "currency": "EUR"], "12345678901.234567,EUR"),
    (["price_milliunits": 9990, "currency": "EUR"], "9.99,EUR"),
    (["price_milliunits": 12_345_678_901_234, "currency": "EUR"], "12345678901.234,EUR"),
    (
      [
        "price": "9.990", "price_micros": 9_990_000, "price_milliunits": 9990, "currency": "EUR",
      ], "9.99,EUR"
    ),
    (["price": .null, "price_micros": 1_000_000, "currency": "EUR"], "1.00,EUR"),
    (["price": "1", "currency": " eur\t"], "1.00,EUR"),
    (["price": "500", "currency": "JPY"], "500,JPY"),
    (["price": "500.5", "currency": "JPY"], "500.5,JPY"),
    (["price": "1.5", "currency": "KWD"], "1.500,KWD"),
    (["price": "1.5", "currency": "CLF"], "1.5000,CLF"),
    (["price": "5", "currency": "HRK"], "5.00,HRK"),
  ]

  @Test func everyFormOfAPriceIsReadExactly() throws {
    let rule = Self.rule(Self.forms.map(\.members))
    let found = try #require(try rule.found().first)
    let expected = Self.forms.enumerated().map { "\(Self.product($0.offset)),\($0.element.price)" }
    for (found, expected) in zip(found.rebuilt, expected) { expectEqual(found, expected) }
    expectEqual(found.rebuilt.count, expected.count)
  }

  /// Members of an entry, and the only problem found.
  private static let problems: [(members: JSONText, problem: String)] = [
    (["price": "9,99 €", "currency": "EUR"], "price_unreadable"),
    (["price": "-1", "currency": "EUR"], "price_unreadable"),
    (["price": -1, "currency": "EUR"], "price_unreadable"),
    (["price": JSONText(raw: "1e2"), "currency": "EUR"], "price_unreadable"),
    (["price": "1.", "currency": "EUR"], "price_unreadable"),
    (["price": ".5", "currency": "EUR"], "price_unreadable"),
    (["price": " 1", "currency": "EUR"], "price_unreadable"),
    (["price": "1\n", "currency": "EUR"], "price_unreadable"),
    (["price": "", "currency": "EUR"], "price_unreadable"),
    (["price": "٣", "currency": "EUR"], "price_unreadable"),
    (["price": "123456789012", "currency": "EUR"], "price_unreadable"),
    (["price": true, "currency": "EUR"], "price_unreadable"),
    (["price": ["1"], "currency": "EUR"], "price_unreadable"),
    (["currency": "EUR"], "price_unreadable"),
    (["price": .null, "currency": "EUR"], "price_unreadable"),
    (["price_micros": "1000000", "currency": "EUR"], "price_unreadable"),
    (["price_micros": JSONText(raw: "1.0"), "currency": "EUR"], "price_unreadable"),
    (["price_micros": -5, "currency": "EUR"], "price_unreadable"),
    (["price_micros": 123_456_789_012_345_678, "currency": "EUR"], "price_unreadable"),
    (["price_milliunits": 123_456_789_012_345, "currency": "EUR"], "price_unreadable"),
    (["price": "1.00", "price_micros": "x", "currency": "EUR"], "price_unreadable"),
    (["price": "9,99", "currency": "nothing"], "price_unreadable"),
    (["price": "1.00", "price_micros": 1_000_001, "currency": "EUR"], "price_forms_disagree"),
    (["price": "0", "price_milliunits": 1, "currency": "nothing"], "price_forms_disagree"),
    (["price": "0", "currency": "EUR"], "price_zero"),
    (["price": "0.0000004"], "price_zero"),
    (["price_micros": 0, "currency": "nothing"], "price_zero"),
    (["price": "1"], "currency_missing"),
    (["price": "1", "currency": .null], "currency_missing"),
    (["price": "1", "currency": ""], "currency_missing"),
    (["price": "1", "currency": " \t"], "currency_missing"),
    (["price": "1", "currency": "EURO"], "currency_unknown"),
    (["price": "1", "currency": "XXX"], "currency_unknown"),
    (["price": "1", "currency": "XAU"], "currency_unknown"),
    (["price": "1", "currency": "XTS"], "currency_unknown"),
    (["price": "1", "currency": "€"], "currency_unknown"),
    (["price": "1", "currency": 978], "currency_unknown"),
  ]

  @Test func aBadPriceIsOneExceptionAndTheReasonWhyTheSaleIsUnpriced() throws {
    let words = "exceptions product_id,exception,detail"
    let rule = Self.rule(Self.problems.map(\.members), words)
    let found = try #require(try rule.found().first)
    let expected = Self.problems.enumerated().flatMap { index, entry in
      [
        "\(Self.product(index)),\(entry.problem),client_product",
        "\(Self.product(index)),unpriced,\(entry.problem)",
      ]
    }
    for (found, expected) in zip(found.rebuilt.sorted(), expected.sorted()) {
      expectEqual(found, expected)
    }
    expectEqual(found.rebuilt.count, expected.count)
    expectEqual(found.caughtUp, found.rebuilt)
  }

  private static func product(_ index: Int) -> String { "p\(index + 10)" }

  /// A sale and an entry of its product for each of these.
  private static func rule(
    _ entries: [JSONText], _ words: String = "sales product_id,unit_price,currency"
  ) -> RuleCase {
    let rows = entries.indices.map { row("t\($0 + 10)", product: product($0)) }
    let named = entries.enumerated().map { index, members in
      JSONText(raw: "{\"product_id\":\"\(product(index))\"," + members.text.dropFirst())
    }
    return RuleCase(
      "R7: forms", [.upload(reply(rows: rows), metadata: prices(entries: named))], [words: []])
  }
}
