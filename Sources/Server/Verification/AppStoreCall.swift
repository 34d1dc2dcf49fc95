// One call to the App Store, and the uploads that wait for its reply.
import Base
import Ledger

/// An upload that is durable and folded, and whose client waits.
struct Waiter: Sendable {
  let position: Position
  let response: PendingResponse
}

/// A receipt that is being asked about. What changes is guarded by the lock of the scheduler that keeps it.
final class AppStoreCall: @unchecked Sendable {
  enum Stage {
    /// Its upload is being appended.
    case reserved
    /// It waits in the queue of calls.
    case ready
    /// The App Store is being asked.
    case calling
    /// There is a result, which is being recorded.
    case judging
  }

  enum Source { case upload, queue }

  let receiptID: UUID16
  let appFamily: UUID16
  let receiptText: [UInt8]
  let source: Source
  /// Whether it is the circuit breaker's probe.
  var isProbe: Bool
  var stage: Stage
  var waiters: [Waiter] = []
  /// Attempts that failed before this call.
  let earlierAttempts: Int
  /// Whether it is repeated because of a first rejection.
  var isSecond = false

  init(
    _ receiptID: UUID16, of appFamily: UUID16, text: [UInt8], source: Source, stage: Stage,
    earlierAttempts: Int = 0, isProbe: Bool
  ) {
    self.receiptID = receiptID
    self.appFamily = appFamily
    receiptText = text
    self.source = source
    self.stage = stage
    self.earlierAttempts = earlierAttempts
    self.isProbe = isProbe
  }
}
