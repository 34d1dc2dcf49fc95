// Carries out erasures in a running server: urgent requests at once, all others and retention once a day.
import Base
package import Erasure
package import Intake
package import Ledger

/// Watches the queue of erasure requests and has them carried out. The owner that starts it stops it.
package final class ErasureWorker: Sendable {
  /// What the worker depends on.
  package struct Parts: Sendable {
    package var directory: LedgerDirectory
    /// The configuration in effect.
    package var configuration: @Sendable () -> Configuration
    /// Finishes an interrupted pass.
    package var finish: @Sendable () throws(ErasureError) -> Void
    /// Carries out all open requests, and retention, in one pass.
    package var run: @Sendable (Retention?) throws(ErasureError) -> Result
    package var metrics: Metrics
    /// No message names a person.
    package var log: OperatorLog
    package var clock = WorkflowClock()
    /// How often the queue is checked.
    package var pauseMs: Int64 = 1_000

    package init(
      directory: LedgerDirectory, configuration: @escaping @Sendable () -> Configuration,
      finish: @escaping @Sendable () throws(ErasureError) -> Void,
      run: @escaping @Sendable (Retention?) throws(ErasureError) -> Result,
      metrics: Metrics, log: @escaping OperatorLog
    ) {
      self.directory = directory
      self.configuration = configuration
      self.finish = finish
      self.run = run
      self.metrics = metrics
      self.log = log
    }
  }

  /// What a pass of retention erases.
  package struct Retention: Sendable {
    package var rules: RetentionRules
    /// The time that decides whether retention has ended, in epoch milliseconds.
    package var nowMs: Int64
    /// Whether an operator has requested it.
    package var isOrdered: Bool
  }

  /// The result of a pass.
  package struct Result: Sendable {
    package var records: [ErasureRecord]
    /// What retention would have erased; nil unless it was too much to be usual.
    package var heldRetention: RetentionPass?

    package init(_ records: [ErasureRecord], heldRetention: RetentionPass? = nil) {
      self.records = records
      self.heldRetention = heldRetention
    }
  }

  /// The shortest time between a failure and the next attempt or message.
  private static let failurePauseMs: Int64 = 60_000
  /// A file system's clock is coarse: a folder that changed this recently may change again with the same time.
  private static let freshMs: Int64 = 2_000

  private let parts: Parts
  private let stopFlag: StopFlag
  private let stopped = Latch()
  private let thread = Monitor<WorkerThread?>(nil)

  /// - Parameter stopFlag: set by `stop()`; a pass checks it and ends early.
  package init(_ parts: Parts, stopFlag: StopFlag = StopFlag()) {
    self.parts = parts
    self.stopFlag = stopFlag
  }

  /// Starts the thread.
  package func start() throws(LedgerError) {
    // A pass reads the whole log: client requests come first.
    let started = try WorkerThread.start(.niceness(5)) { [self] in run() }
    thread.withLock { $0 = started }
  }

  /// Ends a pass in progress, which the next writer finishes, and waits for the thread. Calling it again does nothing.
  package func stop() {
    stopFlag.set()
    stopped.open()
    thread.withLock { $0.take() }?.join()
  }

  // MARK: Thread

  /// The thread's state between its turns.
  private struct Memory {
    var schedule: ErasureSchedule
    /// The folder of the requests when they were read; nil if they must be read again.
    var stamp: FolderStamp?
    var open: [ErasureRecord] = []
    /// The time for which an operator has requested retention.
    var orderedRetentionMs: Int64?
    /// On the monotonic clock; nil while nothing has failed.
    var failedAtMs: Int64?
    /// Whether anything was ever erased.
    var hadErasures = false
    /// Whether a pass may have begun without finishing.
    var mayBeInterrupted = false
  }

  /// Detects that a folder has changed.
  private struct FolderStamp: Equatable {
    let status: FileStatus?
  }

  private func run() {
    var memory = Memory(schedule: ErasureSchedule(startMs: parts.clock.nowMs()))
    while !stopFlag.isSet {
      let nowMs = parts.clock.monotonicMs()
      let isPausing = memory.failedAtMs.map { nowMs - $0 < Self.failurePauseMs } ?? false
      if !isPausing { turn(&memory, nowMs) }
      stopped.wait(limitMs: parts.pauseMs)
    }
  }

  private func turn(_ memory: inout Memory, _ nowMs: Int64) {
    do throws(ErasureError) {
      try step(&memory)
      memory.failedAtMs = nil
    } catch {
      memory.failedAtMs = nowMs
      memory.stamp = nil
      if !stopFlag.isSet {
        parts.log(.error, "erasures: \(error); the next attempt is in a minute")
      }
    }
  }

  private func step(_ memory: inout Memory) throws(ErasureError) {
    if memory.mayBeInterrupted {
      try parts.finish()
      memory.mayBeInterrupted = false
    }
    try refresh(&memory)
    let configuration = parts.configuration()
    let rules = configuration.retention.rules
    let nowMs = parts.clock.nowMs()
    if !memory.hadErasures { memory.hadErasures = try hadErasures() }
    // An erasure may have kept receipts until the App Store replies.
    var due = memory.schedule.due(
      memory.open, hasRetention: rules != nil || memory.hadErasures,
      dailyAt: configuration.erasures.dailyAt, nowMs: nowMs)
    let orderedMs = rules == nil ? nil : memory.orderedRetentionMs
    if orderedMs != nil { due = .daily }
    guard let pass = due else { return }
    let retention = rules.map {
      Retention(rules: $0, nowMs: min(nowMs, orderedMs ?? nowMs), isOrdered: orderedMs != nil)
    }
    memory.mayBeInterrupted = true
    let result = try parts.run(pass == .daily ? retention : nil)
    memory.mayBeInterrupted = false
    if orderedMs != nil { try ErasureQueue(parts.directory).endRetention() }
    memory.schedule.end(pass, nowMs: nowMs)
    memory.stamp = nil
    report(result)
    try refresh(&memory)
  }

  private func hadErasures() throws(ErasureError) -> Bool {
    do throws(LedgerError) {
      return try parts.directory.reread().identity.formatVersion >= Format.versionWithRedactions
    } catch { throw .ledger(error) }
  }

  /// Reads the requests if their folder has changed: there may be thousands of finished ones.
  private func refresh(_ memory: inout Memory) throws(ErasureError) {
    let stamp: FolderStamp
    do throws(LedgerError) {
      stamp = FolderStamp(status: try parts.directory.root.status(ErasureQueue.folderName))
    } catch { throw .ledger(error) }
    if stamp == memory.stamp { return }
    let queue = ErasureQueue(parts.directory)
    memory.open = try queue.open()
    memory.orderedRetentionMs = try queue.orderedRetentionMs()
    let ageMs = Timestamp.now() - (stamp.status?.modifiedAtMs ?? 0)
    memory.stamp = ageMs < Self.freshMs ? nil : stamp
    parts.metrics.set(.erasuresWaiting, Double(memory.open.count))
  }

  private func report(_ result: Result) {
    if let held = result.heldRetention {
      parts.metrics.count(.alarms, label: OperatorAlarm.retentionHeld.metricLabel)
      parts.log(
        .warning,
        "retention: \(held.eventCount) events, recorded from "
          + "\(Timestamp.text(ms: held.firstRecordedAtMs)) to "
          + "\(Timestamp.text(ms: held.lastRecordedAtMs)): \(OperatorAlarm.retentionHeld.text)")
    }
    let records = result.records
    let certificates = records.filter { $0.state == .done }.compactMap(\.certificate)
    let eventCount = certificates.reduce(0) { $0 + $1.eventCount }
    parts.metrics.count(.erasuresDone, by: certificates.count)
    parts.metrics.count(.redactedEvents, by: eventCount)
    if !certificates.isEmpty {
      parts.log(
        .information, "erasures: \(certificates.count) carried out, \(eventCount) events redacted")
    }
    // Each request is tried once; its record keeps the cause.
    let failures = records.filter { $0.state == .failed }
    if let first = failures.first {
      parts.log(
        .error,
        "erasures: \(failures.count) failed, the first of them \(first.id): \(first.failure ?? "")")
    }
  }
}

// MARK: - Schedule

/// Decides when a pass is due: at once for an urgent request, otherwise once a day. A plain value: no clock, no files.
package struct ErasureSchedule: Sendable {
  /// What one pass carries out.
  package enum Pass: Equatable, Sendable {
    /// Requests alone.
    case requests
    /// Requests and retention.
    case daily
  }

  private static let dayMs: Int64 = 86_400_000

  /// The daily pass is due at the next scheduled time after this, in epoch milliseconds.
  private var sinceMs: Int64
  private var isFirstLook = true

  /// - Parameter startMs: when the server started, in epoch milliseconds.
  package init(startMs: Int64) { sinceMs = startMs }

  /// What is due now.
  /// - Parameters:
  ///   - open: the unfinished requests.
  ///   - hasRetention: whether anything is kept for a limited time only.
  package mutating func due(
    _ open: [ErasureRecord], hasRetention: Bool, dailyAt: TimeOfDay, nowMs: Int64
  ) -> Pass? {
    // A clock that ran ahead must not delay the next pass.
    sinceMs = min(sinceMs, nowMs)
    // At the start, a request that has waited for more than a day shows that a pass was missed.
    let isMissed = isFirstLook && open.contains { nowMs - $0.requestedAtMs > Self.dayMs }
    isFirstLook = false
    if isMissed { sinceMs = nowMs - Self.dayMs }
    if lastTime(dailyAt, nowMs) > sinceMs {
      if !open.isEmpty || hasRetention { return .daily }
      end(.daily, nowMs: nowMs)
      return nil
    }
    return open.contains { $0.isUrgent } ? .requests : nil
  }

  /// Records that a pass was carried out; a failed pass stays due.
  package mutating func end(_ pass: Pass, nowMs: Int64) {
    if pass == .daily { sinceMs = nowMs }
  }

  /// The last moment with this time of day.
  private func lastTime(_ time: TimeOfDay, _ nowMs: Int64) -> Int64 {
    let sinceTimeMs = (nowMs - time.milliseconds) % Self.dayMs
    return nowMs - (sinceTimeMs < 0 ? sinceTimeMs + Self.dayMs : sinceTimeMs)
  }
}
