// Brings the projections up to date with the log, by folding new events or by a build from nothing.
import Base
package import Ledger

/// The progress of a projector's work, for display.
package struct ProjectionProgress: Sendable {
  /// How many events are folded so far, and how many there are.
  package let foldedEvents: Int
  package let totalEvents: Int
}

/// Maintains the projections of one ledger.
package final class Projector {
  /// Receives messages and progress.
  package struct Observer {
    package var progress: (ProjectionProgress) -> Void
    /// Receives a message, for example that projections were discarded.
    package var notice: (String) -> Void
    /// Called when another process is building; this one waits until it ends.
    package var waiting: () -> Void
    /// Called at intervals. If it returns true, the work stops and what was built is discarded.
    package var isCancelled: () -> Bool
    /// Called for each snapshot from which historical projections are built.
    package var basis: (Snapshot) -> Void = { _ in }
    /// Why a suitable snapshot must not be used for historical projections; nil if it may be used.
    package var objection: (Snapshot) -> String? = { _ in nil }
    /// When another process that builds a generation counts as stalled because its file does not change: then
    /// projections in use that fit are caught up instead.
    package var stallMs: Int64 = 10_000
    /// How long to wait for a process without progress if no projections fit.
    package var lockLimitMs: Int64 = 600_000

    package init(
      progress: @escaping (ProjectionProgress) -> Void = { _ in },
      notice: @escaping (String) -> Void = { _ in }, waiting: @escaping () -> Void = {},
      isCancelled: @escaping () -> Bool = { false }
    ) {
      self.progress = progress
      self.notice = notice
      self.waiting = waiting
      self.isCancelled = isCancelled
    }
  }

  let reader: LogReader
  let generations: Generations
  package let observer: Observer
  /// The projections to maintain.
  let projections: ProjectionSet
  /// Called with the lines of each block that is folded, their first position and their count, on the thread that
  /// inflated it.
  package var inspection: (@Sendable (UnsafeRawBufferPointer, Position, Int) -> Void)?
  /// What is verified about the events of a build; nil if they are only folded.
  private var verification: LogVerification?
  /// How `status` and `existing` open the projections.
  package var reading = Database.Mode.read
  /// When builds from nothing write; tests make it earlier.
  package var pace = WritingPace()

  package init(
    _ reader: LogReader, observer: Observer = Observer(), projections: ProjectionSet = .standard
  ) {
    self.reader = reader
    generations = Generations(reader.directory)
    self.observer = observer
    self.projections = projections
  }

  // MARK: Opening

  /// The projections at the log's head: caught up, or built if none fit.
  /// - Parameter isFrugal: always catches up in batches, in memory that does not grow with the number of new events.
  ///   Otherwise, if most events are new, the projections are built from nothing, which is faster.
  package func current(isFrugal: Bool = false) throws(ProjectionError) -> Database {
    guard generations.isWritable else { return try readOnly() }
    generations.tidy()
    do throws(ProjectionError) {
      let state = try generations.withCurrent { path throws(ProjectionError) in
        try catchUp(path, isFrugal: isFrugal)
      }
      switch state {
      case .current(let database): return database
      case .farBehind where try generations.isStalled(observer):
        observer.notice(
          "another process that builds projections makes no progress: using the existing ones")
        return try current(isFrugal: true)
      case .farBehind, .unfit, nil: break
      }
    } catch {
      guard case .database(let failure) = error, failure.isCorrupt else { throw error }
      observer.notice("the projections cannot be read: rebuilding")
    }
    try rebuild()
    return try open()
  }

  /// The projections of a read-only ledger.
  private func readOnly() throws(ProjectionError) -> Database {
    if let database = try? atHead() { return database }
    observer.notice("this ledger is read-only: folding into a temporary file")
    return try books(at: reader.head.size)
  }

  /// The projections as they are on disk, without reading the log; nil if none fit.
  package func existing() throws(ProjectionError) -> Database? {
    let found = try generations.withCurrent { path throws(ProjectionError) -> Database? in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: reading)
        return try fits(database) ? database : nil
      } catch {
        if error.isCorrupt { return nil }
        throw .database(error)
      }
    }
    return found ?? nil
  }

  /// The projections if they already are at the log's head; otherwise nil.
  package func atHead() throws(ProjectionError) -> Database? {
    guard let database = try existing(), isUpToDate(try progress(of: database)) else { return nil }
    return database
  }

  /// Opens the current generation.
  func open(mode: Database.Mode = .read) throws(ProjectionError) -> Database {
    let opened = try generations.withCurrent { path throws(ProjectionError) in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: mode)
        // The first read also opens SQLite's auxiliary files; after that, removing them does no harm.
        _ = try Progress(database)
        return database
      } catch { throw .database(error) }
    }
    guard let opened else {
      throw .file(
        operation: "opening", name: "projections.sqlite", cause: "it was removed meanwhile")
    }
    return opened
  }

  /// Removes all projections and snapshots of a ledger: some of the events behind them have lost their data since.
  package static func forgetAll(
    _ ledger: LedgerDirectory, observer: Observer = Observer()
  ) throws(ProjectionError) {
    try Generations(ledger).removeAll(observer)
    _ = try SnapshotStore(ledger).prune(isCancelled: observer.isCancelled) { _ in [] }
  }

  // MARK: Catching up

  /// How many events one transaction of a catch-up folds, plus the rest of the last block.
  static let batchEvents = 16_384
  /// With at least this many new events, a build from nothing may be faster.
  static let rebuildEvents = 8192

  /// The outcome of an attempt to catch up.
  private enum CatchUp {
    case current(Database)
    /// A build from nothing is faster.
    case farBehind
    /// It does not fit the log or this program.
    case unfit
  }

  /// Folds new events into a generation.
  private func catchUp(_ path: String, isFrugal: Bool) throws(ProjectionError) -> CatchUp {
    let database: Database
    var farBehind: Progress?
    do {
      let reading = try Database(path: path, mode: .read)
      guard try fits(reading) else {
        // Projections with another history are not replaced; an error reports them instead.
        if try historyConflict() == nil {
          observer.notice(
            try Progress.hasVersions(projections, reading)
              ? "the projections were made before an erasure: rebuilding"
              : "the projections belong to another version of this program: rebuilding")
        }
        return .unfit
      }
      let progress = try Progress(reading)
      if isUpToDate(progress) { return .current(reading) }
      let newEvents = reader.head.size - progress.position
      if !isFrugal, newEvents >= Self.rebuildEvents, newEvents > progress.position {
        farBehind = progress
      }
      database = try Database(path: path, mode: .write)
      try database.execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384")
    } catch { throw Self.projectionError(error) }
    if let farBehind {
      // Projections that do not fit the log are kept, even if they would be rebuilt.
      try checkHistory(of: farBehind)
      return .farBehind
    }
    repeat { try foldBatch(into: database) } while !isUpToDate(try self.progress(of: database))
    return .current(database)
  }

  /// Folds one batch in one transaction.
  private func foldBatch(into database: Database) throws(ProjectionError) {
    do {
      try database.execute("BEGIN IMMEDIATE")
      // Another process may have folded between the last check and the lock.
      let progress = try Progress(database)
      if !isUpToDate(progress) { try checkHistory(of: progress) }
      // The history check may have refreshed the reader up to the progress.
      if !isUpToDate(progress) {
        try fold(into: database, from: progress, isFresh: false, atLeast: Self.batchEvents)
      }
      try database.execute("COMMIT")
    } catch {
      try? database.execute("ROLLBACK")
      throw Self.projectionError(error)
    }
  }

  private func progress(of database: Database) throws(ProjectionError) -> Progress {
    do throws(DatabaseError) { return try Progress(database) } catch { throw .database(error) }
  }

  private func isUpToDate(_ progress: Progress) -> Bool {
    progress.position == reader.head.size && progress.root == reader.head.root
  }

  // MARK: Rebuilding

  /// Builds all projections from nothing while the current ones stay in use, catches up with events appended
  /// meanwhile, and puts the new projections in use.
  ///
  /// Throws `anotherHistory` if the current projections have one.
  /// - Parameter acceptsHistory: also replaces projections with another history.
  /// - Parameter verifies: whether each event's digest, the tree and the erasures are checked. Throws `ledger` for
  ///   what was changed; otherwise the ledger remembers how far it was verified.
  /// - Parameter willPutInUse: called when the new projections are complete. If it throws, the current ones stay.
  package func rebuild(
    acceptsHistory: Bool = false, verifies: Bool = true, willPutInUse: () throws -> Void = {}
  ) throws(ProjectionError) {
    verification = verifies ? LogVerification() : nil
    defer { verification = nil }
    var verified: VerifiedHead?
    do {
      try replaceGeneration(acceptsHistory: acceptsHistory, willPutInUse: willPutInUse) { path in
        let writeBehind = DeferredWrites(path)
        // Closed after the connection: closing a file releases the process's locks on it.
        defer { withExtendedLifetime(writeBehind) {} }
        try fill(path, upTo: nil, writeBehind: writeBehind)
        verified = try verification?.finish(reader)
      }
    } catch {
      if case .ledger(let fault) = error, fault.kind == .corruption {
        try? VerifiedHead.remove(reader.directory)
      }
      throw error
    }
    do throws(LedgerError) { try verified?.write(to: reader.directory) } catch {
      observer.notice("how far the log was verified is not recorded: \(error)")
    }
  }

  /// Puts a generation in use when `build` has filled its file. If anything fails, the current one stays in use.
  func replaceGeneration(
    acceptsHistory: Bool = false, willPutInUse: () throws -> Void = {},
    _ build: (String) throws -> Void
  ) throws(ProjectionError) {
    try generations.withLock(observer) { () throws(ProjectionError) in
      if !acceptsHistory, let conflict = try historyConflict() { throw .anotherHistory(conflict) }
      let path = generations.newPath()
      var isDone = false
      defer { if !isDone { generations.remove(path.building) } }
      do {
        try generations.create(path.building)
        try build(path.building)
        try carrySignedHeads(to: path.building, forgetsOlder: acceptsHistory)
      } catch { throw Self.projectionError(error) }
      if observer.isCancelled() { throw .interrupted }
      do { try willPutInUse() } catch { throw Self.projectionError(error) }
      try generations.putInUse(building: path.building, final: path.final)
      isDone = true
    }
  }

  /// Builds all projections at a number of events from nothing, in a separate file that is not put in use. The file
  /// must not exist; a failure removes it.
  ///
  /// Throws `ledger` for a position beyond the log's head, and for damage before it.
  package func build(upTo position: Position, at path: String) throws(ProjectionError) {
    try check(position)
    try generations.create(path)
    do { try fill(path, upTo: position) } catch {
      generations.remove(path)
      throw Self.projectionError(error)
    }
  }

  /// Throws `ledger` for a position beyond the log's head, and for damage before it.
  func check(_ position: Position) throws(ProjectionError) {
    if 0...reader.head.size ~= position { return }
    throw .ledger(
      reader.damage
        ?? LedgerError(
          .invalidInput, operation: "build projections", object: "position \(position)",
          cause: "the log holds \(reader.head.size) events"))
  }

  /// How many times a build checks for events appended meanwhile; each time there are far fewer.
  private static let followCount = 8

  /// Begins a transaction that fills the tables of an empty file. Any failure discards the file.
  static func beginFilling(
    _ path: String, _ projections: ProjectionSet
  ) throws(DatabaseError) -> Database {
    let database = try Database(path: path, mode: .create)
    try database.execute(
      """
      PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY
      """)
    try database.execute("BEGIN")
    try database.execute(Schema.tables + projections.tables)
    return database
  }

  /// - Parameter position: where the fold ends; nil is the head, including events appended meanwhile.
  func fill(_ path: String, upTo position: Position?, writeBehind: DeferredWrites? = nil) throws {
    let database = try Self.beginFilling(path, projections)
    try Progress.store(versionsOf: projections, database)
    try fold(
      into: database, from: Progress(), to: position ?? reader.head.size, isFresh: true,
      writeBehind: writeBehind)
    try database.execute(Schema.views + projections.views)
    try database.execute("COMMIT")
    if position == nil { try follow(into: database) }
    try mark(database)
    // The mode is stored in the file's header, for readers and later catch-ups.
    try database.execute("PRAGMA journal_mode = WAL")
  }

  // MARK: Erasures in progress

  /// Whether a database can be used: this program's projections folded it and, while redacted lines are not all in
  /// their segments, it was made with them.
  func fits(_ database: Database) throws(DatabaseError) -> Bool {
    guard try Progress.hasVersions(projections, database) else { return false }
    guard let lines = reader.redactedLines else { return true }
    return try database.integer("PRAGMA user_version") == Int64(lines.tag)
  }

  /// Marks a database as made with the redacted lines that the reader shows.
  private func mark(_ database: Database) throws(DatabaseError) {
    guard let lines = reader.redactedLines else { return }
    try database.execute("PRAGMA user_version = \(lines.tag)")
  }

  /// Folds events appended during a build, so that the new generation is not behind the one that it replaces.
  func follow(into database: Database) throws {
    for _ in 0..<Self.followCount {
      try reader.refresh()
      if let damage = reader.damage { throw damage }
      let progress = try Progress(database)
      guard progress.position < reader.head.size else { return }
      try database.execute("BEGIN")
      try fold(into: database, from: progress, isFresh: false)
      try database.execute("COMMIT")
    }
  }

  // MARK: Folding

  /// During a build from nothing, decompression runs at a lower priority than the fold and the writer thread: it is
  /// ahead of them anyway.
  private static let inflatingPriority = ThreadPriority.niceness(5)

  /// - Parameters:
  ///   - to: the position at which the fold ends; nil is the head.
  ///   - atLeast: stops after the block that reaches this many events; nil continues to the end.
  ///   - writeBehind: is notified of the fold's progress.
  func fold(
    into database: Database, from progress: Progress, to end: Position? = nil, isFresh: Bool,
    atLeast: Int? = nil, writeBehind: DeferredWrites? = nil
  ) throws(ProjectionError) {
    // Reads single events: those with reused replies, and those of receipts that stay pending.
    let events = EventReader(reader.directory)
    let fold: EventFold
    do throws(DatabaseError) {
      fold = try EventFold(
        database, isFresh: isFresh, nextPosition: progress.position, projections: projections,
        pace: pace, repliesFromMs: isFresh ? firstUsableReplyMs(before: end) : .min
      ) {
        (position) throws(LedgerError) in try events.line(at: position)
      }
    } catch { throw .database(error) }
    _ = try self.fold(
      fold, into: database, from: progress, to: end, atLeast: atLeast, writeBehind: writeBehind)
  }

  /// A bound for the replies that a fold from nothing keeps: those recorded before are too old at its end.
  private func firstUsableReplyMs(before end: Position?) -> Int64 {
    let head = reader.head
    return end ?? head.size == head.size ? head.lastEventAtMs - RecentReplies.usableMs : .min
  }

  /// Folds the events after the progress, and stores the new progress.
  /// - Parameters:
  ///   - to: the position at which the fold ends; nil is the head.
  ///   - atLeast: stops after the block that reaches this many events; nil continues to the end.
  func fold(
    _ fold: EventFold, into database: Database, from progress: Progress, to end: Position? = nil,
    atLeast: Int? = nil, writeBehind: DeferredWrites? = nil
  ) throws(ProjectionError) -> Progress {
    let total = end ?? reader.head.size
    var last = progress
    do {
      // Events must not be lost before a commit that depends on them. A durable view contains only synced events.
      try reader.syncTails()
      if progress.position < total {
        let isVerified = verification != nil
        let scan: BlockPreparation = { [inspection] bytes, first, count in
          inspection?(bytes, first, count)
          return EventScan(bytes, firstPosition: first, count: count, isVerified: isVerified)
        }
        let priority = fold.isFresh ? Self.inflatingPriority : .usual
        try reader.read(
          from: progress.position, to: total, priority: priority, prepare: scan
        ) { chunk in
          if observer.isCancelled() { throw ProjectionError.interrupted }
          try verify(chunk)
          if let scanned = chunk.prepared as? EventScan, let end = scanned.events.last {
            try scanned.events.withUnsafeBufferPointer { events in
              for index in events.indices { try fold.fold(events[index]) }
            }
            last.lastEventAtMs = end.line.recordedAtMs
          } else {
            if chunk.prepared == nil {
              inspection?(chunk.bytes, chunk.firstPosition, chunk.count)
            }
            try chunk.forEachEvent { event in
              try fold.fold(event)
              last.lastEventAtMs = event.recordedAtMs
            }
          }
          try fold.writeSettled(total: total)
          last.position = chunk.endPosition
          last.frontier = chunk.frontierAfter
          writeBehind?.advance(to: chunk.endPosition, of: total)
          observer.progress(
            ProjectionProgress(foldedEvents: chunk.endPosition, totalEvents: total))
          if let atLeast { return chunk.endPosition - progress.position < atLeast }
          return true
        }
      }
      let isEnough = atLeast == nil ? last.position == total : last.position > progress.position
      guard fold.nextPosition == last.position, isEnough else {
        throw ProjectionError.ledger(
          LedgerError(
            .init(verdict: .missing, file: "log", position: fold.nextPosition),
            operation: "fold", cause: "the log ends before its head"))
      }
      try fold.finish()
      try last.store(to: database)
      return last
    } catch {
      throw Self.projectionError(error)
    }
  }

  /// Verifies a chunk, unless nothing is to be verified.
  private func verify(_ chunk: borrowing EventChunk) throws(LedgerError) {
    if verification == nil { return }
    let lines =
      (chunk.prepared as? EventScan)?.check
      ?? AuditedLines(chunk.bytes, firstPosition: chunk.firstPosition, count: chunk.count)
    try verification?.add(lines, expecting: chunk.frontierAfter)
  }

  static func projectionError(_ error: any Error) -> ProjectionError {
    switch error {
    case let error as ProjectionError: error
    case let error as DatabaseError: .database(error)
    case let error as LedgerError: .ledger(error)
    default: .output(error)
    }
  }
}
