// What can go wrong in an erasure.
package import Ledger
package import Projections

/// Why an erasure was not done, or not finished.
package enum ErasureError: Error, CustomStringConvertible {
  case ledger(LedgerError)
  case projections(ProjectionError)
  /// The request cannot be done: what it names, and why.
  case refused(object: String, cause: String)
  /// A file of `erasures/` does not have the form that this program writes.
  case damagedFile(name: String, cause: String)
  /// A signal or the end of the server came first. What was begun is finished by the next writer.
  case interrupted

  package var description: String {
    switch self {
    case .ledger(let error): error.description
    case .projections(let error): "\(error)"
    case .refused(let object, let cause): "erase \(object): \(cause)"
    case .damagedFile(let name, let cause): "read \(name): \(cause)"
    case .interrupted: "erase: interrupted; the next command that writes finishes it"
    }
  }
}
