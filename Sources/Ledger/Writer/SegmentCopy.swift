// The new file of a segment that is written anew: blocks that are replaced, and copies of all else.
import Base

/// The new file of a segment, made when the first block differs.
final class SegmentCopy {
  private static let bufferByteCount = 1 << 20
  /// How many bytes are written before the system is asked to bring them to disk.
  private static let writtenTogetherByteCount = 16 << 20

  private let directory: LedgerDirectory
  /// As it was when the copy was begun; blocks may be added to it since.
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

  /// Copies what precedes a block, and writes another member in the block's place.
  func replace(
    _ block: BlockLocation, with member: UnsafeRawBufferPointer
  ) throws(LedgerError) {
    try copy(upTo: block.offsetBytes)
    try write(member)
    doneByteCount = block.endOffsetBytes
  }

  /// Copies the rest, checks the whole file as opening it would, and gives it the segment's name durably. Returns nil
  /// if no block was replaced.
  /// - Parameter old: the same segment as it is now.
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

  /// Removes a new file that has not got its name.
  func discard() {
    if file != nil { try? directory.unlink(temporaryName) }
    file = nil
  }
}
