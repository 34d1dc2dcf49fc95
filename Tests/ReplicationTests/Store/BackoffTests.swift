// The pause before a call is repeated.
import Replication
import TestSupport
import Testing

@Suite("pauses between attempts") struct BackoffTests {
  @Test("the limit doubles from 200 ms to 30 s, and pauses lie anywhere below it")
  func bounds() {
    var random = SeededRandom()
    print("seed \(random.seed)")
    var longest = [Int](repeating: 0, count: 12)
    for _ in 0..<500 {
      var backoff = Backoff(random: SeededRandom(seed: random.next()))
      for place in longest.indices { longest[place] = max(longest[place], backoff.next()) }
    }
    for (place, wait) in longest.enumerated() {
      let bound = min(200 << place, 30_000)
      #expect((bound / 2...bound).contains(wait), "seed \(random.seed)")
    }
  }

  @Test("the same seed gives the same pauses; a success resets them")
  func seeds() {
    var (one, other) = (
      Backoff(random: SeededRandom(seed: 7)), Backoff(random: SeededRandom(seed: 7))
    )
    expectEqual((0..<9).map { _ in one.next() }, (0..<9).map { _ in other.next() })
    one.reset()
    #expect(one.next() <= Backoff.firstMs)
  }

  @Test("a pause is at least what the store asks for, but at most five minutes")
  func retryAfter() {
    var backoff = Backoff()
    expectEqual(backoff.next(retryAfterMs: 5_000), 5_000)
    expectEqual(backoff.next(retryAfterMs: .max), Backoff.retryAfterMsMax)
    #expect((1...800).contains(backoff.next(retryAfterMs: -1)))
  }
}
