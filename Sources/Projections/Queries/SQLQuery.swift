// A statement of a user, on a connection that can only read.
package import Base
import CSQLite

/// A prepared statement and its rows. SQLite rejects writes because the file is opened for reading, because
/// `query_only` is on, and because the authorizer allows nothing else.
package final class SQLQuery {
  private let database: Database
  private let stopwatch: SQLStopwatch
  private let isCancelled: () -> Bool
  private var authorizer: SQLAuthorizer
  private var handle: OpaquePointer?
  /// The number of events behind the rows, and the root of their tree.
  package let head: (size: Int, root: SHA256Digest)
  /// When the last of these events was recorded, in epoch milliseconds; nil without events.
  package let lastEventAtMs: Int64?
  /// In the statement's words, but unique: a second `x` is `x_2`.
  package private(set) var columns: [String] = []

  /// Prepares the only statement of `sql`. Throws `SQLError`, or `DatabaseError` if the database cannot be read.
  /// - Parameters:
  ///   - database: opened for reading, and used by nothing else meanwhile.
  ///   - stopwatch: measures how long SQLite works, and limits it.
  package init(
    _ sql: String, on database: Database, _ stopwatch: SQLStopwatch,
    isCancelled: @escaping () -> Bool
  ) throws {
    (self.database, self.stopwatch, self.isCancelled) = (database, stopwatch, isCancelled)
    // Set before the transaction, in which SQLite rejects changes of the first.
    try database.execute(
      """
      PRAGMA temp_store = FILE; PRAGMA cache_size = -\(SQLLimits.cacheKiB); PRAGMA mmap_size = 0;
      PRAGMA query_only = ON; PRAGMA trusted_schema = OFF
      """)
    // Creates the two virtual tables that statements may read; from then on, they exist like other tables.
    _ = try database.integer("SELECT count(*) FROM json_each('[]'), json_tree('[]')")
    // The rows and the reported head must be of the same moment.
    try database.execute("BEGIN")
    let progress = try Progress(database)
    head = (progress.position, progress.root)
    lastEventAtMs = progress.lastEventAtMs
    let rows = try database.prepare(
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    var relations: Set<String> = []
    while try rows.step() { relations.insert(rows.text(0)) }
    authorizer = SQLAuthorizer(relations: relations)
    try restrict()
    try prepare(sql)
  }

  deinit {
    sqlite3_finalize(handle)
    sqlite3_progress_handler(database.handle, 0, nil, nil)
    sqlite3_set_authorizer(database.handle, nil, nil)
    try? database.execute("COMMIT")
  }

  private func restrict() throws(DatabaseError) {
    let flags: [(option: Int32, value: Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
      (SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
      // A name in double quotes that does not exist is an error, not a text.
      (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0),
    ]
    for flag in flags {
      let code = csqlite_configure(database.handle, flag.option, flag.value)
      guard code == SQLITE_OK else { throw Self.databaseError(code) }
    }
    for limit in SQLLimits.values { sqlite3_limit(database.handle, limit.id, limit.value) }
    let context = Unmanaged.passUnretained(self).toOpaque()
    sqlite3_set_authorizer(
      database.handle,
      { context, action, first, second, _, _ in
        guard let context else { return SQLITE_DENY }
        return Unmanaged<SQLQuery>.fromOpaque(context).takeUnretainedValue()
          .authorizer.answer(action, first, second)
      }, context)
    // This many SQLite steps take a fraction of a millisecond.
    sqlite3_progress_handler(
      database.handle, 1000,
      { context in
        guard let context else { return 1 }
        let query = Unmanaged<SQLQuery>.fromOpaque(context).takeUnretainedValue()
        return query.stopwatch.isLate || query.isCancelled() ? 1 : 0
      }, context)
  }

  // MARK: Statement

  private func prepare(_ sql: String) throws {
    let bytes = Array(sql.utf8)
    func mistake(_ cause: String) -> SQLError { SQLError(.statement, cause) }
    guard bytes.count <= SQLLimits.statementBytes else { throw Self.tooLong }
    guard !bytes.contains(0) else { throw mistake("the statement holds a NUL") }
    stopwatch.start()
    defer { stopwatch.stop() }
    var rest = bytes[...]
    while !rest.isEmpty {
      let (code, statement, length) = prepare(rest)
      if code != SQLITE_OK, handle == nil { throw error(code, preparing: sql) }
      if handle != nil, code != SQLITE_OK || statement != nil {
        sqlite3_finalize(statement)
        throw mistake("there is more than one statement")
      }
      handle = handle ?? statement
      rest = rest.dropFirst(max(length, 1))
    }
    guard let handle else { throw mistake("there is no statement") }
    var used: Set<String> = []
    for index in 0..<sqlite3_column_count(handle) {
      let name =
        sqlite3_column_name(handle, index).map { String(cString: $0) } ?? "column_\(index + 1)"
      var (candidate, number) = (name, 2)
      while !used.insert(candidate).inserted {
        candidate = "\(name)_\(number)"
        number += 1
      }
      columns.append(candidate)
    }
    guard sqlite3_stmt_readonly(handle) != 0, !columns.isEmpty
    else { throw SQLError.refused("a statement that gives no rows") }
    guard sqlite3_bind_parameter_count(handle) == 0
    else { throw mistake("the statement has parameters; write the values into it") }
  }

  /// The first statement of a part of the text, nil if there is none, and its length in bytes.
  private func prepare(
    _ part: ArraySlice<UInt8>
  ) -> (code: Int32, statement: OpaquePointer?, length: Int) {
    part.withUnsafeBytes { raw in
      let start = raw.baseAddress?.assumingMemoryBound(to: CChar.self)
      var (statement, tail): (OpaquePointer?, UnsafePointer<CChar>?) = (nil, nil)
      let code = sqlite3_prepare_v3(
        database.handle, start, Int32(raw.count), 0, &statement, &tail)
      guard let start, let tail else { return (code, statement, raw.count) }
      return (code, statement, tail - start)
    }
  }

  // MARK: Rows

  /// Advances to the next row; false after the last.
  package func step() throws -> Bool {
    stopwatch.start()
    let code = sqlite3_step(handle)
    stopwatch.stop()
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      try database.checkUnchanged()
      return false
    default: throw error(code, preparing: nil)
    }
  }

  /// Writes the cells of the row. A blob is written in hexadecimal.
  package func write(to writer: any ReportWriter) throws {
    for index in 0..<Int32(columns.count) {
      switch sqlite3_column_type(handle, index) {
      case SQLITE_NULL: try writer.write(.empty)
      case SQLITE_INTEGER: try writer.write(.integer(sqlite3_column_int64(handle, index)))
      case SQLITE_FLOAT: try writer.write(.real(sqlite3_column_double(handle, index)))
      case let type:
        let bytes = UnsafeRawBufferPointer(
          start: sqlite3_column_blob(handle, index),
          count: Int(sqlite3_column_bytes(handle, index)))
        if type == SQLITE_TEXT, bytes.allSatisfy({ $0 < 0x80 }) {
          try writer.write(.text(bytes))
        } else {
          // A statement can produce a text of any bytes.
          var text =
            type == SQLITE_TEXT ? String(decoding: bytes, as: UTF8.self) : Hex.text(bytes)
          try text.withUTF8 { try writer.write(.text(UnsafeRawBufferPointer($0))) }
        }
      }
    }
  }

  // MARK: Errors

  private static let tooLong = SQLError(
    .statement, "the statement is longer than \(SQLLimits.statementBytes >> 10) KiB")

  private static func databaseError(_ code: Int32) -> DatabaseError {
    DatabaseError(
      operation: "running the query", cause: String(cString: sqlite3_errstr(code)),
      code: code & 0xFF)
  }

  /// The error for a result code of SQLite.
  /// - Parameter sql: the statement; nil while it runs.
  private func error(_ code: Int32, preparing sql: String?) -> any Error {
    let message = String(cString: sqlite3_errmsg(database.handle))
    if let sql, var subject = authorizer.refused {
      // A text that SQLite accepts as a statement begins with a keyword.
      let first = sql.drop(while: \.isWhitespace).prefix(while: \.isLetter).uppercased()
      if subject == SQLAuthorizer.statement, !["", "WITH"].contains(first) {
        // To create a virtual table, SQLite asks for permission to write.
        subject = first == "SELECT" ? "this table" : first
      }
      return SQLError.refused(subject)
    }
    switch code & 0xFF {
    case SQLITE_AUTH: return SQLError.refused(SQLAuthorizer.statement)
    case SQLITE_INTERRUPT where stopwatch.isLate: return stopwatch.error
    case SQLITE_INTERRUPT: return SQLError(.cancelled, "it was cancelled")
    case SQLITE_NOMEM:
      return SQLError(.run, "it needs more than \(SQLLimits.heapBytes >> 20) MiB of memory")
    case SQLITE_TOOBIG where sql != nil: return Self.tooLong
    case SQLITE_TOOBIG:
      return SQLError(.run, "a value is longer than \(SQLLimits.valueBytes >> 20) MiB")
    case SQLITE_FULL: return SQLError(.run, "there is no room for temporary files")
    case SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_RANGE:
      return SQLError(sql == nil ? .run : .statement, message: message, sql.flatMap(place) ?? "")
    default: return Self.databaseError(code)
    }
  }

  /// Where the error is, for a message; lines and characters are counted from 1.
  private func place(in sql: String) -> String? {
    let offset = Int(csqlite_error_offset(database.handle))
    guard offset >= 0, offset <= sql.utf8.count else { return nil }
    let before = sql.utf8.prefix(offset)
    let line = before.count { $0 == 0x0A } + 1
    let start = before.lastIndex(of: 0x0A).map { before.index(after: $0) } ?? before.startIndex
    // A character begins with any byte except a continuation byte.
    let character = before[start...].count { $0 & 0xC0 != 0x80 } + 1
    return ", at line \(line), character \(character)"
  }
}

extension Projector {
  /// A read-only connection: the given one, unless the catch-up has written through it.
  package func readOnly(_ database: Database) throws(ProjectionError) -> Database {
    sqlite3_db_readonly(database.handle, "main") == 1 ? database : try open()
  }
}

// MARK: - Errors

/// Why a statement cannot run, or did not run to its end. No text contains a value of the statement or of the ledger.
package struct SQLError: Error, Equatable, Sendable {
  /// Where the cause lies.
  package enum Kind: Equatable, Sendable {
    /// In the statement itself, so that it is found without any data.
    case statement
    /// In what it reads or computes.
    case run
    case time, cancelled
  }

  package let kind: Kind
  /// The error in a few words.
  package let cause: String
  /// The unknown name, for finding a similar one. A message must not show it.
  package var unknownName: String?

  init(_ kind: Kind, _ cause: String) { (self.kind, self.cause) = (kind, cause) }

  static func refused(_ subject: String) -> SQLError {
    SQLError(.statement, "\(subject) is refused: a query only reads")
  }

  /// An error that SQLite describes. A message may contain texts of the statement, which may name a user, and values:
  /// only the words below are shown.
  /// - Parameter place: what follows them.
  init(_ kind: Kind, message: String, _ place: String) {
    let found = Self.words.first { message.contains($0) } ?? "SQLite cannot run it"
    self.init(kind, (Self.whole[found] ?? found) + place)
    let name = ["no such table: ", "no such column: ", "no such function: "]
      .first(where: message.hasPrefix)
      .map { message.dropFirst($0.count) }
    unknownName = name.map { $0.split(separator: ".").last.map(String.init) ?? String($0) }
  }

  private static let words = [
    "no such table", "no such column", "no such function", "no such collation sequence",
    "no such index", "no such window", "ambiguous column name", "unrecognized token",
    "syntax error", "incomplete input", "wrong number of arguments", "misuse of aggregate",
    "misuse of window function", "duplicate WITH table name", "circular reference",
    "do not have the same number of result columns", "term out of range", "sub-select returns",
    "cannot join using column", "too many columns", "too many terms", "too many arguments",
    "Expression tree is too large", "parser stack overflow", "integer overflow", "malformed JSON",
    "bad JSON path", "JSON path error", "pattern too complex",
    "ESCAPE expression must be a single character",
  ]
  /// Complete sentences for words that are parts of one.
  private static let whole = [
    "do not have the same number of result columns":
      "the SELECTs of a compound statement have different numbers of columns",
    "sub-select returns": "a subquery has a wrong number of columns",
  ]
}

// MARK: - Schema without data

/// The schema of a ledger's projections in this program: statements are checked against it, and it is listed.
package struct SQLSchema {
  private let database: Database
  private let viewNames: [String]

  package init(_ projections: ProjectionSet) throws(DatabaseError) {
    database = try Database(path: ":memory:", mode: .create)
    try database.execute(Schema.tables + projections.tables)
    try database.execute(Schema.indexes)
    try database.execute(Schema.views + projections.views)
    viewNames = Schema.viewNames + projections.additional.flatMap(\.views).map(\.name)
  }

  /// The views with their columns, in the order of docs/projections.md.
  package func views() throws(DatabaseError) -> [(name: String, columns: [String])] {
    var result: [(name: String, columns: [String])] = []
    for name in viewNames {
      let rows = try database.prepare(
        "SELECT name FROM pragma_table_info('\(name)') ORDER BY cid")
      var columns: [String] = []
      while try rows.step() { columns.append(rows.text(0)) }
      result.append((name, columns))
    }
    return result
  }

  /// Throws `SQLError` unless a statement only reads what the projections hold.
  package func check(_ sql: String) throws {
    _ = try SQLQuery(sql, on: database, SQLStopwatch(limitMs: 60_000)) { false }
  }
}
