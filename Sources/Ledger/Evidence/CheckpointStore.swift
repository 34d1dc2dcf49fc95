// The checkpoints that a ledger keeps: all its signed heads.
import Base

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
    "\(directoryName)/\(leafName(size: size))"
  }

  /// The file's name in its folder.
  package static func leafName(size: Int) -> String { Format.padded(size) + suffix }

  /// The sizes of the signed heads, ascending.
  package func sizes() throws(LedgerError) -> [Int] {
    let names = try directory.folderIfPresent(Self.directoryName)?.names() ?? []
    return names.filter { $0.hasSuffix(Self.suffix) }
      .compactMap { Format.position($0.dropLast(Self.suffix.count)) }.sorted()
  }

  /// A kept checkpoint; nil if none of this size exists.
  ///
  /// Throws `corruption` if its signature, origin or size is wrong.
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
    else { throw damage(.tampered, "it belongs to another ledger") }
    guard checkpoint.size == size else { throw damage(.tampered, "it has another size") }
    return checkpoint
  }

  /// Signs the head of a log and keeps the checkpoint. If this head was signed before, returns the existing
  /// checkpoint.
  ///
  /// Throws `invalidInput` if there is no key. Throws `corruption` if the log neither extends the last signed head
  /// nor is a prefix of it: two contradicting heads are never signed.
  /// - Parameter size: the number of events; nil means all.
  package func sign(_ reader: LogReader, size: Int? = nil) throws(LedgerError) -> Checkpoint {
    // Signed events must not be lost: a signed head cannot be withdrawn.
    let reader = reader.view == .durable ? reader : try LogReader(directory, .durable)
    // A fenced or restored ledger does not sign: the ledger that continues the history does.
    try Standby.refuse(directory, operation: "sign checkpoint")
    if let damage = reader.damage { throw damage }
    guard try keys.signingKey() != nil else {
      throw LedgerError(
        .invalidInput, operation: "sign checkpoint", object: directory.identity.origin,
        cause: "there is no signing key; create one with 'ledgerctl key create'")
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
      let kept = try sizes()
      if let last = kept.last { try check(last: last, size: size, root: root, reader) }
      let remembered = try SignedHeads(of: directory)
      try remembered?.check(reader, operation: "sign checkpoint")
      let checkpoint = try save(size: size, root: root, key)
      try remember(checkpoint, kept, remembered)
      return checkpoint
    }
  }

  /// Throws `corruption` if a log does not extend the last signed head.
  package func check(_ reader: LogReader) throws(LedgerError) {
    let head = reader.head
    if let last = try sizes().last {
      try check(last: last, size: head.size, root: head.root, reader)
    }
    try SignedHeads(of: directory)?.check(reader, operation: "sign checkpoint")
  }

  // MARK: Recorded heads

  /// Records a new checkpoint, and those that an older program version or an interrupted run did not record.
  private func remember(
    _ checkpoint: Checkpoint, _ kept: [Int], _ remembered: SignedHeads?
  ) throws(LedgerError) {
    var count = max(remembered?.count ?? 0, kept.count)
    if !kept.contains(checkpoint.size) { count += 1 }
    var heads = SignedHeads(count: count, size: checkpoint.size, root: checkpoint.root)
    if let last = kept.last, last > checkpoint.size, let newest = try self.checkpoint(size: last) {
      heads = SignedHeads(count: count, size: newest.size, root: newest.root)
    }
    heads = heads.merged(with: remembered)
    if heads != remembered { try heads.write(to: directory) }
  }

  /// What the file `heads` records of the checkpoints.
  package func signedHeads() throws(LedgerError) -> SignedHeads? { try SignedHeads(of: directory) }

  /// Why the recorded heads do not agree with a log and the kept checkpoints; nil if they agree. An unreadable file
  /// does not agree.
  package func disagreement(
    of heads: SignedHeads, _ reader: LogReader
  ) throws(LedgerError) -> String? {
    let keptCount = try sizes().count
    if heads.count > keptCount {
      return "\(heads.count) checkpoints were made, but \(keptCount) are kept"
    }
    do throws(LedgerError) { try heads.check(reader, operation: "compare") } catch {
      guard error.kind == .corruption else { throw error }
      return error.cause
    }
    return nil
  }

  /// Replaces the recorded heads by what is kept: the number of checkpoints, and the newest one that the log extends.
  package func resetHeads(_ reader: LogReader) throws(LedgerError) {
    // The lock is in the key folder, which a ledger need not have.
    try directory.makePrivateDirectory(KeyStore.directoryName)
    try keys.withLock { () throws(LedgerError) in
      let kept = try sizes()
      for size in kept.reversed() where size <= reader.head.size {
        guard let checkpoint = try? checkpoint(size: size),
          try reader.frontier(at: size).root == checkpoint.root
        else { continue }
        let heads = SignedHeads(count: kept.count, size: size, root: checkpoint.root)
        return try heads.write(to: directory)
      }
      try directory.unlink(SignedHeads.fileName)
      try directory.folderIfPresent("")?.sync()
    }
  }

  private func save(
    size: Int, root: SHA256Digest, _ key: SigningKey
  ) throws(LedgerError) -> Checkpoint {
    let name = Self.fileName(size: size)
    do {
      var note = SignedNote(
        text: Checkpoint.text(origin: directory.identity.origin, size: size, root: root))
      if let kept = try checkpoint(size: size) {
        guard kept.root == root else { throw contradiction(name, "its root differs") }
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

  /// Proves that the head to be signed and the last signed head belong to one history.
  private func check(
    last: Int, size: Int, root: SHA256Digest, _ reader: LogReader
  ) throws(LedgerError) {
    let name = Self.fileName(size: last)
    guard let kept = try checkpoint(size: last) else { return }
    guard kept.size <= reader.head.size else {
      throw LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: reader.head.size),
        operation: "sign checkpoint",
        cause: "\(name) signs \(kept.size) events, but the log holds \(reader.head.size)")
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
