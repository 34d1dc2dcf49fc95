// A history and the rows that the rules make from it, worked out by hand.
private import Projections

/// A hand-worked case: what happened, and what reports must show.
package struct RuleCase: Sendable, CustomStringConvertible {
  /// The rule and the verdict.
  package let description: String
  package let steps: [TestEvent]
  /// Rows by the report's words, as `ReportWords` reads them.
  package let expected: [(report: String, rows: [String])]

  package init(
    _ description: String, _ steps: [TestEvent], _ expected: KeyValuePairs<String, [String]>
  ) {
    self.description = description
    self.steps = steps
    self.expected = expected.map { ($0.key, $0.value) }
  }

  /// The rows of each report, once built from nothing, once caught up after each step.
  package func found() throws -> [(report: String, rebuilt: [String], caughtUp: [String])] {
    let whole = try LedgerFixture()
    try whole.append(steps)
    let rebuilt = try whole.rebuilt()
    let growing = try LedgerFixture()
    for step in steps {
      try growing.append([step])
      _ = try growing.current()
    }
    let caughtUp = try growing.current()
    return try expected.map { report, _ in
      let words = try ReportWords(report)
      return (
        report, words.rows(of: try whole.csv(words.request, from: rebuilt)),
        words.rows(of: try growing.csv(words.request, from: caughtUp))
      )
    }
  }
}

/// An entry of `metadata.prices[]`.
package func entry(
  transaction: JSONText = .absent, product: JSONText = .absent, kind: JSONText = .absent,
  _ price: JSONText, _ currency: JSONText = "EUR"
) -> JSONText {
  [
    "transaction_id": transaction, "product_id": product, "kind": kind, "price": price,
    "currency": currency,
  ]
}

/// Metadata with these entries of `prices[]`.
package func prices(_ entries: JSONText...) -> JSONText { ["prices": .array(entries)] }

/// Metadata with the shorthand.
package func shorthand(
  _ price: JSONText, _ currency: JSONText = "EUR", _ members: Members = [:]
) -> JSONText {
  .object([("price", price), ("currency", currency)] + members.map { ($0.key, $0.value) })
}

/// The same with entries in an array.
package func prices(entries: [JSONText]) -> JSONText { ["prices": .array(entries)] }
