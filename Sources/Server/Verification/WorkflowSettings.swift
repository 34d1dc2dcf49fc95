// The workflow's settings: limits, configuration, clock.
import Base
import Glibc
import Intake

/// The two clocks that the workflow looks at.
package struct WorkflowClock: Sendable {
  /// Epoch milliseconds, for what is recorded.
  package var nowMs: @Sendable () -> Int64
  /// Milliseconds of a clock that never goes back, for pauses.
  package var monotonicMs: @Sendable () -> Int64

  package init(
    nowMs: @escaping @Sendable () -> Int64, monotonicMs: @escaping @Sendable () -> Int64
  ) {
    self.nowMs = nowMs
    self.monotonicMs = monotonicMs
  }

  /// The system's clocks.
  package init() {
    self.init(nowMs: { Timestamp.now() }, monotonicMs: { MonotonicClock.nowMs() })
  }
}

/// What of a configuration concerns the calls.
struct CallSettings {
  var callsMax: Int
  var schedule: RetrySchedule
  /// In milliseconds; 0 never.
  var reuseReplyMs: Int64

  init(_ configuration: Configuration) {
    callsMax = max(1, configuration.appStore.callsMax)
    schedule = RetrySchedule(
      firstMs: configuration.verification.retryFirstMs,
      ceilingMs: configuration.verification.retryCeilingMs)
    reuseReplyMs = max(0, configuration.verification.reuseReplyMs)
  }
}

/// The limits of work in progress, and the output of messages.
package struct WorkflowOptions: Sendable {
  /// Uploads that are accepted and not yet answered.
  package var uploadsMax = 8192
  /// The bytes of those uploads together.
  package var uploadBytesMax = 128 << 20
  /// Threads that decode and check receipts: half as many as there are processors, as other threads commit, fold,
  /// seal and serve. One takes more than 9,000 uploads a second.
  package var workerCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2)
  package var clock = WorkflowClock()
  /// Told what an operator should know; one line, without a secret.
  package var say: @Sendable (String) -> Void = { _ in }
  /// Told once when nothing can be appended any more.
  package var onFatal: @Sendable () -> Void = {}

  package init() {}
}

/// The configuration in force, and the checker of signatures that follows from it.
final class WorkflowSettings: Sendable {
  private struct Values {
    var configuration: Configuration
    var checker: any SignatureChecker & Sendable
  }

  private let values: Monitor<Values>

  init(_ configuration: Configuration, _ checker: any SignatureChecker & Sendable) {
    values = Monitor(Values(configuration: configuration, checker: checker))
  }

  var checker: any SignatureChecker & Sendable { values.withLock { $0.checker } }

  func sharedSecret(ofAppFamily id: String) -> [UInt8]? {
    values.withLock { $0.configuration.sharedSecrets[id] }
  }

  func acceptsSandbox(appFamily id: String) -> Bool {
    values.withLock { $0.configuration.apps[id]?.acceptsSandbox ?? true }
  }

  /// - Parameter checker: nil where whom to trust has not changed.
  func replace(
    _ configuration: Configuration, _ checker: (any SignatureChecker & Sendable)?
  ) {
    values.withLock { values in
      values.configuration = configuration
      if let checker { values.checker = checker }
    }
  }
}
