// What errors of a fold and of its reports mean for the process.
import AppStore
import Ledger
import Projections

extension RulesFailure {
  /// - Parameter events: name an event by its ledger and position.
  init(folding error: any Error, _ events: PartitionEvents) {
    switch error {
    case let error as RulesFailure: self = error
    case let error as LedgerError: self.init(error)
    case let error as ExchangeError:
      self.init(error, operation: "write", object: "standard output")
    case let error as DatabaseError:
      self.init(operation: "fold", object: "temporary database", cause: error.description)
    case ProjectionError.ledger(let error): self.init(error)
    case ProjectionError.database(let error):
      self.init(operation: "fold", object: "temporary database", cause: error.description)
    case ProjectionError.output(let error): self.init(folding: error, events)
    case ProjectionError.event(let position, let error):
      self.init(
        error.isOfLaterProgram ? .newerFormat : .failed, operation: "fold",
        object: "event \(events.text(of: position))", cause: error.description)
    case ProjectionError.usage(let cause):
      self.init(.usage, operation: "write", object: "report", cause: cause)
    case let error as ProjectionError:
      self.init(operation: "fold", object: "events", cause: error.description)
    default: self.init(error, command: "fold")
    }
  }
}
