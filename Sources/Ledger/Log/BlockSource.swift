// The blocks of a range of positions, segment after segment.

/// A block and its file.
struct BlockItem {
  let block: BlockLocation
  let file: StorageFile
  /// How it gets a new member if redacted lines change it; nil if it does not get one.
  var rewriting: BlockRewriting?
}

/// The source of a pipeline's blocks. Only one thread at a time calls it.
protocol BlockSequence: AnyObject {
  /// The next block; nil after the last. After an error there are no more.
  func next() throws(LedgerError) -> BlockItem?
}

/// Whether anything in a block is needed, judged by its positions. Called on several threads, but only one at a time.
package typealias BlockFilter = @Sendable (Range<Position>) -> Bool

/// Iterates over the blocks that contain a range of positions. Not thread-safe.
final class BlockSource: BlockSequence {
  private let directory: LedgerDirectory
  private var segments: [SealedSegment]
  private let newest: SegmentIndex?
  private let end: Position
  private let isWanted: BlockFilter?
  private let rewritten: RewrittenSegments?
  private var current: SegmentIndex?
  private var position: Position
  private var fault: LedgerError?

  init(
    _ directory: LedgerDirectory, _ state: LogState, _ range: Range<Position>,
    isWanted: BlockFilter? = nil, rewritten: RewrittenSegments? = nil
  ) {
    self.directory = directory
    self.isWanted = isWanted
    self.rewritten = rewritten
    segments = state.sealed.filter { $0.endPosition > range.lowerBound }.reversed()
    newest = state.newest
    position = range.lowerBound
    end = range.upperBound
  }

  /// The next block; nil after the last.
  func next() throws(LedgerError) -> BlockItem? {
    while position < end {
      if let current, let block = current.block(holding: position) {
        position = block.endPosition
        if let isWanted, !isWanted(block.first..<block.endPosition) { continue }
        return BlockItem(
          block: block, file: current.file, rewriting: rewritten?.rewriting(current))
      }
      if let fault { throw fault }
      try advance()
    }
    return nil
  }

  /// Reads the headers of the next segment. Blocks before damage in it come first, then the damage.
  private func advance() throws(LedgerError) {
    guard let sealed = segments.popLast() else {
      current = newest
      fault = LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: position),
        operation: "read", cause: "no block holds this position")
      return
    }
    var segment = try SegmentIndex(directory, first: sealed.first)
    do throws(LedgerError) {
      switch try segment.extend() {
      case .end:
        if segment.endPosition < sealed.endPosition { fault = incomplete(segment) }
      case .torn: fault = incomplete(segment)
      case .damaged(let damage): fault = damage
      }
    } catch { fault = error }
    current = segment
  }

  private func incomplete(_ segment: SegmentIndex) -> LedgerError {
    LedgerError(
      .init(
        verdict: .corrupt, file: segment.name, block: segment.blocks.count,
        position: segment.endPosition),
      operation: "walk segment", cause: "the sealed segment is incomplete")
  }
}

// MARK: - Member headers

extension StorageFile {
  /// The header of the member at an offset, read through a buffer, even if the bytes after it are unreadable; nil if
  /// there is none.
  ///
  /// Throws only if bytes of the header itself cannot be read.
  func memberHeader(
    at offsetBytes: Int, _ buffer: ByteBuffer
  ) throws(LedgerError) -> MemberHeader? {
    do throws(LedgerError) {
      // Reads the longest possible header at once; a shorter one includes bytes after it.
      try fill(buffer, Format.memberHeaderByteCountMax, offsetBytes)
    } catch {
      guard error.operation == LedgerError.readOperation else { throw error }
      try fill(buffer, Format.memberPrefixByteCount, offsetBytes)
      guard let byteCount = MemberHeader.byteCount(prefix: buffer.bytes) else { return nil }
      try fill(buffer, byteCount, offsetBytes)
    }
    return MemberHeader(buffer.bytes)
  }

  private func fill(
    _ buffer: ByteBuffer, _ byteCount: Int, _ offsetBytes: Int
  ) throws(LedgerError) { _ = try readWhole(byteCount, offsetBytes: offsetBytes, into: buffer) }
}
