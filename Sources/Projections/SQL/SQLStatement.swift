// A user's statement and its rows.
import CSQLite

/// A value of a row. Bytes stay valid until the next row.
package enum SQLValue {
  case null
  case integer(Int64)
  case real(Double)
  /// UTF-8, unless a statement made it of other bytes.
  case text(UnsafeRawBufferPointer)
  case blob(UnsafeRawBufferPointer)
}

/// A prepared statement that only reads. It keeps its session alive.
package final class SQLStatement {
  private let session: SQLSession
  private let handle: OpaquePointer
  private let sql: String
  /// As the statement names them; each name once: a second `x` is `x_2`.
  package let columns: [String]

  init(_ session: SQLSession, _ handle: OpaquePointer, _ sql: String) {
    self.session = session
    self.handle = handle
    self.sql = sql
    let names = (0..<sqlite3_column_count(handle)).map { index in
      sqlite3_column_name(handle, index).map { String(cString: $0) } ?? "column_\(index + 1)"
    }
    columns = Self.distinct(names)
  }

  deinit { sqlite3_finalize(handle) }

  /// Throws if the statement does more than read, or needs values.
  func check() throws(SQLError) {
    guard sqlite3_stmt_readonly(handle) != 0, !columns.isEmpty else {
      throw .refused("a statement that gives no rows")
    }
    guard sqlite3_bind_parameter_count(handle) == 0 else { throw .parameters }
  }

  private static func distinct(_ names: [String]) -> [String] {
    var used: Set<String> = []
    return names.map { name in
      var (candidate, number) = (name, 2)
      while !used.insert(candidate).inserted {
        candidate = "\(name)_\(number)"
        number += 1
      }
      return candidate
    }
  }

  /// Advances to the next row; false after the last.
  package func step() throws(SQLError) -> Bool {
    session.watch.stopwatch.start()
    let code = sqlite3_step(handle)
    session.watch.stopwatch.stop()
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      do throws(DatabaseError) { try session.database.checkUnchanged() } catch {
        throw .database(error)
      }
      return false
    default: throw session.error(code, sql, isPreparing: false)
    }
  }

  /// A value of the row.
  package func value(_ index: Int) -> SQLValue {
    let index = Int32(index)
    switch sqlite3_column_type(handle, index) {
    case SQLITE_NULL: return .null
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, index))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, index))
    case SQLITE_TEXT: return .text(bytes(index))
    default: return .blob(bytes(index))
    }
  }

  private func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }
}
