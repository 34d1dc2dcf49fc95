// Compares histories: a rewritten log must not replace projections that prove the old history.
import Base
package import Ledger

/// Projections with a different history than the log. They are evidence and are replaced only on request.
package struct HistoryConflict: Equatable, Sendable, CustomStringConvertible {
  /// How many events the projections have folded, and the root that they recorded.
  package let folded: RecordedHead
  /// How many events the log holds.
  package let logSize: Int

  /// What is wrong, without advice.
  package var finding: String {
    guard folded.size > logSize else {
      return "their history differs from the log's up to position \(folded.size)"
    }
    return "they had folded \(folded.size) event\(folded.size == 1 ? "" : "s"), but the log holds "
      + "\(logSize): events are missing from its end"
  }

  package var description: String {
    finding
      + "; check the log with 'ledgerctl audit'; 'ledgerctl rebuild --accept-history' accepts it as "
      + "it is and records that in the log"
  }
}

extension Projector {
  /// Throws `anotherHistory` unless the log, at the progress's position, has the recorded root.
  func checkHistory(of progress: Progress) throws(ProjectionError) {
    if let conflict = try historyConflict(of: progress) { throw .anotherHistory(conflict) }
  }

  private func historyConflict(
    of progress: Progress
  ) throws(ProjectionError) -> HistoryConflict? {
    do throws(LedgerError) {
      // Another process may have appended and folded since the reader read the head.
      if progress.position > reader.head.size { try reader.refresh() }
      if progress.position > reader.head.size, reader.isLimited {
        // The projections were folded further while a writer was not publishing the durable position.
        throw LedgerError(
          .locked, operation: "fold", object: "position \(reader.head.size)",
          cause: "the log's writer has not synced this event yet, but the projections hold it")
      }
      if progress.position <= reader.head.size,
        try reader.frontier(at: progress.position).root == progress.root
      {
        return nil
      }
    } catch { throw .ledger(error) }
    // A log that cannot be read to its end is damaged, which is not another history. Reading it reports the damage.
    if reader.damage != nil { return nil }
    return HistoryConflict(
      folded: RecordedHead(
        size: progress.position, root: progress.root, replyMismatches: nil),
      logSize: reader.head.size)
  }

  /// The conflict if the current projections have a different history than the log. Also nil if there are no
  /// projections or they record no history. Changes nothing.
  package func historyConflict() throws(ProjectionError) -> HistoryConflict? {
    let found = try generations.withCurrent { path throws(ProjectionError) -> HistoryConflict? in
      let progress: Progress
      // An unreadable database proves nothing, whichever program version wrote it.
      do throws(DatabaseError) {
        progress = try Progress(try Database(path: path, mode: .read))
      } catch { return nil }
      return try historyConflict(of: progress)
    }
    return found ?? nil
  }

  // MARK: Signed heads

  /// Records signed heads in the current projections; does nothing if there are none.
  package func remember(_ heads: SignedHeads) throws(ProjectionError) {
    _ = try generations.withCurrent { path throws(ProjectionError) in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: .write)
        try database.execute("BEGIN IMMEDIATE")
        try Self.store(heads.merged(with: try SignedHeads(database)), database)
        try database.execute("COMMIT")
      } catch { throw .database(error) }
    }
  }

  private static func store(
    _ heads: SignedHeads, _ database: Database
  ) throws(DatabaseError) {
    try database.execute(Schema.signedHeads)
    let insert = try database.prepare("INSERT OR REPLACE INTO signed_heads VALUES(0, ?, ?, ?)")
    insert.bind(1, heads.count)
    insert.bind(2, heads.size)
    heads.root.bytes.withUnsafeBytes { insert.bind(3, blob: $0) }
    try insert.run()
  }

  /// The signed heads that a ledger's projections have recorded; nil if there are none.
  package static func rememberedHeads(
    _ ledger: LedgerDirectory
  ) throws(ProjectionError) -> SignedHeads? {
    let found = try Generations(ledger).withCurrent {
      path throws(ProjectionError) -> SignedHeads? in
      do throws(DatabaseError) {
        return try SignedHeads(try Database(path: path, mode: .read))
      } catch { throw .database(error) }
    }
    return found ?? nil
  }

  /// The signed heads that the current generation has recorded; nil if there are none, or if it is damaged: then they
  /// are lost. Other errors may be temporary, and heads that could not be read are still evidence.
  private func legibleHeads() throws(ProjectionError) -> SignedHeads? {
    do throws(ProjectionError) { return try Self.rememberedHeads(reader.directory) } catch {
      guard case .database(let failure) = error, failure.isCorrupt else { throw error }
      return nil
    }
  }

  /// Records in a new generation the signed heads from the ledger's file and from the current generation.
  /// - Parameter forgetsOlder: leaves out those of the current generation.
  func carrySignedHeads(to path: String, forgetsOlder: Bool) throws {
    let remembered = forgetsOlder ? nil : try legibleHeads()
    let kept = try CheckpointStore(reader.directory).signedHeads()
    guard let heads = remembered?.merged(with: kept) ?? kept else { return }
    try Self.store(heads, try Database(path: path, mode: .write))
  }
}

extension SignedHeads {
  /// The signed heads that a projections database has recorded; nil if there are none, for example because none was
  /// signed yet.
  fileprivate init?(_ database: Database) throws(DatabaseError) {
    guard
      try database.integer("SELECT 1 FROM sqlite_master WHERE name = 'signed_heads'") != nil
    else { return nil }
    let row = try database.prepare(
      "SELECT checkpoints, size, root FROM signed_heads WHERE id = 0")
    guard try row.step() else { return nil }
    guard let root = SHA256Digest(row.bytes(2)) else {
      throw DatabaseError(inconsistency: "the root of the signed heads is not a digest")
    }
    self.init(count: try row.ordinal(0), size: try row.ordinal(1), root: root)
  }
}
