// Makes the calls that the scheduler allows, and passes their results on.
import AppStore
import Base
import Ledger

/// The result of a call.
enum CallResult: Sendable {
  case answer(VerifyReceiptAnswer)
  case notMade(NoCallReason)
}

/// Makes calls; any thread may ask for it.
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
    let calls = scheduler.takeStartable()
    for call in calls.start {
      let request = VerifyReceiptRequest(
        receiptText: call.receiptText,
        sharedSecret: settings.sharedSecret(ofAppFamily: call.appFamily.description))
      service.verify(request) { [self] answer in end(call, answer) }
    }
    for (call, reason) in calls.skip { onResult(call, .notMade(reason)) }
  }

  private func end(_ call: AppStoreCall, _ answer: VerifyReceiptAnswer) {
    metrics.observe(.appStoreSeconds, seconds: Double(answer.durationMs) / 1000)
    scheduler.land(call, isAnswer: answer.isFromAppStore)
    onResult(call, .answer(answer))
    makeCalls()
  }
}

extension VerifyReceiptAnswer {
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
