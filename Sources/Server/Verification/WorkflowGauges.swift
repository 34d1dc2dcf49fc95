// Figures of the queue and the log, taken now and then.
import Ledger
import Projections

/// Sets the gauges; used by the queue's thread.
final class WorkflowGauges {
  /// Counting the receipts that wait takes a walk over them.
  private static let summaryPauseMs: Int64 = 15_000

  private let shared: WorkflowShared
  private var summarisedAtMs: Int64?
  /// Up to which event undeclared products have been said.
  private var saidUndeclaredTo = -1

  init(_ shared: WorkflowShared) { self.shared = shared }

  func update() {
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
    do { try lookAtProducts() } catch { shared.notes.fault("look for undeclared products", error) }
  }

  /// Reported when the server starts, and whenever another customer is affected: a product that was left out of the
  /// declaration would turn paying customers into frauds.
  private func lookAtProducts() throws {
    let products = try shared.projections.undeclaredProducts()
    shared.metrics.set(.undeclaredProducts, Double(products.count))
    for product in products where product.lastPosition > saidUndeclaredTo {
      shared.notes.undeclared(product)
    }
    saidUndeclaredTo = products.map(\.lastPosition).max() ?? saidUndeclaredTo
  }
}
