// A hash table of indexes for lookups by text, faster than a dictionary of keys; and a chunked array.
import Glibc

/// Indexes, keyed by the hashes of their entries. The caller compares the entries: the table stores no keys.
public final class HashIndex {
  @usableFromInline
  struct Slot {
    @usableFromInline var hash: UInt32
    /// The index, or −1 in an empty slot.
    @usableFromInline var place: Int32
  }

  @usableFromInline
  struct State {
    @usableFromInline var slots: UnsafeMutablePointer<Slot>
    @usableFromInline var mask: Int
    var count = 0
  }

  /// Behind a pointer: otherwise each lookup would pay for an exclusivity check.
  @usableFromInline let state: UnsafeMutablePointer<State>

  /// Creates an empty table.
  public init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State(slots: Self.slots(64), mask: 63))
  }

  deinit {
    state.pointee.slots.deallocate()
    state.deallocate()
  }

  private static func slots(_ count: Int) -> UnsafeMutablePointer<Slot> {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: count)
    slots.initialize(repeating: Slot(hash: 0, place: -1), count: count)
    return slots
  }

  /// The index with this hash for which `isMatch` returns true.
  @inlinable @inline(__always)
  public func find(_ hash: UInt64, _ isMatch: (Int) -> Bool) -> Int? {
    let (slots, mask) = (state.pointee.slots, state.pointee.mask)
    let short = UInt32(truncatingIfNeeded: hash)
    var index = Int(short) & mask
    while true {
      let slot = slots[index]
      if slot.place < 0 { return nil }
      if slot.hash == short, isMatch(Int(slot.place)) { return Int(slot.place) }
      index = (index &+ 1) & mask
    }
  }

  /// Adds an index that the table does not have.
  public func insert(_ hash: UInt64, _ place: Int) {
    if 2 * (state.pointee.count + 1) > state.pointee.mask { grow() }
    put(Slot(hash: UInt32(truncatingIfNeeded: hash), place: Int32(place)))
    state.pointee.count += 1
  }

  @inline(__always)
  private func put(_ slot: Slot) {
    let (slots, mask) = (state.pointee.slots, state.pointee.mask)
    var index = Int(slot.hash) & mask
    while slots[index].place >= 0 { index = (index &+ 1) & mask }
    slots[index] = slot
  }

  private func grow() {
    let old = (slots: state.pointee.slots, count: state.pointee.mask + 1)
    state.pointee.slots = Self.slots(2 * old.count)
    state.pointee.mask = 2 * old.count - 1
    for index in 0..<old.count where old.slots[index].place >= 0 { put(old.slots[index]) }
    old.slots.deallocate()
  }
}

extension UnsafeRawBufferPointer {
  /// Differs from run to run, so an attacker cannot choose colliding texts.
  private static let seed = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max) | 1)

  /// A hash for tables in memory. One multiplication of 64 by 64 bits mixes in each eight bytes.
  package func placeHash(_ more: UInt64 = 0) -> UInt64 {
    let seed = Self.seed
    var hash = Self.fold(seed.0 ^ more, seed.1 ^ UInt64(truncatingIfNeeded: count))
    guard let base = baseAddress else { return hash }
    var offset = 0
    while offset &+ 8 <= count {
      let word = base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      hash = Self.fold(hash ^ word, seed.1)
      offset &+= 8
    }
    if offset < count {
      var word: UInt64 = 0
      memcpy(&word, base + offset, count &- offset)
      hash = Self.fold(hash ^ word, seed.1)
    }
    return hash
  }

  @inline(__always)
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}

// MARK: - Chunked arrays

/// A growable array of numbered plain values in chunks that never move: growth copies nothing and touches no more
/// memory than is used. The state is behind a pointer, so no access pays for an exclusivity check. Public with its
/// internals, because `package` functions do not inline across modules.
public final class ChunkedArray<Element: BitwiseCopyable>: RandomAccessCollection {
  @usableFromInline
  struct State {
    @usableFromInline var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
    @usableFromInline var chunkCapacity: Int
    @usableFromInline var count = 0

    @inlinable
    init(chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>, chunkCapacity: Int) {
      self.chunks = chunks
      self.chunkCapacity = chunkCapacity
    }
  }

  @inlinable static var shift: Int { 10 }
  @inlinable static var chunkCount: Int { 1 << shift }
  @usableFromInline let state: UnsafeMutablePointer<State>

  /// Creates an empty array.
  @inlinable
  public init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State(chunks: .allocate(capacity: 16), chunkCapacity: 16))
  }

  @inlinable
  deinit {
    let used = (state.pointee.count + Self.chunkCount - 1) >> Self.shift
    for index in 0..<used { state.pointee.chunks[index].deallocate() }
    state.pointee.chunks.deallocate()
    state.deallocate()
  }

  /// The number of the first record.
  @inlinable public var startIndex: Int { 0 }
  /// The number of records.
  @inlinable @inline(__always)
  public var endIndex: Int { state.pointee.count }

  @inlinable @inline(__always)
  func place(_ index: Int) -> UnsafeMutablePointer<Element> {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: state.pointee.count))
    return state.pointee.chunks[index >> Self.shift] + (index & (Self.chunkCount - 1))
  }

  /// A copy of the record with this number.
  @inlinable @inline(__always)
  public subscript(index: Int) -> Element { place(index).pointee }

  /// Changes a record in place.
  @inlinable @inline(__always)
  public func update<Result>(_ index: Int, _ change: (inout Element) -> Result) -> Result {
    change(&place(index).pointee)
  }

  /// Appends a record.
  @inlinable
  public func append(_ record: Element) {
    let count = state.pointee.count
    if count & (Self.chunkCount - 1) == 0 { addChunk() }
    (state.pointee.chunks[count >> Self.shift] + (count & (Self.chunkCount - 1)))
      .initialize(to: record)
    state.pointee.count = count + 1
  }

  @inlinable
  func addChunk() {
    let index = state.pointee.count >> Self.shift
    if index == state.pointee.chunkCapacity {
      let old = state.pointee.chunks
      state.pointee.chunkCapacity *= 2
      state.pointee.chunks = .allocate(capacity: state.pointee.chunkCapacity)
      state.pointee.chunks.moveInitialize(from: old, count: index)
      old.deallocate()
    }
    (state.pointee.chunks + index).initialize(to: .allocate(capacity: Self.chunkCount))
  }
}
