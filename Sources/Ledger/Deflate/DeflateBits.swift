// Reads and writes a DEFLATE stream bit by bit, beginning with the lowest bit of each byte.

/// Reads bits. The memory must have `padding` readable bytes after the stream.
struct BitReader {
  /// How many bytes after the stream are read at most.
  static let padding = 24

  let base: UnsafeRawPointer
  private let byteCount: Int
  private(set) var offset = 0
  /// The next bits; those beyond `count` are right, but not counted.
  private(set) var bits: UInt64 = 0
  private(set) var count = 0

  init(_ base: UnsafeRawPointer, byteCount: Int) {
    self.base = base
    self.byteCount = byteCount
  }

  /// Makes at least 56 bits available; false beyond the end of the stream.
  @inline(__always)
  mutating func refill() -> Bool {
    if offset > byteCount &+ 8 { return false }
    bits |=
      UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      &<< UInt64(count)
    offset &+= (63 &- count) &>> 3
    count |= 56
    return true
  }

  @inline(__always)
  mutating func drop(_ bitCount: Int) {
    bits &>>= UInt64(bitCount)
    count &-= bitCount
  }

  /// At most as many bits as `refill` made available, and 0 for none.
  @inline(__always)
  mutating func take(_ bitCount: Int) -> Int {
    let value = Int(truncatingIfNeeded: bits & (1 &<< UInt64(bitCount) &- 1))
    drop(bitCount)
    return value
  }

  /// How many bits were taken.
  @inline(__always)
  var position: Int { offset &* 8 &- count }

  /// Whether no bit after the stream was taken.
  var isWithinStream: Bool { position <= byteCount * 8 }
}

/// Writes bits into memory of a fixed size.
struct BitWriter {
  private let base: UnsafeMutableRawPointer
  private let byteCountMax: Int
  private(set) var byteCount = 0
  private var bits: UInt64 = 0
  private var bitCount = 0
  /// Whether something did not fit.
  private(set) var isFull = false

  init(_ base: UnsafeMutableRawPointer, capacity: Int) {
    self.base = base
    // Whole words are stored.
    byteCountMax = capacity - 8
  }

  /// Appends at most 56 bits; those beyond `count` must be 0.
  @inline(__always)
  mutating func put(_ value: UInt64, _ count: Int) {
    if byteCount > byteCountMax {
      isFull = true
      return
    }
    bits |= value &<< UInt64(bitCount)
    bitCount &+= count
    base.storeBytes(of: bits.littleEndian, toByteOffset: byteCount, as: UInt64.self)
    byteCount &+= bitCount &>> 3
    bits &>>= UInt64(bitCount & ~7)
    bitCount &= 7
  }

  /// Appends bits of another stream.
  mutating func copy(_ range: Range<Int>, of base: UnsafeRawPointer) {
    var position = range.lowerBound
    while position < range.upperBound {
      let word = UInt64(
        littleEndian: base.loadUnaligned(fromByteOffset: position &>> 3, as: UInt64.self))
      let count = min(56, range.upperBound &- position)
      put((word &>> UInt64(position & 7)) & (1 &<< UInt64(count) &- 1), count)
      position &+= count
    }
  }

  /// Fills up the last byte.
  mutating func finish() { if bitCount > 0 { put(0, 8 - bitCount) } }
}
