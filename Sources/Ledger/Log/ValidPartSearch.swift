// Looking for something valid behind something invalid: that tells damage from a torn write.
import Glibc

/// Goes through the places where a valid frame or member could begin.
struct ValidPartSearch {
  private let bytes: UnsafeRawBufferPointer
  private let start: UInt8
  private var offset = 0
  // Crafted bytes could hold a plausible header at every place: checksums are limited in all, and
  // where the limit is reached the verdict is damage.
  private var budgetBytes = 1 << 30

  /// Searches bytes for parts that begin with one byte, the very first place excepted.
  init(_ bytes: UnsafeRawBufferPointer, start: UInt8) {
    self.bytes = bytes
    self.start = start
  }

  /// Everything from the next candidate place on.
  mutating func next() -> UnsafeRawBufferPointer? {
    guard let base = bytes.baseAddress, offset + 1 < bytes.count,
      let place = memchr(base + offset + 1, Int32(start), bytes.count - offset - 1)
    else { return nil }
    offset = UnsafeRawPointer(place) - base
    return UnsafeRawBufferPointer(rebasing: bytes[offset...])
  }

  /// Counts a checksum over a number of bytes; false when the budget is used up.
  mutating func spend(_ byteCount: Int) -> Bool {
    budgetBytes -= byteCount
    return budgetBytes >= 0
  }
}
