// SQL statements of users: what they may do, how much they may use, and the messages about them.
import Projections
import TestSupport
import Testing

@Suite struct SQLQueryTests {
  /// A ledger with a sale, and the ways to query its projections.
  private struct Books {
    let fixture: LedgerFixture
    let database: Database

    init() throws {
      fixture = try LedgerFixture()
      try fixture.append([
        .upload(reply(row("1")), user: "anna", metadata: shorthand("2.00"), receipt: "a")
      ])
      let projector = try fixture.projector()
      database = try projector.readOnly(try projector.current())
    }

    func query(
      _ sql: String, limitMs: Int64 = 60_000, isCancelled: @escaping () -> Bool = { false }
    ) throws -> SQLQuery {
      try SQLQuery(sql, on: database, SQLStopwatch(limitMs: limitMs), isCancelled: isCancelled)
    }

    /// The error of a query that must fail.
    func error(
      _ sql: String, limitMs: Int64 = 60_000, isCancelled: @escaping () -> Bool = { false }
    ) throws -> SQLError {
      do {
        let query = try query(sql, limitMs: limitMs, isCancelled: isCancelled)
        while try query.step() {}
      } catch let error as SQLError { return error }
      throw Unexpected(sql: sql)
    }
  }

  private struct Unexpected: Error { let sql: String }

  // MARK: Read-only access

  @Test(arguments: [
    ("ATTACH 'x.sqlite' AS x", "ATTACH"), ("DETACH main", "DETACH"),
    ("PRAGMA query_only = OFF", "PRAGMA"), ("PRAGMA table_info(sales)", "PRAGMA"),
    ("INSERT INTO users VALUES(9, 'x', 0, 0, 0)", "INSERT"),
    ("DELETE FROM sales", "DELETE"), ("UPDATE sales SET quantity = 2", "UPDATE"),
    ("DROP VIEW sale_view", "DROP"), ("CREATE TABLE t(x)", "CREATE"),
    ("CREATE TEMP TABLE t(x)", "CREATE"),
    ("CREATE TEMP VIEW v AS SELECT 1", "CREATE"),
    ("WITH a AS (SELECT 1) DELETE FROM sales", "the statement"), ("BEGIN", "BEGIN"),
    ("COMMIT", "COMMIT"), ("SAVEPOINT s", "SAVEPOINT"), ("ANALYZE", "ANALYZE"),
    ("REINDEX", "REINDEX"),
    ("SELECT load_extension('x')", "the function load_extension"),
    ("SELECT fts3_tokenizer('simple')", "the function fts3_tokenizer"),
    ("SELECT sqlite_compileoption_get(1)", "the function sqlite_compileoption_get"),
    ("SELECT name FROM pragma_table_info('sales')", "this table"),
    ("SELECT name FROM dbstat", "this table"),
  ])
  func whateverDoesMoreThanReadIsRefused(sql: String, subject: String) throws {
    let error = try Books().error(sql)
    expectEqual(error.kind, .statement)
    expectEqual(error.cause, "\(subject) is refused: a query only reads")
  }

  @Test(arguments: ["VACUUM", "VACUUM INTO '/tmp/copied-by-a-query.sqlite'"])
  func aCopyOfTheFileIsRefused(sql: String) throws {
    let error = try Books().error(sql)
    #expect(error.kind == .statement && error.cause.hasSuffix(" is refused: a query only reads"))
  }

  @Test(arguments: [
    "SELECT count(*) FROM sale_view", "VALUES (1), (2)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
    "SELECT json_extract(metadata, '$.price') FROM upload_view",
    "SELECT value FROM json_each('[1]')",
    "SELECT user_identifier, row_number() OVER (ORDER BY sale) FROM sale_view",
    "WITH a AS (SELECT 1) SELECT count(*) FROM a", "SELECT sql FROM sqlite_schema",
    "SELECT position FROM progress", "EXPLAIN QUERY PLAN SELECT 1",
    "SELECT 1; -- that is all\n;",
  ])
  func whateverReadsRuns(sql: String) throws {
    let books = try Books()
    #expect(try books.query(sql).step())
  }

  @Test func eachViewCanBeReadAndItsColumnsAreTheListed() throws {
    let books = try Books()
    for view in try SQLSchema(.standard).views() {
      try expectEqual(books.query("SELECT * FROM \(view.name)").columns, view.columns)
    }
  }

  // MARK: Limits

  private static let endless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

  @Test func anEndlessStatementEndsWithItsTime() throws {
    let error = try Books().error(Self.endless, limitMs: 1)
    #expect(error.kind == .time && error.cause == "it took longer than 0 s")
  }

  @Test func anEndlessStatementEndsWhenItIsCancelled() throws {
    try expectEqual(Books().error(Self.endless, isCancelled: { true }).kind, .cancelled)
  }

  @Test(
    arguments: [
      ("SELECT length(zeroblob(17 << 20))", "a value is longer than 16 MiB"),
      (
        "SELECT length(replace(hex(zeroblob(5 << 20)), '0', '00'))",
        "a value is longer than 16 MiB"
      ),
      ("SELECT ?", "the statement has parameters; write the values into it"),
      ("SELECT 1; SELECT 2", "there is more than one statement"),
      ("SELECT 1; frobnicate", "there is more than one statement"),
      ("", "there is no statement"), (" -- nothing\n;", "there is no statement"),
      ("SELECT '\0'", "the statement holds a NUL"),
      (
        "SELECT 1 /*" + String(repeating: "x", count: 256 << 10),
        "the statement is longer than 256 KiB"
      ),
      ("SELECT abs(-9223372036854775807 - 1)", "integer overflow"),
      ("SELECT json_extract('{', '$.x')", "malformed JSON"),
      ("SELECT (SELECT 1, 2)", "a subquery has a wrong number of columns"),
      (
        "SELECT 1 UNION SELECT 1, 2",
        "the SELECTs of a compound statement have different numbers of columns"
      ),
    ] as [(String, String)])
  func aStatementThatCannotRun(sql: String, cause: String) throws {
    try expectEqual(Books().error(sql).cause, cause)
  }

  // MARK: Messages

  @Test(
    arguments: [
      ("SELEC 1", "syntax error, at line 1, character 1"),
      ("SELECT 1 FROM", "incomplete input"),
      ("SELECT *\nFROM sales WHERE", "incomplete input"),
      ("SELECT 1 FROM sale_view GROUP 1", "syntax error, at line 1, character 31"),
      ("SELECT 'ä', FROM sale_view", "syntax error, at line 1, character 13"),
      ("SELECT 1 FROM secret_person", "no such table"),
      ("SELECT secret_person FROM sale_view", "no such column, at line 1, character 8"),
      (
        "SELECT 1 FROM sale_view WHERE user_identifier = \"secret person\"",
        "no such column, at line 1, character 49"
      ),
      ("SELECT 1 WHERE 'secret", "unrecognized token, at line 1, character 16"),
      ("SELECT secret(1)", "no such function, at line 1, character 8"),
      ("SELECT sum(1, 2)", "wrong number of arguments, at line 1, character 8"),
      ("SELECT 1 UNION SELECT 1, 2", nil),
      ("SELECT sale FROM sale_view JOIN journal_view USING (secret)", nil),
      ("WITH secret AS (SELECT 1), secret AS (SELECT 2) SELECT 1", nil),
      ("SELECT 1 FROM sale_view secret JOIN sale_view secret2 ON secret.secret = 1", nil),
    ] as [(String, String?)])
  func aMistakeIsShownWithoutTheStatementsTexts(sql: String, message: String?) throws {
    let books = try Books()
    let cause = try books.error(sql).cause
    if let message { #expect(cause.hasPrefix(message)) }
    #expect(!cause.contains("secret") && !cause.contains("person"), "\(cause)")
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func noMessageShowsATextOfAnyStatement(seed: UInt64) throws {
    let books = try Books()
    var random = SeededRandom(seed: seed)
    let pieces = [
      "SELECT", "FROM", "sale_view", "WHERE", "user_identifier", "=", "'secret'", "\"secret\"",
      "[secret]", "`secret`", "'secret", "secret", "secret(1)", "x.secret", "(", ")", ",", "AS",
      "WITH", "JOIN", "USING (secret)", "COLLATE secret", "GROUP BY", "ORDER BY", "UNION", "1",
      "PRAGMA secret", "ATTACH 'secret' AS secret", "sum(", "OVER secret", "WINDOW secret AS ()",
      "json_extract('secret', 'secret')", "CAST('secret' AS secret)", "@secret", ":secret", "?1",
      "secret@example.com", "/* secret", "-- secret\n", "INDEXED BY secret", "ON secret = secret",
      "LIMIT 'secret'", "LIKE 'secret' ESCAPE 'secret'", "x'secret'", "0xsecret", "1e5secret",
    ]
    for _ in 0..<3000 {
      let start = random.chance(percent: 70) ? ["SELECT"] : []
      let sql = (start + (0...random.below(9)).map { _ in random.pick(pieces) })
        .joined(separator: " ")
      do {
        let query = try books.query(sql)
        var rowCount = 0
        while rowCount < 5, try query.step() { rowCount += 1 }
      } catch let error as SQLError {
        #expect(!error.cause.contains("secret"), "seed \(seed): \(sql): \(error.cause)")
      }
    }
  }

  @Test func anUnknownNameIsKeptForAHintAlone() throws {
    let error = try Books().error("SELECT s.country FROM sale_view s")
    expectEqual(error.unknownName, "country")
    expectEqual(error.cause, "no such column, at line 1, character 8")
  }

  @Test func aValueOfARowIsInNoMessage() throws {
    let books = try Books()
    let cause = try books.error("SELECT json_extract('{}', user_identifier) FROM sale_view").cause
    #expect(!cause.contains("anna"), "\(cause)")
  }

  // MARK: Values

  @Test func eachKindOfValueIsWrittenAsWhatItIs() throws {
    let query = try Books().query(
      "SELECT NULL, 9223372036854775807, 0.5, 'text', x'00ff', '', x'', CAST(x'ff41' AS TEXT), "
        + "1 AS a, 2 AS a, 3 AS a_2")
    expectEqual(query.columns.suffix(3), ["a", "a_2", "a_2_2"])
    #expect(try query.step())
    let writer = CellRecorder()
    try query.write(to: writer)
    expectEqual(
      writer.cells,
      [
        "empty", "integer 9223372036854775807", "real 0.5", "text text", "text 00ff", "text ",
        "text ", "text \u{FFFD}A", "integer 1", "integer 2", "integer 3",
      ])
    #expect(try !query.step())
  }

  private final class CellRecorder: ReportWriter {
    var cells: [String] = []

    func begin(_ columns: [ReportColumn]) {}
    func write(_ cell: ReportCell) {
      switch cell {
      case .empty: cells.append("empty")
      case .integer(let value): cells.append("integer \(value)")
      case .real(let value): cells.append("real \(value)")
      case .text(let bytes): cells.append("text \(String(decoding: bytes, as: UTF8.self))")
      default: cells.append("another")
      }
    }
    func endRow() {}
    func end(_ summary: ReportSummary) {}
  }

  @Test func theHeadIsThatOfTheRows() throws {
    let books = try Books()
    let head = try Report.head(of: try books.fixture.current())
    let query = try books.query("SELECT 1")
    #expect(query.head.size == head.size && query.head.root == head.root)
  }

  // MARK: Missing data

  @Test func aStatementIsCheckedAgainstTheSchemaAlone() throws {
    let schema = try SQLSchema(.standard)
    try schema.check("SELECT sale FROM journal_view")
    #expect(throws: SQLError.self) { try schema.check("PRAGMA user_version") }
    #expect(throws: SQLError.self) { try schema.check("SELECT sail FROM journal_view") }
    #expect(try schema.views().map(\.name).contains("subscription_view"))
  }
}
