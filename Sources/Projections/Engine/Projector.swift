// Brings the projections up to date with the log: by what is new, or from nothing.
package import Ledger

/// How a projector's work stands, for those who wait for it.
package struct ProjectionProgress: Sendable {
  /// Events folded so far, of so many.
  package let foldedEvents: Int
  package let totalEvents: Int
}

/// Keeps the projections of one ledger.
package final class Projector {
  /// What people hear of the work.
  package struct Observer {
    package var progress: (ProjectionProgress) -> Void
    /// Something worth saying, such as that projections were discarded.
    package var notice: (String) -> Void
    /// Another one is building; its end is waited for.
    package var waiting: () -> Void
    /// Asked now and then; true ends the work, and what was built is left unused.
    package var isCancelled: () -> Bool
    /// Told of each snapshot that books of an earlier moment are made of.
    package var basis: (Snapshot) -> Void = { _ in }
    /// Why books are not to be made of a snapshot, though it fits; nil where they may.
    package var objection: (Snapshot) -> String? = { _ in nil }

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
  let observer: Observer
  /// What is kept.
  let projections: ProjectionSet
  /// When builds from nothing write; tests have them hurry.
  var pace = WritingPace()

  package init(
    _ reader: LogReader, observer: Observer = Observer(), projections: ProjectionSet = .standard
  ) {
    self.reader = reader
    generations = Generations(reader.directory)
    self.observer = observer
    self.projections = projections
  }

  // MARK: Opening

  /// The projections as they stand at the log's head: caught up, or built where there are none that fit.
  /// - Parameter isFrugal: catches up in any case, batch by batch, in memory that does not grow with what is
  ///   new; otherwise what is mostly new is built from nothing, which is quicker.
  package func current(isFrugal: Bool = false) throws(ProjectionError) -> Database {
    guard generations.isWritable else { return try readOnly() }
    generations.tidy()
    do throws(ProjectionError) {
      let caughtUp = try generations.withCurrent { path throws(ProjectionError) in
        try catchUp(path, isFrugal: isFrugal)
      }
      if let caughtUp, let database = caughtUp { return database }
    } catch {
      guard case .database(let failure) = error, failure.isCorrupt else { throw error }
      observer.notice("the projections cannot be read: rebuilding")
    }
    try rebuild()
    return try open()
  }

  /// Of a ledger that may only be read.
  private func readOnly() throws(ProjectionError) -> Database {
    if let database = try? atHead() { return database }
    observer.notice("this ledger is read-only: folding into a temporary file")
    return try books(at: reader.head.size)
  }

  /// The projections as they were left, without a look at the log; nil where there are none that fit.
  package func existing() throws(ProjectionError) -> Database? {
    let found = try generations.withCurrent { path throws(ProjectionError) -> Database? in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: .read)
        return try Progress.hasVersions(projections, database) ? database : nil
      } catch {
        if error.isCorrupt { return nil }
        throw .database(error)
      }
    }
    return found ?? nil
  }

  /// The projections where they stand at the log's head already; nil where they would have to be brought there.
  package func atHead() throws(ProjectionError) -> Database? {
    guard let database = try existing(), isUpToDate(try progress(of: database)) else { return nil }
    return database
  }

  /// The generation in use.
  func open(mode: Database.Mode = .read) throws(ProjectionError) -> Database {
    let opened = try generations.withCurrent { path throws(ProjectionError) in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: mode)
        // The first look opens SQLite's own files too: from then on nobody can take them away.
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

  // MARK: Catching up

  /// How many events one transaction of a catch-up folds, and then those that complete a block.
  static let batchEvents = 16_384
  /// From so many new events on, a build from nothing may be quicker.
  static let rebuildEvents = 8192

  /// Folds what is new into a generation. Nil where it does not fit the log or this program, or where a
  /// build from nothing is quicker.
  private func catchUp(_ path: String, isFrugal: Bool) throws(ProjectionError) -> Database? {
    let database: Database
    var farBehind: Progress?
    do {
      let reading = try Database(path: path, mode: .read)
      guard try Progress.hasVersions(projections, reading) else {
        // Of another history they are replaced by nothing; that is said instead.
        if try historyConflict() == nil {
          observer.notice("the projections belong to another version of this program: rebuilding")
        }
        return nil
      }
      let progress = try Progress(reading)
      if isUpToDate(progress) { return reading }
      let newEvents = reader.head.size - progress.position
      if !isFrugal, newEvents >= Self.rebuildEvents, newEvents > progress.position {
        farBehind = progress
      }
      database = try Database(path: path, mode: .write)
      try database.execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384")
    } catch { throw Self.projectionError(error) }
    if let farBehind {
      // What does not fit the log is not dropped, also where it would be built anew.
      try checkHistory(of: farBehind)
      return nil
    }
    repeat { try foldBatch(into: database) } while !isUpToDate(try self.progress(of: database))
    return database
  }

  /// Folds one batch in one transaction.
  private func foldBatch(into database: Database) throws(ProjectionError) {
    do {
      try database.execute("BEGIN IMMEDIATE")
      // Another process may have folded between the last look and the lock.
      let progress = try Progress(database)
      if !isUpToDate(progress) { try checkHistory(of: progress) }
      // Which may have brought the log's view up to the progress.
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

  /// Builds all projections from nothing beside those in use, caught up with what is appended meanwhile, and puts
  /// them in use.
  ///
  /// Throws `anotherHistory` where those in use rest on one.
  /// - Parameter acceptsHistory: replaces those too.
  package func rebuild(acceptsHistory: Bool = false) throws(ProjectionError) {
    try replaceGeneration(acceptsHistory: acceptsHistory) { path in
      let writeBehind = WriteBehind(path)
      // Closed behind the connection: who closes a file lets go of the process's locks on it.
      defer { withExtendedLifetime(writeBehind) {} }
      try fill(path, upTo: nil, writeBehind: writeBehind)
    }
  }

  /// Puts a generation in use once `build` has filled its file; what fails leaves the one in use.
  func replaceGeneration(
    acceptsHistory: Bool = false, _ build: (String) throws -> Void
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
      try generations.putInUse(building: path.building, final: path.final)
      isDone = true
    }
  }

  /// Builds all projections from nothing as they were when the log had so many events, in a file of
  /// their own that nobody puts in use. The file must not exist; after a failure it is removed.
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

  /// So often a build looks for what was appended meanwhile; each time there is far less of it.
  private static let followCount = 8

  /// - Parameter position: where the fold ends; nil is the head, also what is appended meanwhile.
  func fill(_ path: String, upTo position: Position?, writeBehind: WriteBehind? = nil) throws {
    let database = try Database(path: path, mode: .create)
    try database.execute(
      """
      PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY
      """)
    try database.execute("BEGIN")
    try database.execute(Schema.tables + projections.tables)
    try Progress.store(versionsOf: projections, database)
    try fold(
      into: database, from: Progress(), to: position ?? reader.head.size, isFresh: true,
      writeBehind: writeBehind)
    try database.execute(Schema.views + projections.views)
    try database.execute("COMMIT")
    if position == nil { try follow(into: database) }
    // The mode stands in the file's header; readers and those who catch up find it there.
    try database.execute("PRAGMA journal_mode = WAL")
  }

  /// Folds what was appended while a generation was built, so that the one in use gives way to none that is behind.
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

  /// In a build from nothing who inflates gives way to the fold and to the thread that writes its rows: it is ahead
  /// of them as it is.
  private static let inflatingPriority = ThreadPriority.niceness(5)

  /// - Parameters:
  ///   - to: the position at which the fold ends; nil is the head.
  ///   - atLeast: ends with the block that completes so many events; nil goes on to the end.
  ///   - writeBehind: hears how far the fold has come.
  func fold(
    into database: Database, from progress: Progress, to end: Position? = nil, isFresh: Bool,
    atLeast: Int? = nil, writeBehind: WriteBehind? = nil
  ) throws(ProjectionError) {
    // Events of replies that are used again, and of receipts that stay pending, are read apart.
    let events = EventReader(reader.directory)
    let fold: EventFold
    do throws(DatabaseError) {
      fold = try EventFold(
        database, isFresh: isFresh, nextPosition: progress.position, projections: projections,
        pace: pace
      ) {
        (position) throws(LedgerError) in try events.line(at: position)
      }
    } catch { throw .database(error) }
    _ = try self.fold(
      fold, into: database, from: progress, to: end, atLeast: atLeast, writeBehind: writeBehind)
  }

  /// Folds what follows the progress, and stores how far it went.
  /// - Parameters:
  ///   - to: the position at which the fold ends; nil is the head.
  ///   - atLeast: ends with the block that completes so many events; nil goes on to the end.
  func fold(
    _ fold: EventFold, into database: Database, from progress: Progress, to end: Position? = nil,
    atLeast: Int? = nil, writeBehind: WriteBehind? = nil
  ) throws(ProjectionError) -> Progress {
    let total = end ?? reader.head.size
    var last = progress
    do {
      // What a commit rests on must not be lost before it. A durable view knows that it is on disk.
      try reader.syncTails()
      if progress.position < total {
        let scan: BlockPreparation = { EventScan($0, firstPosition: $1, count: $2) }
        let priority = fold.isFresh ? Self.inflatingPriority : .usual
        try reader.read(
          from: progress.position, to: total, priority: priority, prepare: scan
        ) { chunk in
          if observer.isCancelled() { throw ProjectionError.interrupted }
          if let scanned = chunk.prepared as? EventScan, let end = scanned.events.last {
            try scanned.events.withUnsafeBufferPointer { events in
              for index in events.indices { try fold.fold(events[index]) }
            }
            last.lastEventAtMs = end.line.recordedAtMs
          } else {
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

  static func projectionError(_ error: any Error) -> ProjectionError {
    switch error {
    case let error as ProjectionError: error
    case let error as DatabaseError: .database(error)
    case let error as LedgerError: .ledger(error)
    default: .output(error)
    }
  }
}
