// What a user's statement may do: read tables and views, and call functions that only compute.
import CSQLite

/// Answers SQLite's questions while it prepares a statement, and remembers what it refused.
///
/// Both lists name what is allowed, so that a later SQLite, or one built with other extensions, adds nothing.
final class SQLAuthorizer {
  /// Tables and views that may be read.
  private let relations: Set<String>
  /// What was refused, as the subject of a sentence; nil if nothing was.
  private(set) var refused: String?

  /// - Parameter relations: the tables and views of the database.
  init(relations: Set<String>) {
    self.relations = relations.union(["sqlite_schema", "sqlite_master", "json_each", "json_tree"])
  }

  /// Forgets what was refused.
  func reset() { refused = nil }

  /// - Parameters:
  ///   - action: one of SQLite's action codes.
  ///   - first: a table for a read.
  ///   - second: a column for a read, empty if a statement names none; a function for a call.
  func answer(
    _ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?
  ) -> Int32 {
    switch action {
    case SQLITE_SELECT, SQLITE_RECURSIVE: return SQLITE_OK
    case SQLITE_READ:
      // Without a column, the name may be that of a subquery, which SQLite then asks about piece by piece.
      guard let first, let second, second.pointee != 0 else { return SQLITE_OK }
      let name = String(cString: first)
      return relations.contains(name) ? SQLITE_OK : refuse("the table \(name)")
    case SQLITE_FUNCTION:
      let name = second.map { String(cString: $0).lowercased() } ?? ""
      return Self.functions.contains(name) ? SQLITE_OK : refuse("the function \(name)")
    default: return refuse(Self.words[action] ?? "a statement of this kind")
    }
  }

  private func refuse(_ subject: String) -> Int32 {
    if refused == nil { refused = subject }
    return SQLITE_DENY
  }

  private static let words: [Int32: String] = [
    SQLITE_ALTER_TABLE: "ALTER TABLE", SQLITE_ANALYZE: "ANALYZE", SQLITE_ATTACH: "ATTACH",
    SQLITE_CREATE_INDEX: "CREATE INDEX", SQLITE_CREATE_TABLE: "CREATE TABLE",
    SQLITE_CREATE_TEMP_INDEX: "CREATE INDEX", SQLITE_CREATE_TEMP_TABLE: "CREATE TEMP TABLE",
    SQLITE_CREATE_TEMP_TRIGGER: "CREATE TRIGGER", SQLITE_CREATE_TEMP_VIEW: "CREATE TEMP VIEW",
    SQLITE_CREATE_TRIGGER: "CREATE TRIGGER", SQLITE_CREATE_VIEW: "CREATE VIEW",
    SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE", SQLITE_DELETE: "DELETE",
    SQLITE_DETACH: "DETACH", SQLITE_DROP_INDEX: "DROP INDEX", SQLITE_DROP_TABLE: "DROP TABLE",
    SQLITE_DROP_TRIGGER: "DROP TRIGGER", SQLITE_DROP_VIEW: "DROP VIEW",
    SQLITE_DROP_VTABLE: "DROP TABLE", SQLITE_INSERT: "INSERT", SQLITE_PRAGMA: "PRAGMA",
    SQLITE_REINDEX: "REINDEX", SQLITE_SAVEPOINT: "SAVEPOINT",
    SQLITE_TRANSACTION: "a transaction", SQLITE_UPDATE: "UPDATE",
  ]

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
