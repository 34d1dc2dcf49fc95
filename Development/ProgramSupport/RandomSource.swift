// The only source of chance: the same numbers for the same seed on every machine.

/// A SplitMix64 generator. It is seeded from a path of numbers, so that each customer, upload and receipt has
/// a stream of its own that can be drawn again at any time.
package struct RandomSource: Sendable {
  private var state: UInt64

  package init(seed: UInt64, _ path: UInt64...) {
    state = Self.mixed(seed &+ 0x6A09_E667_F3BC_C909)
    for step in path { state = Self.mixed(state ^ Self.mixed(step &+ 0x9E37_79B9_7F4A_7C15)) }
  }

  /// A generator that begins at a state.
  package init(state: UInt64) { self.state = state }

  private static func mixed(_ value: UInt64) -> UInt64 {
    var word = value
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mixed(state)
  }

  /// An integer from 0 to `bound` - 1; `bound` must be positive.
  package mutating func below(_ bound: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  /// An integer within `range`.
  package mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.upperBound - range.lowerBound + 1)
  }

  /// True in so many cases of a thousand.
  package mutating func chance(_ perMille: Int) -> Bool { below(1000) < perMille }

  /// One of `choices`, which must not be empty.
  package mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
    choices[below(choices.count)]
  }

  /// The index of one of `weights`, each as likely as it weighs.
  package mutating func index(weighted weights: [Int]) -> Int {
    var rest = below(weights.reduce(0, +))
    for (index, weight) in weights.enumerated() {
      if rest < weight { return index }
      rest -= weight
    }
    return weights.count - 1
  }

  package mutating func appendBytes(_ count: Int, to bytes: inout [UInt8]) {
    var left = count
    while left > 0 {
      var word = next()
      for _ in 0..<min(8, left) {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
      left -= 8
    }
  }

  package mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    appendBytes(count, to: &bytes)
    return bytes
  }
}
