// Messages to the operator, with repetitions suppressed for a while.
import Base
import Intake
import Projections

/// Writes messages, and suppresses recent repetitions. No text may contain a secret.
final class OperatorNotes: Sendable {
  /// The pause before the same message is written again.
  static let pauseMs: Int64 = 600_000
  /// More kinds than an installation has; beyond it the memory is cleared.
  private static let keysMax = 1024

  private let lastSaidMs = Monitor<[String: Int64]>([:])
  private let clock: WorkflowClock
  private let metrics: Metrics
  private let write: @Sendable (String) -> Void

  init(_ clock: WorkflowClock, _ metrics: Metrics, write: @escaping @Sendable (String) -> Void) {
    self.clock = clock
    self.metrics = metrics
    self.write = write
  }

  /// Counts an alarm and reports it.
  func alarm(_ alarm: OperatorAlarm, appFamily: String) {
    metrics.count(.alarms, label: alarm.metricLabel)
    say("app family \(appFamily): \(alarm.text)", key: "\(appFamily) \(alarm.rawValue)")
  }

  /// Reports that customers pay for a product that its app does not declare.
  func undeclared(_ product: UndeclaredProduct) {
    say(
      PrintableText.shortened(
        "app family \(product.appFamilyID): product \(product.productID) is sold but not declared, so its "
          + "buyers get 402: \(product.declaringCommand)",
        to: 1024),
      key: "\(product.appFamilyID) undeclared \(product.productID)")
  }

  /// Reports a fault, operation first.
  func fault(_ operation: String, _ error: any Error) {
    // Errors of the ledger and of the projections contain no event data.
    say("\(operation): \(error)", key: operation)
  }

  private func say(_ text: String, key: String) {
    let nowMs = clock.monotonicMs()
    let isDue = lastSaidMs.withLock { said in
      if let last = said[key], nowMs - last < Self.pauseMs { return false }
      if said.count >= Self.keysMax { said.removeAll() }
      said[key] = nowMs
      return true
    }
    if isDue { write(text) }
  }
}
