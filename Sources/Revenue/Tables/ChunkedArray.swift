// Numbered records in chunks that never move: growth copies nothing and touches no more memory than is used.

/// A growable array of plain values. The state is behind a pointer, so no access pays for an exclusivity
/// check. Public with its internals, because `package` functions do not inline across modules.
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
