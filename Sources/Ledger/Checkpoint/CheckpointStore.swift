// The checkpoints that a ledger keeps: every head that was ever signed.
import Bytes

/// The folder `checkpoints/` of a ledger.
package struct CheckpointStore {
  package static let directoryName = "checkpoints"
  private static let suffix = ".txt"
  private let directory: LedgerDirectory
  private let keys: KeyStore

  package init(_ directory: LedgerDirectory) {
    self.directory = directory
    keys = KeyStore(directory)
  }

  /// The file's path inside the ledger.
  package static func fileName(size: Int) -> String {
    "\(directoryName)/\(Format.padded(size))\(suffix)"
  }

  /// The sizes of the heads that were signed, ascending.
  package func sizes() throws(LedgerError) -> [Int] {
    let names = try directory.folderIfPresent(Self.directoryName)?.names() ?? []
    return names.filter { $0.hasSuffix(Self.suffix) }
      .compactMap { Format.position($0.dropLast(Self.suffix.count)) }.sorted()
  }

  /// A kept checkpoint; nil where none of this size was kept.
  ///
  /// Throws `corruption` where its signature, its origin or its size is not what it must be.
  package func checkpoint(size: Int) throws(LedgerError) -> Checkpoint? {
    let name = Self.fileName(size: size)
    guard let bytes = try directory.readSmallFile(name) else { return nil }
    func damage(_ verdict: LedgerError.Verdict, _ cause: String) -> LedgerError {
      LedgerError(
        .init(verdict: verdict, file: name, position: nil), operation: "read checkpoint",
        cause: cause)
    }
    let known = try keys.publicKeys()
    let checkpoint: Checkpoint
    do throws(ProofError) { checkpoint = try Checkpoint(bytes, keys: known) } catch {
      throw damage(.corrupt, error.description)
    }
    guard checkpoint.origin.hasSameBytes(as: directory.identity.origin)
    else { throw damage(.tampered, "it is of another ledger") }
    guard checkpoint.size == size else { throw damage(.tampered, "it is of another size") }
    return checkpoint
  }

  /// Signs the head of a log and keeps it. A head that was signed before is given out again.
  ///
  /// Throws `invalidInput` where there is no key, `corruption` where the log does not extend, or
  /// lie before, what was signed last: two heads that contradict each other are never signed.
  /// - Parameter size: how many events; nil is all.
  package func sign(_ reader: LogReader, size: Int? = nil) throws(LedgerError) -> Checkpoint {
    // What is signed must not be lost: a signed head can't be taken back.
    let reader = reader.view == .durable ? reader : try LogReader(directory, .durable)
    if let damage = reader.damage { throw damage }
    guard try keys.signingKey() != nil else {
      throw LedgerError(
        .invalidInput, operation: "sign checkpoint", object: directory.identity.origin,
        cause: "there is no signing key; 'ledgerctl key create' makes one")
    }
    try directory.makePrivateDirectory(Self.directoryName)
    return try keys.withLock { () throws(LedgerError) in
      guard let key = try keys.signingKey() else {
        throw LedgerError(
          .invalidInput, operation: "sign checkpoint", object: directory.identity.origin,
          cause: "the signing key was removed")
      }
      try reader.syncTails()
      let size = size ?? reader.head.size
      let root = try reader.frontier(at: size).root
      if let last = try sizes().last {
        try check(last: last, size: size, root: root, reader)
      }
      return try keep(size: size, root: root, key)
    }
  }

  private func keep(
    size: Int, root: Digest32, _ key: SigningKey
  ) throws(LedgerError) -> Checkpoint {
    let name = Self.fileName(size: size)
    do {
      var note = SignedNote(
        text: Checkpoint.text(origin: directory.identity.origin, size: size, root: root))
      if let kept = try checkpoint(size: size) {
        guard kept.root == root else { throw contradiction(name, "its root is another") }
        note = try SignedNote(kept.bytes)
        if note.signatures.contains(where: { $0.isOf(key.verifierKey) }) { return kept }
      }
      try note.sign(key)
      let checkpoint = try Checkpoint(note.bytes, keys: [key.verifierKey])
      try directory.replaceFile(name, with: note.bytes)
      return checkpoint
    } catch let error as LedgerError {
      throw error
    } catch {
      throw LedgerError(
        .inputOutput, operation: "sign checkpoint", object: name, cause: "\(error)")
    }
  }

  /// Proves that the head to be signed and the last signed one are of one history.
  private func check(
    last: Int, size: Int, root: Digest32, _ reader: LogReader
  ) throws(LedgerError) {
    let name = Self.fileName(size: last)
    guard let kept = try checkpoint(size: last) else { return }
    guard kept.size <= reader.head.size else {
      throw LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: reader.head.size),
        operation: "sign checkpoint",
        cause: "\(name) has signed \(kept.size) events, the log holds \(reader.head.size)")
    }
    let (old, new) = (min(size, kept.size), max(size, kept.size))
    let proof = try TreeProof.consistency(from: old, to: new, reader)
    let isOneHistory = TreeProof.verifyConsistency(
      from: old, root: size < kept.size ? root : kept.root,
      to: new, root: size < kept.size ? kept.root : root, proof)
    if !isOneHistory { throw contradiction(name, "the log does not extend it") }
  }

  private func contradiction(_ name: String, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: name, position: nil), operation: "sign checkpoint",
      cause: cause)
  }
}
