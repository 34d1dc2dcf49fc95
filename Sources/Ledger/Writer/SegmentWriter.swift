// Appends blocks to the newest segment, and rolls over to the next one; writes the new files of segments.
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
  /// Sealed tails that are still to be removed.
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

  /// Continues with the file that has replaced the newest segment's.
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
      try segment.addWritten(header)
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

  /// Creates a segment with its opening member and first block. If the disk is full or a system call fails, removes the
  /// partial segment: the previous one stays closed, and another attempt can create the next one.
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
      if let closing = MemberHeader(buffer.bytes) { try segment.addWritten(closing) }
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
    try next.addWritten(firstBlock)
    segment = next
  }
}

// MARK: - New files of segments

/// The new file of a rewritten segment, with blocks that are replaced and copies of everything else. Created when the
/// first block differs.
final class SegmentCopy {
  private static let bufferByteCount = 1 << 20
  /// How many bytes are written before the system is asked to start writing them to disk.
  private static let writtenTogetherByteCount = 16 << 20

  private let directory: LedgerDirectory
  /// The segment when the copy was begun; blocks may have been added since.
  private let old: SegmentIndex
  private let temporaryName: String
  private var file: StorageFile?
  /// How much of the old file is copied or replaced, and the size of the new one.
  private var doneByteCount = 0
  private var byteCount = 0
  private let buffer = ByteBuffer(capacity: SegmentCopy.bufferByteCount)
  private let member = ByteBuffer(capacity: SegmentCopy.bufferByteCount)

  init(_ directory: LedgerDirectory, _ old: SegmentIndex) {
    self.directory = directory
    self.old = old
    temporaryName = old.name + Format.temporarySuffix
  }

  private func made() throws(LedgerError) -> StorageFile {
    if let file { return file }
    let file = try directory.makeFile(temporaryName, errorName: old.name)
    self.file = file
    return file
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws(LedgerError) {
    let file = try made()
    try file.write(bytes, offsetBytes: byteCount)
    let partsBefore = byteCount / Self.writtenTogetherByteCount
    byteCount += bytes.count
    if byteCount / Self.writtenTogetherByteCount > partsBefore { file.startWriting() }
  }

  private func copy(upTo offsetBytes: Int) throws(LedgerError) {
    while doneByteCount < offsetBytes {
      let count = min(Self.bufferByteCount, offsetBytes - doneByteCount)
      let isThere: Bool
      do throws(LedgerError) {
        isThere = try old.file.readWhole(count, offsetBytes: doneByteCount, into: buffer)
      } catch { throw error.unreadable(old.file, at: old.first) }
      guard isThere else { throw damage("it was truncated") }
      try write(buffer.bytes)
      doneByteCount += count
    }
  }

  private func damage(_ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .corrupt, file: old.name, position: old.first),
      operation: SegmentRewriter.operation, cause: cause)
  }

  /// Copies what precedes a block, and writes another member in place of the block's.
  func replace(
    _ block: BlockLocation, with member: UnsafeRawBufferPointer
  ) throws(LedgerError) {
    try copy(upTo: block.offsetBytes)
    try write(member)
    doneByteCount = block.endOffsetBytes
  }

  /// Copies the rest, checks the whole file as opening it would, and gives it the segment's name durably. Returns nil
  /// if no block was replaced.
  /// - Parameter old: the same segment in its current state.
  func finish(_ old: SegmentIndex) throws(LedgerError) -> SegmentIndex? {
    guard let file else { return nil }
    let closingByteCount = old.isClosed ? Format.closingMemberByteCount : 0
    try copy(upTo: old.endOffsetBytes - closingByteCount)
    if old.isClosed {
      MemberWriter(member).closing(
        first: old.first, eventCount: old.endPosition - old.first, blockCount: old.blocks.count,
        segmentByteCount: byteCount, root: old.frontierAfter.root,
        lastEventAtMs: old.lastEventAtMs)
      try write(member.bytes)
    }
    let new = try checked(file, old)
    if try old.file.status().permissions & 0o200 == 0 {
      try file.changePermissions(Format.sealedPermissions)
    }
    try directory.putInPlace(file, temporaryName, as: old.name)
    return new
  }

  private func checked(
    _ file: StorageFile, _ old: SegmentIndex
  ) throws(LedgerError) -> SegmentIndex {
    var new = try SegmentIndex(file, directory.identity.id, first: old.first)
    let stop = try new.extend()
    if case .damaged(let damage) = stop { throw damage }
    guard case .end = stop, new.frontierBefore == old.frontierBefore,
      new.lastEventAtMsBefore == old.lastEventAtMsBefore, new.frontierAfter == old.frontierAfter,
      new.lastEventAtMs == old.lastEventAtMs, new.isClosed == old.isClosed,
      new.endOffsetBytes == byteCount,
      new.blocks.elementsEqual(
        old.blocks, by: { $0.first == $1.first && $0.eventCount == $1.eventCount })
    else { throw damage("the new file does not hold the same events") }
    return new
  }

  /// Removes a new file that does not have its final name.
  func discard() {
    if file != nil { try? directory.unlink(temporaryName) }
    file = nil
  }
}
