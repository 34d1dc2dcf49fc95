// `checkpoint`: the ledger's head, signed.
import Ledger
import Projections

let checkpointCommand = Command(
  "checkpoint", summary: "Sign the ledger's head",
  details: [
    "Prints a C2SP checkpoint: the origin, how many events there are, their root, and a signature. Whoever keeps "
      + "it can later have it proven that not one of these events was changed (`ledgerctl audit --checkpoint`).",
    "What it rests on is forced to disk first. Every checkpoint is kept in `checkpoints/`; a new one must extend "
      + "the last. Where the log does not, nothing is signed and the exit code is 20; 21 where only the projections rest "
      + "on another history. How many were made, and the newest head, are remembered in the file `heads` and in the "
      + "projections, so that `ledgerctl audit` finds missing ones.",
  ],
  options: [Option("output", short: "o", value: .init("FILE"), help: "write to FILE")],
  examples: [Example("ledgerctl checkpoint -o head.txt", "Sign the head, for an auditor to keep")]
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let checkpoint = try ledger.sign()
  try withDestination(invocation.value("output"), context) { try $0.write(checkpoint.bytes) }
  return .done
}

extension OpenLedger {
  /// Signs a head, and has the projections in use remember that; never one of a history that they contradict.
  /// - Parameter size: how many events; nil is all.
  func sign(size: Int? = nil) throws -> Checkpoint {
    let projector = try self.projector()
    let store = CheckpointStore(directory)
    if reader.damage == nil, let conflict = try projector.historyConflict() {
      // What was signed says more than what was folded.
      try store.check(reader)
      throw ProjectionError.anotherHistory(conflict)
    }
    let checkpoint = try store.sign(reader, size: size)
    if let heads = try store.signedHeads() {
      // The file remembers it already. Projections that can't be written to, or read, are no reason to fail.
      do { try projector.remember(heads) } catch {
        say("the projections do not remember this checkpoint: \(error)")
      }
    }
    return checkpoint
  }
}
