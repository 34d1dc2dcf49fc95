// The only code that uses SQLite: connections and prepared statements.
import Base
import CSQLite
import Glibc

/// A SQLite failure: the operation and its cause, never a bound value.
package struct DatabaseError: ReportableError, CustomStringConvertible, Sendable {
  package let operation: String
  package let cause: String
  /// SQLite's primary result code.
  package let code: Int32

  package var description: String { "\(operation): \(cause)" }
  package func lines(for command: String) -> [String] {
    let text =
      isReadOnly
      ? "they are read-only, but SQLite must write to read them; use a writable copy" : description
    return ["\(command): projections: \(text)"]
  }

  /// Rows that contradict each other count as damage.
  init(inconsistency cause: String) {
    self.init(operation: "reading the projections", cause: cause, code: SQLITE_CORRUPT)
  }

  init(operation: String, cause: String, code: Int32) {
    (self.operation, self.cause, self.code) = (operation, cause, code)
  }

  /// Whether the file or its folder is not writable.
  package var isReadOnly: Bool { code == SQLITE_READONLY }
  /// Whether the file is not a database, is damaged, or lacks a table or column that this program needs.
  package var isCorrupt: Bool {
    code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR && isOfOtherShape
  }
  /// Whether the work ended because it was cancelled.
  var isInterrupted: Bool { code == SQLITE_INTERRUPT }

  /// SQLite has no specific code for a missing table or column.
  private var isOfOtherShape: Bool {
    ["no such table: ", "no such column: ", "has no column named "].contains(where: cause.contains)
  }
}

/// A connection. Not thread-safe.
package final class Database {
  /// How a database is opened.
  package enum Mode {
    case create, write, read
    /// As `read`, and makes no auxiliary files where none exist.
    case readWithoutTrace
  }

  let handle: OpaquePointer
  /// The file's path.
  package let path: String
  /// The file as it was opened, if it is read without locks: it must not change while it is read.
  private let unlockedFile: UnlockedFile?
  /// The rows that `row_batch` shows while a statement reads them; nil until the table is registered.
  private var rowSource: UnsafeMutablePointer<RowSource?>?
  /// Where a commit stores the length of the write-ahead log.
  private let logPages: UnsafeMutablePointer<Int32>

  /// Opens the database. If neither it nor its folder is writable, it is read without SQLite's auxiliary files, as long
  /// as none exist; if the file then changes, results are rejected.
  /// - Parameter followsLinks: whether the path may contain symbolic links; if not, such a path fails.
  package init(path: String, mode: Mode, followsLinks: Bool = false) throws(DatabaseError) {
    var flags: Int32 =
      switch mode {
      case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      case .write: SQLITE_OPEN_READWRITE
      case .read, .readWithoutTrace: SQLITE_OPEN_READONLY
      }
    if !followsLinks { flags |= SQLITE_OPEN_NOFOLLOW }
    self.path = path
    let reads = mode == .read || mode == .readWithoutTrace
    if reads, let file = UnlockedFile(path, mayBeWritable: mode == .readWithoutTrace) {
      unlockedFile = file
      handle = try Self.open(file.address, flags | SQLITE_OPEN_URI)
    } else {
      unlockedFile = nil
      handle = try Self.open(path, flags)
    }
    logPages = .allocate(capacity: 1)
    logPages.initialize(to: 0)
    sqlite3_busy_timeout(handle, 30_000)
  }

  private static func open(_ name: String, _ flags: Int32) throws(DatabaseError) -> OpaquePointer {
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let opened else {
      let cause = String(cString: sqlite3_errstr(code))
      sqlite3_close_v2(opened)
      throw DatabaseError(operation: "opening the projections", cause: cause, code: code & 0xFF)
    }
    return opened
  }

  /// Throws if a file that is read without locks has changed.
  func checkUnchanged() throws(DatabaseError) {
    guard let unlockedFile, !unlockedFile.isUnchanged else { return }
    throw DatabaseError(
      operation: "reading the projections",
      cause: "another process changed them meanwhile; run the command again",
      code: SQLITE_BUSY)
  }

  deinit {
    sqlite3_close_v2(handle)
    rowSource?.deallocate()
    logPages.deallocate()
  }

  /// Turns off automatic checkpoints after commits. From now on, other code must write the log back.
  func leaveLogAlone() {
    _ = sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        context?.assumingMemoryBound(to: Int32.self).pointee = pages
        return SQLITE_OK
      }, logPages)
  }

  /// The pages in the write-ahead log after this connection's last commit; 0 before `leaveLogAlone`.
  var logPageCount: Int { Int(logPages.pointee) }

  fileprivate func error(_ operation: String) -> DatabaseError {
    DatabaseError(
      operation: operation, cause: String(cString: sqlite3_errmsg(handle)),
      code: sqlite3_errcode(handle) & 0xFF)
  }

  /// What SQLite's progress handler calls.
  private final class Question {
    let isCancelled: () -> Bool
    init(_ isCancelled: @escaping () -> Bool) { self.isCancelled = isCancelled }
  }

  /// Interrupts long statements inside `body` when `isCancelled` returns true.
  func interruptible<Result>(
    by isCancelled: @escaping () -> Bool, _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let question = Question(isCancelled)
    // This many SQLite steps take a fraction of a millisecond.
    let stepCount: Int32 = 1000
    sqlite3_progress_handler(
      handle, stepCount,
      { context in
        guard let context else { return 0 }
        return Unmanaged<Question>.fromOpaque(context).takeUnretainedValue().isCancelled() ? 1 : 0
      }, Unmanaged.passUnretained(question).toOpaque())
    defer {
      sqlite3_progress_handler(handle, 0, nil, nil)
      withExtendedLifetime(question) {}
    }
    return try body()
  }

  /// Runs statements and ignores their rows.
  package func execute(_ sql: String) throws(DatabaseError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw error("running \(sql.prefix(60))")
    }
  }

  /// Copies a consistent state of the whole database into an empty file, while others may write to it. The copy is
  /// not synced.
  func copy(to path: String) throws(DatabaseError) {
    let target = try Database(path: path, mode: .write)
    try target.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    guard let backup = sqlite3_backup_init(target.handle, "main", handle, "main") else {
      throw target.error("copying the projections")
    }
    let stepped = sqlite3_backup_step(backup, -1)
    let finished = sqlite3_backup_finish(backup)
    guard stepped == SQLITE_DONE, finished == SQLITE_OK else {
      let code = finished == SQLITE_OK ? stepped : finished
      throw DatabaseError(
        operation: "copying the projections", cause: String(cString: sqlite3_errstr(code)),
        code: code & 0xFF)
    }
    try checkUnchanged()
  }

  /// Makes rows in memory readable as the table `row_batch`.
  func registerRowTable() throws(DatabaseError) {
    if rowSource != nil { return }
    let source = UnsafeMutablePointer<RowSource?>.allocate(capacity: 1)
    source.initialize(to: nil)
    guard RowTable.register(handle, source) == SQLITE_OK else {
      source.deallocate()
      throw error("preparing the table of rows")
    }
    rowSource = source
  }

  /// Lets statements read the rows of a batch inside `body`.
  func withRows(
    _ rows: RowSource, _ body: () throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    rowSource?.pointee = rows
    defer { rowSource?.pointee = nil }
    try body()
  }

  /// Prepares a statement.
  package func prepare(_ sql: String) throws(DatabaseError) -> Statement {
    try Statement(self, sql)
  }

  /// The first column of the first row; nil if there is no row or the value is null.
  package func integer(_ sql: String) throws(DatabaseError) -> Int64? {
    let statement = try prepare(sql)
    guard try statement.step(), !statement.isNull(0) else { return nil }
    return statement.integer(0)
  }
}

/// A prepared statement. It keeps its database alive.
package final class Statement {
  private let database: Database
  private let handle: OpaquePointer
  private let sql: String

  fileprivate init(_ database: Database, _ sql: String) throws(DatabaseError) {
    self.database = database
    self.sql = sql
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else {
      throw database.error("preparing \(sql.prefix(60))")
    }
    handle = prepared
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Parameters, counted from 1

  @inline(__always)
  package func bind(_ index: Int32, _ value: Int64) { sqlite3_bind_int64(handle, index, value) }

  @inline(__always)
  package func bind(_ index: Int32, _ value: Int) { bind(index, Int64(value)) }

  @inline(__always)
  package func bind(_ index: Int32, _ value: Int64?) {
    if let value { bind(index, value) } else { sqlite3_bind_null(handle, index) }
  }

  /// Binds UTF-8 bytes, which must stay in place until the statement has run.
  package func bind(_ index: Int32, text: UnsafeRawBufferPointer?) {
    guard let text else {
      sqlite3_bind_null(handle, index)
      return
    }
    // A buffer without an address would bind NULL.
    let start = text.baseAddress?.assumingMemoryBound(to: CChar.self)
    if let start {
      sqlite3_bind_text64(
        handle, index, start, UInt64(text.count), nil, UInt8(SQLITE_UTF8))
    } else {
      sqlite3_bind_text(handle, index, "", 0, csqlite_transient())
    }
  }

  /// Binds a text, which is copied.
  package func bind(_ index: Int32, text: String?) {
    guard var text else {
      sqlite3_bind_null(handle, index)
      return
    }
    text.withUTF8 { bytes in
      _ = sqlite3_bind_text64(
        handle, index, bytes.baseAddress, UInt64(bytes.count), csqlite_transient(),
        UInt8(SQLITE_UTF8))
    }
  }

  /// Binds bytes, which are copied.
  package func bind(_ index: Int32, blob: UnsafeRawBufferPointer) {
    sqlite3_bind_blob64(
      handle, index, blob.baseAddress, UInt64(blob.count), csqlite_transient())
  }

  /// Binds a value of any type from another statement's row, copied.
  func bind(_ index: Int32, column: Int32, of other: Statement) {
    sqlite3_bind_value(handle, index, sqlite3_column_value(other.handle, column))
  }

  // MARK: Running

  /// Advances to the next row; false after the last.
  @inline(__always)
  package func step() throws(DatabaseError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      try database.checkUnchanged()
      return false
    default:
      let failure = database.error("running \(sql.prefix(60))")
      sqlite3_reset(handle)
      throw failure
    }
  }

  /// Runs the statement once and resets it for the next parameters.
  @inline(__always)
  package func run() throws(DatabaseError) {
    _ = try step()
    sqlite3_reset(handle)
  }

  /// Resets the statement for the next parameters.
  package func reset() { sqlite3_reset(handle) }

  // MARK: Columns, counted from 0

  @inline(__always)
  package func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }

  @inline(__always)
  package func isNull(_ index: Int32) -> Bool {
    sqlite3_column_type(handle, index) == SQLITE_NULL
  }

  @inline(__always)
  package func optionalInteger(_ index: Int32) -> Int64? {
    isNull(index) ? nil : integer(index)
  }

  /// The bytes of a text or blob, valid until the next step.
  @inline(__always)
  package func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }

  package func text(_ index: Int32) -> String { String(decoding: bytes(index), as: UTF8.self) }

  package func optionalText(_ index: Int32) -> String? { isNull(index) ? nil : text(index) }

  /// The column's name in the statement.
  func name(_ index: Int32) -> String {
    sqlite3_column_name(handle, index).map { String(cString: $0) } ?? "\(index)"
  }

  /// The integer in a column; nil for any other value.
  func wholeNumber(_ index: Int32) -> Int64? {
    sqlite3_column_type(handle, index) == SQLITE_INTEGER ? integer(index) : nil
  }

  /// Compares a value with the value in the same column of another statement's row, in SQLite's order without a
  /// collation: negative, positive, or 0 if they are equal.
  func order(of index: Int32, against other: Statement) -> Int {
    let (mine, theirs) = (rank(index), other.rank(index))
    if mine != theirs { return mine < theirs ? -1 : 1 }
    switch mine {
    case .null: return 0
    case .number:
      let (left, right) = (wholeNumber(index), other.wholeNumber(index))
      if let left, let right { return left == right ? 0 : left < right ? -1 : 1 }
      let (real, otherReal) = (
        sqlite3_column_double(handle, index), sqlite3_column_double(other.handle, index)
      )
      return real == otherReal ? 0 : real < otherReal ? -1 : 1
    case .text, .blob:
      let (left, right) = (bytes(index), other.bytes(index))
      let count = min(left.count, right.count)
      if count > 0, let start = left.baseAddress, let otherStart = right.baseAddress {
        let order = memcmp(start, otherStart, count)
        if order != 0 { return Int(order) }
      }
      return left.count - right.count
    }
  }

  /// Appends a value in a form that is unique to it: its kind, the length of a text or blob, its bytes. Numbers are
  /// little-endian.
  func append(_ index: Int32, to buffer: inout [UInt8]) {
    func appendNumber(_ number: UInt64) {
      withUnsafeBytes(of: number.littleEndian) { buffer.append(contentsOf: $0) }
    }
    let kind = sqlite3_column_type(handle, index)
    buffer.append(UInt8(truncatingIfNeeded: kind))
    switch kind {
    case SQLITE_NULL: break
    case SQLITE_INTEGER: appendNumber(UInt64(bitPattern: integer(index)))
    case SQLITE_FLOAT: appendNumber(sqlite3_column_double(handle, index).bitPattern)
    default:
      let bytes = bytes(index)
      appendNumber(UInt64(bytes.count))
      buffer.append(contentsOf: bytes)
    }
  }

  private enum Rank: Int, Comparable {
    case null, number, text, blob

    static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
  }

  private func rank(_ index: Int32) -> Rank {
    switch sqlite3_column_type(handle, index) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER, SQLITE_FLOAT: .number
    case SQLITE_TEXT: .text
    default: .blob
    }
  }
}

// MARK: - The SQLite library

package enum DatabaseLibrary {
  /// For example `SQLite 3.40.1`: the version on this system.
  package static var name: String { "SQLite " + String(cString: sqlite3_libversion()) }
}
