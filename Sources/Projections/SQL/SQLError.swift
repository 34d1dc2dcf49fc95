// Why a user's statement gave no result. No text holds a value of the statement or of the ledger.

/// A statement that cannot run, or did not run to its end.
package enum SQLError: Error, Equatable, Sendable {
  /// A place in a statement, both counted from 1; columns are characters.
  package struct Place: Equatable, Sendable {
    package let line: Int
    package let column: Int
  }

  /// Longer than `SQLLimits.statementBytes`.
  case tooLong
  /// Nothing but white space and comments.
  case empty
  /// More than one statement.
  case several
  /// With a parameter, as in `WHERE sale = ?`.
  case parameters
  /// It holds a NUL.
  case zeroByte
  /// What the statement may not do, as the subject of a sentence.
  case refused(String)
  /// A mistake in the statement.
  /// - unknown: the name that does not exist, which a message must not show.
  case wrong(String, Place?, unknown: String?)
  /// SQLite could not compute a value.
  case failed(String)
  /// It took longer than this many milliseconds.
  case time(limitMs: Int64)
  /// SQLite needed more memory than it may.
  case memory
  /// A value or a row is longer than `SQLLimits.valueBytes`.
  case longValue
  /// There was no room for temporary files.
  case disk
  /// It was cancelled.
  case cancelled
  /// The database itself can't be read.
  case database(DatabaseError)

  package static func == (left: SQLError, right: SQLError) -> Bool {
    "\(left)" == "\(right)"
  }

  /// Whether the statement itself is at fault, so that it can be found without any data.
  package var isOfStatement: Bool {
    switch self {
    case .tooLong, .empty, .several, .parameters, .zeroByte, .refused, .wrong: true
    default: false
    }
  }

  /// The error in a few words.
  package var cause: String {
    switch self {
    case .tooLong: "the statement is longer than \(SQLLimits.statementBytes >> 10) KiB"
    case .empty: "there is no statement"
    case .several: "there is more than one statement"
    case .parameters: "the statement has parameters; write the values into it"
    case .zeroByte: "the statement holds a NUL"
    case .refused(let subject): "\(subject) is refused: a query only reads"
    case .wrong(let text, let place, _):
      place.map { "\(text), at line \($0.line), character \($0.column)" } ?? text
    case .failed(let text): text
    case .time(let limitMs): "it took longer than \(limitMs / 1000) s"
    case .memory: "it needs more than \(SQLLimits.heapBytes >> 20) MiB of memory"
    case .longValue: "a value is longer than \(SQLLimits.valueBytes >> 20) MiB"
    case .disk: "there is no room for temporary files"
    case .cancelled: "it was cancelled"
    case .database(let error): error.description
    }
  }
}
