// What a user's statement may use and do.
import Base
import CSQLite
import Synchronization

/// The limits of a query. SQLite has one heap and one folder for temporary files per process, so these two limits apply
/// to the whole process.
package enum SQLLimits {
  /// The longest statement, in bytes.
  package static let statementBytes = 256 << 10
  /// The longest value, and the longest row in a sorter, in bytes. Longer than any value of the projections.
  package static let valueBytes = 16 << 20
  /// The memory of SQLite, in bytes.
  package static let heapBytes = 256 << 20
  /// SQLite's cache, and what a sorter holds before it writes to a temporary file, in KiB.
  static let cacheKiB = 16 << 10

  /// SQLite's own limits. The time of `like` and `glob` grows with the length of their pattern.
  static let values: [(id: Int32, value: Int32)] = [
    (SQLITE_LIMIT_LENGTH, Int32(valueBytes)), (SQLITE_LIMIT_SQL_LENGTH, Int32(statementBytes)),
    (SQLITE_LIMIT_COLUMN, 500), (SQLITE_LIMIT_EXPR_DEPTH, 500),
    (SQLITE_LIMIT_COMPOUND_SELECT, 200), (SQLITE_LIMIT_VDBE_OP, 1_000_000),
    (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (SQLITE_LIMIT_VARIABLE_NUMBER, 1), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]

  /// Limits SQLite's memory in this process, and gives it a folder for its temporary files. No other thread may use
  /// SQLite meanwhile.
  package static func confineProcess(temporaryFolder path: String) {
    sqlite3_hard_heap_limit64(Int64(heapBytes))
    csqlite_use_temporary_folder(path)
  }

  /// Removes these limits.
  package static func releaseProcess() {
    sqlite3_hard_heap_limit64(0)
    csqlite_use_temporary_folder(nil)
  }
}

// MARK: - Authorizer

/// Answers SQLite's questions while it prepares a statement, and keeps what it rejected first. A statement may read
/// tables and views, and call functions that only compute.
///
/// Both lists name what is allowed, so that a later SQLite, or one built with other extensions, adds nothing.
struct SQLAuthorizer {
  /// The tables and views that may be read.
  let relations: Set<String>
  /// The table or function, as the subject of a sentence, or `statement`; nil if nothing was rejected.
  private(set) var refused: String?

  static let statement = "the statement"

  init(relations: Set<String>) {
    self.relations = relations.union(["sqlite_schema", "sqlite_master", "json_each", "json_tree"])
  }

  /// - Parameters:
  ///   - action: one of SQLite's action codes.
  ///   - first: a table for a read.
  ///   - second: a column for a read, empty if a statement names none; a function for a call.
  mutating func answer(
    _ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?
  ) -> Int32 {
    let subject: String
    switch action {
    case SQLITE_SELECT, SQLITE_RECURSIVE: return SQLITE_OK
    case SQLITE_READ:
      // Without a column, the name may be that of a subquery, which SQLite then asks about piece by piece.
      guard let first, let second, second.pointee != 0 else { return SQLITE_OK }
      let name = String(cString: first)
      if relations.contains(name) { return SQLITE_OK }
      subject = "the table \(name)"
    case SQLITE_FUNCTION:
      let name = second.map { String(cString: $0).lowercased() } ?? ""
      if Self.functions.contains(name) { return SQLITE_OK }
      subject = "the function \(name)"
    default: subject = Self.statement
    }
    if refused == nil { refused = subject }
    return SQLITE_DENY
  }

  /// SQLite's functions of values, aggregates, windows, dates, JSON and mathematics. Some exist only in versions
  /// later than this program's oldest. Not among them: `load_extension`, `fts3_tokenizer`, `readfile`, `writefile`,
  /// `edit`, `sqlite_log` and the functions of full-text and R-tree tables.
  private static let functions = Set(
    """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count \
    cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor \
    format glob group_concat hex if ifnull iif instr json json_array json_array_length json_error_position \
    json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote \
    json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood \
    likely ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank \
    percentile percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank replace \
    round row_number rtrim sign sin sinh soundex sqlite_source_id sqlite_version sqrt strftime string_agg substr \
    substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unistr_quote \
    unixepoch unlikely upper zeroblob
    """.split { $0 == " " }.map(String.init))
}

// MARK: - Time limit

/// Measures the time that SQLite spends on a user's statement; the time of the rows' reader does not count. Another
/// thread may read it.
package final class SQLStopwatch: Sendable {
  /// In milliseconds.
  package let limitMs: Int64
  private let usedMicroseconds = Atomic<Int64>(0)
  /// 0 while SQLite does not work.
  private let startedMicroseconds = Atomic<Int64>(0)

  package init(limitMs: Int64) { self.limitMs = limitMs }

  func start() {
    startedMicroseconds.store(MonotonicClock.nowMicroseconds(), ordering: .relaxed)
  }

  func stop() {
    usedMicroseconds.store(workedMicroseconds, ordering: .relaxed)
    startedMicroseconds.store(0, ordering: .relaxed)
  }

  private var workedMicroseconds: Int64 {
    let started = startedMicroseconds.load(ordering: .relaxed)
    let running = started == 0 ? 0 : MonotonicClock.nowMicroseconds() - started
    return usedMicroseconds.load(ordering: .relaxed) + running
  }

  /// The time spent so far, in milliseconds.
  package var workedMs: Int64 { workedMicroseconds / 1000 }

  /// Whether the limit is exceeded.
  package var isLate: Bool { workedMs > limitMs }

  /// The error of a statement that exceeds the limit.
  package var error: SQLError { SQLError(.time, "it took longer than \(limitMs / 1000) s") }

  /// Whether SQLite is working now.
  package var isWorking: Bool { startedMicroseconds.load(ordering: .relaxed) != 0 }
}
