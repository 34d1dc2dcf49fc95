// Monitoring of the workflow: the health of appends and folds, messages, gauges.
import Base
import Intake
import Ledger
package import Projections

/// How bad a message is, numbered as by syslog.
package enum LogLevel: Int, Sendable {
  case error = 3
  case warning = 4
  case information = 6
}

/// Receives messages for the operator: one line, without a secret. Called on any thread.
package typealias OperatorLog = @Sendable (LogLevel, String) -> Void

/// Watches the results of all appends and folds.
final class AppendHealth: Sendable {
  /// How long after a failure the server makes an attempt itself: a full disk may have space again.
  static let retryMs: Int64 = 5_000

  private struct State {
    var isFatal = false
    /// When the last append failed; nil once one has succeeded.
    var refusedAtMs: Int64?
    /// When the last fold failed; nil once one has succeeded.
    var unfoldedAtMs: Int64?
  }

  private let state = Monitor(State())
  private let clock: WorkflowClock
  private let notes: OperatorNotes
  private let onFatal: @Sendable () -> Void

  init(_ clock: WorkflowClock, _ notes: OperatorNotes, onFatal: @escaping @Sendable () -> Void) {
    self.clock = clock
    self.notes = notes
    self.onFatal = onFatal
  }

  /// Whether the last append, or the last test of one, succeeded.
  var canAppend: Bool { state.withLock { !$0.isFatal && $0.refusedAtMs == nil } }

  /// Whether the last fold succeeded: otherwise no client gets a response.
  var canFold: Bool { state.withLock { $0.unfoldedAtMs == nil } }

  var isFatal: Bool { state.withLock { $0.isFatal } }

  /// Whether to try an append that no upload needs, to see whether appends succeed again. True once.
  func beginAppendRetry() -> Bool { !isFatal && beginRetry(after: \.refusedAtMs) }

  /// Whether to try a fold, to see whether folds succeed again. True once.
  func beginFoldRetry() -> Bool { beginRetry(after: \.unfoldedAtMs) }

  private func beginRetry(after failure: WritableKeyPath<State, Int64?>) -> Bool {
    let nowMs = clock.monotonicMs()
    return state.withLock { state in
      guard let failedAtMs = state[keyPath: failure], nowMs - failedAtMs >= Self.retryMs
      else { return false }
      state[keyPath: failure] = nowMs
      return true
    }
  }

  func recordSuccess() { state.withLock { $0.refusedAtMs = nil } }

  /// - Parameter isFatal: whether the writer rejects everything from now on.
  func recordFailure(_ error: LedgerError, isFatal: Bool) {
    let isFirst = state.withLock { state in
      defer { if isFatal { state.isFatal = true } }
      state.refusedAtMs = clock.monotonicMs()
      return isFatal && !state.isFatal
    }
    notes.fault("append", error)
    if isFirst { onFatal() }
  }

  /// Records the result of a fold.
  func recordFold(isGood: Bool) {
    let nowMs = isGood ? nil : clock.monotonicMs()
    state.withLock { $0.unfoldedAtMs = nowMs }
  }
}

/// Writes messages, and suppresses recent repetitions. No text may contain a secret.
package final class OperatorNotes: Sendable {
  /// The pause before the same message is written again.
  static let pauseMs: Int64 = 600_000
  /// More kinds than an installation has; beyond this the memory is cleared.
  private static let keysMax = 1024

  private let lastReportedMs = Monitor<[String: Int64]>([:])
  private let clock: WorkflowClock
  private let metrics: Metrics
  private let write: OperatorLog

  package init(_ clock: WorkflowClock, _ metrics: Metrics, write: @escaping OperatorLog) {
    self.clock = clock
    self.metrics = metrics
    self.write = write
  }

  /// Counts an alarm and reports it.
  func alarm(_ alarm: OperatorAlarm, appFamily: String) {
    metrics.count(.alarms, label: alarm.metricLabel)
    report("app family \(appFamily): \(alarm.text)", key: "\(appFamily) \(alarm.rawValue)")
  }

  /// Reports that customers pay for a product that its app does not declare.
  func undeclared(_ product: UndeclaredProduct) {
    report(
      PrintableText.shortened(
        "app family \(product.appFamilyID): product \(product.productID) is sold but not declared, so its "
          + "buyers get 402: \(product.declaringCommand)",
        to: 1024),
      key: "\(product.appFamilyID) undeclared \(product.productID)")
  }

  /// Reports a fault, beginning with the operation.
  func fault(_ operation: String, _ error: any Error) {
    // Errors of the ledger and of the projections contain no event data.
    let text = "\(error)"
    report(
      text.hasPrefix("\(operation): ") ? text : "\(operation): \(text)", key: operation, .error)
  }

  /// Writes a message, unless one with this key was written recently.
  func report(_ text: String, key: String, _ level: LogLevel = .warning) {
    let nowMs = clock.monotonicMs()
    let isDue = lastReportedMs.withLock { reported in
      if let last = reported[key], nowMs - last < Self.pauseMs { return false }
      if reported.count >= Self.keysMax { reported.removeAll() }
      reported[key] = nowMs
      return true
    }
    if isDue { write(level, text) }
  }
}

extension UndeclaredProduct {
  /// The shell command that declares it; an operator must replace TYPE.
  package var declaringCommand: String {
    "ledgerctl app edit \(shellQuoted(bundleID)) --product \(shellQuoted("\(productID)=TYPE"))"
  }
}

/// Quoting for a shell.
package func shellQuoted(_ word: String) -> String {
  let isPlain = word.utf8.allSatisfy { byte in
    (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
      || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "=")].contains(byte)
  }
  if isPlain, !word.isEmpty { return word }
  return "'"
    + word.split(separator: "'", omittingEmptySubsequences: false)
    .joined(separator: #"'\''"#) + "'"
}

/// Sets the gauges; used by the queue's thread.
final class WorkflowGauges {
  /// Counting the waiting receipts requires a walk over them.
  private static let summaryPauseMs: Int64 = 15_000

  private let shared: WorkflowShared
  private let setMore: @Sendable (Metrics) -> Void
  private var summarisedAtMs: Int64?
  /// Up to which event undeclared products have been reported.
  private var saidUndeclaredTo = -1

  init(_ shared: WorkflowShared, setMore: @escaping @Sendable (Metrics) -> Void) {
    (self.shared, self.setMore) = (shared, setMore)
  }

  func update() {
    setMore(shared.metrics)
    let (metrics, scheduler) = (shared.metrics, shared.scheduler)
    let figures = scheduler.figures
    metrics.set(.appStoreCallsInFlight, Double(figures.calling))
    metrics.set(.circuitOpen, figures.isCircuitOpen ? 1 : 0)
    let head = shared.writer.nextPosition
    metrics.set(.headPosition, Double(head))
    metrics.set(.unsealedBytes, Double(shared.writer.unsealedTails.byteCount))
    metrics.set(.clockSetBackSeconds, Double(shared.writer.clockSetBack.distanceMsMax) / 1000)
    metrics.set(.projectionLag, Double(max(0, head - shared.projections.position)))
    let nowMs = shared.clock.monotonicMs()
    if let summarisedAtMs, nowMs - summarisedAtMs < Self.summaryPauseMs { return }
    summarisedAtMs = nowMs
    do {
      let summary = try shared.projections.waitingSummary()
      metrics.set(.queueLength, Double(summary.receipts))
      let ageMs = summary.oldestMs.map { max(0, shared.clock.nowMs() - $0) } ?? 0
      metrics.set(.queueAgeSeconds, Double(ageMs) / 1000)
    } catch { shared.notes.fault("count the queue", error) }
    do { try checkProducts() } catch { shared.notes.fault("look for undeclared products", error) }
  }

  /// Reported when the server starts, and whenever another customer is affected: an undeclared product would turn
  /// paying customers into frauds.
  private func checkProducts() throws {
    let products = try shared.projections.undeclaredProducts()
    for product in products where product.lastPosition > saidUndeclaredTo {
      shared.notes.undeclared(product)
    }
    saidUndeclaredTo = products.map(\.lastPosition).max() ?? saidUndeclaredTo
    // Set last, so that a counted product is already reported.
    shared.metrics.set(.undeclaredProducts, Double(products.count))
  }
}
