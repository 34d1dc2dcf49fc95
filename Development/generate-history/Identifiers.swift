// Identifiers of transactions, line items and users: each pair of customer and ordinal has its own.
import ProgramSupport

/// Numbers that never meet: each pair of customer and ordinal has its own.
struct Identifiers: Sendable {
  let seed: UInt64

  /// A bijection of 48 bits, so that numbers look scattered and stay unique.
  private func scattered(customer: Int, ordinal: Int, stream: UInt64) -> UInt64 {
    let mask: UInt64 = 1 << 48 - 1
    var keys = RandomSource(seed: seed, stream)
    var word = (UInt64(customer) << 16 | UInt64(ordinal & 0xFFFF)) & mask
    for _ in 0..<2 {
      word = (word ^ keys.next()) & mask
      word = (word &* (keys.next() | 1)) & mask
      word ^= word >> 24
    }
    return word
  }

  /// 15 digits in production, 16 in the sandbox.
  func transaction(customer: Int, ordinal: Int, isSandbox: Bool) -> UInt64 {
    (isSandbox ? 2_000_000_000_000_000 : 410_000_000_000_000)
      + scattered(customer: customer, ordinal: ordinal, stream: 1)
  }

  func lineItem(customer: Int, ordinal: Int, isSandbox: Bool) -> UInt64 {
    (isSandbox ? 2_000_000_000_000_000 : 420_000_000_000_000)
      + scattered(customer: customer, ordinal: ordinal, stream: 2)
  }

  func user(customer: Int, ordinal: Int) -> UInt64 {
    scattered(customer: customer, ordinal: ordinal, stream: 3)
  }
}
