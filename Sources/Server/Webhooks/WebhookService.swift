// Webhooks of a running server: starts their thread when the first is configured, and ends it.
import Base
package import Ledger

/// Tells apps' back ends of sales, refunds and frauds. The owner stops it.
package final class WebhookService: Sendable {
  private let orders = Monitor(WebhookOrders())
  /// The loop's thread and what wakes it; nil while no webhook was ever configured.
  private let running = Monitor<(thread: WorkerThread, transfers: WebhookTransfers)?>(nil)
  private let start: @Sendable (WebhookTransfers) throws(SystemError) -> WorkerThread
  private let notes: OperatorNotes

  /// - Parameters:
  ///   - source: what is told; it must stay up to date.
  ///   - say: told what an operator should know; one line, without a secret.
  package init(
    _ directory: LedgerDirectory, _ source: any WebhookSource, metrics: Metrics,
    clock: WorkflowClock = WorkflowClock(), say: @escaping @Sendable (String) -> Void
  ) {
    let notes = OperatorNotes(clock, metrics, write: say)
    self.notes = notes
    start = { [orders] (transfers) throws(SystemError) in
      try WorkerThread(.niceness(5)) {
        WebhookLoop(orders, transfers, source, directory, clock, metrics, notes).run()
      }
    }
  }

  /// Applies a configuration.
  package func apply(_ configuration: Configuration) {
    let isStopping = orders.withLock { orders in
      orders.configuration = configuration
      return orders.isStopping
    }
    let hasWebhook = configuration.apps.values.contains { $0.webhook != nil }
    running.withLock { running in
      if running == nil, hasWebhook, !isStopping {
        guard let transfers = WebhookTransfers() else {
          return notes.fault("send webhooks", WebhookFault("libcurl cannot be initialised"))
        }
        do { running = (try start(transfers), transfers) } catch {
          notes.fault("send webhooks", WebhookFault("the system starts no more threads"))
        }
      }
      running?.transfers.wake()
    }
  }

  /// Forgets what waits to be delivered and reads it again, as stored events may have lost data. Returns when nothing
  /// is left of what was read before, or after ten seconds.
  package func forgetRedacted() {
    let latch = Latch()
    let isRunning = running.withLock { running in
      guard let running else { return false }
      orders.withLock { $0.forgetting.append(latch) }
      running.transfers.wake()
      return true
    }
    if isRunning { latch.wait(limitMs: 10_000) }
  }

  /// Gives up the deliveries under way, which will be sent again, and keeps how far it came. Calling it again does
  /// nothing.
  package func stop() {
    orders.withLock { $0.isStopping = true }
    let ended = running.withLock { running in
      defer { running = nil }
      return running
    }
    ended?.transfers.wake()
    ended?.thread.join()
  }
}
