// The errors of folding, opening and reading projections.
package import Ledger

/// A failure of the projections: the operation and its cause.
package enum ProjectionError: Error, CustomStringConvertible {
  case database(DatabaseError)
  case ledger(LedgerError)
  case event(position: Int, EventError)
  /// An event names an upload or a reply that the log does not have.
  case missingEvent(position: Int, names: Int)
  case file(operation: String, name: String, cause: String)
  /// A snapshot that cannot be used, by its name.
  case snapshot(name: String, cause: String)
  /// The projections' history differs from the log's.
  case anotherHistory(HistoryConflict)
  /// An invalid argument, such as an unknown time zone.
  case usage(String)
  /// The tables contradict each other: another program wrote to them.
  case inconsistent(String)
  /// The caller stopped the work.
  case interrupted
  /// The consumer wants no more output or cannot accept more.
  case output(any Error)

  package var description: String {
    switch self {
    case .database(let error): "projections: \(error)"
    case .ledger(let error): "\(error)"
    case .event(let position, let error): "reading the event at position \(position): \(error)"
    case .missingEvent(let position, let names):
      "reading the event at position \(position): it refers to position \(names), which is not such an event"
    case .file(let operation, let name, let cause): "\(operation) \(name): \(cause)"
    case .snapshot(let name, let cause): "\(name): \(cause)"
    case .anotherHistory(let conflict): "projections: \(conflict)"
    case .usage(let text): text
    case .inconsistent(let what):
      "projections: \(what); 'ledgerctl rebuild' rebuilds them from the log"
    case .interrupted: "interrupted"
    case .output(let error): "\(error)"
    }
  }
}
