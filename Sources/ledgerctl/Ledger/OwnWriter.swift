// A command's own writer, with the replication that its appends need.
import Base
import Ledger
import Replication
import Server

/// The writer of a command while no server holds the ledger.
final class OwnWriter {
  /// How long the end of a command waits for the copy.
  private static let copyLimitMs: Int64 = 30_000

  let writer: LedgerWriter
  private let replication: LedgerReplication?
  private let say: (String) -> Void

  /// Opens the ledger for writing and prints what recovery repaired.
  ///
  /// With `sync`, appends wait for the copy, whatever the command.
  /// - Parameter replicates: whether a copy that nobody waits for is kept too.
  init(_ ledger: OpenLedger, options: WriterOptions = WriterOptions(), replicates: Bool = false)
    throws
  {
    let context = ledger.context
    say = { context.say($0) }
    var options = options
    let diagnostics = context.diagnostics
    let asked = Result { () throws -> LedgerReplication? in
      let configuration = try ConfigurationFile(ledger.directory).read().replication
      guard let configuration, replicates || configuration.mode == .sync else { return nil }
      return try LedgerReplication(ledger.directory, configuration) {
        diagnostics.writeLine(visible("ledgerctl: \($0)"))
      }
    }
    replication = try? asked.get()
    options.confirmation = replication?.confirmation
    // Before the configuration is found unusable: a server that holds the ledger goes on with an earlier one.
    let writer = try LedgerWriter.open(ledger.directory, options: options)
    self.writer = writer
    for note in writer.recovery.notes { say(note) }
    do {
      _ = try asked.get()
      try startReplication(writer)
    } catch {
      try? writer.close()
      throw error
    }
  }

  private func startReplication(_ writer: LedgerWriter) throws {
    guard let replication else { return }
    do throws(LedgerError) {
      try replication.start { [weak writer] in writer?.refuseAppends($0) }
    } catch {
      // Another process copies what this one appends.
      guard error.kind == .locked, replication.mode == .async else { throw error }
    }
  }

  /// Makes everything durable, gives the copy some time, and closes the writer.
  func close() throws(LedgerError) {
    if let replication {
      try? writer.flush()
      replication.stop(deadlineMs: Self.copyLimitMs)
      let status = replication.status
      if status.ending == nil, status.lagCount > 0 {
        say(
          "\(status.target): \(counted(status.lagCount, "event")) not in the copy yet"
            + (status.error.map { ": \($0)" } ?? "") + "; a server or 'ledgerctl replicate' goes on"
        )
      }
    }
    try writer.close()
  }
}
