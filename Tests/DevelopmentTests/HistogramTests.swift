// The load generator's histogram against the exact quantiles of the same numbers.
import TestSupport
import Testing
import upload_load

@Suite("The latency histogram")
struct HistogramTests {
  @Test("a quantile is the exact one, or less than one percent more")
  func quantiles() {
    var random = SeededRandom()
    for _ in 0..<40 {
      var values: [UInt64] = []
      var histogram = Histogram()
      let greatest = UInt64(1) << UInt64(random.below(36) + 1)
      for _ in 0..<(random.below(2_000) + 1) {
        let value = UInt64.random(in: 0..<greatest, using: &random)
        values.append(value)
        histogram.record(us: value)
      }
      values.sort()
      for perMillion: UInt64 in [1, 100_000, 500_000, 990_000, 999_000, 1_000_000] {
        let rank = (values.count * Int(perMillion) + 999_999) / 1_000_000
        let exact = values[max(rank, 1) - 1]
        let found = histogram.quantileUs(perMillion: perMillion)
        #expect(
          found >= exact && found <= exact + exact / 100,
          "seed \(random.seed): \(perMillion) of \(values.count): \(found), not \(exact)")
      }
      #expect(histogram.total == UInt64(values.count) && histogram.maxUs == values.last)
    }
  }

  @Test("an empty histogram gives 0; a value beyond all buckets counts as the largest")
  func extremes() {
    var histogram = Histogram()
    #expect(histogram.quantileUs(perMillion: 500_000) == 0 && histogram.meanUs == 0)
    histogram.record(us: 0)
    expectEqual(histogram.quantileUs(perMillion: 1_000_000), 0)
    histogram.record(us: UInt64.max)
    expectEqual(histogram.maxUs, UInt64.max)
    expectEqual(histogram.quantileUs(perMillion: 1_000_000), 1 << 36 - 1)
  }
}
