// `audit proof`, `audit consistency`: check proofs with only the public key.
import Base
import Ledger

let auditProofCommand = Command(
  "audit proof", summary: "Check a proof that an event is in a ledger",
  details: [
    "Checks a C2SP tlog-proof offline, without a ledger: the key must have signed the checkpoint, and the "
      + "event's leaf record must lead to the checkpoint's root. Prints that record. The exit code is 20 if the "
      + "proof does not hold, 2 if a file is not a proof.",
    "`--event` checks that the proof is about a line that `replay` printed. Of a redacted event, only its "
      + "place in the ledger can be proven, not its data.",
  ],
  positionals: [Positional("FILE", help: "the proof; `-` is standard input")],
  options: [
    .verifierKeys(isRequired: true),
    Option("event", value: .init("FILE"), help: "the event's line"), .json,
  ],
  examples: [
    Example(
      "ledgerctl audit proof event-12.proof --key \(exampleKey)",
      "Check that event 12 is in the ledger")
  ],
  usesLedger: false
) { invocation, context in
  try auditProof(invocation, context)
}

private func auditProof(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let keys = try invocation.verifierKeys()
  let proof = try readEvidence(invocation.positionals[0]) { bytes throws(ProofError) in
    try InclusionProof(bytes)
  }
  let head = try proof.verify(keys)
  var erasure: Position?
  if let path = invocation.value("event") {
    erasure = try readEvidence(path, byteCountMax: ledgerLineByteCountMax) {
      bytes throws(ProofError) in try check(bytes, proof)
    }
  }
  let record = String(decoding: proof.leafRecord, as: UTF8.self)
  let values: Record = [
    "position": proof.index, "origin": head.origin, "size": head.size,
    "root": head.root.base64, "record": record, "redacted_by": erasure,
  ]
  try context.print(invocation, values) {
    var fields: Fields = [
      ("proven", "position \(proof.index) of \(counted(head.size, "event"))"),
      ("ledger", head.origin), ("root", head.root.base64), ("record", record),
    ]
    if let erasure {
      fields.append(("event", "redacted by the erasure at \(erasure); its data was erased"))
    }
    try $0.fields(fields)
  }
  return .done
}

/// Checks that a line is the event of the proven leaf record.
/// - Returns: the erasure that redacted it; its data then proves nothing. Nil if the line holds the proven data.
private func check(_ file: [UInt8], _ proof: InclusionProof) throws(ProofError) -> Position? {
  let text = file.last == 0x0A ? file.dropLast() : file[...]
  if text.contains(0x0A) { throw ProofError("event", "it is more than a line", lacksForm: true) }
  let (isLine, isTheEvent, erasure) = text.withUnsafeBytes { bytes -> (Bool, Bool, Position?) in
    guard let line = EventLine(bytes) else { return (false, false, nil) }
    let isTheEvent =
      line.leafRecord == proof.leafRecord && (line.isRedacted || line.verifyDigest(SHA256()))
    return (true, isTheEvent, line.redactedBy)
  }
  if !isLine { throw ProofError("event", "it is not a line of a log", lacksForm: true) }
  if !isTheEvent { throw ProofError("event", "the proof is about another event") }
  return erasure
}

let auditConsistencyCommand = Command(
  "audit consistency", summary: "Check a proof that one checkpoint extends another",
  details: [
    "Checks offline, without a ledger, that the key signed both checkpoints, and that the events of the "
      + "older one are the beginning of those of the newer one. The exit code is 20 if the proof does not hold, "
      + "2 if a file is not a proof or a checkpoint."
  ],
  positionals: [Positional("FILE", help: "the proof; `-` is standard input")],
  options: [
    .verifierKeys(isRequired: true),
    Option(
      "checkpoint", value: .init("FILE"),
      help: "a checkpoint that you kept; it must be one of the two"), .json,
  ],
  examples: [
    Example(
      "ledgerctl audit consistency growth.proof --key \(exampleKey)",
      "Check that nothing was changed between two checkpoints")
  ],
  usesLedger: false
) { invocation, context in
  try auditConsistency(invocation, context)
}

private func auditConsistency(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let keys = try invocation.verifierKeys()
  let proof = try readEvidence(invocation.positionals[0]) { bytes throws(ProofError) in
    try ConsistencyProof(bytes)
  }
  let heads = try proof.verify(keys)
  if let path = invocation.value("checkpoint") {
    let noted = try readEvidence(path) { bytes throws(ProofError) in
      try Checkpoint(bytes, keys: keys)
    }
    let isOne = [heads.old, heads.new].contains {
      $0.origin.hasSameBytes(as: noted.origin) && $0.size == noted.size && $0.root == noted.root
    }
    if !isOne {
      throw ProofError("consistency proof", "it is not about the given checkpoint")
    }
  }
  let (old, new) = (heads.old, heads.new)
  let record: Record = [
    "origin": new.origin, "old_size": old.size, "old_root": old.root.base64,
    "new_size": new.size, "new_root": new.root.base64,
  ]
  try context.print(invocation, record) {
    try $0.fields([
      ("proven", "the first \(counted(old.size, "event")) of \(new.size) are the same"),
      ("ledger", new.origin), ("old root", old.root.base64), ("new root", new.root.base64),
    ])
  }
  return .done
}
