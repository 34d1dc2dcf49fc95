// How long to wait before a call is made again.

/// Waits that grow from one failure to the next, at random below a bound, so that many callers do not come back at once.
package struct Backoff: Sendable {
  package static let firstMs = 200
  package static let longestMs = 30_000
  /// No store may stop a copy for longer.
  package static let retryAfterMsMax = 300_000

  private var random: any RandomNumberGenerator & Sendable
  private var boundMs = firstMs

  package init(random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()) {
    self.random = random
  }

  /// The wait after one more failure, in milliseconds.
  /// - Parameter retryAfterMs: what the store asks for: the wait is at least that, but at most five minutes.
  package mutating func next(retryAfterMs: Int? = nil) -> Int {
    let wait = Int.random(in: 1...boundMs, using: &random)
    boundMs = min(2 * boundMs, Self.longestMs)
    return max(wait, min(max(retryAfterMs ?? 0, 0), Self.retryAfterMsMax))
  }

  /// Something has succeeded.
  package mutating func reset() { boundMs = Self.firstMs }
}
