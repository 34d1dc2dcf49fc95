// The files and parts of a log, and its blocks.
package import Base
import CDeflate

/// A segment or a tail.
package struct LogFile: Sendable, Equatable {
  package enum Kind: String, Sendable {
    /// Closed by a newer segment.
    case sealed
    /// The segment that blocks are appended to.
    case open
    case tail
  }

  package let kind: Kind
  /// The path inside the ledger.
  package let name: String
  package let firstPosition: Position
  /// The number of whole events in it.
  package let eventCount: Int
  package let sizeBytes: Int
}

extension LogReader {
  /// The segments and tails of this view, in order.
  package func files() throws(LedgerError) -> [LogFile] {
    var files: [LogFile] = []
    for segment in state.sealed {
      let name = directory.logPath(Format.segmentName(segment.first))
      files.append(
        LogFile(
          kind: .sealed, name: name, firstPosition: segment.first,
          eventCount: segment.endPosition - segment.first,
          sizeBytes: try directory.statusIfPresent(name)?.sizeBytes ?? 0))
    }
    if let newest = state.newest {
      files.append(
        LogFile(
          kind: .open, name: newest.name, firstPosition: newest.first,
          eventCount: newest.endPosition - newest.first, sizeBytes: try newest.file.sizeBytes()))
    }
    for tail in state.tails {
      let status = try directory.statusIfPresent(tail.name)
      files.append(
        LogFile(
          kind: .tail, name: tail.name, firstPosition: tail.first,
          eventCount: tail.endPosition - tail.first,
          sizeBytes: status?.sizeBytes ?? tail.endOffsetBytes))
    }
    return files
  }

  /// The size of the incomplete write at the end of the last tail. The next writer removes it.
  package var tornTailByteCount: Int { state.tornTailByteCount }

  /// The first position recorded at this time or later; the log's size if there is none.
  package func firstPosition(recordedFromMs timeMs: Int64) throws(LedgerError) -> Position {
    if timeMs > head.lastEventAtMs { return head.size }
    var (low, high) = (0, head.size)
    while low < high {
      let middle = (low + high) / 2
      let line = try event(at: middle)
      let isBefore = line.withUnsafeBytes {
        EventLine($0).map { $0.recordedAtMs < timeMs } ?? false
      }
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// The largest event line, including its line feed.
package let ledgerLineByteCountMax = Format.lineByteCountMax

// MARK: - Parts of a log

/// A segment, or a run of tails, which can be read apart from the others.
package struct LogPart: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case segment
    case tail
  }

  package let kind: Kind
  /// The name in `log/` of its first file.
  package let name: String
  package let first: Position
  package let end: Position
  /// The size of its files.
  package let byteCount: Int
  /// The root of the tree of all events up to its end.
  package let root: SHA256Digest

  /// Equal for the same events of one ledger, and for no others, which shows that a part has not changed: SHA-256 of
  /// both positions and the root.
  package var identity: SHA256Digest {
    var bytes: [UInt8] = []
    for number in [first, end] {
      withUnsafeBytes(of: UInt64(number).littleEndian) { bytes.append(contentsOf: $0) }
    }
    bytes += root.bytes
    return bytes.withUnsafeBytes { SHA256.hash($0) }
  }
}

extension LogReader {
  /// The parts of the first events, in order, without gaps.
  /// - Parameters:
  ///   - size: the number of events, at most the head's size.
  ///   - tailsByteCount: how many bytes of tails make a part.
  package func parts(
    size: Int, tailsByteCount: Int = 64 << 20
  ) throws(LedgerError) -> [LogPart] {
    var parts: [LogPart] = []
    for segment in state.sealed where segment.first < size {
      let name = Format.segmentName(segment.first)
      let end = min(segment.endPosition, size)
      parts.append(
        LogPart(
          kind: .segment, name: name, first: segment.first, end: end,
          byteCount: try directory.statusIfPresent(directory.logPath(name))?.sizeBytes ?? 0,
          root: end == segment.endPosition ? segment.root : try frontier(at: end).root))
    }
    if let newest = state.newest, newest.first < min(newest.endPosition, size) {
      let end = min(newest.endPosition, size)
      parts.append(
        LogPart(
          kind: .segment, name: Format.segmentName(newest.first), first: newest.first, end: end,
          byteCount: newest.walkedByteCount, root: try frontier(at: end).root))
    }
    var run: (first: Position, byteCount: Int)?
    for tail in state.tails where tail.first < min(tail.endPosition, size) {
      let end = min(tail.endPosition, size)
      let byteCount = (run?.byteCount ?? 0) + tail.endOffsetBytes
      let first = run?.first ?? tail.first
      run = (first, byteCount)
      guard byteCount >= tailsByteCount || end == size else { continue }
      parts.append(
        LogPart(
          kind: .tail, name: Format.tailName(first), first: first, end: end, byteCount: byteCount,
          root: try frontier(at: end).root))
      run = nil
    }
    return parts
  }
}

// MARK: - Blocks

/// A block's location in its segment, from its header.
package struct BlockLocation: Sendable {
  package let first: Position
  let eventCount: Int
  /// The block's ordinal in its segment, from 0.
  package let ordinal: Int
  package let offsetBytes: Int
  package let memberByteCount: Int
  let contentByteCount: Int

  package var endPosition: Position { first + eventCount }
  var endOffsetBytes: Int { offsetBytes + memberByteCount }
}

/// Reads and inflates blocks. Not thread-safe.
final class BlockInflater {
  private let decompressor: OpaquePointer
  private let member = ByteBuffer(capacity: 1 << 20)

  init() {
    guard let decompressor = libdeflate_alloc_decompressor() else {
      fatalError("inflate: out of memory")
    }
    self.decompressor = decompressor
  }

  deinit { libdeflate_free_decompressor(decompressor) }

  /// As below, with redacted lines in place, and with the member that then replaces the block's.
  /// - Parameter spare: memory for the lines, kept from call to call.
  func inflate(
    _ item: BlockItem, with lines: RedactedLines?, into events: ByteBuffer,
    spare: ByteBuffer? = nil
  ) throws(LedgerError) -> InflatedBlock {
    let block = item.block
    let frontier = try inflate(block, of: item.file, into: events)
    var inflated = InflatedBlock(block: block, events: events, frontierAfter: frontier)
    let isChanged = try lines?.apply(
      to: events, first: block.first, count: block.eventCount, spare: spare)
    if isChanged == true, let rewriting = item.rewriting {
      inflated.rewritten = RewrittenBlock(
        segment: rewriting.segment,
        member: try rewriting.encoders.encode(block, of: item.file, events: events.bytes))
    }
    return inflated
  }

  /// Puts a block's event lines into the buffer and returns the tree after it.
  ///
  /// Throws `corruption` if any byte of the member does not match its checksums.
  func inflate(
    _ block: BlockLocation, of file: StorageFile, into events: ByteBuffer
  ) throws(LedgerError) -> Frontier {
    func damage(_ cause: String) -> LedgerError {
      LedgerError(
        .init(
          verdict: .corrupt, file: file.name, block: block.ordinal, position: block.first),
        operation: "read block", cause: cause)
    }
    let isThere: Bool
    do throws(LedgerError) {
      isThere = try file.readWhole(
        block.memberByteCount, offsetBytes: block.offsetBytes, into: member)
    } catch { throw error.unreadable(file, block: block.ordinal, at: block.first) }
    guard isThere else { throw damage("the file ends inside it") }
    guard let header = MemberHeader(member.bytes), header.isWhole(in: member.bytes)
    else { throw damage("its CRC-32 does not match") }
    guard case .block(let frontierAfter) = header.detail, header.first == block.first,
      header.eventCount == block.eventCount
    else { throw damage("it is not the block that was read before") }
    events.count = 0
    events.reserve(header.contentByteCount)
    var inputByteCount = 0
    var outputByteCount = 0
    let result = libdeflate_gzip_decompress_ex(
      decompressor, member.base, member.count, events.base, header.contentByteCount,
      &inputByteCount, &outputByteCount)
    guard result == LIBDEFLATE_SUCCESS, inputByteCount == member.count,
      outputByteCount == header.contentByteCount
    else { throw damage("its content does not match its header") }
    events.count = outputByteCount
    return frontierAfter
  }
}
