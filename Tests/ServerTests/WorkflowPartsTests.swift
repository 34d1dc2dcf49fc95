// The parts of the workflow that decide without threads: pauses, the heap, the circuit breaker.
import Base
import Server
import TestSupport
import Testing

@Suite("workflow parts") struct WorkflowPartsTests {
  @Test(
    "a pause doubles with each attempt, up to the ceiling",
    arguments: [
      (1, 10_000), (2, 20_000), (3, 40_000), (9, 2_560_000), (10, 3_600_000), (64, 3_600_000),
      (1_000_000, 3_600_000),
    ] as [(Int, Int64)])
  func pauseLimit(attempt: Int, limitMs: Int64) {
    let schedule = RetrySchedule(firstMs: 10_000, ceilingMs: 3_600_000)
    expectEqual(schedule.limitMs(attempt: attempt), limitMs)
  }

  @Test("impossible settings still give pauses", arguments: [(0, 0), (-5, -1), (100, 10)])
  func oddSettings(firstMs: Int64, ceilingMs: Int64) {
    let schedule = RetrySchedule(firstMs: firstMs, ceilingMs: ceilingMs)
    for attempt in 0..<70 { #expect(schedule.limitMs(attempt: attempt) > 0) }
  }

  @Test("pauses are spread over their whole range")
  func fullJitter() {
    var random = SeededRandom(seed: 7)
    let schedule = RetrySchedule(firstMs: 1000, ceilingMs: 1000)
    let pauses = (0..<2000).map { _ in schedule.pauseMs(attempt: 1, using: &random) }
    #expect(pauses.allSatisfy { 0...1000 ~= $0 })
    for quarter in 0..<4 {
      let range = Int64(quarter) * 250..<Int64(quarter + 1) * 250
      #expect(pauses.count(where: { range.contains($0) }) > 350)
    }
  }

  @Test("the heap returns entries by their time, each receipt once", arguments: [1, 2, 3, 4, 5])
  func heapOrder(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var heap = RetryHeap()
    var expected: [UUID16: Int64] = [:]
    let family = UUID16.random()
    let ids = (0..<50).map { _ in UUID16.random() }
    for _ in 0..<200 {
      let id = ids[Int.random(in: 0..<50, using: &random)]
      let dueMs = Int64.random(in: 0..<1000, using: &random)
      heap.insert(RetryEntry(dueMs: dueMs, receiptID: id, appFamily: family, attempt: 0))
      if expected[id] == nil { expected[id] = dueMs }
    }
    if seed.isMultiple(of: 2) {
      heap.update { $0.dueMs = 1000 - $0.dueMs }
      expected = expected.mapValues { 1000 - $0 }
    }
    expectEqual(heap.count, expected.count)
    var previousMs = Int64.min
    while let entry = heap.popFirst() {
      #expect(entry.dueMs >= previousMs)
      expectEqual(expected.removeValue(forKey: entry.receiptID), entry.dueMs)
      #expect(!heap.contains(entry.receiptID))
      previousMs = entry.dueMs
    }
    #expect(expected.isEmpty)
  }

  // MARK: The circuit breaker

  private func opened() -> CircuitBreaker {
    var breaker = CircuitBreaker()
    for _ in 0..<CircuitBreaker.failuresMax { breaker.recordFailure(isProbe: false, nowMs: 0) }
    return breaker
  }

  @Test("failures in a row open the breaker, and one success among them resets the count")
  func opening() {
    var breaker = CircuitBreaker()
    for _ in 0..<3 {
      for _ in 1..<CircuitBreaker.failuresMax { breaker.recordFailure(isProbe: false, nowMs: 0) }
      expectEqual(breaker.admit(nowMs: 0), .allowed)
      breaker.recordSuccess()
    }
    #expect(opened().isClosed == false)
  }

  @Test("an open breaker lets one call through after its pause")
  func probing() {
    var breaker = opened()
    let pauseMs = CircuitBreaker.firstPauseMs
    expectEqual(breaker.admit(nowMs: pauseMs - 1), .denied)
    expectEqual(breaker.admit(nowMs: pauseMs), .probe)
    expectEqual(breaker.admit(nowMs: pauseMs + 10_000_000), .denied)
    breaker.recordSuccess()
    #expect(breaker.isClosed)
    expectEqual(breaker.admit(nowMs: pauseMs), .allowed)
  }

  @Test("each failed probe doubles the pause, up to the longest")
  func longerPauses() {
    var breaker = opened()
    var nowMs = CircuitBreaker.firstPauseMs
    for expectedMs in [4_000, 8_000, 16_000, 30_000, 30_000] as [Int64] {
      expectEqual(breaker.admit(nowMs: nowMs), .probe)
      breaker.recordFailure(isProbe: true, nowMs: nowMs)
      expectEqual(breaker.probeAtMs, nowMs + expectedMs)
      nowMs += expectedMs
    }
  }

  @Test("a probe that was not made is given back, and late failures change nothing")
  func unmadeProbe() {
    var breaker = opened()
    breaker.recordFailure(isProbe: false, nowMs: 1_000)
    expectEqual(breaker.probeAtMs, CircuitBreaker.firstPauseMs)
    expectEqual(breaker.admit(nowMs: 5_000), .probe)
    breaker.recordFailure(isProbe: false, nowMs: 5_000)
    breaker.giveBackProbe(nowMs: 5_000)
    expectEqual(breaker.admit(nowMs: 5_000), .probe)
  }

  @Test("A probe that is asked for goes through at once")
  func probeNow() {
    var breaker = opened()
    breaker.probeNow(nowMs: 5)
    expectEqual(breaker.admit(nowMs: 5), .probe)
  }
}
