// Compresses the events of blocks, and makes new members for blocks with changed events.
import Base
import CDeflate

/// Makes members that replace those of a segment's blocks. Thread-safe: each call uses its own deflater.
final class BlockEncoders: Sendable {
  private struct State: @unchecked Sendable {
    // Each is used by the thread that removed it.
    var idle: [BlockEncoder] = []
    var freeBuffers: [ByteBuffer] = []
  }

  private let level: Int32
  private let monitor = Monitor(State())

  /// - Parameter level: libdeflate's level, 1 to 12.
  init(level: Int32) { self.level = level }

  /// The new member of a block of a file, with other events. It differs from the old one in its content, sizes and
  /// checksums only. Return it with `recycle`.
  func encode(
    _ block: BlockLocation, of file: StorageFile, events: UnsafeRawBufferPointer
  ) throws(LedgerError) -> ByteBuffer {
    let (idle, buffer) = monitor.withLock { ($0.idle.popLast(), $0.freeBuffers.popLast()) }
    let encoder: BlockEncoder
    if let idle { encoder = idle } else { encoder = try BlockEncoder(level: level) }
    let member = buffer ?? ByteBuffer(capacity: 1 << 20)
    defer { monitor.withLock { $0.idle.append(encoder) } }
    try encoder.encode(block, of: file, events: events, into: member)
    return member
  }

  /// Accepts a member that is no longer needed.
  func recycle(_ member: ByteBuffer) {
    // A buffer that one huge event enlarged is freed.
    if member.capacity <= 8 << 20 { monitor.withLock { $0.freeBuffers.append(member) } }
  }
}

/// Makes members, one at a time. Not thread-safe.
private final class BlockEncoder {
  private let deflater: BlockDeflater
  private let old = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
  private let deflated = ByteBuffer(capacity: 2 << 20)

  init(level: Int32) throws(LedgerError) { deflater = try BlockDeflater(level: level) }

  func encode(
    _ block: BlockLocation, of file: StorageFile, events: UnsafeRawBufferPointer,
    into member: ByteBuffer
  ) throws(LedgerError) {
    let header = try header(of: block, file)
    guard case .block(let frontierAfter) = header.detail else {
      preconditionFailure("a block's member is another kind of member")
    }
    deflated.count = 0
    deflated.reserve(deflater.bound(events.count))
    deflater.deflate(events, into: deflated)
    let isEncoded = MemberWriter(member).block(
      events: events, eventCount: block.eventCount, deflated: deflated,
      frontierAfter: frontierAfter, lastEventAtMs: header.lastEventAtMs)
    guard isEncoded, let made = MemberHeader(member.bytes), made.first == block.first,
      made.eventCount == block.eventCount, made.detail == header.detail,
      made.isWhole(in: member.bytes)
    else { preconditionFailure("the block written is not the block read") }
  }

  /// Reads the header of the block's old member.
  private func header(
    of block: BlockLocation, _ file: StorageFile
  ) throws(LedgerError) -> MemberHeader {
    let found: MemberHeader?
    do throws(LedgerError) { found = try file.memberHeader(at: block.offsetBytes, old) } catch {
      throw error.unreadable(file, block: block.ordinal, at: block.first)
    }
    guard let found, case .block = found.detail, found.first == block.first,
      found.eventCount == block.eventCount, found.contentByteCount == block.contentByteCount
    else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: file.name, block: block.ordinal, position: block.first),
        operation: SegmentRewriter.operation, cause: "it is not the block that was read before")
    }
    return found
  }
}

// MARK: - Compression

/// The events of a tail, plain and deflated, from which a block is made.
package struct BlockContent {
  let events: ByteBuffer
  let deflated: ByteBuffer

  package init(events: ByteBuffer, deflated: ByteBuffer) {
    self.events = events
    self.deflated = deflated
  }
}

/// Deflates the events of blocks. Not thread-safe.
package final class BlockDeflater {
  private let compressor: OpaquePointer

  /// - Parameter level: libdeflate's level, 1 to 12.
  package init(level: Int32) throws(LedgerError) {
    guard let compressor = libdeflate_alloc_compressor(level) else {
      throw LedgerError(
        .invalidInput, operation: "open for writing", object: "compression level",
        cause: "it is not from 1 to 12")
    }
    self.compressor = compressor
  }

  deinit { libdeflate_free_compressor(compressor) }

  /// The deflated events.
  func deflate(_ events: UnsafeRawBufferPointer) -> ByteBuffer {
    let result = ByteBuffer(capacity: bound(events.count))
    deflate(events, into: result)
    return result
  }

  /// The buffer size that this many event bytes may need when compressed.
  func bound(_ byteCount: Int) -> Int {
    libdeflate_deflate_compress_bound(compressor, byteCount)
  }

  /// Deflates the events into a buffer that has room for them.
  func deflate(_ events: UnsafeRawBufferPointer, into buffer: ByteBuffer) {
    buffer.count = libdeflate_deflate_compress(
      compressor, events.baseAddress, events.count, buffer.base, buffer.capacity)
    precondition(buffer.count > 0, "deflate exceeded its bound")
  }
}
