// The folding half of live projections: one connection that follows the log in batches.
import Ledger

/// Folds the log into the generation in use as it grows. Used by one thread at a time.
final class LiveFold {
  /// The most events that one transaction folds, apart from those that complete a block.
  private static let batchEvents = 4096
  /// After this many events the fold's memory is released: it reads again what it needs.
  private static let foldedEventsMax = 8192

  private let projector: Projector
  private let observer: Projector.Observer
  private let directory: LedgerDirectory
  private let reader: LogReader
  /// Lines of events that this generation holds: after an erasure none may show what was redacted.
  private(set) var recent = RecentEvents()
  let answerTimes = ResponseTimes()
  private(set) var database: Database
  private(set) var path: String
  private var fold: EventFold?
  private var foldedEvents = 0
  /// As this connection last read it.
  private(set) var progress: Progress
  /// Whether app families may have changed since the flag was cleared.
  var hasNewApps = true
  /// Reads single events; separate from the reader that follows the log, whose view does not change during a batch.
  private var events: EventReader

  init(
    _ directory: LedgerDirectory, _ observer: Projector.Observer, _ projections: ProjectionSet
  ) throws {
    self.directory = directory
    self.observer = observer
    reader = try LogReader(directory, .durable)
    projector = Projector(reader, observer: observer, projections: projections)
    events = EventReader(directory)
    (database, path, progress) = try Self.open(projector, reader)
    try answerTimes.noteAll(of: database, lastEventAtMs: progress.lastEventAtMs)
  }

  private static func open(
    _ projector: Projector, _ reader: LogReader
  ) throws -> (Database, String, Progress) {
    try reader.refresh()
    if let damage = reader.damage { throw ProjectionError.ledger(damage) }
    _ = try projector.current()
    let database = try projector.open(mode: .write)
    try database.execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384")
    return (database, database.path, try Progress(database))
  }

  private func reopen() throws {
    fold = nil
    // After an erasure neither cached data nor a file that is still open may show what was redacted.
    recent = RecentEvents()
    events = EventReader(directory)
    (database, path, progress) = try Self.open(projector, reader)
    try answerTimes.noteAll(of: database, lastEventAtMs: progress.lastEventAtMs)
    hasNewApps = true
  }

  func closeSealedTails() throws(LedgerError) {
    try reader.closeSealedTails()
    try events.closeSealedTails()
  }

  // MARK: Catching up

  /// Folds all that is durable.
  func catchUp() throws {
    try reader.refresh()
    if let damage = reader.damage { throw ProjectionError.ledger(damage) }
    if projector.generations.current != path { try reopen() }
    // A database that can't be read is replaced: the second attempt finds the new one.
    for _ in 0..<3 {
      if try followLog() { return }
      try reopen()
    }
    throw ProjectionError.inconsistent("they cannot be read, even after a rebuild")
  }

  /// Folds to the head; false if the database can't be read and another one has replaced it.
  private func followLog() throws -> Bool {
    while progress.position != reader.head.size {
      guard try foldBatch() else { return false }
    }
    return true
  }

  private func foldBatch() throws -> Bool {
    do {
      try database.execute("BEGIN IMMEDIATE")
      try takeProgress()
      if progress.position == reader.head.size {
        try database.execute("COMMIT")
        return true
      }
      let fold = try currentFold()
      let last = try projector.fold(
        fold, into: database, from: progress, atLeast: Self.batchEvents)
      try database.execute("COMMIT")
      foldedEvents += last.position - progress.position
      progress = last
      if fold.hasNewApps { hasNewApps = true }
      // A price list is applied once: a new fold does not know it.
      if foldedEvents >= Self.foldedEventsMax || fold.hasNewPrices || fold.hasNewApps {
        self.fold = nil
      }
      return true
    } catch {
      // What the fold holds in memory may be ahead of what was rolled back.
      fold = nil
      try? database.execute("ROLLBACK")
      let failure = Projector.projectionError(error)
      if case .database(let cause) = failure, cause.isCorrupt {
        observer.notice("the projections cannot be read: rebuilding")
        try projector.rebuild()
        return false
      }
      throw failure
    }
  }

  /// Checks whether another process has folded.
  private func takeProgress() throws {
    let stored = try Progress(database)
    if stored.position == progress.position, stored.root == progress.root { return }
    fold = nil
    hasNewApps = true
    try projector.checkHistory(of: stored)
    progress = stored
    try answerTimes.noteAll(of: database, lastEventAtMs: stored.lastEventAtMs)
  }

  private func currentFold() throws -> EventFold {
    if let fold { return fold }
    foldedEvents = 0
    let events = events
    let fold = try EventFold(
      database, isFresh: false, nextPosition: progress.position, recent: recent,
      answerTimes: answerTimes, projections: projector.projections
    ) { (position) throws(LedgerError) in
      try events.line(at: position)
    }
    self.fold = fold
    return fold
  }
}

/// Reads single events, following the log if necessary.
final class EventReader {
  private let directory: LedgerDirectory
  private var reader: LogReader?

  init(_ directory: LedgerDirectory) { self.directory = directory }

  func closeSealedTails() throws(LedgerError) { try reader?.closeSealedTails() }

  /// The line of the event at a position.
  func line(at position: Position) throws(LedgerError) -> [UInt8] {
    if let reader {
      if position >= reader.head.size { try reader.refresh() }
      return try reader.event(at: position)
    }
    let opened = try LogReader(directory)
    reader = opened
    return try opened.event(at: position)
  }
}
