// What a fold does during its last events: each step once, in order, spread over them.
import TestSupport
import Testing

import Projections

@Suite struct ClosingStepsTests {
  private static let stepCount = 4 + Schema.earlyIndexes.count

  /// The numbers of events after which steps are taken, if the fold checks after each chunk.
  private static func turns(of total: Int, chunk: Int) -> [Int] {
    var steps = FinalTables(WritingPace())
    var turns: [Int] = []
    for end in stride(from: chunk, through: total, by: chunk) {
      while steps.next(after: end, of: total) != nil { turns.append(end) }
    }
    return turns
  }

  @Test(arguments: [(100_000, 20_000), (1_000_000, 65_536)])
  func stepsAreSpreadOverTheLastFifthOrLess(total: Int, closingCount: Int) {
    let turns = Self.turns(of: total, chunk: 100)
    expectEqual(turns.count, Self.stepCount)
    expectEqual(turns.first, (total - closingCount) / 100 * 100 + 100)
    let gaps = zip(turns, turns.dropFirst()).map { $1 - $0 }
    let gap = closingCount / Self.stepCount
    #expect(gaps.allSatisfy { gap - 100...gap + 100 ~= $0 })
  }

  @Test func beforeTheLastEventAllAreTakenInTheirOrder() {
    var steps = FinalTables(WritingPace())
    #expect(steps.next(after: 79_999, of: 100_000) == nil)
    var taken: [ClosingStep] = []
    while let step = steps.next(after: 99_999, of: 100_000) { taken.append(step) }
    expectEqual(taken.count, Self.stepCount)
    expectEqual(Array(taken.prefix(3)), [.users, .sales, .subscriptions])
    #expect(steps.next() == nil)
  }

  @Test(arguments: [0, 1, 4, 100_000])
  func behindTheLastEventTheyAreLeftForTheEnd(total: Int) {
    var steps = FinalTables(WritingPace())
    #expect(steps.next(after: total, of: total) == nil)
    var count = 0
    while steps.next() != nil { count += 1 }
    expectEqual(count, Self.stepCount)
  }
}
