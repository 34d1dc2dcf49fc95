// The library that holds the projections.
import CSQLite

package enum DatabaseLibrary {
  /// For example `SQLite 3.40.1`, as this system has it.
  package static var name: String { "SQLite " + String(cString: sqlite3_libversion()) }
}
