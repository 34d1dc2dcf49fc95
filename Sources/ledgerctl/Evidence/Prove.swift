// `prove`: proofs that an event is in the ledger, and that one checkpoint extends another.
import Base
import Ledger

let proveCommand = Command(
  "prove", summary: "Prove an event, or that one checkpoint extends another",
  details: [
    "Prints a C2SP tlog-proof that a checkpoint contains the event at POSITION. With `--consistency`, prints "
      + "a proof that the kept checkpoint of POSITION events is the beginning of that of TO events, or of the "
      + "newest one. `ledgerctl audit proof` and `ledgerctl audit consistency` check both offline with the "
      + "public key."
  ],
  positionals: [
    Positional("POSITION", help: "the event's position; with `--consistency`, the older size"),
    Positional("TO", arity: .optional, help: "with `--consistency`, the newer size"),
  ],
  options: [
    Option("consistency", help: "prove that one checkpoint extends another"),
    Option(
      "checkpoint", value: .init("FILE"),
      help: "prove the event for this checkpoint (default: the newest)"),
    Option("output", short: "o", value: .init("FILE"), help: "write to FILE"),
  ],
  examples: [
    Example("ledgerctl prove 12 -o event-12.proof", "Prove that event 12 is in the ledger"),
    Example(
      "ledgerctl prove --consistency 1000 2000 -o growth.proof",
      "Prove that nothing was changed between two checkpoints"),
  ]
) { invocation, context in
  try prove(ProveOptions(invocation), invocation, context)
}

/// The options of `prove`.
struct ProveOptions: Equatable, Sendable {
  enum Wish: Equatable, Sendable {
    case event(Position)
    /// Sizes of kept checkpoints; nil for the newest.
    case consistency(from: Int, to: Int?)
  }

  let wish: Wish
  let checkpointPath: String?
  let outputPath: String?

  init(_ invocation: Invocation) throws(UsageError) {
    var numbers: [Int] = []
    for text in invocation.positionals {
      guard let number = positionValue(text)
      else { throw UsageError(ShownArgument.text(text), "is not a position") }
      numbers.append(number)
    }
    checkpointPath = invocation.value("checkpoint")
    outputPath = invocation.value("output")
    let to = numbers.dropFirst().first
    guard invocation.has("consistency") else {
      if to != nil { throw UsageError("TO", "requires --consistency") }
      wish = .event(numbers[0])
      return
    }
    if checkpointPath != nil {
      throw UsageError("--checkpoint", "cannot be used with --consistency")
    }
    if let to, to < numbers[0] { throw UsageError("TO", "is smaller than \(numbers[0])") }
    wish = .consistency(from: numbers[0], to: to)
  }
}

private func prove(
  _ options: ProveOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  try ledger.logHistoryConflict("prove")
  let prover = Prover(ledger)
  let proof: [UInt8]
  switch options.wish {
  case .event(let position):
    proof = try prover.event(position, checkpointPath: options.checkpointPath).bytes
  case .consistency(let from, let to): proof = try prover.consistency(from: from, to: to).bytes
  }
  try withDestination(options.outputPath, context) { try $0.write(proof) }
  return .done
}

/// Makes proofs from a ledger's log and its kept checkpoints.
private struct Prover {
  private let ledger: OpenLedger
  private let store: CheckpointStore

  init(_ ledger: OpenLedger) {
    self.ledger = ledger
    store = CheckpointStore(ledger.directory)
  }

  func event(_ position: Position, checkpointPath: String?) throws -> InclusionProof {
    let reader = ledger.reader
    let checkpoint: Checkpoint
    if let checkpointPath {
      checkpoint = try givenCheckpoint(checkpointPath, ledger.directory, keys: [])
    } else {
      checkpoint = try kept(nil)
    }
    try check(checkpoint)
    guard position < checkpoint.size else {
      let isThere = position < reader.head.size
      throw Failure(
        operation: "prove", object: "position \(position)",
        cause: isThere
          ? "the checkpoint has \(checkpoint.size) events; 'ledgerctl checkpoint' signs the head"
          : "the log has \(reader.head.size) events")
    }
    let line = try reader.event(at: position)
    let record = line.withUnsafeBytes { EventLine($0)?.leafRecord } ?? []
    let proof = InclusionProof(
      leafRecord: record, index: position,
      hashes: try TreeProof.inclusion(of: position, in: checkpoint.size, reader),
      checkpoint: checkpoint.bytes)
    _ = try proof.verify(try KeyStore(ledger.directory).publicKeys())
    return proof
  }

  func consistency(from: Int, to: Int?) throws -> ConsistencyProof {
    let (old, new) = (try kept(from), try kept(to))
    guard old.size <= new.size else {
      throw Failure(
        operation: "prove", object: "size \(from)",
        cause: "the newest checkpoint has \(new.size) events")
    }
    for checkpoint in [old, new] { try check(checkpoint) }
    let proof = ConsistencyProof(
      oldCheckpoint: old.bytes,
      hashes: try TreeProof.consistency(from: old.size, to: new.size, ledger.reader),
      newCheckpoint: new.bytes)
    _ = try proof.verify(try KeyStore(ledger.directory).publicKeys())
    return proof
  }

  /// A kept checkpoint; nil for the newest.
  private func kept(_ size: Int?) throws -> Checkpoint {
    let sizes = try store.sizes()
    if let size = size ?? sizes.last, let checkpoint = try store.checkpoint(size: size) {
      return checkpoint
    }
    let cause =
      sizes.isEmpty
      ? "there is none; 'ledgerctl checkpoint' signs the head"
      : "there is none of this size; the sizes are \(sizes.map(String.init).joined(separator: ", "))"
    throw Failure(
      operation: "prove", object: size.map { "checkpoint \($0)" } ?? "checkpoint", cause: cause)
  }

  /// Rejects a head that the log does not have: the proof would not hold.
  private func check(_ checkpoint: Checkpoint) throws {
    let reader = ledger.reader
    if checkpoint.size <= reader.head.size,
      try reader.frontier(at: checkpoint.size).root == checkpoint.root
    {
      return
    }
    throw Failure(
      .corrupted, operation: "prove", object: "checkpoint \(checkpoint.size)",
      cause: "the log is not the history that it signs")
  }
}
