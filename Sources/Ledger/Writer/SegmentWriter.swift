// Appends blocks to the newest segment, and rolls over to the next one.
import Base

/// Writes members. Not thread-safe. Must not be used again after a failure that cannot be retried.
final class SegmentWriter {
  private let directory: LedgerDirectory
  private let segmentByteCount: Int
  private let hasher = SHA256()
  private let member = ByteBuffer(capacity: 1 << 20)
  private var segment: SegmentIndex
  /// Whether the failure left the segment unchanged, so that the tail can be sealed again.
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

  /// The segment that blocks are appended to.
  var newest: SegmentIndex { segment }

  /// Goes on with the file that has replaced the newest segment's.
  func replaceNewest(with rewritten: SegmentIndex) {
    precondition(
      rewritten.first == segment.first && rewritten.frontierAfter == segment.frontierAfter,
      "a segment was replaced by one of other events")
    segment = rewritten
  }

  /// Removes sealed tails that could not be removed before.
  func removeRemains() throws(LedgerError) {
    while let name = remains.last {
      try directory.unlink(name)
      remains.removeLast()
    }
  }

  /// Seals a tail durably, then removes it.
  func seal(_ tail: UnsealedTail, _ content: BlockContent) throws(LedgerError) {
    canRetry = false
    let name = directory.logPath(Format.tailName(tail.first))
    var frontier = segment.frontierAfter
    var run = EventRun(next: frontier.size, lastEventAtMs: segment.lastEventAtMs)
    // Checked before writing: corrupted memory must not become history.
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

  /// Removes sealed tails. A tail that cannot be removed now is removed with the next one, or at the latest by the
  /// next writer.
  private func removeTails() { try? removeRemains() }

  /// Writes at the segment's end. If the disk is full, removes the partial write.
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

  /// Creates a segment with its opening member and first block. If the disk is full or the system refuses a call,
  /// removes the partial segment: the previous one stays closed, and another attempt can create the next one.
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

  /// Closes the segment and begins the next one with the encoded block.
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
    // The segment is closed durably: from here on, the steps can be repeated.
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
