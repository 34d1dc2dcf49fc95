// The single writer of a ledger: its lock, its threads and their shutdown.
import Base

/// Appends events to a ledger, durably and in order. Thread-safe.
///
/// It holds the ledger's lock while it lives. After a failed sync it refuses everything: the ledger must be opened
/// again, which checks what is really on disk.
package final class LedgerWriter: Sendable {
  let options: WriterOptions
  private let lock: Monitor<WriterLock?>
  let sealer: Sealer
  private let salters: Salters
  private let commits: GroupCommit
  /// Held while segments are rewritten: by one thread at a time.
  let rewriteTurn = Monitor(())
  /// What recovery did when the ledger was opened.
  package let recovery: RecoveryReport
  /// The ledger that it writes to.
  package let directory: LedgerDirectory

  /// Opens a ledger for writing: acquires the lock, runs recovery, starts the threads.
  ///
  /// Throws `locked`, `standby`, `corruption`, or `inputOutput`.
  package static func open(
    _ directory: LedgerDirectory, options: WriterOptions = WriterOptions()
  ) throws(LedgerError) -> LedgerWriter {
    guard 1...Format.blockByteCountLimit ~= options.blockByteCount else {
      throw LedgerError(
        .invalidInput, operation: "open for writing", object: "block size",
        cause: "it is not from 1 to \(Format.blockByteCountLimit) bytes")
    }
    let lock = try WriterLock(directory)
    if !options.ignoresStandby { try Standby.refuse(directory, operation: "open for writing") }
    var recovery = Recovery(directory, options)
    let writer = try LedgerWriter(directory, options, lock, try recovery.run())
    try writer.startThread()
    return writer
  }

  private init(
    _ directory: LedgerDirectory, _ options: WriterOptions, _ lock: WriterLock,
    _ recovered: RecoveredLog
  ) throws(LedgerError) {
    self.directory = directory
    self.options = options
    self.lock = Monitor(lock)
    recovery = recovered.report
    salters = Salters(random: options.random)
    sealer = try Sealer(directory, options, recovered.segmentWriter, recovered.unsealed)
    let tailWriter = TailWriter(
      directory, options, sealer, lock.mark, current: recovered.current,
      nextPosition: recovered.nextPosition, lastEventAtMs: recovered.lastEventAtMs)
    commits = GroupCommit(tailWriter, lock.mark, options, ledgerPath: directory.path)
    lock.mark.publish(recovered.nextPosition)
  }

  private func startThread() throws(LedgerError) {
    do throws(LedgerError) { try commits.start() } catch {
      sealer.close()
      throw error
    }
  }

  deinit { try? close() }

  /// The position of the next event, not counting queued ones.
  package var nextPosition: Position { commits.nextPosition }

  /// How far the clock was behind the last event since the writer was opened.
  package var clockSetBack: ClockSetBack { commits.clockSetBack }

  /// The backlog of tails to seal.
  package var unsealedTails: UnsealedTails { sealer.unsealed }

  /// Why nothing can be appended any more; nil if appends are possible.
  package var failure: LedgerError? { commits.failure }

  /// Appends events in one frame; they are durable when it returns.
  package func append(_ drafts: [EventDraft]) throws(LedgerError) -> AppendResult {
    let ticket = try makeTicket(drafts)
    try commits.append(ticket)
    return try ticket.wait()
  }

  /// Queues events and returns at once, or waits while the queue is full. The events of one submission share a frame,
  /// which may contain others too.
  package func submit(_ drafts: [EventDraft]) throws(LedgerError) -> AppendTicket {
    let ticket = try makeTicket(drafts)
    try commits.enqueue(ticket)
    return ticket
  }

  /// Waits until a submission is durable.
  package func wait(for ticket: AppendTicket) throws(LedgerError) -> AppendResult {
    try ticket.wait()
  }

  /// Waits until everything submitted so far is durable.
  package func flush() throws(LedgerError) { try commits.flush() }

  /// Writes what is queued, seals the full tails, ends the threads and releases the lock. Later calls do nothing.
  package func close() throws(LedgerError) {
    guard commits.close() else { return }
    sealer.close()
    commits.waitForUsers()
    lock.withLock { $0 = nil }
    if let failure = failure ?? sealer.failure { throw failure }
  }

  /// Lets nothing more be appended: queued and later submissions end with the error. Events that are being written
  /// may still get to the disk.
  package func refuseAppends(_ error: LedgerError) {
    commits.refuseAppends(error)
  }

  /// Whether the writer is closing or closed.
  var isClosing: Bool { commits.isClosing }

  /// Runs a closure while the writer, and with it the lock, stays open.
  func whileOpen<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    try commits.whileOpen(body)
  }

  /// Lets a closure use the tail writer between two commits. Appends wait meanwhile, so it must be short.
  func betweenCommits<Result>(
    _ body: (TailWriter) throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    try commits.betweenCommits(body)
  }

  private func makeTicket(_ drafts: [EventDraft]) throws(LedgerError) -> AppendTicket {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(.invalidInput, operation: "append", object: "event", cause: cause)
    }
    if drafts.isEmpty { throw refusal("there are no events to append") }
    var byteCountLimit = 0
    for draft in drafts {
      if let fault = draft.fault(eventCount: drafts.count) { throw refusal(fault) }
      byteCountLimit += draft.lineByteCountLimit
    }
    if byteCountLimit > Format.frameByteCountMax {
      throw refusal("together the events are larger than \(Format.frameByteCountMax) bytes")
    }
    return AppendTicket(try salters.salt(drafts), byteCountLimit: byteCountLimit)
  }
}
