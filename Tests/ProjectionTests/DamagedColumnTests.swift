// Numbers that other programs wrote into the projections: nothing traps, and no code is guessed.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct DamagedColumnTests {
  private static let reports = [
    "revenue --by period,country,basis,trust --environment all --include-pending",
    "revenue --in EUR --environment all --refunds sale-date", "journal --environment all",
    "journal --country DE --include-pending", "sales --environment all --include-pending",
    "exceptions --environment all", "exceptions --country DE", "receipts --environment all",
    "users --environment all --include-pending", "subscriptions --environment all",
    "subscriptions --by month --environment all",
  ]

  /// Each kind of state, sale, price, exception and statement.
  private static func history() -> [TestEvent] {
    var generator = HistoryGenerator(seed: 11)
    let period = signed(
      "s1", line: "w1", product: "pass", on: "2026-01-05",
      ["price": 9990, "currency": "EUR", "expiresDate": instant("2026-03-01")])
    let refunded = signed(
      "s2", signed: "2026-01-09",
      [
        "quantity": 3, "price": 9000, "currency": "EUR", "revocationDate": instant("2026-01-08"),
        "revocationPercentage": 50_000,
      ])
    let lapsed = signed(
      "s3", line: "w3", product: "pro", on: "2026-01-01", signed: "2026-01-01",
      ["expiresDate": instant("2026-01-08"), "type": "Auto-Renewable Subscription"])
    let renewal = JSONText.object([
      ("originalTransactionId", "s3"), ("environment", "Production"),
      ("signedDate", instant("2026-01-08")), ("expirationIntent", 1),
    ])
    return generator.steps(24) + [
      .prices(["coins - EUR 3.00 2026-01-01"]),
      .rates(source: "bank", ["2026-01-01 EUR USD 1.2"]), .pending(.unified(.init("9000"))),
      LiveProjectionsTests.app([]), .signedUpload(period, user: "anna"), .signedUpload(refunded),
      .notification("DID_RENEW", uuid: "n1", period),
      .notification("EXPIRED", subtype: "VOLUNTARY", uuid: "n2", lapsed, renewal: renewal),
      .fetched([SignedObjectPlan(period)]),
    ]
  }

  private struct Column { let table, name: String }

  private static func columns(_ database: Database) throws -> [Column] {
    let rows = try database.prepare(
      """
      SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
      WHERE m.type = 'table' AND c.type = 'INTEGER' AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2
      """)
    var result: [Column] = []
    while try rows.step() { result.append(Column(table: rows.text(0), name: rows.text(1))) }
    return result
  }

  /// Everything that reads the projections.
  private static func readAll(_ fixture: LedgerFixture) -> [any Error] {
    var errors: [any Error] = []
    func attempt(_ body: () throws -> Void) { do { try body() } catch { errors.append(error) } }
    guard let database = try? fixture.projector().existing() else { return [] }
    for line in reports {
      attempt { _ = try fixture.csv(ReportWords(line).request, from: database) }
    }
    attempt {
      let reader = try LogReader(fixture.directory)
      let queries = try LedgerQueries(database, readEvent: { try reader.event(at: $0) })
      for position in 0..<fixture.eventCount {
        attempt { _ = try queries.exceptions(at: position) }
        attempt {
          for sale in try queries.sales(changedByUpload: position) {
            _ = try queries.exceptions(of: sale)
          }
        }
        attempt { _ = try queries.verifications(ofUpload: position) }
        attempt { _ = try queries.notification(at: position) }
        attempt { _ = try queries.fetchedPage(at: position) }
        guard let id = try queries.receiptID(ofUpload: position) else { continue }
        attempt { _ = try queries.receipt(id: id).map { try queries.purchases(of: $0) } }
      }
      for user in ["anna", "bert", "u-1"] {
        attempt { _ = try queries.user(user) }
        attempt { _ = try SubscriptionQueries(database).subscriptions(ofUser: user) }
      }
      attempt { _ = try queries.changes(from: ChangePoint(0), limit: 10_000) }
      let fetches = try FetchQueries(database, readEvent: { try reader.event(at: $0) })
      attempt {
        for customer in try fetches.customers(afterSale: -1, limit: 100) {
          _ = try fetches.history(of: customer)
        }
      }
      attempt { _ = try fetches.notifications(ofBundle: "app", environment: "Production") }
      attempt { _ = try AppQueries(database).apps() }
      attempt { _ = try AppQueries(database).undeclaredProducts() }
      attempt { _ = try TrustQueries(database).foreign() }
      attempt { _ = try fixture.projector().status() }
    }
    return errors
  }

  @Test(
    "Whatever number a column holds, reports, questions and the fold end with an error or a result",
    arguments: [Int64.max, .min, -7])
  func anyNumber(_ number: Int64) throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.history())
    let columns = try Self.columns(fixture.rebuilt())
    #expect(columns.count > 150)
    let path = fixture.path + "/projections/1.sqlite"
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    for column in columns {
      try Self.put(whole, at: path)
      try Database(path: path, mode: .write).execute(
        "UPDATE OR IGNORE \(column.table) SET \(column.name) = \(number)")
      for error in Self.readAll(fixture) where !(error is ProjectionError || error is DatabaseError)
      {
        Issue.record("\(column): \(error)")
      }
    }
    // A catch-up reads the state that it continues.
    try fixture.append([.upload(), .signedUpload(signed("s1", signed: "2026-01-11"), user: "anna")])
    for column in columns {
      try Self.put(whole, at: path)
      try Database(path: path, mode: .write).execute(
        "UPDATE OR IGNORE \(column.table) SET \(column.name) = \(number)")
      _ = try? fixture.current()
    }
  }

  @Test(
    "An unknown code, and a number that is never written, are damage",
    arguments: [
      ("sales", "kind", 99), ("sales", "price_basis", 99), ("sales", "price_problem", 99),
      ("sales", "cancellation_state", 99), ("sales", "trust", 99), ("later_lines", "line", 99),
      ("subscriptions", "offer", 99), ("receipts", "state", 99), ("exceptions", "type", 99),
      ("verifications", "outcome", 99), ("fetched_pages", "call", 99), ("sales", "key_kind", 2),
      ("sales", "is_upgraded", 2), ("sales", "is_transaction_alias", 2), ("sales", "quantity", 0),
      ("sales", "quantity", 1 << 40), ("sales", "first_position", -7),
      ("later_lines", "is_assumed", 2), ("later_lines", "position", -7), ("receipts", "style", 2),
      ("verifications", "authority", 2),
      ("fetched_pages", "has_more", 2), ("subscription_turns", "kind", 99),
    ] as [(String, String, Int)])
  func unknownCode(table: String, column: String, number: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.history())
    _ = try fixture.rebuilt()
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
      "UPDATE OR IGNORE \(table) SET \(column) = \(number)")
    #expect(
      Self.readAll(fixture).contains { "\($0)".contains("a value that this program never writes") })
  }

  private static func put(_ bytes: Data, at path: String) throws {
    for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    try bytes.write(to: URL(fileURLWithPath: path))
  }
}
