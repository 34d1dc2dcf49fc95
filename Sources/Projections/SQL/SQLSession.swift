// A connection on which statements of users run.
package import Base
import CSQLite

/// A connection that can only read. SQLite refuses to write because the file is opened for reading, because
/// `query_only` is on, and because the authorizer allows nothing else.
package final class SQLSession {
  /// What the callbacks of SQLite use.
  final class Watch {
    let authorizer: SQLAuthorizer
    let stopwatch: SQLStopwatch
    private let isCancelled: () -> Bool
    /// Whether the time was over when SQLite was interrupted.
    private(set) var isLate = false

    init(
      _ authorizer: SQLAuthorizer, _ stopwatch: SQLStopwatch, isCancelled: @escaping () -> Bool
    ) {
      self.authorizer = authorizer
      self.stopwatch = stopwatch
      self.isCancelled = isCancelled
    }

    func mustEnd() -> Bool {
      isLate = stopwatch.workedMs > stopwatch.limitMs
      return isLate || isCancelled()
    }
  }

  let database: Database
  let watch: Watch
  /// How many events the rows rest on, and the root of their tree.
  package let head: (size: Int, root: SHA256Digest)
  /// When the last of these events was recorded, in epoch milliseconds; nil without events.
  package let lastEventAtMs: Int64?
  /// The names of tables, views and their columns, for finding what a wrong name may mean.
  package let names: [String]

  /// - Parameters:
  ///   - database: opened for reading, and used by nothing else.
  ///   - stopwatch: measures how long statements work, and limits it.
  package init(
    _ database: Database, _ stopwatch: SQLStopwatch, isCancelled: @escaping () -> Bool
  ) throws(DatabaseError) {
    self.database = database
    // Before the transaction, in which SQLite refuses to change the first.
    try database.execute(
      """
      PRAGMA temp_store = FILE; PRAGMA cache_size = -\(SQLLimits.cacheKiB); PRAGMA mmap_size = 0;
      PRAGMA query_only = ON; PRAGMA trusted_schema = OFF
      """)
    // Makes the two virtual tables that statements may read; from then on, they exist like others.
    _ = try database.integer("SELECT count(*) FROM json_each('[]'), json_tree('[]')")
    // The rows, and the head that is told with them, must be of one moment.
    try database.execute("BEGIN")
    let progress = try Progress(database)
    head = (progress.position, progress.root)
    lastEventAtMs = progress.lastEventAtMs
    let (relations, columns) = try Self.names(database)
    names = relations.union(columns).sorted()
    watch = Watch(SQLAuthorizer(relations: relations), stopwatch, isCancelled: isCancelled)
    try restrict()
  }

  private static func names(
    _ database: Database
  ) throws(DatabaseError) -> (relations: Set<String>, columns: Set<String>) {
    let rows = try database.prepare(
      """
      SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
      WHERE m.type IN ('table', 'view')
      """)
    var (relations, columns): (Set<String>, Set<String>) = ([], [])
    while try rows.step() {
      relations.insert(rows.text(0))
      columns.insert(rows.text(1))
    }
    return (relations, columns)
  }

  private func restrict() throws(DatabaseError) {
    let flags: [(option: Int32, value: Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
      (SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
      // A name in double quotes that does not exist is a mistake, not a text.
      (SQLITE_DBCONFIG_DQS_DML, 0), (SQLITE_DBCONFIG_DQS_DDL, 0),
    ]
    for flag in flags {
      let code = csqlite_configure(database.handle, flag.option, flag.value)
      guard code == SQLITE_OK else {
        throw DatabaseError(
          operation: "restricting the connection", cause: String(cString: sqlite3_errstr(code)),
          code: code & 0xFF)
      }
    }
    for limit in SQLLimits.values { sqlite3_limit(database.handle, limit.id, limit.value) }
    let context = Unmanaged.passUnretained(watch).toOpaque()
    sqlite3_set_authorizer(
      database.handle,
      { context, action, first, second, _, _ in
        guard let context else { return SQLITE_DENY }
        return Unmanaged<Watch>.fromOpaque(context).takeUnretainedValue()
          .authorizer.answer(action, first, second)
      }, context)
    // This many SQLite steps take a fraction of a millisecond.
    sqlite3_progress_handler(
      database.handle, 1000,
      { context in
        guard let context else { return 1 }
        return Unmanaged<Watch>.fromOpaque(context).takeUnretainedValue().mustEnd() ? 1 : 0
      }, context)
  }

  deinit {
    sqlite3_progress_handler(database.handle, 0, nil, nil)
    sqlite3_set_authorizer(database.handle, nil, nil)
    try? database.execute("COMMIT")
  }

  // MARK: Statements

  /// Prepares the only statement of `sql`.
  package func prepare(_ sql: String) throws(SQLError) -> SQLStatement {
    let bytes = Array(sql.utf8)
    guard bytes.count <= SQLLimits.statementBytes else { throw .tooLong }
    guard !bytes.contains(0) else { throw .zeroByte }
    watch.authorizer.reset()
    watch.stopwatch.start()
    defer { watch.stopwatch.stop() }
    let (first, end) = try prepare(bytes[...], of: sql)
    guard let first else { throw .empty }
    let statement = SQLStatement(self, first, sql)
    var rest = bytes[end...]
    while !rest.isEmpty {
      let next: (statement: OpaquePointer?, end: Int)
      do throws(SQLError) { next = try prepare(rest, of: sql) } catch { throw .several }
      if let further = next.statement {
        sqlite3_finalize(further)
        throw .several
      }
      if next.end <= rest.startIndex { break }
      rest = bytes[next.end...]
    }
    try statement.check()
    return statement
  }

  /// The first statement of a part of the text, nil if there is none, and where the next begins.
  private func prepare(
    _ part: ArraySlice<UInt8>, of sql: String
  ) throws(SQLError) -> (statement: OpaquePointer?, end: Int) {
    var prepared: OpaquePointer?
    var length = part.count
    let code = part.withUnsafeBytes { raw -> Int32 in
      let start = raw.baseAddress?.assumingMemoryBound(to: CChar.self)
      guard let start else { return SQLITE_OK }
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v3(
        database.handle, start, Int32(part.count), 0, &prepared, &tail)
      if let tail { length = tail - start }
      return code
    }
    guard code == SQLITE_OK else { throw error(code, sql, isPreparing: true) }
    return (prepared, part.startIndex + length)
  }

  /// The error for a result code of SQLite.
  func error(_ code: Int32, _ sql: String, isPreparing: Bool) -> SQLError {
    let message = String(cString: sqlite3_errmsg(database.handle))
    if isPreparing, let refused = watch.authorizer.refused {
      // To make a virtual table, SQLite asks as if for a write.
      return .refused(message.hasPrefix("vtable constructor failed") ? "this table" : refused)
    }
    switch code & 0xFF {
    case SQLITE_AUTH: return .refused("the statement")
    case SQLITE_INTERRUPT:
      return watch.isLate ? .time(limitMs: watch.stopwatch.limitMs) : .cancelled
    case SQLITE_NOMEM: return .memory
    case SQLITE_TOOBIG: return isPreparing ? .tooLong : .longValue
    case SQLITE_FULL: return .disk
    case SQLITE_ERROR where isPreparing:
      let text = SQLMessage(message, of: sql, known: names)
      return .wrong(text.shown, place(in: sql), unknown: text.unknownName)
    case SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_RANGE:
      // What follows may be a value of a row.
      let harmless = message.prefix { $0 != "'" && $0 != "\"" && $0 != ":" }
      return .failed(SQLMessage(String(harmless), of: sql, known: names).shown)
    default:
      return .database(
        DatabaseError(
          operation: "running the query", cause: String(cString: sqlite3_errstr(code)),
          code: code & 0xFF))
    }
  }

  private func place(in sql: String) -> SQLError.Place? {
    let offset = Int(csqlite_error_offset(database.handle))
    guard offset >= 0, offset <= sql.utf8.count else { return nil }
    let before = sql.utf8.prefix(offset)
    let line = before.count { $0 == 0x0A } + 1
    let start = before.lastIndex(of: 0x0A).map { before.index(after: $0) } ?? before.startIndex
    // A character begins with any byte but those that continue one.
    let column = before[start...].count { $0 & 0xC0 != 0x80 } + 1
    return SQLError.Place(line: line, column: column)
  }
}

extension Projector {
  /// A connection that is open for reading alone: the given one, unless the catch-up has written through it.
  package func readOnly(_ database: Database) throws(ProjectionError) -> Database {
    sqlite3_db_readonly(database.handle, "main") == 1 ? database : try open()
  }
}
