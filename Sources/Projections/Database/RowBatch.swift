// Rows of one table as flat values, so that passing hundreds of them to another thread allocates nothing.
import Revenue

/// Rows for one target, and the bytes of their texts. The creator frees it.
struct RowBatch {
  /// The number of values or bytes at which a batch is full.
  static let (fullValueCount, fullByteCount) = (8192, 192 << 10)
  /// Has room for one row more than a full batch.
  private static let valueCapacity = fullValueCount + RowTable.columnLimit
  private static let firstByteCapacity = 64 << 10

  private(set) var values = UnsafeMutablePointer<RowValue>.allocate(capacity: valueCapacity)
  private(set) var valueCount = 0
  private(set) var bytes = UnsafeMutableRawPointer.allocate(
    byteCount: firstByteCapacity, alignment: 8)
  private var byteCapacity = firstByteCapacity
  private var byteCount = 0

  func deallocate() {
    values.deallocate()
    bytes.deallocate()
  }

  /// The allocated memory, used or not.
  var allocatedByteCount: Int {
    Self.valueCapacity * MemoryLayout<RowValue>.stride + byteCapacity
  }

  var isEmpty: Bool { valueCount == 0 }
  @inline(__always)
  var isFull: Bool { valueCount >= Self.fullValueCount || byteCount >= Self.fullByteCount }

  mutating func removeAll() {
    (valueCount, byteCount) = (0, 0)
    if byteCapacity <= 4 * Self.fullByteCount { return }
    // Shrinks again, so that one huge text does not hold memory until the end.
    bytes.deallocate()
    byteCapacity = Self.firstByteCapacity
    bytes = .allocate(byteCount: byteCapacity, alignment: 8)
  }

  @inline(__always)
  mutating func add(_ value: RowValue) {
    (values + valueCount).initialize(to: value)
    valueCount &+= 1
  }

  @inline(__always)
  mutating func add(_ text: Text, _ kind: RowValue.Kind) {
    if byteCount &+ text.count > byteCapacity { grow(by: text.count) }
    add(RowValue(kind: kind, byteCount: UInt32(text.count), word: Int64(byteCount)))
    guard let start = text.baseAddress else { return }
    (bytes + byteCount).copyMemory(from: start, byteCount: text.count)
    byteCount &+= text.count
  }

  private mutating func grow(by additionalCount: Int) {
    byteCapacity = max(2 * byteCapacity, byteCount + additionalCount)
    let grown = UnsafeMutableRawPointer.allocate(byteCount: byteCapacity, alignment: 8)
    grown.copyMemory(from: bytes, byteCount: byteCount)
    bytes.deallocate()
    bytes = grown
  }
}
