// Statements of users: what they may do, what they may take, and what messages say about them.
import Projections
import TestSupport
import Testing

@Suite struct SQLSessionTests {
  private static func session(
    limitMs: Int64 = 60_000, isCancelled: @escaping () -> Bool = { false }
  ) throws -> (session: SQLSession, fixture: LedgerFixture) {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(reply(row("1")), user: "anna", metadata: shorthand("2.00"), receipt: "a")
    ])
    let projector = try fixture.projector()
    let database = try projector.readOnly(try projector.current())
    let session = try SQLSession(
      database, SQLStopwatch(limitMs: limitMs), isCancelled: isCancelled)
    return (session, fixture)
  }

  private static func error(_ sql: String, _ session: SQLSession) throws -> SQLError {
    do throws(SQLError) {
      let statement = try session.prepare(sql)
      while try statement.step() {}
    } catch { return error }
    Issue.record("\(sql) did not fail")
    return .empty
  }

  // MARK: Only reading

  @Test(arguments: [
    ("ATTACH 'x.sqlite' AS x", "ATTACH"), ("DETACH main", "DETACH"),
    ("PRAGMA query_only = OFF", "PRAGMA"), ("PRAGMA table_info(sales)", "PRAGMA"),
    ("INSERT INTO users VALUES(9, 'x', 0, 0, 0)", "INSERT"), ("DELETE FROM sales", "DELETE"),
    ("UPDATE sales SET quantity = 2", "UPDATE"), ("DROP VIEW sale_view", "DELETE"),
    ("CREATE TABLE t(x)", "INSERT"), ("CREATE TEMP TABLE t(x)", "INSERT"),
    ("CREATE TEMP VIEW v AS SELECT 1", "INSERT"),
    ("WITH a AS (SELECT 1) DELETE FROM sales", "DELETE"),
    ("BEGIN", "a transaction"), ("COMMIT", "a transaction"), ("SAVEPOINT s", "SAVEPOINT"),
    ("ANALYZE", "INSERT"), ("REINDEX", "REINDEX"),
    ("SELECT load_extension('x')", "the function load_extension"),
    ("SELECT fts3_tokenizer('simple')", "the function fts3_tokenizer"),
    ("SELECT sqlite_compileoption_get(1)", "the function sqlite_compileoption_get"),
    ("SELECT name FROM pragma_table_info('sales')", "the table pragma_table_info"),
    ("SELECT name FROM dbstat", "this table"),
  ])
  func whateverDoesMoreThanReadIsRefused(sql: String, subject: String) throws {
    let (session, _) = try Self.session()
    // The first thing that SQLite asks about differs between its versions, but not that it is refused.
    guard case .refused(let refused) = try Self.error(sql, session) else {
      Issue.record("\(sql) is not refused")
      return
    }
    if subject.contains("the ") { #expect(refused == subject) }
  }

  @Test(arguments: ["VACUUM", "VACUUM INTO '/tmp/copied-by-a-query.sqlite'"])
  func aCopyOfTheFileIsRefused(sql: String) throws {
    let (session, _) = try Self.session()
    guard case .refused = try Self.error(sql, session) else {
      Issue.record("not refused")
      return
    }
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
    let (session, _) = try Self.session()
    let statement = try session.prepare(sql)
    #expect(try statement.step())
  }

  @Test func eachViewCanBeReadAndItsColumnsAreTheListed() throws {
    let (session, _) = try Self.session()
    for view in try SQLSchema(.standard).views() {
      #expect(try session.prepare("SELECT * FROM \(view.name)").columns == view.columns)
    }
  }

  // MARK: Limits

  private static let endless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

  @Test func anEndlessStatementEndsWithItsTime() throws {
    let (session, _) = try Self.session(limitMs: 1)
    #expect(try Self.error(Self.endless, session) == .time(limitMs: 1))
  }

  @Test func anEndlessStatementEndsWhenItIsCancelled() throws {
    let (session, _) = try Self.session(isCancelled: { true })
    #expect(try Self.error(Self.endless, session) == .cancelled)
  }

  @Test(
    arguments: [
      ("SELECT length(zeroblob(17 << 20))", SQLError.longValue),
      ("SELECT length(replace(hex(zeroblob(5 << 20)), '0', '00'))", .longValue),
      ("SELECT ?", .parameters), ("SELECT 1; SELECT 2", .several),
      ("SELECT 1; frobnicate", .several),
      ("", .empty), (" -- nothing\n;", .empty), ("SELECT '\0'", .zeroByte),
      ("SELECT 1 /*" + String(repeating: "x", count: 256 << 10), .tooLong),
      ("SELECT abs(-9223372036854775807 - 1)", .failed("integer overflow")),
      ("SELECT json_extract('{', '$.x')", .failed("malformed JSON")),
    ] as [(String, SQLError)])
  func aStatementThatCannotRun(sql: String, error: SQLError) throws {
    let (session, _) = try Self.session()
    #expect(try Self.error(sql, session) == error)
  }

  // MARK: Messages

  @Test(
    arguments: [
      ("SELEC 1", "near \"…\": syntax error, at line 1, character 1"),
      ("SELECT 1 FROM", "incomplete input"),
      ("SELECT *\nFROM sales WHERE", "incomplete input"),
      ("SELECT 1 FROM sale_view GROUP 1", "near \"…\": syntax error, at line 1, character 31"),
      ("SELECT 'ä', FROM sale_view", "near \"FROM\": syntax error, at line 1, character 13"),
      ("SELECT 1 FROM secret_person", "no such table"),
      ("SELECT secret_person FROM sale_view", "no such column, at line 1, character 8"),
      (
        "SELECT 1 FROM sale_view WHERE user_identifier = \"secret person\"",
        "no such column, at line 1, character 49"
      ),
      ("SELECT 1 WHERE 'secret", "unrecognized token, at line 1, character 16"),
      ("SELECT secret(1)", "no such function, at line 1, character 8"),
      ("SELECT sum(1, 2)", "wrong number of arguments to function …(), at line 1, character 8"),
      ("SELECT 1 UNION SELECT 1, 2", nil),
      ("SELECT sale FROM sale_view JOIN journal_view USING (secret)", nil),
      ("WITH secret AS (SELECT 1), secret AS (SELECT 2) SELECT 1", nil),
      ("SELECT 1 FROM sale_view secret JOIN sale_view secret2 ON secret.secret = 1", nil),
    ] as [(String, String?)])
  func aMistakeIsShownWithoutTheStatementsTexts(sql: String, message: String?) throws {
    let (session, _) = try Self.session()
    let cause = try Self.error(sql, session).cause
    if let message { #expect(cause.hasPrefix(message)) }
    #expect(!cause.contains("secret") && !cause.contains("person"), "\(cause)")
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func noMessageShowsATextOfAnyStatement(seed: UInt64) throws {
    let (session, _) = try Self.session()
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
      do throws(SQLError) {
        let statement = try session.prepare(sql)
        var rowCount = 0
        while rowCount < 5, try statement.step() { rowCount += 1 }
      } catch {
        #expect(!error.cause.contains("secret"), "seed \(seed): \(sql): \(error.cause)")
      }
    }
  }

  @Test func anUnknownNameIsKeptForAHintAlone() throws {
    let (session, _) = try Self.session()
    let error = try Self.error("SELECT s.country FROM sale_view s", session)
    guard case .wrong(_, _, let unknown) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(unknown == "country")
    #expect(session.names.contains("country_code"))
  }

  @Test func aValueOfARowIsInNoMessage() throws {
    let (session, _) = try Self.session()
    let cause = try Self.error(
      "SELECT json_extract('{}', user_identifier) FROM sale_view", session
    ).cause
    #expect(!cause.contains("anna"), "\(cause)")
  }

  // MARK: Values

  @Test func eachKindOfValueIsReadAsWhatItIs() throws {
    let (session, _) = try Self.session()
    let statement = try session.prepare(
      "SELECT NULL, 9223372036854775807, 0.5, 'text', x'00ff', '', x'', 1 AS a, 2 AS a, 3 AS a_2")
    #expect(statement.columns.suffix(3) == ["a", "a_2", "a_2_2"])
    #expect(try statement.step())
    let shown = (0..<7).map { index -> String in
      switch statement.value(index) {
      case .null: "null"
      case .integer(let value): "integer \(value)"
      case .real(let value): "real \(value)"
      case .text(let bytes): "text \(String(decoding: bytes, as: UTF8.self))"
      case .blob(let bytes): "blob \(Array(bytes))"
      }
    }
    #expect(
      shown == [
        "null", "integer 9223372036854775807", "real 0.5", "text text", "blob [0, 255]", "text ",
        "blob []",
      ])
    #expect(try !statement.step())
  }

  @Test func theHeadIsThatOfTheRows() throws {
    let (session, fixture) = try Self.session()
    let head = try Report.head(of: try fixture.current())
    #expect(session.head.size == head.size && session.head.root == head.root)
  }

  // MARK: Without data

  @Test func aStatementIsCheckedAgainstTheSchemaAlone() throws {
    let schema = try SQLSchema(.standard)
    try schema.check("SELECT sale FROM journal_view")
    #expect(throws: SQLError.refused("PRAGMA")) { try schema.check("PRAGMA user_version") }
    #expect(throws: SQLError.self) { try schema.check("SELECT sail FROM journal_view") }
    #expect(try schema.views().map(\.name).contains("subscription_view"))
  }
}
