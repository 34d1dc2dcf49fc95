// The events of an erasure: what they contain, and what they refuse.
import Base
import Ledger
import TestSupport
import Testing

@Suite struct DataRedactedTests {
  @Test(
    "A reason is a short code",
    arguments: [
      ("user_request", true), ("a", true), ("", false), ("1st", false), ("User", false),
      ("with space", false), (String(repeating: "a", count: 33), false),
    ])
  func reason(_ text: String, isReason: Bool) {
    expectEqual(DataRedacted.isReason(text), isReason)
  }

  @Test("Events are read as written")
  func roundTrip() throws {
    let digest = Array("kept".utf8).withUnsafeBytes { SHA256.hash($0) }
    let events: [DataRedacted] = [
      .opening(.init(request: .random(), scope: .user, reason: "user_request")),
      .listing(
        .init(
          erasure: 9, part: 1, partCount: 2, reason: "user_request",
          lines: [.init(position: 3, digest: digest), .init(position: 5, digest: digest)])),
    ]
    for event in events {
      try expectEqual(event.data.withUnsafeBytes { try DataRedacted(data: $0) }, event)
    }
  }
}
