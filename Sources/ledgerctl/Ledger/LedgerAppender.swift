// Appends with a command's own writer or through the server that holds the ledger; root acts as the ledger's owner.
import Base
import Glibc
import Intake
import Ledger
import Replication
import Server

/// Appends events, by its own writer or through the server.
enum LedgerAppender: EventAppender {
  case own(LedgerWriter)
  case server(RemoteAppender)

  enum Ticket {
    case own(AppendTicket)
    case server(RemoteAppender.Ticket)
  }

  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket {
    switch self {
    case .own(let writer): .own(try writer.submit(drafts))
    case .server(let server): .server(try server.submit(drafts))
    }
  }

  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position> {
    switch (self, ticket) {
    case (.own(let writer), .own(let ticket)): return try writer.positions(of: ticket)
    case (.server(let server), .server(let ticket)): return try server.positions(of: ticket)
    default:
      throw LedgerError(
        .invalidInput, operation: "append", object: "ticket",
        cause: "it belongs to another appender")
    }
  }

  func outcome(of tickets: [Ticket]) -> AppendOutcome {
    switch self {
    case .own(let writer):
      writer.outcome(
        of: tickets.compactMap { if case .own(let ticket) = $0 { ticket } else { nil } })
    case .server(let server):
      server.outcome(
        of: tickets.compactMap { if case .server(let ticket) = $0 { ticket } else { nil } })
    }
  }

  func flush() throws(LedgerError) {
    switch self {
    case .own(let writer): try writer.flush()
    case .server(let server): try server.flush()
    }
  }

  /// Appends events in one frame; they are durable when it returns.
  func append(_ drafts: [EventDraft]) throws(LedgerError) -> Range<Position> {
    try positions(of: submit(drafts))
  }

  /// Appends one event of the current version; returns its position when it is durable.
  func append(_ type: EventType, _ data: [UInt8]) throws(LedgerError) -> Position {
    try append([EventDraft(type: type.rawValue, version: type.currentVersion, data: data)])
      .lowerBound
  }

  /// Makes submitted events durable, and closes the writer or the session.
  func close() throws(LedgerError) {
    switch self {
    case .own(let writer): try writer.close()
    case .server(let server): try server.close()
    }
  }
}

// MARK: - Own writer

/// The writer of a command while no server holds the ledger, with the replication that its appends need.
final class OwnWriter {
  /// How long the end of a command waits for the copy.
  private static let copyLimitMs: Int64 = 30_000

  let writer: LedgerWriter
  private let replication: LedgerReplication?
  private let log: (String) -> Void

  /// Opens the ledger for writing and prints what recovery repaired.
  ///
  /// With `sync`, appends wait for the copy, whatever the command.
  /// - Parameter replicates: whether to keep the copy up to date even if appends do not wait for it.
  init(_ ledger: OpenLedger, options: WriterOptions = WriterOptions(), replicates: Bool = false)
    throws
  {
    let context = ledger.context
    log = { context.log($0) }
    var options = options
    let diagnostics = context.diagnostics
    let asked = Result { () throws -> LedgerReplication? in
      let configuration = try ConfigurationFile(ledger.directory).read().replication
      guard let configuration, replicates || configuration.mode == .sync else { return nil }
      return try LedgerReplication(ledger.directory, configuration) {
        diagnostics.writeLine(visible("ledgerctl: \($1)"), $0)
      }
    }
    replication = try? asked.get()
    options.confirmation = replication?.confirmation
    try MergedLedger.refuseAppends(ledger.directory, operation: "open for writing")
    // Opened before the configuration can fail: a server that holds the ledger continues with an earlier configuration.
    let writer = try LedgerWriter.open(ledger.directory, options: options)
    self.writer = writer
    for note in writer.recovery.notes { log(note) }
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
      // Another process copies the events that this one appends.
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
        log(
          "\(status.target): \(counted(status.lagCount, "event")) not in the copy yet"
            + (status.error.map { ": \($0)" } ?? "") + "; a server or 'ledgerctl replicate' resumes"
        )
      }
    }
    try writer.close()
  }
}

// MARK: - Root in another user's ledger

/// The user as whom the program acts instead of root.
final class LedgerOwner {
  /// Nil while the program acts as the user that started it.
  private(set) var actsAs: String?

  /// Makes root give up its rights and act as the owner of a directory for the rest of the run, with that user's
  /// groups. Files that the command creates then belong to the owner, whose server can read and write them, and nothing
  /// in the directory can make root read or write another file. The C library applies this to all threads.
  func assume(_ path: String, owner: UInt32, group: UInt32) throws(Failure) {
    guard geteuid() == 0, owner != 0 else { return }
    let user = getpwuid(owner)
    let name = user.map { String(cString: $0.pointee.pw_name) }
    let groups = user.map { initgroups($0.pointee.pw_name, group) } ?? setgroups(1, [group])
    let shown = name ?? "#\(owner)"
    guard groups == 0, setgid(group) == 0, setuid(owner) == 0, geteuid() == owner else {
      throw Failure(
        operation: "act as the ledger's owner", object: path,
        cause:
          "\(systemErrorText(errno)); run the command as that user: sudo -u '\(shown)' ledgerctl …")
    }
    actsAs = shown
    guard access(path, R_OK | X_OK) == 0 else {
      throw Failure(
        operation: "act as the ledger's owner", object: path,
        cause: "\(shown) cannot open it: \(systemErrorText(errno))")
    }
  }

  /// As above, for a directory that may become a ledger; a directory that does not exist yet will belong to the caller.
  func assume(newLedger path: String) throws(Failure) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
    try assume(path, owner: status.st_uid, group: status.st_gid)
  }
}
