// The location of a block, and how its events are read.
import CDeflate

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

  /// The same with redacted lines in place, and with the member that then takes the place of the block's.
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
