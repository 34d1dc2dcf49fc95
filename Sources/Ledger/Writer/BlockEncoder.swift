// Makes the members of blocks that get other content.
import Base

/// Makes members in place of those of a segment's blocks. Thread-safe: each call uses a deflater of its own.
final class BlockEncoders: Sendable {
  private struct State: @unchecked Sendable {
    // Each is used by the one thread that took it out.
    var idle: [BlockEncoder] = []
    var freeBuffers: [ByteBuffer] = []
  }

  private let level: Int32
  private let monitor = Monitor(State())

  /// - Parameter level: libdeflate's level, 1 to 12.
  init(level: Int32) { self.level = level }

  /// The member of a block that gets other events. It differs from the old one in its content, sizes and checksums
  /// only. Return it with `recycle`.
  /// - Parameter edits: what differs, for a caller who inflates the member before it is used: unless most of it does,
  ///   what stays is not compressed anew.
  func encode(
    _ block: BlockLocation, of segment: SegmentIndex, events: UnsafeRawBufferPointer,
    edits: [ContentEdit] = []
  ) throws(LedgerError) -> ByteBuffer {
    let (idle, buffer) = monitor.withLock { ($0.idle.popLast(), $0.freeBuffers.popLast()) }
    let encoder: BlockEncoder
    if let idle { encoder = idle } else { encoder = try BlockEncoder(level: level) }
    let member = buffer ?? ByteBuffer(capacity: 1 << 20)
    defer { monitor.withLock { $0.idle.append(encoder) } }
    try encoder.encode(block, of: segment, events: events, edits, into: member)
    return member
  }

  /// Takes back a member that is no longer needed.
  func recycle(_ member: ByteBuffer) {
    // A buffer that one huge event enlarged is freed.
    if member.capacity <= 8 << 20 { monitor.withLock { $0.freeBuffers.append(member) } }
  }
}

/// Makes members, one at a time. Not thread-safe.
private final class BlockEncoder {
  private let deflater: BlockDeflater
  private lazy var editor = DeflateEditor()
  private let old = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
  private let deflated = ByteBuffer(capacity: 2 << 20)

  init(level: Int32) throws(LedgerError) { deflater = try BlockDeflater(level: level) }

  func encode(
    _ block: BlockLocation, of segment: SegmentIndex, events: UnsafeRawBufferPointer,
    _ edits: [ContentEdit], into member: ByteBuffer
  ) throws(LedgerError) {
    let changedByteCount = edits.reduce(0) { $0 + $1.old.count }
    let isEdited = 1...block.contentByteCount / 2 ~= changedByteCount
    let header = try header(of: block, segment, isWhole: isEdited)
    guard case .block(let frontierAfter) = header.detail else {
      preconditionFailure("a block's member is another kind of member")
    }
    if !isEdited || !edit(header, edits, events) {
      deflated.count = 0
      deflated.reserve(deflater.bound(events.count))
      deflater.deflate(events, into: deflated)
    }
    let isEncoded = MemberWriter(member).block(
      events: events, eventCount: block.eventCount, deflated: deflated,
      frontierAfter: frontierAfter, lastEventAtMs: header.lastEventAtMs)
    guard isEncoded, let made = MemberHeader(member.bytes), made.first == block.first,
      made.eventCount == block.eventCount, made.detail == header.detail,
      made.isWhole(in: member.bytes)
    else { preconditionFailure("the block written is not the block read") }
  }

  /// Reads the block's old member, or only its header.
  private func header(
    of block: BlockLocation, _ segment: SegmentIndex, isWhole: Bool
  ) throws(LedgerError) -> MemberHeader {
    let found: MemberHeader?
    do throws(LedgerError) {
      if isWhole {
        let isThere = try segment.file.readWhole(
          block.memberByteCount, offsetBytes: block.offsetBytes, into: old)
        found =
          isThere ? MemberHeader(old.bytes).flatMap { $0.isWhole(in: old.bytes) ? $0 : nil } : nil
      } else {
        found = try segment.file.memberHeader(at: block.offsetBytes, old)
      }
    } catch { throw error.unreadable(segment.file, block: block.ordinal, at: block.first) }
    guard let found, case .block = found.detail, found.first == block.first,
      found.eventCount == block.eventCount, found.contentByteCount == block.contentByteCount
    else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: segment.name, block: block.ordinal, position: block.first),
        operation: SegmentRewriter.operation, cause: "it is not the block that was read before")
    }
    return found
  }

  private func edit(
    _ header: MemberHeader, _ edits: [ContentEdit], _ events: UnsafeRawBufferPointer
  ) -> Bool {
    let stream = old.bytes[header.headerByteCount..<old.count - Format.memberFooterByteCount]
    return editor.edit(
      UnsafeRawBufferPointer(rebasing: stream), edits, oldByteCount: header.contentByteCount,
      new: events, into: deflated)
  }
}
