// The single writer of a ledger (its lock, its threads and their shutdown), its options, and the recovery report.
package import Base
import CCrypto

/// Appends events to a ledger, durably and in order. Thread-safe.
///
/// It holds the ledger's lock while it lives. After a failed sync it rejects everything: the ledger must be opened
/// again, which checks what is really on disk.
package final class LedgerWriter: Sendable {
  let options: WriterOptions
  private let lock: Monitor<WriterLock?>
  let sealer: Sealer
  private let salters: Salters
  private let commits: GroupCommit
  /// Held by the thread that rewrites segments.
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
  /// which may also contain others.
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

  /// Writes what is queued, seals the full tails, stops the threads and releases the lock. Later calls do nothing.
  package func close() throws(LedgerError) {
    guard commits.close() else { return }
    sealer.close()
    commits.waitForUsers()
    lock.withLock { $0 = nil }
    if let failure = failure ?? sealer.failure { throw failure }
  }

  /// Forbids further appends: queued and later submissions fail with the error. Events that are being written may still
  /// reach the disk.
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

  /// Returns between two commits: the thread that writes has come back from the disk.
  package func waitForTurn() throws(LedgerError) {
    try betweenCommits { (_) throws(LedgerError) in }
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

// MARK: - Options

/// Decides when events that are on disk may be acknowledged. Called by several threads at once.
package protocol AppendConfirmation: Sendable {
  /// Waits until all events before a position may be acknowledged.
  ///
  /// Throws `unconfirmed` if that takes too long: the events are on disk all the same.
  /// - Parameter sinceMs: when the wait began, on the monotonic clock.
  func waitUntilConfirmed(_ end: Position, sinceMs: Int64) throws(LedgerError)
}

extension AppendConfirmation {
  package func waitUntilConfirmed(_ end: Position) throws(LedgerError) {
    try waitUntilConfirmed(end, sinceMs: MonotonicClock.nowMs())
  }
}

/// The options of a writer. The format document states the defaults.
package struct WriterOptions: Sendable {
  /// A tail with this many event bytes is full and will be sealed; 1 to 15 MiB.
  package var blockByteCount = 1 << 20
  /// A new segment begins before this one would grow beyond this size.
  package var segmentByteCount = 256 << 20
  /// Appends wait while this many tails are unsealed: a reader may have all of them open. Lower if the limit of open
  /// files is low.
  package var unsealedTailCountMax = 3072
  /// Appends wait while this many bytes of tails are unsealed: opening the log reads all of them.
  package var unsealedByteCountMax = 3 << 30
  /// A full tail rests for this long. A process that ends earlier thus never starts an idle-priority thread, which
  /// would delay its exit.
  package var sealingRestMs: Int64 = 5_000
  /// After that, tails are sealed on idle processors, until one has waited this long or the backlog reaches three
  /// quarters of its limit.
  package var sealingDelayMs: Int64 = 30_000
  /// A closing writer seals its own tails for at most this long and leaves the others to the next writer.
  package var closingLimitMs: Int64 = 5_000
  /// As above, for tails that an earlier writer left.
  package var closingInheritedLimitMs: Int64 = 1_000
  /// The priority of sealing after that, and while the writer is closing.
  package var sealingPriority = ThreadPriority.usual
  /// A group commit accepts no further submissions once it has this many bytes.
  package var groupByteCount = 1 << 20
  /// After a commit of several submissions, the next commit waits for more until this much time has passed since that
  /// commit began: many small commits take processor time from the submitters.
  package var groupPauseMs: Int64 = 0
  /// `submit` waits while the queue has this many bytes.
  package var queueByteCount = 16 << 20
  /// The compression level of libdeflate, 1 to 12.
  package var compressionLevel: Int32 = 6
  /// Appends return only after it has confirmed them; nil if the disk alone decides.
  package var confirmation: (any AppendConfirmation)?
  /// Also opens a ledger on standby, for a promotion.
  package var ignoresStandby = false
  /// Also opens a log that is shorter than the newest signed head recorded in `heads`, for accepting its history.
  package var acceptsShorterLog = false
  /// The time in milliseconds since 1970.
  package var clock: @Sendable () -> Int64 = { Timestamp.now() }
  /// Fills a buffer with random bytes; returns false if it fails.
  package var random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool = { buffer in
    RAND_bytes(
      buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(buffer.count)) == 1
  }

  package init() {}
}

/// How far the clock was behind the time of the last event. Event times never decrease, so the events got that time
/// instead of the clock's.
package struct ClockSetBack: Sendable, Equatable {
  /// The largest difference in milliseconds.
  package internal(set) var distanceMsMax: Int64 = 0
  /// How many events were recorded during that time.
  package internal(set) var eventCount = 0

  /// A sentence for users; nil if the difference is below one second, as after a clock adjustment.
  package var note: String? {
    guard distanceMsMax >= 1000 else { return nil }
    return "the clock was \(distanceMsMax / 1000) s behind the last event: \(eventCount) "
      + "event\(eventCount == 1 ? " was" : "s were") recorded with that event's time"
  }
}

/// What recovery found and did when a ledger was opened for writing.
package struct RecoveryReport: Sendable, Equatable {
  /// An incomplete end that was cut off: it was never acknowledged, or a tail contains it.
  package struct Cut: Sendable, Equatable {
    /// The file's path inside the ledger.
    package let file: String
    /// The new end of the file.
    package let offsetBytes: Int
    /// How many bytes were cut off.
    package let byteCount: Int

    package init(file: String, offsetBytes: Int, byteCount: Int) {
      self.file = file
      self.offsetBytes = offsetBytes
      self.byteCount = byteCount
    }
  }

  /// The torn frame at the end of the newest tail.
  package internal(set) var tornFrame: Cut?
  /// The newest tail, if it contained no whole frame and was removed.
  package internal(set) var emptyTail: String?
  /// The torn member at the end of the newest segment.
  package internal(set) var tornMember: Cut?
  /// A damaged block that was rewritten.
  package struct RepairedBlock: Sendable, Equatable {
    /// The segment's path inside the ledger.
    package let file: String
    /// The block's ordinal in it, from 0.
    package let block: Int
    /// The path of the tail that contained its events.
    package let tail: String

    package init(file: String, block: Int, tail: String) {
      self.file = file
      self.block = block
      self.tail = tail
    }
  }

  /// Damaged blocks that were rewritten from their tails.
  package internal(set) var repairedBlocks: [RepairedBlock] = []
  /// Tails that were removed because blocks contain their events.
  package internal(set) var coveredTails: [String] = []
  /// Tails that are being sealed in the background: work that the previous writer left, not damage.
  package internal(set) var unsealedTails: [String] = []
  /// Incomplete files that were removed.
  package internal(set) var temporaryFiles: [String] = []

  /// One sentence for each repair, for users. A full tail does not count: a closing writer does not seal the newest
  /// one, however full it is.
  package var notes: [String] {
    var notes: [String] = []
    if let cut = tornFrame {
      notes.append(
        "cut \(cut.byteCount) byte\(cut.byteCount == 1 ? "" : "s") of a torn frame off \(cut.file)")
    }
    if let emptyTail { notes.append("removed \(emptyTail): it held no event") }
    if let cut = tornMember {
      notes.append(
        "cut \(cut.byteCount) byte\(cut.byteCount == 1 ? "" : "s") of a torn block off \(cut.file)")
    }
    notes += repairedBlocks.map {
      "rewrote block \($0.block) of \($0.file) from \($0.tail): it was damaged"
    }
    notes += coveredTails.map { "removed \($0): its events are in a block" }
    notes += temporaryFiles.map { "removed \($0): it was incomplete" }
    return notes
  }
}
