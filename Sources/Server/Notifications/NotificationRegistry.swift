// The notifications that are being appended, or durable and not folded yet; and the Sandbox's limit.
package import Base
package import Ledger

/// Prevents a notification from being appended twice. Folded notifications are in the projections and leave the
/// registry.
///
/// Before an append, the caller claims the UUID and then asks the projections. A UUID leaves only after it was folded,
/// so a UUID in neither place is new.
package final class NotificationRegistry: Sendable {
  /// The SHA-256 of `notificationUUID` as sent.
  package typealias Key = SHA256Digest

  package enum Claim: Equatable {
    /// The caller must append it, or abandon the claim.
    case first
    /// Another caller is appending it; a response is kept until that is decided.
    case joined
    /// It is durable.
    case durable
    /// Too many notifications wait for a fold.
    case full
  }

  private enum Entry {
    case underWay(waiting: [PendingResponse])
    case durable
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    /// The durable ones, roughly in the order of their positions.
    var unfolded = FIFO<(key: Key, position: Position)>()
  }

  /// About 100 bytes each.
  static let entriesMax = 65_536

  private let state = Monitor(State())
  private let entriesMax: Int

  package init(entriesMax: Int = NotificationRegistry.entriesMax) { self.entriesMax = entriesMax }

  package static func key(of uuid: String) -> Key {
    Array(uuid.utf8).withUnsafeBytes { SHA256.hash($0) }
  }

  /// Claims a UUID for one request, or for a synchronization.
  /// - Parameters:
  ///   - response: the request's; nil for a synchronization, which has no client to answer.
  ///   - foldedTo: the position up to which the projections have folded.
  package func claim(_ key: Key, _ response: PendingResponse?, foldedTo: Position) -> Claim {
    state.withLock { state in
      Self.removeFolded(&state, foldedTo)
      switch state.entries[key] {
      case .durable?: return .durable
      case .underWay(let waiting)?:
        if let response { state.entries[key] = .underWay(waiting: waiting + [response]) }
        return .joined
      case nil:
        guard state.entries.count < entriesMax else { return .full }
        state.entries[key] = .underWay(waiting: [])
        return .first
      }
    }
  }

  /// Ends a claim without an append.
  /// - Returns: the responses that had joined it.
  package func abandon(_ key: Key) -> [PendingResponse] {
    state.withLock { Self.waiting(for: $0.entries.removeValue(forKey: key)) }
  }

  /// Ends a claim with a durable event. An event recorded after a later position is kept slightly longer than
  /// necessary.
  /// - Returns: the responses that had joined it.
  package func recordDurable(_ key: Key, at position: Position) -> [PendingResponse] {
    state.withLock { state in
      state.unfolded.append((key, position))
      return Self.waiting(for: state.entries.updateValue(.durable, forKey: key))
    }
  }

  /// How many UUIDs it holds.
  package var count: Int { state.withLock { $0.entries.count } }

  private static func waiting(for entry: Entry?) -> [PendingResponse] {
    if case .underWay(let waiting)? = entry { waiting } else { [] }
  }

  private static func removeFolded(_ state: inout State, _ foldedTo: Position) {
    while let first = state.unfolded.first, first.position < foldedTo {
      state.entries[first.key] = nil
      _ = state.unfolded.popFirst()
    }
  }
}

// MARK: - Sandbox limit

/// A token bucket: it fills at a given rate, and holds the tokens of `burstSeconds`.
package struct TokenBucket: Sendable {
  /// The number of seconds whose tokens it holds.
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
  /// - Parameter nowMs: on a monotonic clock.
  /// - Returns: nil; if there is no token, the seconds until there will be one, rounded up.
  package mutating func consume(perSecond: Int, nowMs: Int64) -> Int? {
    let capacity = Self.capacity(perSecond)
    // A longer time fills it anyway, and its product could overflow.
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

/// Limits how fast the Sandbox of each bundle may add notifications, so that strangers can't fill the log. There are at
/// most as many buckets as registered bundles: only their notifications come this far.
final class SandboxLimiter: Sendable {
  private let buckets = Monitor<[String: TokenBucket]>([:])

  /// Takes a token of a registered bundle.
  /// - Returns: nil; if there is no token, the seconds until there will be one.
  func consume(bundleID: String, perSecond: Int, nowMs: Int64) -> Int? {
    buckets.withLock {
      $0[bundleID, default: TokenBucket(perSecond: perSecond, nowMs: nowMs)]
        .consume(perSecond: perSecond, nowMs: nowMs)
    }
  }
}
