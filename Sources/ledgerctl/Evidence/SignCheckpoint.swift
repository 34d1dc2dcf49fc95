// `checkpoint`: signs the ledger's head.
import Ledger
import Projections

let checkpointCommand = Command(
  "checkpoint", summary: "Sign the ledger's head",
  details: [
    "Prints a C2SP checkpoint: the origin, the number of events, their root, and a signature. Whoever keeps "
      + "it can later verify that none of these events was changed (`ledgerctl audit --checkpoint`).",
    "The events that it covers are synced to disk first. Every checkpoint is kept in `checkpoints/`; a new one "
      + "must extend the last one. If the log does not extend it, nothing is signed and the exit code is 20; if "
      + "only the projections belong to another history, it is 21. The number of checkpoints and the newest head "
      + "are stored in the file `heads` and in the projections, so that `ledgerctl audit` notices missing "
      + "checkpoints.",
  ],
  options: [Option("output", short: "o", value: .init("FILE"), help: "write to FILE")],
  examples: [Example("ledgerctl checkpoint -o head.txt", "Sign the head for an auditor")]
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let checkpoint = try ledger.sign()
  try withDestination(invocation.value("output"), context) { try $0.write(checkpoint.bytes) }
  return .done
}

extension OpenLedger {
  /// Signs a head and records that in the projections in use; refuses if they belong to another history.
  ///
  /// With replication, only what a copy has confirmed is signed: a ledger that takes over then continues every signed
  /// head.
  /// - Parameter size: the number of events; nil is all, or all that is confirmed.
  func sign(size: Int? = nil) throws -> Checkpoint {
    let size = try confirmedSize(of: size)
    let projector = try self.projector()
    let store = CheckpointStore(directory)
    if reader.damage == nil, let conflict = try projector.historyConflict() {
      // A conflict with signed heads is reported before one with the projections.
      try store.check(reader)
      throw ProjectionError.anotherHistory(conflict)
    }
    let checkpoint = try store.sign(reader, size: size)
    if let heads = try store.signedHeads() {
      // The file `heads` has it already, so projections that can't be read or written are not an error.
      do { try projector.remember(heads) } catch {
        say("the projections could not record this checkpoint: \(error)")
      }
    }
    return checkpoint
  }
}
