// A ledger as commands use it: its log, its projections, its writer.
import Ledger
import Projections
import Server

/// A ledger that was opened for one command.
struct OpenLedger {
  let directory: LedgerDirectory
  let reader: LogReader
  private let context: Context

  /// - Parameter view: `whole` is for commands that only show the log.
  init(_ invocation: Invocation, _ context: Context, _ view: LogView = .durable) throws {
    directory = try context.openLedger(invocation)
    reader = try LogReader(directory, view)
    self.context = context
  }

  /// The projections, brought up to date with the log. A log that is not whole gives none: figures from a part
  /// of it would be wrong, and those that were folded before the damage are not thrown away for them.
  /// - Parameter isFrugal: in memory that does not grow with what is new.
  func projections(isFrugal: Bool = false) throws -> Database {
    try reader.refresh()
    if let damage = reader.damage { throw damage }
    return try projector().current(isFrugal: isFrugal)
  }

  /// Questions to the projections, which are brought up to date first.
  func queries() throws -> LedgerQueries {
    let database = try projections()
    let reader = reader
    return try LedgerQueries(database) { position in
      // A server may have folded on since then.
      if position >= reader.head.size { try reader.refresh() }
      return try reader.event(at: position)
    }
  }

  /// Questions to the projections where they stand at the head of a whole log already; nil where they don't,
  /// or can't be read. Nothing is folded.
  func queriesAtHead() -> LedgerQueries? {
    guard reader.damage == nil, let database = try? lookingProjector().atHead() else { return nil }
    let reader = reader
    return try? LedgerQueries(database) { try reader.event(at: $0) }
  }

  /// Builds the projections anew, from a log that must be whole.
  func rebuildProjections(acceptsHistory: Bool = false) throws {
    if let damage = reader.damage { throw damage }
    try projector().rebuild(acceptsHistory: acceptsHistory)
  }

  /// Says where the projections rest on another history than the log has, for commands that go on; returns whether
  /// they do.
  @discardableResult
  func sayAnotherHistory(_ command: String) throws -> Bool {
    guard let conflict = try projector().historyConflict() else { return false }
    say("\(command): the projections are not used: \(conflict)")
    return true
  }

  /// Works on the projections with progress on a terminal; a signal ends the work. What it folds is on disk.
  func projector() throws(ProjectionError) -> Projector {
    if reader.view == .durable { return lookingProjector() }
    do throws(LedgerError) {
      return Projector(try LogReader(directory, .durable), observer: observer())
    } catch { throw .ledger(error) }
  }

  /// Looks at the projections as they are, and folds nothing.
  func lookingProjector() -> Projector { Projector(reader, observer: observer()) }

  private func observer() -> Projector.Observer {
    let progress = Progress("Projecting", unit: .count("events"), context: context)
    let context = context
    var observer = Projector.Observer(
      progress: { progress.update($0.foldedEvents, of: $0.totalEvents) },
      notice: { notice in
        progress.erase()
        context.diagnostics.writeLine("ledgerctl: \(notice)")
      },
      waiting: { progress.draw("Waiting for another rebuild") },
      isCancelled: { context.interruption.isRequested })
    observer.basis = { context.snapshotUse.note($0.header.size) }
    observer.objection = { context.snapshotUse.objection($0.header.size) }
    return observer
  }

  /// A line on standard error.
  func say(_ text: String) { context.diagnostics.writeLine("ledgerctl: \(text)") }

  /// Projections that are kept up to date while others ask.
  func liveProjections() throws -> LiveProjections {
    if let damage = reader.damage { throw damage }
    return try LiveProjections(directory, observer: observer())
  }

  /// Calls `body` with whatever appends to the ledger, and ends that: a writer of its own, or, where a server
  /// holds the ledger, a session with that. What recovery had to mend is said.
  func withWriter<Result>(
    options: WriterOptions = WriterOptions(), _ body: (LedgerAppender) throws -> Result
  ) throws -> Result {
    let appender: LedgerAppender
    do throws(LedgerError) {
      let writer = try LedgerWriter.open(directory, options: options)
      for note in writer.recovery.notes { context.diagnostics.writeLine("ledgerctl: \(note)") }
      appender = .own(writer)
    } catch {
      // Who holds the lock without listening is another command, at work.
      guard error.kind == .locked, let server = try RemoteAppender.connect(directory) else {
        throw error
      }
      appender = .server(server)
    }
    let result: Result
    do { result = try body(appender) } catch {
      try? appender.close()
      throw error
    }
    if case .own(let writer) = appender, let note = writer.clockSetBack.note {
      context.diagnostics.writeLine("ledgerctl: \(note)")
    }
    try appender.close()
    return result
  }
}
