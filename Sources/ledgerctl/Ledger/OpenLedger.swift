// A ledger as commands use it: its log, its projections, its writer.
import AdditionalProjections
import Erasure
import Ledger
import Projections
import Server

extension ProjectionSet {
  /// The projections that this program keeps.
  static let ofProgram = ProjectionSet(additionalProjections)
}

/// A ledger opened for one command.
struct OpenLedger {
  let directory: LedgerDirectory
  let reader: LogReader
  let context: Context

  /// - Parameter view: `whole` for commands that only show the log.
  init(_ invocation: Invocation, _ context: Context, _ view: LogView = .durable) throws {
    directory = try context.openLedger(invocation)
    reader = try LogReader(directory, view)
    self.context = context
  }

  /// The projections, brought up to date with the log. Throws if the log is damaged: figures from a part of it would
  /// be wrong, and the projections folded before the damage are kept.
  /// - Parameter isFrugal: use memory that does not grow with the number of new events.
  func projections(isFrugal: Bool = false) throws -> Database {
    try reader.refresh()
    if let damage = reader.damage { throw damage }
    return try projector().current(isFrugal: isFrugal)
  }

  /// Queries on the projections, which are brought up to date first.
  func queries() throws -> LedgerQueries {
    let database = try projections()
    let reader = reader
    return try LedgerQueries(database) { position in
      // A server may have folded further events since.
      if position >= reader.head.size { try reader.refresh() }
      return try reader.event(at: position)
    }
  }

  /// Queries on the projections if they are already at the head of an undamaged log; nil if they are not or can't be
  /// read. Folds nothing.
  func queriesAtHead() -> LedgerQueries? {
    guard reader.damage == nil, let database = try? readOnlyProjector().atHead() else { return nil }
    let reader = reader
    return try? LedgerQueries(database) { try reader.event(at: $0) }
  }

  /// Rebuilds the projections; the log must be undamaged.
  func rebuildProjections(acceptsHistory: Bool = false, verifies: Bool = true) throws {
    if let damage = reader.damage { throw damage }
    try projector().rebuild(acceptsHistory: acceptsHistory, verifies: verifies)
  }

  /// For commands that continue without projections: prints a note if the projections belong to another history than
  /// the log; returns whether they do.
  @discardableResult
  func logHistoryConflict(_ command: String) throws -> Bool {
    guard let conflict = try projector().historyConflict() else { return false }
    log("\(command): the projections are not used: \(conflict)")
    return true
  }

  /// Folds durable events, with progress on a terminal; a signal interrupts it.
  func projector() throws(ProjectionError) -> Projector {
    if reader.view == .durable { return readOnlyProjector() }
    do throws(LedgerError) {
      return Projector(
        try LogReader(directory, .durable), observer: observer(), projections: .ofProgram)
    } catch { throw .ledger(error) }
  }

  /// For reading the existing projections; folds nothing.
  func readOnlyProjector() -> Projector {
    Projector(reader, observer: observer(), projections: .ofProgram)
  }

  private func observer() -> Projector.Observer {
    let progress = Progress("Projecting", unit: .count("events"), context: context)
    let context = context
    var observer = Projector.Observer(
      progress: { progress.update($0.foldedEvents, of: $0.totalEvents) },
      notice: { notice in
        progress.erase()
        context.log("\(notice)")
      },
      waiting: { progress.draw("Waiting for another rebuild") },
      isCancelled: { context.interruption.isRequested })
    observer.basis = { context.snapshotUse.record($0.header.size) }
    observer.objection = { context.snapshotUse.objection($0.header.size) }
    return observer
  }

  /// Writes a line to standard error.
  func log(_ text: String) { context.log(text) }

  /// Projections that are kept up to date while they are queried.
  func liveProjections() throws -> LiveProjections {
    if let damage = reader.damage { throw damage }
    return try LiveProjections(directory, observer: observer(), projections: .ofProgram)
  }

  /// Calls `body` with an appender and closes it: the command's own writer or, if a server holds the ledger, a session
  /// with the server. Prints what recovery repaired.
  /// - Parameter replicates: whether the command's own writer keeps the copy up to date even if appends do not wait for
  ///   it.
  func withWriter<Result>(
    options: WriterOptions = WriterOptions(), replicates: Bool = false,
    _ body: (LedgerAppender) throws -> Result
  ) throws -> Result {
    let own: OwnWriter
    do { own = try OwnWriter(self, options: options, replicates: replicates) } catch let error
      as LedgerError
    {
      // A process that holds the lock but does not listen is another command.
      guard error.kind == .locked, let server = try RemoteAppender.connect(directory) else {
        throw error
      }
      return try closing({ () throws(LedgerError) in try server.close() }) {
        try body(.server(server))
      }
    }
    return try closing({ () throws(LedgerError) in try own.close() }) {
      try finishErasure(own.writer)
      let result = try body(.own(own.writer))
      if let note = own.writer.clockSetBack.note { context.log(note) }
      return result
    }
  }

  private func closing<Result>(
    _ close: () throws(LedgerError) -> Void, _ body: () throws -> Result
  ) throws -> Result {
    let result: Result
    do { result = try body() } catch {
      try? close()
      throw error
    }
    try close()
    return result
  }

  /// Finishes an erasure that was interrupted, if there is one.
  private func finishErasure(_ writer: LedgerWriter) throws {
    let eraser = Eraser(
      directory, writer, projections: .ofProgram, observer: readOnlyProjector().observer)
    if try eraser.finishInterrupted() { log("finished an erasure that was interrupted") }
  }
}
