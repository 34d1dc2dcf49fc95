// Calls to the App Store, with the uploads that wait for each reply.
import AppStore
import Base
import HTTPClient
import Ledger
import Projections

/// An upload that is durable and folded, whose client waits.
struct Waiter: Sendable {
  let upload: FoldedUpload
  let response: PendingResponse
}

/// A receipt that the App Store is asked about. Sendable because the lock of the scheduler that keeps it guards its
/// mutable state.
final class AppStoreCall: @unchecked Sendable {
  enum Stage {
    /// Its upload is being appended, or its receipt is being read.
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
  var stage = Stage.reserved
  var waiters: [Waiter] = []
  /// Attempts that failed before this call.
  let earlierAttempts: Int
  /// Whether it is repeated because of a first rejection.
  var isSecond = false
  /// Whether its receipt may have been redacted since it was read.
  var isStale = false

  init(
    _ receiptID: UUID16, of appFamily: UUID16, text: [UInt8], source: Source,
    earlierAttempts: Int = 0, isProbe: Bool
  ) {
    self.receiptID = receiptID
    self.appFamily = appFamily
    receiptText = text
    self.source = source
    self.earlierAttempts = earlierAttempts
    self.isProbe = isProbe
  }
}

/// The result of a call.
enum CallResult: Sendable {
  case answer(VerifyReceiptResponse)
  case notMade(NoCallReason)
}

/// Makes calls; any thread may request it.
final class AppStoreCaller: Sendable {
  private let scheduler: VerificationScheduler
  private let service: any VerifyReceiptService
  private let settings: WorkflowSettings
  private let metrics: Metrics
  private let onResult: @Sendable (AppStoreCall, CallResult) -> Void

  init(
    _ scheduler: VerificationScheduler, _ service: any VerifyReceiptService,
    _ settings: WorkflowSettings,
    _ metrics: Metrics, onResult: @escaping @Sendable (AppStoreCall, CallResult) -> Void
  ) {
    self.scheduler = scheduler
    self.service = service
    self.settings = settings
    self.metrics = metrics
    self.onResult = onResult
  }

  /// Makes every call that is allowed now.
  func makeCalls() {
    let calls = scheduler.popStartable()
    for call in calls.start {
      let request = VerifyReceiptRequest(
        receiptText: call.receiptText,
        sharedSecret: settings.sharedSecret(ofAppFamily: call.appFamily.description))
      service.verify(request) { [self] answer in end(call, answer) }
    }
    for (call, reason) in calls.skip { onResult(call, .notMade(reason)) }
  }

  private func end(_ call: AppStoreCall, _ answer: VerifyReceiptResponse) {
    metrics.observe(.appStoreSeconds, seconds: Double(answer.durationMs) / 1000)
    scheduler.endCall(call, isAnswer: answer.isFromAppStore)
    onResult(call, .answer(answer))
    makeCalls()
  }
}

extension VerifyReceiptResponse {
  /// Whether the App Store is available; nil if this program cancelled the call.
  fileprivate var isFromAppStore: Bool? {
    switch content {
    case .json: true
    case .other: false
    case .none(.cancelled): nil
    case .none: false
    }
  }
}
