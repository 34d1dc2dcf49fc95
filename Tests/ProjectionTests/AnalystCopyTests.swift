// Copies for analysts: complete, or anonymous down to the bytes of the file.
import Foundation
import Ledger
import TestSupport
import Testing

import Projections

@Suite struct AnalystCopyTests {
  private static let metadata: JSONText = [
    "price": "2.00", "currency": "EUR", "note": "SECRET-metadata",
  ]

  private static func ledger() throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("SECRETTX1")), country: "DE", user: "SECRET-anna", metadata: metadata,
        receipt: "SECRET-receipt"),
      .upload(
        reply(
          row(
            "SECRETTX1", ["cancellation_date_ms": date("2026-01-09"), "cancellation_reason": "1"]),
          requested: "2026-01-12"), country: "DE", user: "SECRET-bob", at: "2026-01-12",
        receipt: "SECRET-receipt"),
      .upload(
        reply(row("SECRETTX2"), status: 21003), user: "SECRET-mallory", receipt: "SECRET-other",
        outcome: .invalid, status: 21003),
      .prices(["gems - EUR 3.00 2026-01-01"]),
    ])
    return fixture
  }

  private static func copy(
    _ fixture: LedgerFixture, isAnonymous: Bool, to path: String,
    isCancelled: @escaping () -> Bool = { false }
  ) throws -> [AnalystCopy.Table] {
    try AnalystCopy(
      of: try fixture.current(), fixture.directory.identity, isAnonymous: isAnonymous,
      isCancelled: isCancelled
    ).write(to: path, .standard)
  }

  private static func rows(_ sql: String, _ path: String) throws -> [String] {
    let statement = try Database(path: path, mode: .read).prepare(sql)
    var rows: [String] = []
    while try statement.step() { rows.append(statement.optionalText(0) ?? "NULL") }
    return rows
  }

  @Test func somebodyHasDecidedAboutEveryColumnOfEveryView() throws {
    let views = try SQLSchema(.standard).views()
    expectEqual(CopiedView.all.map(\.name), views.map(\.name))
    for (copied, view) in zip(CopiedView.all, views) {
      expectEqual(copied.columns.map(\.name), view.columns, "\(view.name)")
      #expect(Set(copied.key).isSubset(of: view.columns), "\(view.name)")
      #expect(Set(copied.indexes).isSubset(of: view.columns), "\(view.name)")
    }
  }

  /// The names of a person, a purchase or a receipt, wherever they occur.
  @Test func noColumnOfAPersonOrAPurchaseIsShared() {
    let withheld = [
      "user_identifier", "metadata", "ip_address", "identifier_for_vendor", "transaction_id",
      "original_transaction_id", "transaction_ids", "sale_key", "receipt_id", "upload_id",
      "detail", "data", "host", "notification_uuid", "source", "source_sha256", "revision",
    ]
    for view in CopiedView.all {
      for column in view.columns where withheld.contains(column.name) {
        #expect(!column.reason.isShared, "\(view.name).\(column.name)")
      }
    }
  }

  @Test func anAnonymousCopyHoldsNoSecretInAnyByteOfItsFile() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try Self.ledger()
    let path = temporary.path("anonymous.sqlite")
    let tables = try Self.copy(fixture, isAnonymous: true, to: path)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    // The full copy proves that the search would find them.
    let full = temporary.path("full.sqlite")
    _ = try Self.copy(fixture, isAnonymous: false, to: full)
    let all = try Data(contentsOf: URL(fileURLWithPath: full))
    for secret in ["SECRET-anna", "SECRET-bob", "SECRET-mallory", "SECRET-metadata", "SECRETTX"] {
      #expect(all.range(of: Data(secret.utf8)) != nil, "\(secret)")
      #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret)")
    }
    #expect(bytes.range(of: Data("SECRET".utf8)) == nil)
    for id in try Self.rows("SELECT receipt_id FROM receipt_view", full) {
      #expect(bytes.range(of: Data(id.utf8)) == nil, "\(id)")
    }
    #expect(tables.map(\.name).contains("journal_view"))
    #expect(!tables.map(\.name).contains("user_view"))
  }

  @Test func aCopyHasTheRowsOfTheViewsAndExactAmounts() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try Self.ledger()
    let path = temporary.path("copy.sqlite")
    for isAnonymous in [false, true] {
      try? FileManager.default.removeItem(atPath: path)
      let tables = try Self.copy(fixture, isAnonymous: isAnonymous, to: path)
      let database = try fixture.current()
      for table in tables where table.name != "about" {
        try expectEqual(
          database.integer("SELECT count(*) FROM \(table.name)"), Int64(table.rowCount))
        try expectEqual(
          Self.rows("SELECT count(*) FROM \(table.name)", path), ["\(table.rowCount)"])
      }
      try expectEqual(
        Self.rows(
          """
          SELECT concat_line FROM (SELECT line || ' ' || amount_micros || ' ' || amount || ' ' ||
            currency AS concat_line FROM journal_view ORDER BY ordinal)
          """, path), ["Sale 2000000 2.00 EUR", "Return -2000000 -2.00 EUR"])
      try expectEqual(Self.rows("SELECT price FROM price_view", path), ["3.00"])
      try expectEqual(
        Self.rows("SELECT value FROM about WHERE name = 'content'", path),
        [isAnonymous ? "anonymous" : "full"])
      try expectEqual(Self.rows("PRAGMA integrity_check", path), ["ok"])
    }
  }

  @Test func aSaleOfTwoSubscriptionsIsInBothRows() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try LedgerFixture()
    // Replies with one line item under two original transaction ids.
    try fixture.append(
      ["A", "B"].map { (original: String) in
        .upload(
          reply(
            row(
              "T\(original)", of: original, line: "L", product: "pro.month",
              ["expires_date_ms": date("2026-02-05")])), receipt: "receipt of \(original)")
      })
    let sql = "SELECT sale || ' ' || original_transaction_id FROM subscription_view ORDER BY 1"
    let path = temporary.path("copy.sqlite")
    _ = try Self.copy(fixture, isAnonymous: false, to: path)
    try expectEqual(Self.rows(sql, path), ["0 A", "0 B"])
    let anonymous = temporary.path("anonymous.sqlite")
    _ = try Self.copy(fixture, isAnonymous: true, to: anonymous)
    try expectEqual(Self.rows("SELECT count(sale) FROM subscription_view", anonymous), ["2"])
  }

  @Test(arguments: [3, 14, 159] as [UInt64])
  func aKeyTellsTheRowsOfAViewApart(seed: UInt64) throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(generator.steps(400))
    let database = try fixture.current()
    for view in CopiedView.all {
      let key = view.key.map { "\"\($0)\"" }.joined(separator: ", ")
      // Duplicate rows may come in any order, but different rows never share a primary key.
      let rows = view.key.count == 1 ? "*" : "DISTINCT *"
      try expectEqual(
        database.integer("SELECT count(*) FROM (SELECT \(rows) FROM \(view.name))"),
        database.integer("SELECT count(*) FROM (SELECT DISTINCT \(key) FROM \(view.name))"),
        "\(view.name)")
    }
  }

  @Test func theSameEventsGiveTheSameFile() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try Self.ledger()
    var files: [Data] = []
    for name in ["one.sqlite", "two.sqlite"] {
      _ = try Self.copy(fixture, isAnonymous: true, to: temporary.path(name))
      files.append(try Data(contentsOf: URL(fileURLWithPath: temporary.path(name))))
    }
    expectEqual(files[0], files[1])
  }

  @Test func additionalViewsAreInAFullCopyAlone() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try Self.ledger()
    fixture.projections = ProjectionSet([MonthlyActivePayers()])
    for isAnonymous in [false, true] {
      let path = temporary.path("\(isAnonymous).sqlite")
      let tables = try AnalystCopy(
        of: try fixture.current(), fixture.directory.identity, isAnonymous: isAnonymous
      ) { false }.write(to: path, fixture.projections)
      expectEqual(tables.map(\.name).contains("monthly_active_payers_view"), !isAnonymous)
    }
  }

  @Test func aCancelledCopyEnds() throws {
    let temporary = try TemporaryDirectory()
    let fixture = try Self.ledger()
    try fixture.append(
      (0..<300).map { .upload(reply(row("\($0)")), user: "u\($0)", receipt: "r\($0)") })
    _ = try fixture.current()
    #expect(throws: ProjectionError.self) {
      try Self.copy(
        fixture, isAnonymous: false, to: temporary.path("cut.sqlite"), isCancelled: { true })
    }
  }
}
