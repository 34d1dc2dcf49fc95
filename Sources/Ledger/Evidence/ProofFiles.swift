// Proof files: C2SP tlog-proof for one event, and a similar text for two checkpoints.
package import Base

/// A proof that one event is in a ledger: `c2sp.org/tlog-proof@v1`.
package struct InclusionProof: Sendable, Equatable {
  private static let heading = "c2sp.org/tlog-proof@v1"

  /// The event's leaf record.
  package let leafRecord: [UInt8]
  /// The event's position.
  package let index: Int
  /// From the leaf to the root.
  package let hashes: [SHA256Digest]
  /// The signed head, unchanged.
  package let checkpoint: [UInt8]

  package init(leafRecord: [UInt8], index: Int, hashes: [SHA256Digest], checkpoint: [UInt8]) {
    self.leafRecord = leafRecord
    self.index = index
    self.hashes = hashes
    self.checkpoint = checkpoint
  }

  /// Reads a file. The leaf record is required: without it there is nothing to prove.
  package init(_ bytes: [UInt8]) throws(ProofError) {
    var lines = ProofLines(bytes, "inclusion proof")
    try lines.expect(Self.heading)
    guard let extra = try lines.value(after: "extra"), let leafRecord = try? Base64.decode(extra)
    else { throw lines.refusal("it has no leaf record in base64 after 'extra'") }
    guard let digits = try lines.value(after: "index"), let index = Checkpoint.decimal(digits[...])
    else { throw lines.refusal("it has no number after 'index'") }
    self.leafRecord = leafRecord
    self.index = index
    hashes = try lines.hashes()
    checkpoint = lines.rest
  }

  /// The file's content.
  package var bytes: [UInt8] {
    var lines = [Self.heading, "extra \(Base64.text(leafRecord))", "index \(index)"]
    lines += hashes.map { Base64.text($0.bytes) }
    return Array((lines.joined(separator: "\n") + "\n\n").utf8) + checkpoint
  }

  /// Checks everything, using only the public keys. Returns the signed head.
  package func verify(_ keys: [VerifierKey]) throws(ProofError) -> Checkpoint {
    let head = try Checkpoint(checkpoint, keys: keys)
    let leafHash = leafRecord.withUnsafeBytes { TreeHash.leaf($0, SHA256()) }
    guard
      TreeProof.verifyInclusion(
        of: leafHash, at: index, size: head.size, root: head.root, hashes)
    else {
      throw ProofError("inclusion proof", "it does not lead to the checkpoint's root")
    }
    // The record contains its own position, which in our trees is also its index.
    guard leafRecord.starts(with: Array("{\"seq\":\(index),".utf8))
    else { throw ProofError("inclusion proof", "its leaf record has another position") }
    return head
  }
}

/// A proof that one checkpoint's ledger is a prefix of another's.
package struct ConsistencyProof: Sendable, Equatable {
  private static let heading = "receipt-ledger/consistency-proof@v1"

  /// The older signed head, unchanged.
  package let oldCheckpoint: [UInt8]
  package let hashes: [SHA256Digest]
  /// The newer signed head, unchanged.
  package let newCheckpoint: [UInt8]

  package init(oldCheckpoint: [UInt8], hashes: [SHA256Digest], newCheckpoint: [UInt8]) {
    self.oldCheckpoint = oldCheckpoint
    self.hashes = hashes
    self.newCheckpoint = newCheckpoint
  }

  /// Reads a file.
  package init(_ bytes: [UInt8]) throws(ProofError) {
    var lines = ProofLines(bytes, "consistency proof")
    try lines.expect(Self.heading)
    guard let old = try lines.value(after: "old"), let oldCheckpoint = try? Base64.decode(old)
    else { throw lines.refusal("it has no checkpoint in base64 after 'old'") }
    self.oldCheckpoint = oldCheckpoint
    hashes = try lines.hashes()
    newCheckpoint = lines.rest
  }

  /// The file's content.
  package var bytes: [UInt8] {
    let lines =
      [Self.heading, "old \(Base64.text(oldCheckpoint))"] + hashes.map { Base64.text($0.bytes) }
    return Array((lines.joined(separator: "\n") + "\n\n").utf8) + newCheckpoint
  }

  /// Checks everything, using only the public keys. Returns both heads.
  package func verify(
    _ keys: [VerifierKey]
  ) throws(ProofError) -> (old: Checkpoint, new: Checkpoint) {
    let old = try Checkpoint(oldCheckpoint, keys: keys)
    let new = try Checkpoint(newCheckpoint, keys: keys)
    guard old.origin.hasSameBytes(as: new.origin)
    else { throw ProofError("consistency proof", "its checkpoints belong to different ledgers") }
    guard
      TreeProof.verifyConsistency(
        from: old.size, root: old.root, to: new.size, root: new.root, hashes)
    else {
      throw ProofError(
        "consistency proof", "it does not show that the newer checkpoint extends the older one")
    }
    return (old, new)
  }
}

/// The lines before a proof's checkpoint.
private struct ProofLines {
  private let object: String
  private(set) var rest: [UInt8]

  init(_ bytes: [UInt8], _ object: String) {
    rest = bytes
    self.object = object
  }

  func refusal(_ cause: String) -> ProofError { ProofError(object, cause) }

  private mutating func line() throws(ProofError) -> [UInt8] {
    guard let end = rest.firstIndex(of: 0x0A) else { throw refusal("it ends too early") }
    defer { rest.removeFirst(end + 1) }
    return Array(rest[..<end])
  }

  /// Checks the first line. A file without it is not a damaged proof, but some other file.
  mutating func expect(_ text: String) throws(ProofError) {
    // `try?`: without a first line, the file does not begin with this one either.
    guard (try? line()) == Array(text.utf8) else {
      throw ProofError(object, "it does not begin with '\(text)'", lacksForm: true)
    }
  }

  /// The bytes after a word and a space; nil if the line does not begin with them.
  mutating func value(after word: String) throws(ProofError) -> [UInt8]? {
    let line = try line()
    let start = Array(word.utf8) + [0x20]
    return line.starts(with: start) ? Array(line[start.count...]) : nil
  }

  /// The hashes up to the empty line.
  mutating func hashes() throws(ProofError) -> [SHA256Digest] {
    var hashes: [SHA256Digest] = []
    while true {
      let line = try line()
      if line.isEmpty { return hashes }
      guard let digest = Checkpoint.digest(line[...])
      else { throw refusal("a hash is not base64 of 32 bytes") }
      hashes.append(digest)
      if hashes.count > TreeProof.hashCountMax { throw refusal("it has too many hashes") }
    }
  }
}

// MARK: - Errors

/// Why a key, a signed note, a checkpoint or a proof is rejected: the object that was checked and what is wrong with
/// it. Never contains a private key.
package struct ProofError: ReportableError, Sendable, Equatable, CustomStringConvertible {
  /// What was checked: "signed note", "checkpoint", "inclusion proof".
  package let object: String
  /// What is wrong with it.
  package let cause: String
  /// Whether the bytes lack the object's form. They are then evidence of nothing.
  package let lacksForm: Bool

  package init(_ object: String, _ cause: String, lacksForm: Bool = false) {
    self.object = object
    self.cause = cause
    self.lacksForm = lacksForm
  }

  package var exitCode: ExitCode { .corrupted }
  package var description: String { "\(object): \(cause)" }
}
