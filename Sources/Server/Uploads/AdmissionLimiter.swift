// Limits the work in progress, and sends the response to each client exactly once.
import Base

/// How much work is in progress, and its limits.
package final class AdmissionLimiter: Sendable {
  private struct State {
    var countMax: Int
    var count = 0
    var bytes = 0
  }

  private let bytesMax: Int
  private let state: Monitor<State>

  /// - Parameters:
  ///   - countMax: uploads that are accepted and have no response yet.
  ///   - bytesMax: of those uploads together.
  package init(countMax: Int, bytesMax: Int) {
    state = Monitor(State(countMax: countMax))
    self.bytesMax = bytesMax
  }

  /// Changes the limit. What was admitted stays admitted.
  func replace(countMax: Int) { state.withLock { $0.countMax = countMax } }

  /// Admits one more; false at the limit.
  package func admit(bytes: Int) -> Bool {
    state.withLock { state in
      guard state.count < state.countMax, state.bytes + bytes <= bytesMax || state.count == 0
      else { return false }
      state.count += 1
      state.bytes += bytes
      return true
    }
  }

  /// Whether another request would be admitted, as far as can be told without its size.
  var hasRoom: Bool { state.withLock { $0.count < $0.countMax && $0.bytes < bytesMax } }

  fileprivate func release(bytes: Int) {
    state.withLock { state in
      state.count -= 1
      state.bytes -= bytes
    }
  }

  /// How many requests await their response.
  package var count: Int { state.withLock { $0.count } }
}

/// A client's request that awaits its response, and its share of the limit.
package final class PendingResponse: Sendable {
  private let load: AdmissionLimiter
  private let bytes: Int
  private let completion: Monitor<(@Sendable (ClientResponse) -> Void)?>

  /// The request must have been admitted.
  package init(
    _ load: AdmissionLimiter, bytes: Int, _ completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    self.load = load
    self.bytes = bytes
    self.completion = Monitor(completion)
  }

  /// Sends the response; later ones are dropped.
  func answer(_ answer: ClientResponse) {
    guard let completion = completion.withLock({ $0.take() }) else { return }
    load.release(bytes: bytes)
    completion(answer)
  }

  // A lost request must not leave its client waiting.
  deinit { answer(.unavailable(retryAfterSeconds: 5)) }
}
