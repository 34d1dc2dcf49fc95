// Which history the projections rest on: what keeps one that was rewritten from replacing what remembers the other.
import Base
package import Ledger

/// Projections that rest on another history than the log has. They are evidence, and nothing replaces them unasked.
package struct HistoryConflict: Equatable, Sendable, CustomStringConvertible {
  /// How many events the projections have folded, and the root that they recorded with it.
  package let folded: RecordedHead
  /// How many events the log holds.
  package let logSize: Int

  /// What is the matter, without what to do.
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
  /// Throws `anotherHistory` unless the log has, at the position of the progress, the root that was recorded with it.
  func checkHistory(of progress: Progress) throws(ProjectionError) {
    if let conflict = try historyConflict(of: progress) { throw .anotherHistory(conflict) }
  }

  private func historyConflict(
    of progress: Progress
  ) throws(ProjectionError) -> HistoryConflict? {
    do throws(LedgerError) {
      // Another process may have appended, and folded, since the log was looked at.
      if progress.position > reader.head.size { try reader.refresh() }
      if progress.position > reader.head.size, reader.isLimited {
        // A writer that is at work without saying how far the log is durable let them fold further.
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
    // A log that can't be read to its end is damaged, and no other history: whoever reads it says so.
    if reader.damage != nil { return nil }
    return HistoryConflict(
      folded: RecordedHead(
        size: progress.position, root: progress.root, replyMismatches: nil),
      logSize: reader.head.size)
  }

  /// The projections in use, where they rest on another history than the log has; nil also where there are none, or none
  /// that say what they rest on. Changes nothing.
  package func historyConflict() throws(ProjectionError) -> HistoryConflict? {
    let found = try generations.withCurrent { path throws(ProjectionError) -> HistoryConflict? in
      let progress: Progress
      // What can't be read says nothing, whichever version of the program wrote it.
      do throws(DatabaseError) {
        progress = try Progress(try Database(path: path, mode: .read))
      } catch { return nil }
      return try historyConflict(of: progress)
    }
    return found ?? nil
  }

  // MARK: Signed heads

  /// Has the projections in use remember what was signed; where there are none, nothing happens.
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

  /// What the projections of a ledger remember of its signed heads; nil where there are none, or they remember nothing.
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

  /// Has a new generation remember what the ledger's file does, and the one in use.
  /// - Parameter forgetsOlder: leaves out what the one in use remembers.
  func carrySignedHeads(to path: String, forgetsOlder: Bool) throws {
    let remembered = forgetsOlder ? nil : try? Self.rememberedHeads(reader.directory)
    let kept = try CheckpointStore(reader.directory).signedHeads()
    guard let heads = remembered?.merged(with: kept) ?? kept else { return }
    try Self.store(heads, try Database(path: path, mode: .write))
  }
}

extension SignedHeads {
  /// Those that a database of the projections remembers; nil where it remembers none, as before any was signed.
  fileprivate init?(_ database: Database) throws(DatabaseError) {
    guard
      try database.integer("SELECT 1 FROM sqlite_master WHERE name = 'signed_heads'") != nil
    else { return nil }
    let row = try database.prepare(
      "SELECT checkpoints, size, root FROM signed_heads WHERE id = 0")
    guard try row.step(), let root = SHA256Digest(row.bytes(2)), row.integer(0) >= 0,
      row.integer(1) >= 0
    else { return nil }
    self.init(count: Int(row.integer(0)), size: Int(row.integer(1)), root: root)
  }
}
