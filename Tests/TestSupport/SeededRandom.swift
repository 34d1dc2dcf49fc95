// Random numbers, reproducible from a printed seed.

/// SplitMix64: the same numbers for the same seed, everywhere.
package struct SeededRandom: RandomNumberGenerator, Sendable {
  /// Reproduces the numbers; a failure prints it.
  package let seed: UInt64
  private var state: UInt64

  package init(seed: UInt64 = UInt64.random(in: 0..<1_000_000)) {
    self.seed = seed
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }

  /// A number from 0 to `bound` - 1.
  package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

  /// True in `percent` of a hundred cases.
  package mutating func chance(percent: Int) -> Bool { below(100) < percent }

  /// One of the elements; there must be one.
  package mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[below(elements.count)]
  }

  package mutating func bytes(count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
  }

  /// A text of this many decimal digits.
  package mutating func digits(_ count: Int) -> String {
    (0..<count).map { _ in String(below(10)) }.joined()
  }
}
