// What a user's statement may use.
import CSQLite

/// The limits of a query. SQLite has one heap and one folder for temporary files in a process, so these two are set
/// for the process.
package enum SQLLimits {
  /// The longest statement, in bytes.
  package static let statementBytes = 256 << 10
  /// The longest value, and the longest row in a sorter, in bytes. Longer than any value of the projections.
  package static let valueBytes = 16 << 20
  /// The memory of SQLite, in bytes.
  package static let heapBytes = 256 << 20
  /// SQLite's cache, and what a sorter holds before it writes to a temporary file, in KiB.
  static let cacheKiB = 16 << 10

  /// SQLite's own limits. The functions `like` and `glob` take time with the length of their pattern.
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

  /// Undoes it.
  package static func releaseProcess() {
    sqlite3_hard_heap_limit64(0)
    csqlite_use_temporary_folder(nil)
  }
}
