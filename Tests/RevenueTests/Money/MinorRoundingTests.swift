// Rounding to minor units: rows add up to the rounded total, and no row changes by a unit or more.
import Revenue
import TestSupport
import Testing

@Suite struct MinorRoundingTests {
  private func currency(_ code: String) throws -> Currency { try #require(Currency.parse(code)) }

  @Test(
    "the total is rounded half to even, and the largest remainders are rounded up; of equals the earlier",
    arguments: [
      ("EUR", [], []),
      ("EUR", [1_230_000, -40_000], [1_230_000, -40_000]),
      // 0.333 three times: the total of 0.999 is 1.00.
      ("EUR", [333_000, 333_000, 333_000], [340_000, 330_000, 330_000]),
      // Half a cent goes to the even cent.
      ("EUR", [5000], [0]), ("EUR", [15_000], [20_000]), ("EUR", [-5000], [0]),
      ("EUR", [-15_000], [-20_000]),
      ("EUR", [14_000, 16_000, 15_000], [10_000, 20_000, 10_000]),
      ("EUR", [-3000, -3000, -3000], [0, 0, -10_000]),
      ("EUR", [6000, -6000], [10_000, -10_000]),
      // No minor unit, three digits, and four.
      ("JPY", [400_000, 400_000, 300_000], [1_000_000, 0, 0]),
      ("KWD", [1_000_400, 1_000_600], [1_000_000, 1_001_000]),
      ("CLF", [150, 50, 100], [200, 0, 100]),
    ] as [(String, [Int], [Int])])
  func roundsByLargestRemainder(_ code: String, _ amounts: [Int], _ expected: [Int]) throws {
    let rounded = MinorRounding.rounded(amounts.map { Int128($0) }, try currency(code))
    expectEqual(rounded, expected.map { Int128($0) })
  }

  @Test func rowsAddUpToTheRoundedTotalAndNoneMovesByAUnit() throws {
    var random = SeededRandom()
    let seed = random.seed
    let units = ["JPY": 1_000_000, "EUR": 10_000, "KWD": 1000, "CLF": 100].mapValues { Int128($0) }
    for round in 0..<400 {
      let code = random.pick(units.keys.sorted())
      let unit = try #require(units[code])
      // From amounts of a few micros, all remainders, to sums beyond 64 bits.
      let size = random.pick([3, 2_000_000, 90_000_000_000, Int.max])
      let factor: Int128 = random.chance(percent: 20) ? 1_000_000_007 : 1
      let isWhole = random.chance(percent: 30)
      let amounts = (0..<random.below(40)).map { _ -> Int128 in
        let micros = Int128(random.below(size)) * factor * (random.chance(percent: 40) ? -1 : 1)
        return isWhole && random.chance(percent: 80) ? micros / unit * unit : micros
      }
      let rounded = MinorRounding.rounded(amounts, try currency(code))
      let total = MinorRounding.halfToEven(amounts.reduce(0, +), try currency(code))
      let place: Comment = "seed \(seed), round \(round), \(code)"
      expectEqual(rounded.reduce(0, +), total, place)
      for (exact, shown) in zip(amounts, rounded) {
        expectEqual(shown % unit, 0, place)
        #expect((shown - exact).magnitude < unit.magnitude, place)
        if exact % unit == 0 { expectEqual(shown, exact, place) }
      }
    }
  }

  @Test(arguments: [
    (5000, 0), (5001, 10_000), (15_000, 20_000), (25_000, 20_000), (-5000, 0), (-5001, -10_000),
    (-15_000, -20_000), (-25_000, -20_000), (9_990_000, 9_990_000), (0, 0),
  ]) func singleAmountIsRoundedHalfToEven(_ micros: Int, _ expected: Int) throws {
    expectEqual(MinorRounding.halfToEven(Int128(micros), try currency("EUR")), Int128(expected))
  }
}
