// Counts latencies in buckets whose width grows with their value: less than 1 % off, in little memory.

/// A histogram of microseconds, from 0 to about 19 hours; what is longer counts as that.
package struct Histogram: Sendable {
  /// Values of one power of two fall into so many buckets.
  private static let bucketsPerOctave = 128
  private static let octaves = 30
  private static let capUs = UInt64(bucketsPerOctave) << (octaves - 1) - 1

  private var counts = [UInt64](repeating: 0, count: bucketsPerOctave * octaves)
  package private(set) var total: UInt64 = 0
  package private(set) var maxUs: UInt64 = 0
  private var sumUs: UInt64 = 0

  package init() {}

  package mutating func record(us: UInt64) {
    counts[Self.bucket(min(us, Self.capUs))] += 1
    total += 1
    maxUs = max(maxUs, us)
    sumUs &+= us
  }

  package var meanUs: UInt64 { total == 0 ? 0 : sumUs / total }

  /// The value that so many of a million are at most (rounded up to its bucket's end); 0 if empty.
  package func quantileUs(perMillion: UInt64) -> UInt64 {
    if total == 0 { return 0 }
    let (high, low) = total.multipliedFullWidth(by: perMillion)
    let product = UInt64(1_000_000).dividingFullWidth((high, low))
    let rank = max(product.quotient + (product.remainder > 0 ? 1 : 0), 1)
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() where count > 0 {
      seen += count
      if seen >= rank { return min(Self.lastValue(of: index), maxUs) }
    }
    return maxUs
  }

  private static func bucket(_ us: UInt64) -> Int {
    let width = UInt64.bitWidth - us.leadingZeroBitCount
    // The first two octaves have buckets of one microsecond.
    let shift = max(width - 8, 0)
    return shift * bucketsPerOctave + Int(us >> UInt64(shift))
  }

  private static func lastValue(of bucket: Int) -> UInt64 {
    if bucket < 2 * bucketsPerOctave { return UInt64(bucket) }
    let shift = bucket / bucketsPerOctave - 1
    let leading = UInt64(bucket - shift * bucketsPerOctave)
    return (leading + 1) << UInt64(shift) - 1
  }
}
