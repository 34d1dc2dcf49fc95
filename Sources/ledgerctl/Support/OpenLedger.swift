// A ledger as commands use it: its log, its projections, its writer.
import Ledger
import Projections

/// A ledger that was opened for one command.
struct OpenLedger {
  let directory: LedgerDirectory
  let reader: LogReader
  private let context: Context

  init(_ invocation: Invocation, _ context: Context) throws {
    directory = try LedgerDirectory.open(path: try context.ledgerPath(invocation))
    reader = try LogReader(directory)
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
    return try LedgerQueries(database, readEvent: reader.event(at:))
  }

  /// Works on the projections with progress on a terminal; a signal ends the work.
  func projector() -> Projector {
    let progress = Progress("Projecting", unit: .count("events"), context: context)
    let context = context
    return Projector(
      reader,
      observer: Projector.Observer(
        progress: { progress.update($0.foldedEvents, of: $0.totalEvents) },
        notice: { notice in
          progress.erase()
          context.diagnostics.writeLine("ledgerctl: \(notice)")
        },
        isCancelled: { context.interruption.isRequested }))
  }

  /// Calls `body` with the ledger's writer, and closes it. What recovery had to mend is said.
  func withWriter<Result>(_ body: (LedgerWriter) throws -> Result) throws -> Result {
    let writer = try LedgerWriter.open(directory)
    for note in writer.recovery.notes { context.diagnostics.writeLine("ledgerctl: \(note)") }
    let result: Result
    do { result = try body(writer) } catch {
      try? writer.close()
      throw error
    }
    try writer.close()
    return result
  }
}
