// How fast each bundle's Sandbox may add notifications: testers, and strangers with a Sandbox account, are not to
// fill the log.
import Base

/// A token bucket: it fills at a given rate, and holds what comes in `burstSeconds`.
package struct TokenBucket: Sendable {
  /// How many seconds' tokens it holds.
  static let burstSeconds: Int64 = 4
  private static let unit: Int64 = 1000

  /// In thousandths of a token.
  private var level: Int64
  private var filledAtMs: Int64

  package init(perSecond: Int, nowMs: Int64) {
    level = Self.capacity(perSecond)
    filledAtMs = nowMs
  }

  private static func capacity(_ perSecond: Int) -> Int64 {
    burstSeconds * Int64(perSecond) * unit
  }

  /// Takes a token.
  /// - Parameter nowMs: on a clock that never goes back.
  /// - Returns: nil; where there is none, the seconds until there will be, rounded up.
  package mutating func take(perSecond: Int, nowMs: Int64) -> Int? {
    let capacity = Self.capacity(perSecond)
    // Longer fills it anyway, and could not be multiplied.
    let elapsedMs = max(0, min(nowMs - filledAtMs, Self.burstSeconds * 1000))
    level = min(capacity, level + elapsedMs * Int64(perSecond))
    filledAtMs = max(filledAtMs, nowMs)
    guard level >= Self.unit else {
      let missingMs = (Self.unit - level + Int64(perSecond) - 1) / Int64(perSecond)
      return Int((missingMs + 999) / 1000)
    }
    level -= Self.unit
    return nil
  }
}

/// A bucket for each bundle. There are as many as registered bundles at most: only their notifications come this far.
final class SandboxLimiter: Sendable {
  private let buckets = Monitor<[String: TokenBucket]>([:])

  /// Takes a token of a registered bundle.
  /// - Returns: nil; where there is none, the seconds until there will be.
  func take(bundleID: String, perSecond: Int, nowMs: Int64) -> Int? {
    buckets.withLock {
      $0[bundleID, default: TokenBucket(perSecond: perSecond, nowMs: nowMs)]
        .take(perSecond: perSecond, nowMs: nowMs)
    }
  }
}
