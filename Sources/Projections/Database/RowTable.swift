// Shows rows in memory to SQLite as a table, so that one statement writes many of them.
import CSQLite

/// A value of a row that is to be written.
struct RowValue {
  enum Kind: UInt8 { case null, integer, text, blob, keptText }

  var kind: Kind
  /// How many bytes a text or blob has.
  var byteCount: UInt32 = 0
  /// An integer; the offset of a text or blob in its batch's bytes; the address of a kept text.
  var word: Int64 = 0
}

/// The rows that the table shows. Each row has as many values as the statement that reads them has columns.
struct RowSource {
  var first: UnsafeMutablePointer<RowValue>
  var end: UnsafeMutablePointer<RowValue>
  var rowValueCount: Int
  var bytes: UnsafeMutableRawPointer
}

/// The table `row_batch` of a connection, with the columns `c0`, `c1` and so on. No other connection sees it, and no
/// schema contains it.
enum RowTable {
  /// Exceeds the number of columns of every table that is written this way.
  static let columnLimit = 48

  /// `c0, c1, …`
  static func columns(_ count: Int) -> String {
    (0..<count).map { "c\($0)" }.joined(separator: ", ")
  }

  /// Registers the table with a connection. The source must stay in place as long as the connection is used.
  static func register(
    _ database: OpaquePointer, _ source: UnsafeMutablePointer<RowSource?>
  ) -> Int32 {
    sqlite3_create_module_v2(database, "row_batch", module, source, nil)
  }

  private struct Table {
    var base = sqlite3_vtab()
    let source: UnsafeMutableRawPointer
  }

  private struct Cursor {
    var base = sqlite3_vtab_cursor()
    var row: UnsafeMutablePointer<RowValue>
    let end: UnsafeMutablePointer<RowValue>
    let rowValueCount: Int
    let bytes: UnsafeMutableRawPointer
  }

  private static func cursor(
    _ base: UnsafeMutablePointer<sqlite3_vtab_cursor>
  ) -> UnsafeMutablePointer<Cursor> {
    UnsafeMutableRawPointer(base).assumingMemoryBound(to: Cursor.self)
  }

  /// Created once and never changed; SQLite keeps its address.
  nonisolated(unsafe) private static let module: UnsafePointer<sqlite3_module> = {
    var module = sqlite3_module()
    // Without xCreate, the table exists from the start under its module's name.
    module.xConnect = { database, source, _, _, result, _ in
      guard let source, let result else { return SQLITE_MISUSE }
      let code = sqlite3_declare_vtab(database, "CREATE TABLE x(\(columns(columnLimit)))")
      if code != SQLITE_OK { return code }
      let table = UnsafeMutablePointer<Table>.allocate(capacity: 1)
      table.initialize(to: Table(source: source))
      result.pointee = UnsafeMutableRawPointer(table).assumingMemoryBound(to: sqlite3_vtab.self)
      return SQLITE_OK
    }
    module.xDisconnect = { table in
      UnsafeMutableRawPointer(table)?.deallocate()
      return SQLITE_OK
    }
    module.xBestIndex = { _, info in
      info?.pointee.estimatedCost = 1000
      return SQLITE_OK
    }
    module.xOpen = { table, result in
      guard let table, let result else { return SQLITE_MISUSE }
      let place = UnsafeMutableRawPointer(table).assumingMemoryBound(to: Table.self).pointee.source
      guard let source = place.assumingMemoryBound(to: RowSource?.self).pointee else {
        return SQLITE_MISUSE
      }
      let cursor = UnsafeMutablePointer<Cursor>.allocate(capacity: 1)
      cursor.initialize(
        to: Cursor(
          row: source.first, end: source.end, rowValueCount: source.rowValueCount,
          bytes: source.bytes))
      result.pointee = UnsafeMutableRawPointer(cursor)
        .assumingMemoryBound(to: sqlite3_vtab_cursor.self)
      return SQLITE_OK
    }
    module.xClose = { cursor in
      UnsafeMutableRawPointer(cursor)?.deallocate()
      return SQLITE_OK
    }
    module.xFilter = { _, _, _, _, _ in SQLITE_OK }
    module.xNext = { base in
      guard let base else { return SQLITE_MISUSE }
      let cursor = cursor(base)
      cursor.pointee.row += cursor.pointee.rowValueCount
      return SQLITE_OK
    }
    module.xEof = { base in
      guard let base else { return 1 }
      let cursor = cursor(base)
      return cursor.pointee.row >= cursor.pointee.end ? 1 : 0
    }
    module.xColumn = { base, context, column in
      guard let base else { return SQLITE_MISUSE }
      let cursor = cursor(base)
      let value = cursor.pointee.row[Int(column)]
      switch value.kind {
      case .null: break
      case .integer: sqlite3_result_int64(context, value.word)
      case .text:
        let start = (cursor.pointee.bytes + Int(value.word)).assumingMemoryBound(to: CChar.self)
        sqlite3_result_text64(
          context, start, UInt64(value.byteCount), nil, UInt8(SQLITE_UTF8))
      case .keptText:
        let start = UnsafePointer<CChar>(bitPattern: Int(value.word))
        sqlite3_result_text64(
          context, start, UInt64(value.byteCount), nil, UInt8(SQLITE_UTF8))
      case .blob:
        sqlite3_result_blob64(
          context, cursor.pointee.bytes + Int(value.word), UInt64(value.byteCount), nil)
      }
      return SQLITE_OK
    }
    module.xRowid = { _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    let place = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
    place.initialize(to: module)
    return UnsafePointer(place)
  }()
}
