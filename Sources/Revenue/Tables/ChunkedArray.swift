// Records by number, in chunks that never move: growing copies nothing and touches no more memory than is used.

/// A growing run of plain values. Behind a pointer, so that no access pays for a check of exclusive access.
package final class ChunkedArray<Element: BitwiseCopyable>: RandomAccessCollection {
  private struct State {
    var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
    var chunkCapacity: Int
    var count = 0
  }

  private static var shift: Int { 10 }
  private static var chunkCount: Int { 1 << shift }
  private let state: UnsafeMutablePointer<State>

  package init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State(chunks: .allocate(capacity: 16), chunkCapacity: 16))
  }

  deinit {
    let used = (state.pointee.count + Self.chunkCount - 1) >> Self.shift
    for index in 0..<used { state.pointee.chunks[index].deallocate() }
    state.pointee.chunks.deallocate()
    state.deallocate()
  }

  package var startIndex: Int { 0 }
  @inline(__always)
  package var endIndex: Int { state.pointee.count }

  @inline(__always)
  private func place(_ index: Int) -> UnsafeMutablePointer<Element> {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: state.pointee.count))
    return state.pointee.chunks[index >> Self.shift] + (index & (Self.chunkCount - 1))
  }

  @inline(__always)
  package subscript(index: Int) -> Element { place(index).pointee }

  /// Changes a record in place.
  @inline(__always)
  package func update<Result>(_ index: Int, _ change: (inout Element) -> Result) -> Result {
    change(&place(index).pointee)
  }

  /// Adds a record behind the last.
  package func append(_ record: Element) {
    let count = state.pointee.count
    if count & (Self.chunkCount - 1) == 0 { addChunk() }
    (state.pointee.chunks[count >> Self.shift] + (count & (Self.chunkCount - 1)))
      .initialize(to: record)
    state.pointee.count = count + 1
  }

  private func addChunk() {
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
