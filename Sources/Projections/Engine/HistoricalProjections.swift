// The projections at an earlier size of the log.
import Base
package import Ledger
import Revenue

extension Projector {
  /// A state that a fold can start from.
  enum Base {
    case nothing
    /// A database, at its progress.
    case database(Database, Progress)
    case snapshot(Snapshot)
    /// A snapshot whose header cannot be read, with the size from its file name. It is not used, and a message
    /// reports it.
    case unreadable(SnapshotStore.Unreadable, size: Int)

    var size: Int {
      switch self {
      case .nothing: 0
      case .database(_, let progress): progress.position
      case .snapshot(let snapshot): snapshot.header.size
      case .unreadable(_, let size): size
      }
    }
  }

  /// The projections after `size` events, folded from the nearest earlier state: a snapshot, the current generation or
  /// `earlier`; otherwise from nothing. Their file no longer has a name and is freed when the database is closed.
  ///
  /// Throws `ledger` for a size beyond the log's head, and for damage before it.
  /// - Parameter earlier: projections of the same log that nothing else uses yet.
  package func books(
    at size: Int, from earlier: Database? = nil
  ) throws(ProjectionError) -> Database {
    let scratch = try scratch(at: size, from: earlier)
    // When the database is open, `scratch` removes the file's name.
    defer { withExtendedLifetime(scratch) {} }
    do throws(DatabaseError) { return try Database(path: scratch.path, mode: .read) } catch {
      throw .database(error)
    }
  }

  /// As `books`, but as a file, which is removed with the value.
  func scratch(at size: Int, from earlier: Database? = nil) throws(ProjectionError) -> ScratchFile {
    try check(size)
    do {
      var candidates = try currentBase(upTo: size, isFirst: earlier == nil).map { [$0] } ?? []
      if let earlier { candidates += try base(earlier, upTo: size).map { [$0] } ?? [] }
      candidates += snapshotBases(upTo: size)
      candidates.sort { $0.size > $1.size }
      for base in candidates {
        let newEvents = size - base.size
        // As in a catch-up: if most events are new, build from nothing.
        if newEvents >= Self.rebuildEvents, newEvents > base.size { break }
        do {
          if case .snapshot(let snapshot) = base {
            if let cause = unfitness(of: snapshot) ?? observer.objection(snapshot) {
              throw ProjectionError.snapshot(name: snapshot.name, cause: cause)
            }
          }
          let scratch = try newScratch()
          try fill(scratch.path, from: base, to: size)
          if case .snapshot(let snapshot) = base { observer.basis(snapshot) }
          return scratch
        } catch ProjectionError.snapshot(let name, let cause) {
          observer.notice("snapshot \(name) is not used: \(cause)")
        }
      }
      return try scratchFromNothing(at: size)
    } catch { throw Self.projectionError(error) }
  }

  /// The projections after `size` events, always built from nothing.
  package func booksFromNothing(at size: Int) throws(ProjectionError) -> Database {
    try check(size)
    do {
      let scratch = try scratchFromNothing(at: size)
      // When the database is open, `scratch` removes the file's name.
      defer { withExtendedLifetime(scratch) {} }
      return try Database(path: scratch.path, mode: .read)
    } catch { throw Self.projectionError(error) }
  }

  func scratchFromNothing(at size: Int) throws -> ScratchFile {
    let scratch = try newScratch()
    try fill(scratch.path, from: .nothing, to: size)
    return scratch
  }

  func newScratch() throws(ProjectionError) -> ScratchFile {
    try ScratchFile(generations, isCancelled: observer.isCancelled)
  }

  /// The snapshots up to a size, including unreadable ones.
  private func snapshotBases(upTo size: Int) -> [Base] {
    let store = snapshots
    let unreadable = store.unreadable.compactMap { entry in
      entry.size.map { Base.unreadable(entry, size: $0) }
    }
    return (store.snapshots.map { .snapshot($0) } + unreadable).filter { $0.size <= size }
  }

  /// A copy of a database in its current state.
  func scratch(of database: Database) throws(ProjectionError) -> ScratchFile {
    let scratch = try newScratch()
    do throws(DatabaseError) {
      try database.copy(to: scratch.path)
      // Switches the copy from the write-ahead log to no journal.
      _ = try Self.openAlone(scratch.path)
    } catch { throw .database(error) }
    return scratch
  }

  /// Opens, without a journal, a file that no other process reads and that any failure discards.
  static func openAlone(_ path: String) throws(DatabaseError) -> Database {
    let database = try Database(path: path, mode: .write)
    try database.execute(
      """
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;
      DROP TABLE IF EXISTS signed_heads
      """)
    return database
  }

  /// The current generation, if it belongs to this log and has folded at most this many events.
  /// - Parameter isFirst: whether these are the first projections requested; messages are written only once.
  private func currentBase(
    upTo size: Int, isFirst: Bool
  ) throws(ProjectionError) -> Base? {
    let found = try generations.withCurrent { path throws(ProjectionError) -> Base? in
      do {
        let database = try Database(path: path, mode: .read)
        guard try fits(database) else {
          if let conflict = try historyConflict() { throw ProjectionError.anotherHistory(conflict) }
          if isFirst {
            observer.notice(
              try Progress.hasVersions(projections, database)
                ? "the current projections were made before an erasure and are not used"
                : "the current projections belong to another version of this program and are not used"
            )
          }
          return nil
        }
        // Gives the copy the state at which its progress was read.
        try database.execute("BEGIN")
        try checkHistory(of: try Progress(database))
        return try base(database, upTo: size)
      } catch {
        let failure = Self.projectionError(error)
        // An unreadable database cannot be a start.
        if case .database(let error) = failure, error.isCorrupt || error.isReadOnly { return nil }
        throw failure
      }
    }
    return found ?? nil
  }

  private func base(_ database: Database, upTo size: Int) throws(DatabaseError) -> Base? {
    let progress = try Progress(database)
    guard progress.position <= size,
      (try? reader.frontier(at: progress.position).root) == progress.root
    else { return nil }
    return .database(database, progress)
  }

  /// Fills an empty file with the projections at a size. No other process may read it yet, and it is not synced.
  private func fill(_ path: String, from base: Base, to size: Int) throws {
    switch base {
    case .nothing: try fill(path, upTo: size)
    case .database(let database, _): try database.copy(to: path)
    case .snapshot(let snapshot): return try fill(path, from: snapshot, to: size)
    case .unreadable(let entry, _):
      throw ProjectionError.snapshot(name: entry.name, cause: entry.cause)
    }
    try foldOn(try Self.openAlone(path), to: size)
  }

  /// As above, from a snapshot.
  ///
  /// Throws `snapshot` if the snapshot is damaged.
  func fill(_ path: String, from snapshot: Snapshot, to size: Int) throws {
    try snapshot.copy(to: path, isCancelled: observer.isCancelled)
    try blaming(snapshot) {
      let database = try Self.openAlone(path)
      try check(database, snapshot)
      try foldOn(database, to: size)
    }
  }

  /// Runs code that reads a copy of a snapshot. Damage found there is attributed to the snapshot, not to the current
  /// projections.
  private func blaming(_ snapshot: Snapshot, _ body: () throws -> Void) throws {
    do { try body() } catch {
      let isDamage =
        switch Self.projectionError(error) {
        case .database(let error): error.isCorrupt
        case .inconsistent: true
        default: false
        }
      guard isDamage else { throw error }
      throw ProjectionError.snapshot(name: snapshot.name, cause: "its database is damaged")
    }
  }

  /// Folds up to a size in batches, so that memory use does not grow with the number of new events.
  func foldOn(_ database: Database, to size: Int) throws {
    while true {
      let progress = try Progress(database)
      if progress.position == size { return }
      guard progress.position < size else {
        throw ProjectionError.inconsistent("a copy is further than its original")
      }
      try database.execute("BEGIN IMMEDIATE")
      try fold(into: database, from: progress, to: size, isFresh: false, atLeast: Self.batchEvents)
      try database.execute("COMMIT")
    }
  }

  /// Throws if the content of a snapshot does not match its header or has another schema.
  private func check(_ database: Database, _ snapshot: Snapshot) throws {
    // The database was intact when it was saved, and the digest proves that it is unchanged.
    if let shape = try otherShape(of: database) {
      throw ProjectionError.snapshot(name: snapshot.name, cause: "its database \(shape)")
    }
    let progress = try Progress(database)
    let head = snapshot.header
    guard progress.position == head.size, progress.root == head.root,
      try Progress.hasVersions(projections, database)
    else {
      throw ProjectionError.snapshot(
        name: snapshot.name, cause: "its database does not match its header")
    }
  }

  // MARK: Plans

  /// The projections at the head, and as they would be if these declarations were appended now. Both are read-only and
  /// have no file.
  package func books(
    adding declarations: [EventDraft]
  ) throws(ProjectionError) -> (before: Database, after: Database) {
    let before = try books(at: reader.head.size)
    let scratch = try scratch(of: before)
    defer { withExtendedLifetime(scratch) {} }
    do {
      let database = try Self.openAlone(scratch.path)
      let progress = try Progress(database)
      let events = EventReader(reader.directory)
      let fold = try EventFold(
        database, isFresh: false, nextPosition: progress.position, projections: projections
      ) { (position) throws(LedgerError) in try events.line(at: position) }
      try database.execute("BEGIN IMMEDIATE")
      for (index, draft) in declarations.enumerated() {
        let line = draft.plannedLine(
          position: progress.position + index, recordedAtMs: progress.lastEventAtMs ?? 0)
        try withText(line) { (line) throws in
          guard let event = EventLine(line) else {
            throw ProjectionError.inconsistent("a planned event has another form than events have")
          }
          try fold.fold(event)
        }
      }
      try fold.finish()
      try database.execute("COMMIT")
    } catch { throw Self.projectionError(error) }
    do throws(DatabaseError) {
      return (before, try Database(path: scratch.path, mode: .read))
    } catch { throw .database(error) }
  }

  // MARK: Restoring

  /// Puts a snapshot in use after catching up with the log; until then, readers see the old generation.
  ///
  /// Throws `snapshot` if it does not fit the log or this program, or is damaged.
  package func restore(_ snapshot: Snapshot) throws(ProjectionError) {
    if let cause = unfitness(of: snapshot) { throw .snapshot(name: snapshot.name, cause: cause) }
    try replaceGeneration { path in
      try fill(path, from: snapshot, to: reader.head.size)
      try blaming(snapshot) {
        let database = try Self.openAlone(path)
        try follow(into: database)
        try database.execute("PRAGMA journal_mode = WAL")
      }
    }
  }
}
