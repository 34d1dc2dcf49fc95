// Erasures of a running server: urgent requests at once, all others and retention once a day.
import Base
package import Erasure
package import Intake
package import Ledger

/// Looks at the queue of requests to erase and has them carried out. The owner that starts it stops it.
package final class ErasureWorker: Sendable {
  /// What it works with.
  package struct Parts: Sendable {
    package var directory: LedgerDirectory
    /// The configuration in effect.
    package var configuration: @Sendable () -> Configuration
    /// Finishes a pass that was interrupted.
    package var finish: @Sendable () throws(ErasureError) -> Void
    /// Carries out all open requests, and retention, in one pass.
    package var run: @Sendable (Retention?) throws(ErasureError) -> Result
    package var metrics: Metrics
    /// Told what an operator should know; one line, which names nobody.
    package var say: @Sendable (String) -> Void
    package var clock = WorkflowClock()
    /// How often it looks.
    package var pauseMs: Int64 = 1_000

    package init(
      directory: LedgerDirectory, configuration: @escaping @Sendable () -> Configuration,
      finish: @escaping @Sendable () throws(ErasureError) -> Void,
      run: @escaping @Sendable (Retention?) throws(ErasureError) -> Result,
      metrics: Metrics, say: @escaping @Sendable (String) -> Void
    ) {
      self.directory = directory
      self.configuration = configuration
      self.finish = finish
      self.run = run
      self.metrics = metrics
      self.say = say
    }
  }

  /// What a pass takes besides requests.
  package struct Retention: Sendable {
    package var rules: RetentionRules
    /// The time that decides what is over, in epoch milliseconds.
    package var nowMs: Int64
    /// Whether an operator has asked for it.
    package var isOrdered: Bool
  }

  /// What came of a pass.
  package struct Result: Sendable {
    package var records: [ErasureRecord]
    /// What retention would have taken, had it not been too much to be usual.
    package var heldRetention: RetentionPass?

    package init(_ records: [ErasureRecord], heldRetention: RetentionPass? = nil) {
      self.records = records
      self.heldRetention = heldRetention
    }
  }

  /// After a failure it tries again, and says so, no sooner.
  private static let failurePauseMs: Int64 = 60_000
  /// A file system's clock is coarse: a folder that changed so lately may change again and show it not.
  private static let freshMs: Int64 = 2_000

  private let parts: Parts
  private let stopFlag: StopFlag
  private let stopped = Latch()
  private let thread = Monitor<WorkerThread?>(nil)

  /// - Parameter stopFlag: set by `stop()`; a pass looks at it and ends early.
  package init(_ parts: Parts, stopFlag: StopFlag = StopFlag()) {
    self.parts = parts
    self.stopFlag = stopFlag
  }

  /// Starts the thread.
  package func start() throws(LedgerError) {
    // A pass reads the whole log: those who wait for answers come first.
    let started = try WorkerThread.start(.niceness(5)) { [self] in run() }
    thread.withLock { $0 = started }
  }

  /// Ends a pass under way, which the next writer finishes, and waits for the thread. Calling it again does nothing.
  package func stop() {
    stopFlag.set()
    stopped.open()
    thread.withLock { $0.take() }?.join()
  }

  // MARK: The thread

  /// What the thread remembers between its turns.
  private struct Memory {
    var schedule: ErasureSchedule
    /// The folder of the requests as it was when they were read; nil if they must be read again.
    var stamp: FolderStamp?
    var open: [ErasureRecord] = []
    /// As of when an operator has asked for retention.
    var orderedRetentionMs: Int64?
    /// On the clock that never goes back; nil while nothing has failed.
    var failedAtMs: Int64?
    /// Whether anything was ever erased.
    var hadErasures = false
    /// Whether a pass may have been begun and not finished.
    var mayBeInterrupted = false
  }

  /// Tells whether a folder has changed.
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
      if !stopFlag.isSet { parts.say("erasures: \(error); the next attempt is in a minute") }
    }
  }

  private func step(_ memory: inout Memory) throws(ErasureError) {
    if memory.mayBeInterrupted {
      try parts.finish()
      memory.mayBeInterrupted = false
    }
    try look(&memory)
    let configuration = parts.configuration()
    let rules = configuration.retention.rules
    let nowMs = parts.clock.nowMs()
    if !memory.hadErasures { memory.hadErasures = try hadErasures() }
    // An erasure may have left receipts until the App Store replies.
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
    try look(&memory)
  }

  private func hadErasures() throws(ErasureError) -> Bool {
    do throws(LedgerError) {
      return try parts.directory.reread().identity.formatVersion >= Format.versionWithRedactions
    } catch { throw .ledger(error) }
  }

  /// Reads the requests if their folder has changed: there may be thousands of finished ones.
  private func look(_ memory: inout Memory) throws(ErasureError) {
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
      parts.say(
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
      parts.say("erasures: \(certificates.count) carried out, \(eventCount) events redacted")
    }
    // Each is tried once; its record keeps the cause.
    let failures = records.filter { $0.state == .failed }
    if let first = failures.first {
      parts.say(
        "erasures: \(failures.count) failed, the first of them \(first.id): \(first.failure ?? "")")
    }
  }
}

// MARK: - When a running server carries out requests to erase. A plain value: no clock, no files

/// Decides when a pass is due: at once for an urgent request, else once a day.
package struct ErasureSchedule: Sendable {
  /// What is to be done in one pass.
  package enum Pass: Equatable, Sendable {
    /// Requests alone.
    case requests
    /// Requests, and what retention asks for.
    case daily
  }

  private static let dayMs: Int64 = 86_400_000

  /// The day's pass is due at the next time of the day after this, in epoch milliseconds.
  private var sinceMs: Int64
  private var isFirstLook = true

  /// - Parameter startMs: when the server started, in epoch milliseconds.
  package init(startMs: Int64) { sinceMs = startMs }

  /// What is due now.
  /// - Parameters:
  ///   - open: the requests that are not done.
  ///   - hasRetention: whether anything is kept for a limited time alone.
  package mutating func due(
    _ open: [ErasureRecord], hasRetention: Bool, dailyAt: TimeOfDay, nowMs: Int64
  ) -> Pass? {
    // A clock that ran ahead must not put off the next pass.
    sinceMs = min(sinceMs, nowMs)
    // After a start a request that has waited for more than a day tells that a pass was missed.
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

  /// Notes that a pass was carried out; one that failed stays due.
  package mutating func end(_ pass: Pass, nowMs: Int64) {
    if pass == .daily { sinceMs = nowMs }
  }

  /// The last moment with this time of the day.
  private func lastTime(_ time: TimeOfDay, _ nowMs: Int64) -> Int64 {
    let sinceTimeMs = (nowMs - time.milliseconds) % Self.dayMs
    return nowMs - (sinceTimeMs < 0 ? sinceTimeMs + Self.dayMs : sinceTimeMs)
  }
}
