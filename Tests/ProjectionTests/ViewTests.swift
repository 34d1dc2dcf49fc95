// The views for queries: each runs, has the reports' words, and is documented column by column.
import Base
import Foundation
import Revenue
import TestSupport
import Testing

import Projections

/// A database with the schema and one row for each thing that a view must have a word for.
private final class ViewFixture {
  let database: Database
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    database = try Database(path: temporary.path("views.sqlite"), mode: .create)
    try database.execute(Schema.tables)
    try database.execute(Schema.indexes)
    try database.execute(Schema.views)
    try database.execute(
      """
      INSERT INTO symbols VALUES(0, ''), (1, 'Production'), (2, 'com.example.app'),
        (3, 'pro.month'), (4, 'DE'), (5, 'EUR'), (6, 'not_authenticated'), (7, 'family-1');
      INSERT INTO users VALUES(0, 'u-1', 1, 0, 1);
      INSERT INTO apps VALUES('family-1', 'Example', '{}', 0);
      INSERT INTO app_bundles VALUES('b.two', 'family-1'), ('b.one', 'family-1');
      INSERT INTO receipts(id, receipt_id, receipt_hash, app_family, bundle, style, environment, state,
        fraud_reason, country, user, uploads, purchases, first_position, last_position,
        reply_position, is_locally_valid, is_final, created_at_ms, updated_at_ms, last_upload)
        VALUES(0, 'receipt-1', 11, 7, 2, 0, 1, 2, 6, 4, 0, 1, 1, 1, 2, 2, 1, 1, 0, 1, 1);
      INSERT INTO uploads(position, receipt, occurred_at_ms, recorded_at_ms, country, user,
        metadata, line) VALUES(1, 0, 0, 1, 4, 0, '{}', 9);
      INSERT INTO notifications(position, uuid_hash, occurred_at_ms, recorded_at_ms, type, environment,
        bundle, app_family, notification_uuid, is_fetched)
        VALUES(8, 1, 0, 1, 3, 1, 2, 7, 'uuid-1', 0);
      INSERT INTO fetched_pages VALUES(9, 7, 2, 1, 0, 1, 't', NULL, NULL, 'r', NULL, 0, 0);
      INSERT INTO declarations VALUES(5, 0, 'prices.csv', 'cd', 1, 1, NULL), (6, 1, 'rates.csv', 'ef', 1, 1, NULL);
      INSERT INTO price_list VALUES(5, 0, 3, NULL, 5, 9990000, 86400000);
      INSERT INTO rates VALUES(6, 0, 20454, 'EUR', 'USD', '1.17');
      INSERT INTO trust_declarations VALUES(7, 'a', 'b', 0, '{}');
      """)
  }

  /// The first column of every row.
  func texts(_ sql: String) throws -> [String?] {
    let statement = try database.prepare(sql)
    var result: [String?] = []
    while try statement.step() { result.append(statement.optionalText(0)) }
    return result
  }

  func addSale(
    _ id: Int, kind: SaleKind = .regular, basis: PriceBasis = .clientSingle,
    problem: PriceProblem = .noPrice, country: String = "NULL"
  ) throws {
    try database.execute(
      """
      INSERT INTO sales(id, environment, bundle, key_kind, sale_key, product, quantity,
        sale_date_ms, kind, transaction_id, original_transaction_id, first_position, country,
        user, user_position, unit_price_micros, currency, price_basis, price_position,
        price_problem, is_transaction_alias, is_upgraded, cancellation_state, version, created_at_ms,
        updated_at_ms, trust, flags, amount_micros, user_basis)
        VALUES(\(id), 1, 2, 0, 'key-\(id)', 3, 1, 0, \(kind.rawValue), 't', 'o', 1, \(country),
        0, 1, 9990000, 5, \(basis.rawValue), 1, \(problem.rawValue), 1, 0, 0, 1, 0, 0, 3, 0, 9990000, 1);
      """)
  }
}

private func columns(_ view: String, _ database: Database) throws -> [String] {
  let rows = try database.prepare("SELECT name FROM pragma_table_info('\(view)') ORDER BY cid")
  var names: [String] = []
  while try rows.step() { names.append(rows.text(0)) }
  return names
}

/// The first cells of the table under each heading of docs/projections.md that names a view.
private func documentedColumns() throws -> [(view: String, columns: [String])] {
  let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("docs/projections.md")
  var result: [(view: String, columns: [String])] = []
  for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") {
    if line.hasPrefix("#") {
      let title = line.drop { $0 == "#" || $0 == " " }
      result.append((title.filter { $0 != "`" }, []))
    } else if line.hasPrefix("| `"), !result.isEmpty {
      let cell = line.dropFirst(2).prefix { $0 != "|" }
      let names = cell.split(separator: "`").filter { $0.contains(where: \.isLetter) }
      result[result.count - 1].columns += names.map(String.init)
    }
  }
  return result.filter { $0.view.hasSuffix("_view") }
}

@Suite struct ViewTests {
  @Test func theViewsOfTheDatabaseAreThoseThatAreNamed() throws {
    let fixture = try ViewFixture()
    let names = try fixture.texts("SELECT name FROM sqlite_schema WHERE type = 'view'")
    expectEqual(names.compactMap(\.self).sorted(), Schema.viewNames.sorted())
  }

  @Test func docsDescribeEveryViewAndEveryColumnInOrder() throws {
    let fixture = try ViewFixture()
    let documented = try documentedColumns()
    expectEqual(documented.map(\.view), Schema.viewNames)
    for (view, names) in documented {
      let found = try columns(view, fixture.database)
      expectEqual(found, names, "\(view)")
    }
  }

  @Test(arguments: Schema.viewNames) func eachViewHasARowForWhatIsThere(view: String) throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0, basis: .none)
    try fixture.database.execute(
      """
      INSERT INTO verifications(position, upload, receipt, authority, outcome, status,
        environment, attempt, endpoint, occurred_at_ms, reply_position)
        VALUES(2, 1, 0, 1, 0, 0, 1, 1, 0, 0, 2);
      INSERT INTO subscriptions(environment, bundle, original_hash, original_transaction_id,
        is_country_signed, user_basis, is_taken_over, sale, product, expires_at_ms,
        statement_position)
        VALUES(1, 2, 0, 'o', 0, 0, 0, 0, 3, 0, 2), (1, 2, 0, 'of renewal information alone', 0, 0,
          0, NULL, NULL, NULL, NULL);
      """)
    try expectEqual(fixture.database.integer("SELECT count(*) FROM \(view)"), 1)
  }

  /// As views are compared, and as people read them. If a view scanned a table for each row of another, or built an
  /// index for it, its time would grow with the square of the rows.
  @Test(arguments: Schema.viewNames) func noViewGoesThroughATableForEachRowOfAnother(
    view: String
  ) throws {
    let fixture = try ViewFixture()
    let names = try columns(view, fixture.database).joined(separator: ", ")
    for ending in ["", "ORDER BY \(names)", "ORDER BY 1", "LIMIT 10", "ORDER BY 1, 2 LIMIT 10"] {
      let plan = try fixture.database.prepare(
        "EXPLAIN QUERY PLAN SELECT \(names) FROM \(view) \(ending)")
      var loops: [Int64: Int] = [:]
      while try plan.step() {
        let (parent, step) = (plan.integer(1), plan.text(3))
        #expect(!step.contains("AUTOMATIC"), "\(ending): \(step)")
        guard step.hasPrefix("SCAN ") || step.hasPrefix("SEARCH ") else { continue }
        #expect(loops[parent] == nil || step.hasPrefix("SEARCH "), "\(ending): \(step)")
        loops[parent, default: 0] += 1
      }
      #expect(!loops.isEmpty)
    }
  }

  @Test func saleWordsAreThoseOfTheReports() throws {
    let fixture = try ViewFixture()
    for (id, kind) in SaleKind.allCases.enumerated() { try fixture.addSale(id, kind: kind) }
    try expectEqual(
      fixture.texts("SELECT kind FROM sale_view ORDER BY sale"),
      SaleKind.allCases.map { "\($0.word)" })
  }

  @Test func basisWordsAreThoseOfTheReportsAndNullWhereThereIsNone() throws {
    let fixture = try ViewFixture()
    for (id, basis) in PriceBasis.allCases.enumerated() { try fixture.addSale(id, basis: basis) }
    try expectEqual(
      fixture.texts("SELECT price_basis FROM sale_view ORDER BY sale"),
      PriceBasis.allCases.map { $0 == .notApplicable ? nil : "\($0.word)" })
  }

  @Test func anUnpricedSaleIsAnExceptionWithItsProblem() throws {
    let fixture = try ViewFixture()
    for (id, problem) in PriceProblem.allCases.enumerated() {
      try fixture.addSale(id, basis: .none, problem: problem)
    }
    let words = PriceProblem.allCases.map { "\($0.word)" }
    try expectEqual(
      fixture.texts("SELECT detail FROM exception_view WHERE exception = 'unpriced'"), words)
    try expectEqual(fixture.texts("SELECT price_problem FROM sale_view ORDER BY sale"), words)
  }

  @Test func aPricedSaleHasNoProblemAndIsNoException() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0, basis: .priceList, problem: .zero)
    try expectEqual(fixture.texts("SELECT price_problem FROM sale_view"), [nil])
    try expectEqual(fixture.database.integer("SELECT count(*) FROM exception_view"), 0)
  }

  @Test func exceptionWordsAreThoseOfTheReports() throws {
    let fixture = try ViewFixture()
    for type in ExceptionType.allCases {
      try fixture.database.execute(
        """
        INSERT INTO exceptions(type, environment, bundle, product_id, transaction_id, detail, position)
          VALUES(\(type.rawValue), 1, 2, 'p', 't', '', 3)
        """)
    }
    try expectEqual(
      fixture.texts("SELECT exception FROM exception_view"), ExceptionType.allCases.map(\.word))
  }

  @Test func lineWordsAreThoseOfTheReportsAndAnEmptyReasonIsNull() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0)
    for type in LineType.allCases where type != .sale {
      try fixture.database.execute(
        """
        INSERT INTO later_lines VALUES(0, \(type.rawValue), \(type.rawValue), 0, 2, '', -1, -1,
          100000, 0, 0, 0, NULL)
        """)
    }
    try expectEqual(
      fixture.texts("SELECT line FROM journal_view ORDER BY ordinal"),
      LineType.allCases.map { "\($0.word)" })
    try expectEqual(fixture.texts("SELECT DISTINCT reason FROM journal_view"), [nil])
  }

  @Test func aLinesQuantityAndAmountAreThoseOfItsRow() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0)
    try fixture.database.execute(
      """
      UPDATE sales SET quantity = 3, amount_micros = 10000000, unit_price_micros = 3333333;
      INSERT INTO later_lines VALUES(0, 1, \(LineType.return.rawValue), 5, 2, 'r', 0, NULL,
        500, 0, 0, 0, NULL),
        (0, 2, \(LineType.reversal.rawValue), 6, 3, '', -2, 4000000, 66667, 0, 0, 0, NULL);
      """)
    try expectEqual(
      fixture.texts("SELECT amount_micros FROM journal_view ORDER BY ordinal"),
      ["10000000", nil, "4000000"])
    try expectEqual(
      fixture.texts("SELECT quantity FROM journal_view ORDER BY ordinal"), ["3", "0", "-2"])
    try expectEqual(
      fixture.texts("SELECT date_ms FROM journal_view ORDER BY ordinal"), ["0", "5", "6"])
  }

  @Test func aRefundOfMoreThanTheAmountIsAnExceptionOfItsFirstLine() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0)
    try fixture.database.execute(
      """
      INSERT INTO later_lines VALUES(0, 1, 1, 5, 2, '', 0, -1, 0, 1, 0, 0, NULL),
        (0, 2, 1, 6, 3, '', 0, -1, 0, 9, 0, 1, NULL),
        (0, 3, 1, 7, 4, '', 0, 0, 0, 9, 0, 0, NULL);
      """)
    try expectEqual(fixture.texts("SELECT position FROM exception_view"), ["3"])
    try expectEqual(
      fixture.texts("SELECT exception FROM exception_view"), ["refund_exceeds_amount"])
    try expectEqual(fixture.texts("SELECT sale_key FROM exception_view"), ["key-0"])
  }

  @Test func aSalesOwnTransactionStandsAmongTheOthersWhereARowShowedIt() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0)
    try fixture.addSale(1)
    try fixture.database.execute(
      """
      UPDATE sales SET is_transaction_alias = 0 WHERE id = 1;
      INSERT INTO sale_transactions VALUES(0, 'a'), (0, 'z'), (1, 'a');
      """)
    try expectEqual(
      fixture.texts("SELECT transaction_ids FROM sale_view ORDER BY sale"), ["a t z", "a"])
  }

  @Test(
    arguments: [
      (0, 0, "local", "valid", "production"), (1, 1, "app_store", "invalid", "sandbox"),
      (1, 2, "app_store", "unreachable", nil),
    ] as [(Int, Int, String, String, String?)])
  func verificationWords(
    authority: Int, outcome: Int, authorityWord: String, outcomeWord: String, endpoint: String?
  ) throws {
    let fixture = try ViewFixture()
    let endpointNumber = endpoint == nil ? "NULL" : endpoint == "sandbox" ? "1" : "0"
    try fixture.database.execute(
      """
      INSERT INTO verifications(position, upload, receipt, authority, outcome, status,
        environment, attempt, endpoint, occurred_at_ms, reply_position)
        VALUES(2, 1, 0, \(authority), \(outcome), 0, 0, 1, \(endpointNumber), 0, 2)
      """)
    try expectEqual(fixture.texts("SELECT authority FROM verification_view"), [authorityWord])
    try expectEqual(fixture.texts("SELECT outcome FROM verification_view"), [outcomeWord])
    try expectEqual(fixture.texts("SELECT endpoint FROM verification_view"), [endpoint])
    // The symbol of an empty text is not an environment.
    try expectEqual(fixture.texts("SELECT environment FROM verification_view"), [nil])
  }

  @Test func aCountryThatNobodyGaveIsZZ() throws {
    let fixture = try ViewFixture()
    try fixture.addSale(0)
    try fixture.addSale(1, country: "4")
    try expectEqual(
      fixture.texts("SELECT country_code FROM sale_view ORDER BY sale"), ["ZZ", "DE"])
  }

  @Test func declarationsAreShownWithTheirDays() throws {
    let fixture = try ViewFixture()
    try expectEqual(
      fixture.texts("SELECT effective_from FROM price_view"), ["1970-01-02T00:00:00.000Z"])
    try expectEqual(fixture.texts("SELECT date FROM rate_view"), ["2026-01-01"])
    try expectEqual(fixture.texts("SELECT bundle_ids FROM app_view"), ["b.one b.two"])
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func instantsAsTextAreThoseOfTheReportsToTheMillisecond(seed: UInt64) throws {
    let fixture = try ViewFixture()
    var state = seed
    for _ in 0..<2000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      // From 1970 to 9999.
      let epochMs = Int64(state >> 16) % 253_402_300_799_999
      try fixture.database.execute("UPDATE users SET first_seen_at_ms = \(epochMs)")
      let shown = try fixture.texts("SELECT first_seen_at FROM user_view")
      expectEqual(shown, [Timestamp.text(ms: epochMs)], "\(epochMs)")
    }
  }
}
