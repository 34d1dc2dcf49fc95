// What a fenced ledger holds that the copy's new writer has not, as lines for an import.
import Base
package import Ledger
import ObjectStore

/// Why the divergence can't be told.
package enum DivergenceError: Error, Sendable, Equatable, CustomStringConvertible {
  case noCopy(store: String)
  case otherLedger(store: String)
  /// The ledger has no record of a copy.
  case neverReplicated
  /// The ledger lacks events that the copy has from it.
  case shorter(local: Int, confirmed: Int)
  /// The ledger's log is not the one that it copied.
  case unrelated

  package var description: String {
    switch self {
    case .noCopy(let store): "\(store): there is no copy"
    case .otherLedger(let store): "\(store): the copy is of another ledger"
    case .neverReplicated: "this ledger has never written a copy"
    case .shorter(let local, let confirmed):
      "this ledger holds \(local) events, but the copy has \(confirmed) from it"
    case .unrelated: "the log does not begin with the events that the copy has from it"
    }
  }
}

/// Where a ledger parted from its copy.
package struct Divergence: Sendable, Equatable {
  /// The step with which another writer took over.
  package let takeover: Step
  /// The first position that the copy has not from this ledger.
  package let start: Position
  /// How many events the ledger holds.
  package let size: Int

  /// Finds where the histories part; nil if no other writer has taken over.
  ///
  /// Throws `DivergenceError`, `CopyError` and `LedgerError`.
  package static func find(
    _ directory: LedgerDirectory, _ store: PatientStore
  ) throws -> Divergence? {
    guard let record = try ReplicationRecord(of: directory) else {
      throw DivergenceError.neverReplicated
    }
    let sequence = StepSequence(store)
    guard let newest = try sequence.newest(),
      let last = try sequence.step(newest)?.step
    else { throw DivergenceError.noCopy(store: store.name) }
    guard last.ledger.description == directory.identity.id.description else {
      throw DivergenceError.otherLedger(store: store.name)
    }
    if last.epoch <= record.epoch, last.writer == record.writer { return nil }
    let takeover = try firstForeign(sequence, record, last)
    let reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    let size = reader.head.size
    guard size >= takeover.size else {
      throw DivergenceError.shorter(local: size, confirmed: takeover.size)
    }
    if try reader.frontier(at: takeover.size).root == takeover.root {
      return Divergence(takeover: takeover, start: takeover.size, size: size)
    }
    // What this ledger knows to be confirmed comes before anything of others.
    guard record.step != nil, record.size <= size,
      try reader.frontier(at: record.size).root == record.root
    else { throw DivergenceError.unrelated }
    return Divergence(takeover: takeover, start: record.size, size: size)
  }

  /// The first step of another writer, after those of this ledger. Epochs never decrease, so halving finds it.
  private static func firstForeign(
    _ sequence: StepSequence, _ record: ReplicationRecord, _ last: Step
  ) throws(CopyError) -> Step {
    var (own, foreign, end) = (record.step ?? -1, last, last.number)
    while end - own > 1 {
      let middle = own + (end - own) / 2
      var step: Step?
      // Lost steps tell nothing: the next one that is there does.
      var number = middle
      while number < end, step == nil {
        step = try sequence.step(number)?.step
        number += 1
      }
      guard let step else {
        end = middle
        continue
      }
      if step.epoch > record.epoch || step.writer != record.writer && step.epoch == record.epoch {
        (foreign, end) = (step, middle)
      } else {
        own = step.number
      }
    }
    return foreign
  }
}
