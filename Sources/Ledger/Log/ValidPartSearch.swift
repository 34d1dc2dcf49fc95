// Searches for valid parts after invalid ones, which distinguishes damage from a torn write.
import Glibc

/// Iterates over the offsets at which a valid frame or member could begin.
struct ValidPartSearch {
  private let bytes: UnsafeRawBufferPointer
  private let start: UInt8
  private var offset = 0
  // Crafted bytes could have a plausible header at every offset. The total number of checksummed bytes is limited;
  // reaching the limit counts as damage.
  private var budgetBytes = 1 << 30

  /// Searches for parts that begin with a given byte, except at the very first offset.
  init(_ bytes: UnsafeRawBufferPointer, start: UInt8) {
    self.bytes = bytes
    self.start = start
  }

  /// All bytes from the next candidate offset on.
  mutating func next() -> UnsafeRawBufferPointer? {
    guard let base = bytes.baseAddress, offset + 1 < bytes.count,
      let place = memchr(base + offset + 1, Int32(start), bytes.count - offset - 1)
    else { return nil }
    offset = UnsafeRawPointer(place) - base
    return UnsafeRawBufferPointer(rebasing: bytes[offset...])
  }

  /// Subtracts a checksum's bytes from the budget; false if the budget is used up.
  mutating func spend(_ byteCount: Int) -> Bool {
    budgetBytes -= byteCount
    return budgetBytes >= 0
  }
}
