// With `sync`, an append returns when the copy has confirmed it.
import Base
package import Ledger

/// Makes appends wait until their events are in a step of the copy.
package final class ReplicationGate: AppendConfirmation {
  private static let operation = "append"

  private let exchange: ReplicationExchange
  private let limitMs: Int64

  init(_ exchange: ReplicationExchange, limitMs: Int64) {
    self.exchange = exchange
    self.limitMs = limitMs
  }

  /// Waits until all events before a position are in the copy.
  ///
  /// Throws `standby` if another writer has taken over, and `unconfirmed` if it takes longer than the limit. Once the
  /// store has been away for that long, no caller waits any more; the events are copied when it is back.
  package func waitUntilConfirmed(_ end: Position, sinceMs: Int64) throws(LedgerError) {
    exchange.monitor.withLock { state in
      state.demand = max(state.demand, end)
      state.isWoken = true
    }
    let waitedMs = max(0, MonotonicClock.nowMs() - sinceMs)
    try wait(limitMs: max(0, limitMs - waitedMs)) { $0.status.confirmedSize >= end }
  }

  /// Waits until what is on disk of open work is in the copy: how far webhooks came, and requests to erase.
  ///
  /// Throws what `waitUntilConfirmed` throws.
  package func waitForOpenWork() throws(LedgerError) {
    let demand = exchange.monitor.withLock { state in
      state.workDemand += 1
      state.isWoken = true
      return state.workDemand
    }
    try wait(limitMs: limitMs) { $0.confirmedWorkDemand >= demand }
  }

  private func wait(
    limitMs restMs: Int64, until isConfirmed: (ReplicationExchange.State) -> Bool
  ) throws(LedgerError) {
    exchange.monitor.signal(ReplicationExchange.Condition.wake)
    let hasEnded = try exchange.monitor.wait(
      on: ReplicationExchange.Condition.progress, limitMs: restMs
    ) { state throws(LedgerError) -> Bool? in
      // An event that was confirmed before another writer took over is in that writer's history too.
      // What is missing may be what comes before it.
      if isConfirmed(state), state.status.missingCount == 0 { return true }
      if let ending = state.status.ending {
        throw ending.ledgerError(operation: Self.operation, object: state.status.target)
      }
      if state.hasEnded { throw self.unconfirmed(state, "replication has stopped") }
      if let failure = state.failure,
        MonotonicClock.nowMs() - failure.sinceMonotonicMs >= self.limitMs
      {
        throw self.unconfirmed(state, failure.error)
      }
      return nil
    }
    guard hasEnded == nil else { return }
    throw exchange.monitor.withLock { state in
      unconfirmed(
        state,
        "no copy has confirmed it within \(limitText)"
          + (state.status.missingCount > 0
            ? "; the copy lacks \(state.status.missingCount) objects" : "")
          + (state.failure.map { ": \($0.error)" } ?? ""))
    }
  }

  private var limitText: String {
    limitMs % 1000 == 0 ? "\(limitMs / 1000) s" : "\(limitMs) ms"
  }

  private func unconfirmed(_ state: ReplicationExchange.State, _ cause: String) -> LedgerError {
    LedgerError(
      .unconfirmed, operation: Self.operation, object: state.status.target, cause: cause)
  }
}
