// Appends blocks to the newest segment, and rolls it.
import Base

/// Writes members; one thread at a time. After a failure that cannot be tried again it must not be used again.
final class SegmentWriter {
  private let directory: LedgerDirectory
  private let segmentByteCount: Int
  private let hasher = SHA256()
  private let member = ByteBuffer(capacity: 1 << 20)
  private var segment: SegmentIndex
  /// Whether what failed left the segment as it was, so that the tail can be tried again.
  private(set) var canRetry = false
  /// Sealed tails that could not be removed yet.
  private var remains: [String] = []

  init(
    _ directory: LedgerDirectory, _ options: WriterOptions, newest: SegmentIndex
  ) {
    self.directory = directory
    segmentByteCount = options.segmentByteCount
    segment = newest
  }

  /// Seals a tail durably, and then removes it.
  func seal(_ tail: UnsealedTail, _ content: BlockContent) throws(LedgerError) {
    canRetry = false
    let name = directory.logPath(Format.tailName(tail.first))
    var frontier = segment.frontierAfter
    var run = EventRun(next: frontier.size, lastEventAtMs: segment.lastEventAtMs)
    // Checked before it is written: corrupted memory must not become history.
    let fault = run.fault(content.events.bytes, eventCount: tail.eventCount) { line in
      frontier.append(leafHash: line.leafHash(hasher), hasher)
    }
    if let fault {
      throw LedgerError(
        .init(verdict: .corrupt, file: name, position: run.next), operation: "seal",
        cause: fault)
    }
    let isEncoded = MemberWriter(member).block(
      events: content.events.bytes, eventCount: tail.eventCount, deflated: content.deflated,
      frontierAfter: frontier, lastEventAtMs: run.lastEventAtMs)
    guard isEncoded, let header = MemberHeader(member.bytes) else {
      throw LedgerError(
        .invalidInput, operation: "seal", object: name, cause: "it does not fit in a block")
    }
    if !segment.blocks.isEmpty,
      segment.isClosed || segment.endOffsetBytes + member.count > segmentByteCount
    {
      try roll(firstBlock: header)
    } else {
      try put(member)
      try segment.file.syncData()
      try segment.takeWritten(header)
    }
    precondition(
      segment.endPosition == tail.endPosition, "a block does not end where its tail does")
    remains.append(name)
    removeTails()
  }

  /// Removes sealed tails. What the system does not remove now is tried again with the next one; at the
  /// latest the next writer removes it.
  private func removeTails() {
    while let name = remains.last {
      do throws(LedgerError) { try directory.unlink(name) } catch { return }
      remains.removeLast()
    }
  }

  /// Writes at the segment's end. On a full disk a partial write is removed.
  private func put(_ bytes: ByteBuffer) throws(LedgerError) {
    let offset = segment.endOffsetBytes
    do throws(LedgerError) {
      try segment.file.write(bytes.bytes, offsetBytes: offset)
    } catch {
      if error.leavesDiskUnknown { throw error }
      try segment.file.truncate(sizeBytes: offset)
      canRetry = true
      throw error
    }
  }

  /// Creates a segment with its opening member and first block. If the disk is full, or the system refuses a call, a
  /// partial segment is removed: the one before stays closed, and the next one can be tried again.
  private func make(_ bytes: ByteBuffer, first: Position) throws(LedgerError) -> SegmentIndex {
    let name = directory.logPath(Format.segmentName(first))
    let temporary = name + Format.temporarySuffix
    do throws(LedgerError) {
      let file = try directory.makeFile(temporary, errorName: name)
      try file.write(bytes.bytes, offsetBytes: 0)
      let made = try SegmentIndex(file, directory.identity.id, first: first)
      try directory.putInPlace(file, temporary, as: name)
      return made
    } catch {
      if error.leavesDiskUnknown || error.kind != .inputOutput { throw error }
      try? directory.unlink(temporary)
      canRetry = true
      throw error
    }
  }

  /// Closes the segment and begins the next with the block that is encoded.
  private func roll(firstBlock: MemberHeader) throws(LedgerError) {
    let buffer = ByteBuffer()
    if !segment.isClosed {
      MemberWriter(buffer).closing(
        first: segment.first, eventCount: segment.endPosition - segment.first,
        blockCount: segment.blocks.count, segmentByteCount: segment.endOffsetBytes,
        root: segment.frontierAfter.root(hasher), lastEventAtMs: segment.lastEventAtMs)
      try put(buffer)
      try segment.file.syncData()
      if let closing = MemberHeader(buffer.bytes) { try segment.takeWritten(closing) }
    }
    // The segment is closed durably: from here on the same can be repeated.
    do throws(LedgerError) {
      try segment.file.changePermissions(Format.sealedPermissions)
    } catch {
      canRetry = true
      throw error
    }
    MemberWriter(buffer).opening(
      ledgerID: directory.identity.id, frontierBefore: segment.frontierAfter,
      lastEventAtMs: segment.lastEventAtMs)
    buffer.append(member.bytes)
    var next = try make(buffer, first: segment.endPosition)
    try next.takeWritten(firstBlock)
    segment = next
  }
}
