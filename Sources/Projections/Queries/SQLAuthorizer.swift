// What a user's statement may do: read tables and views, and call functions that only compute.
import CSQLite

/// Answers SQLite's questions while it prepares a statement, and remembers what it refused first.
///
/// Both lists name what is allowed, so that a later SQLite, or one built with other extensions, adds nothing.
struct SQLAuthorizer {
  /// The tables and views that may be read.
  let relations: Set<String>
  /// The table or function, as the subject of a sentence, or `statement`; nil if nothing was refused.
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
