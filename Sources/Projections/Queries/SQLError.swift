// Why a user's statement gave no result. No text holds a value of the statement or of the ledger.

/// A statement that cannot run, or did not run to its end.
package struct SQLError: Error, Equatable, Sendable {
  /// Where the cause is found.
  package enum Kind: Equatable, Sendable {
    /// In the statement itself, so that it is found without any data.
    case statement
    /// In what it takes or computes.
    case run
    case time, cancelled
  }

  package let kind: Kind
  /// The error in a few words.
  package let cause: String
  /// The name that does not exist, for finding what it may mean. A message must not show it.
  package var unknownName: String?

  init(_ kind: Kind, _ cause: String) { (self.kind, self.cause) = (kind, cause) }

  static func refused(_ subject: String) -> SQLError {
    SQLError(.statement, "\(subject) is refused: a query only reads")
  }

  /// An error that SQLite describes. A message may hold texts of the statement, which may name a user, and values: what
  /// is shown of it is one of the words below.
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
  /// Sentences for words that are parts of one.
  private static let whole = [
    "do not have the same number of result columns":
      "the SELECTs of a compound statement have different numbers of columns",
    "sub-select returns": "a subquery has a wrong number of columns",
  ]
}
