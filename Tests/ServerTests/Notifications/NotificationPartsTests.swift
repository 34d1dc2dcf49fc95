// The rate limit of a bundle's Sandbox, and the claims of UUIDs.
import Base
import TestSupport
import Testing

import Server

@Suite("parts of the path of notifications") struct NotificationPartsTests {
  @Test("a bucket holds four seconds' tokens and fills evenly") func bucket() {
    var bucket = TokenBucket(perSecond: 3, nowMs: 1000)
    for _ in 0..<12 { #expect(bucket.consume(perSecond: 3, nowMs: 1000) == nil) }
    expectEqual(bucket.consume(perSecond: 3, nowMs: 1000), 1)
    expectEqual(bucket.consume(perSecond: 3, nowMs: 1333), 1)
    #expect(bucket.consume(perSecond: 3, nowMs: 1334) == nil)
    // A clock that goes back neither adds nor removes tokens, and time that passes again adds none.
    expectEqual(bucket.consume(perSecond: 3, nowMs: 0), 1)
    expectEqual(bucket.consume(perSecond: 3, nowMs: 1334), 1)
    for _ in 0..<12 { #expect(bucket.consume(perSecond: 3, nowMs: .max) == nil) }
    expectEqual(bucket.consume(perSecond: 3, nowMs: .max), 1)
    // A lower rate cuts what was saved.
    expectEqual(TokenBucket(perSecond: 100, nowMs: 0).tokens(perSecond: 1, nowMs: 0), 4)
  }

  private func response(_ load: AdmissionLimiter) -> PendingResponse {
    PendingResponse(load, bytes: 0) { _ in }
  }

  @Test("a UUID is claimed once, joined, made durable, and forgotten once it is folded")
  func registry() {
    let load = AdmissionLimiter(countMax: 100, bytesMax: 100)
    let registry = NotificationRegistry(entriesMax: 2)
    let (one, two, three) = (
      NotificationRegistry.key(of: "1"), NotificationRegistry.key(of: "2"),
      NotificationRegistry.key(of: "3")
    )
    func claim(_ key: NotificationRegistry.Key, foldedTo: Int = 0) -> NotificationRegistry.Claim {
      _ = load.admit(bytes: 0)
      return registry.claim(key, response(load), foldedTo: foldedTo)
    }
    expectEqual(claim(one), .first)
    expectEqual(claim(one), .joined)
    expectEqual(claim(two), .first)
    expectEqual(claim(three), .full)
    expectEqual(registry.recordDurable(one, at: 7).count, 1)
    expectEqual(claim(one), .durable)
    expectEqual(claim(one, foldedTo: 7), .durable)
    #expect(registry.abandon(two).isEmpty)
    expectEqual(claim(two), .first)
    expectEqual(claim(three, foldedTo: 8), .first)
    expectEqual(registry.count, 2)
    expectEqual(claim(two, foldedTo: 8), .joined)
    expectEqual(registry.abandon(two).count, 1)
    expectEqual(claim(one, foldedTo: 8), .first)
  }
}

extension TokenBucket {
  /// How many tokens are available at once.
  fileprivate func tokens(perSecond: Int, nowMs: Int64) -> Int {
    var copy = self
    var count = 0
    while copy.consume(perSecond: perSecond, nowMs: nowMs) == nil { count += 1 }
    return count
  }
}
