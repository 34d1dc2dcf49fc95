// Which folded or read events are kept in memory, and for how long.
import Ledger
import TestSupport
import Testing

import Projections

@Suite("Recent events") struct RecentEventsTests {
  /// A line with its own bytes: their content does not matter here.
  private static func line(_ position: Int, bytes: Int = 100) -> [UInt8] {
    Array(repeating: UInt8(truncatingIfNeeded: position), count: bytes)
  }

  @Test("a line is read once, then returned from memory")
  func readOnce() throws {
    let recent = RecentEvents()
    var reads: [Int] = []
    for position in [7, 3, 7, 7, 3] {
      let line = recent.line(at: position) { position in
        reads.append(position)
        return Self.line(position)
      }
      expectEqual(line, Self.line(position))
    }
    expectEqual(reads, [7, 3])
  }

  @Test("the oldest lines are dropped when the kept ones have too many bytes")
  func bound() {
    let recent = RecentEvents()
    let count = 100
    for position in 0..<count { recent.keep(Self.line(position, bytes: 1 << 20), at: position) }
    let kept = (0..<count).filter { recent.line(at: $0) != nil }
    expectEqual(kept, Array(count - 8..<count))
    expectEqual(recent.line(at: count - 1), Self.line(count - 1, bytes: 1 << 20))
  }

  @Test("a line larger than the limit stays alone, until the next one comes")
  func large() {
    let recent = RecentEvents()
    recent.keep(Self.line(1), at: 1)
    recent.keep(Self.line(2, bytes: 40 << 20), at: 2)
    #expect(recent.line(at: 1) == nil)
    #expect(recent.line(at: 2) != nil)
    recent.keep(Self.line(3), at: 3)
    #expect(recent.line(at: 2) == nil)
    #expect(recent.line(at: 3) != nil)
  }

  @Test("a line that is kept again counts once")
  func twice() {
    let recent = RecentEvents()
    for _ in 0..<100 { recent.keep(Self.line(1, bytes: 1 << 20), at: 1) }
    recent.keep(Self.line(2), at: 2)
    #expect(recent.line(at: 1) != nil)
  }
}
