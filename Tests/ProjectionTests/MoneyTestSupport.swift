// Helpers of the money and period tests: a seeded generator and raw bytes of a string.

/// A small deterministic generator (SplitMix64), so that a failing case can be run again.
struct MoneyTestRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func digits(_ count: Int) -> String {
    (0..<count).map { _ in String(Int.random(in: 0...9, using: &self)) }.joined()
  }
}

func withRawBytes<Value>(_ text: String, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
  var text = text
  return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
}
