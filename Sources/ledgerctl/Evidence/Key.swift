// `key create` and `key list`, the keys that sign checkpoints; `checkpoint`, which signs the head.
import Base
import Glibc
import Ledger
import Projections
import Replication
import Server

let keyCreateCommand = Command(
  "key create", summary: "Create a key that signs checkpoints",
  details: [
    "Creates an Ed25519 key named after the ledger's origin and prints its public half as a C2SP verifier "
      + "key. Give it, over a channel that cannot be tampered with, to those who check checkpoints and proofs. "
      + "The private half stays in `keys/`, readable only by its owner.",
    "JSON has `name`, `id`, `key` and `signs`, as in `key list`.",
  ],
  options: [
    Option(
      "further",
      help:
        "create another key if there already is one; it signs from then on, and signatures of the old "
        + "key stay valid"),
    .json,
  ]
) { invocation, context in
  let directory = try context.openLedger(invocation)
  let key = try KeyStore(directory).create(isFurther: invocation.has("further"))
  try context.print(invocation, record(of: key, signs: true)) { try $0.line("\(key)") }
  return .done
}

let keyListCommand = Command(
  "key list", summary: "List the keys that sign checkpoints",
  details: [
    "Prints the public keys in `ledger.json`, oldest first. The newest one whose private half is in the "
      + "ledger signs."
  ],
  options: [.json]
) { invocation, context in
  let store = KeyStore(try context.openLedger(invocation))
  let keys = try store.publicKeys()
  let signing = try store.signingKey()?.verifierKey
  let records = keys.map { record(of: $0, signs: $0 == signing) }
  try context.print(invocation, list: records) { sheet in
    if keys.isEmpty {
      return try sheet.line("There is no key; 'ledgerctl key create' creates one.")
    }
    var table = TextTable(["key", "use"])
    for key in keys { table.append(["\(key)", key == signing ? "signs" : "verifies"]) }
    try sheet.table("Keys", table)
  }
  return .done
}

private func record(of key: VerifierKey, signs: Bool) -> Record {
  ["name": key.name, "id": key.idText, "key": "\(key)", "signs": signs]
}

// MARK: - `checkpoint`

let checkpointCommand = Command(
  "checkpoint", summary: "Sign the ledger's head",
  details: [
    "Prints a C2SP checkpoint: the origin, the number of events, their root, and a signature. It is kept in "
      + "`checkpoints/` too. Keep it elsewhere too: `ledgerctl audit --checkpoint` shows whether any of these "
      + "events was changed later.",
    "A new checkpoint must extend the last one. If the log does not, nothing is signed and the exit code is "
      + "20, or 21 if only the projections belong to another history.",
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
  /// Signs a head and records it in the projections in use; fails if they belong to another history.
  ///
  /// With replication, only what a copy has confirmed is signed: a ledger that takes over then continues every signed
  /// head.
  /// - Parameter size: the number of events; nil for all, or all that is confirmed.
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
      // The file `heads` already has it, so projections that can't be read or written are not an error.
      do { try projector.remember(heads) } catch {
        log("the projections could not record this checkpoint: \(error)")
      }
    }
    return checkpoint
  }
}

// MARK: - Confirmed size

extension OpenLedger {
  /// How long a head to be signed may wait for its copy.
  private static let waitMs: Int64 = 15_000
  private static let pauseMicros: UInt32 = 100_000

  /// The number of events to sign: with replication, at most what a copy has confirmed; nil if all may be signed.
  ///
  /// Throws if the copy has not confirmed them after a while.
  /// - Parameter size: the number of events wanted; nil for as many as possible.
  func confirmedSize(of size: Int?) throws -> Int? {
    // Such a ledger signs nothing, so there is nothing to wait for.
    try Standby.refuse(directory, operation: "sign checkpoint")
    guard let replication = try ConfigurationFile(directory).read().replication else { return size }
    let deadlineMs = MonotonicClock.nowMs() + Self.waitMs
    while true {
      let record = try ReplicationRecord(of: directory)
      if let record, record.step != nil, record.size >= size ?? 0 {
        guard record.size <= reader.head.size else {
          throw LedgerError(
            .init(verdict: .missing, file: "log", position: reader.head.size),
            operation: "sign checkpoint",
            cause: "the copy has confirmed \(record.size) events, but the log holds "
              + "\(reader.head.size)")
        }
        guard try reader.frontier(at: record.size).root == record.root else {
          throw LedgerError(
            .init(verdict: .tampered, file: "log", position: nil), operation: "sign checkpoint",
            cause: "its first \(record.size) events are not those that the copy confirmed")
        }
        return size ?? record.size
      }
      // Without a given number, whatever is confirmed is signed: only the first step is waited for.
      guard MonotonicClock.nowMs() < deadlineMs, !context.interruption.isRequested else {
        throw Failure(
          operation: "sign checkpoint", object: replication.target,
          cause: "the copy has confirmed \(counted(record?.size ?? 0, "event"))"
            + (size.map { " of \($0)" } ?? "") + "; 'ledgerctl status' shows how far it is behind")
      }
      usleep(Self.pauseMicros)
      try reader.refresh()
    }
  }
}
