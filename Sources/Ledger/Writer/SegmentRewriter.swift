// Writes a segment anew with redacted lines in place of others; whatever does not change is copied byte by byte.
import Base

/// Replaces lines of segments. The caller makes sure that nothing else changes the segment meanwhile.
struct SegmentRewriter {
  private static let workerCount = 2

  let directory: LedgerDirectory
  let lines: RedactedLines
  let compressionLevel: Int32
  let priority: ThreadPriority
  /// Called with the number of bytes of the old segment that are done.
  let progress: (Int) -> Void
  /// Asked for each block; if it returns true, the segment stays as it is.
  let isCancelled: () -> Bool

  /// Replaces the segment's file durably. Returns what is then known of the segment; nil if all its lines were
  /// redacted already, so that nothing was written.
  ///
  /// If it throws before the new file has its name, the old file is as it was.
  func rewrite(_ old: SegmentIndex) throws(LedgerError) -> SegmentIndex? {
    let blocks = old.blocks.filter { lines.contains(in: $0.first..<$0.endPosition) }
    if blocks.isEmpty { return nil }
    let copy = SegmentCopy(directory, old)
    do throws(LedgerError) {
      try copyBlocks(blocks, of: old, to: copy)
      return try copy.finish()
    } catch {
      copy.discard()
      throw error
    }
  }

  private func copyBlocks(
    _ blocks: [BlockLocation], of old: SegmentIndex, to copy: SegmentCopy
  ) throws(LedgerError) {
    let workerCount = min(Self.workerCount, blocks.count)
    let deflaters = try BlockDeflaters(count: workerCount, level: compressionLevel)
    let pipeline = try BlockPipeline(
      ListedBlocks(blocks, of: old.file), workerCount: workerCount, priority: priority,
      prepare: { [lines] in RewrittenBlock($0, first: $1, count: $2, lines, deflaters) })
    defer { pipeline.stop() }
    while let block = try pipeline.next() {
      if isCancelled() {
        throw LedgerError(
          .closed, operation: Self.operation, object: old.name, cause: "it was stopped")
      }
      guard let rewritten = block.prepared as? RewrittenBlock else {
        preconditionFailure("a block was not prepared")
      }
      if let content = try rewritten.result.get() {
        try copy.replace(block.block, with: content, frontierAfter: block.frontierAfter)
      }
      progress(block.block.endOffsetBytes)
      pipeline.recycle(block)
    }
  }

  static let operation = "rewrite segment"

  /// Throws `invalidInput` if a block would become larger than a block may be. Reads only blocks that come near that.
  func checkSizes(_ segment: SegmentIndex) throws(LedgerError) {
    for block in segment.blocks {
      let range = block.first..<block.endPosition
      guard block.contentByteCount + lines.byteCount(in: range) > Format.blockByteCountMax
      else { continue }
      let events = ByteBuffer(capacity: block.contentByteCount)
      _ = try BlockInflater().inflate(block, of: segment.file, into: events)
      try lines.apply(to: events, first: block.first, count: block.eventCount)
      if events.count > Format.blockByteCountMax {
        throw LedgerError(
          .invalidInput, operation: Self.operation,
          object: "\(segment.name), block \(block.ordinal)",
          cause: "with its redacted lines it would be larger than a block may be")
      }
    }
  }
}

/// The blocks that hold lines to be replaced.
private final class ListedBlocks: BlockSequence {
  private var blocks: ArraySlice<BlockLocation>
  private let file: StorageFile

  init(_ blocks: [BlockLocation], of file: StorageFile) {
    self.blocks = blocks[...]
    self.file = file
  }

  func next() -> BlockItem? { blocks.popFirst().map { BlockItem(block: $0, file: file) } }
}

/// Deflaters for several threads.
private final class BlockDeflaters: Sendable {
  private struct State: @unchecked Sendable {
    // Each is used by the one thread that took it out.
    var idle: [BlockDeflater] = []
  }

  private let monitor = Monitor(State())

  /// - Parameter count: how many threads use them at once.
  init(count: Int, level: Int32) throws(LedgerError) {
    for _ in 0..<count {
      let deflater = try BlockDeflater(level: level)
      monitor.withLock { $0.idle.append(deflater) }
    }
  }

  func deflate(_ events: UnsafeRawBufferPointer) -> ByteBuffer {
    guard let deflater = monitor.withLock({ $0.idle.popLast() }) else {
      preconditionFailure("more threads deflate than there are deflaters")
    }
    defer { monitor.withLock { $0.idle.append(deflater) } }
    return deflater.deflate(events)
  }
}

/// A block with its lines replaced and deflated, on a worker thread.
private final class RewrittenBlock {
  /// Nil if all its lines were redacted already.
  let result: Result<BlockContent?, LedgerError>

  init(
    _ events: UnsafeRawBufferPointer, first: Position, count: Int, _ lines: RedactedLines,
    _ deflaters: BlockDeflaters
  ) {
    do throws(LedgerError) {
      let replaced = ByteBuffer(capacity: events.count)
      guard try lines.replace(events, first: first, count: count, into: replaced) else {
        result = .success(nil)
        return
      }
      result = .success(
        BlockContent(events: replaced, deflated: deflaters.deflate(replaced.bytes)))
    } catch { result = .failure(error) }
  }
}

/// The new file of a segment, made when the first block differs.
private final class SegmentCopy {
  private static let bufferByteCount = 1 << 20

  private let directory: LedgerDirectory
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
    try made().write(bytes, offsetBytes: byteCount)
    byteCount += bytes.count
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

  private func damage(_ cause: String, _ block: BlockLocation? = nil) -> LedgerError {
    LedgerError(
      .init(
        verdict: .corrupt, file: old.name, block: block?.ordinal,
        position: block?.first ?? old.first),
      operation: SegmentRewriter.operation, cause: cause)
  }

  /// Copies what precedes a block, and writes the block with other content.
  func replace(
    _ block: BlockLocation, with content: BlockContent, frontierAfter: Frontier
  ) throws(LedgerError) {
    try copy(upTo: block.offsetBytes)
    guard let header = try old.file.memberHeader(at: block.offsetBytes, buffer) else {
      throw damage("it is not the block that was read before", block)
    }
    let isEncoded = MemberWriter(member).block(
      events: content.events.bytes, eventCount: block.eventCount, deflated: content.deflated,
      frontierAfter: frontierAfter, lastEventAtMs: header.lastEventAtMs)
    guard isEncoded, let made = MemberHeader(member.bytes), made.first == block.first,
      made.eventCount == block.eventCount, made.detail == header.detail,
      made.isWhole(in: member.bytes)
    else { preconditionFailure("the block written is not the block read") }
    try write(member.bytes)
    doneByteCount = block.endOffsetBytes
  }

  /// Copies the rest, checks the whole file as opening it would, and gives it the segment's name durably. Returns nil
  /// if no block was replaced.
  func finish() throws(LedgerError) -> SegmentIndex? {
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
    let new = try checked(file)
    if try old.file.status().permissions & 0o200 == 0 {
      try file.changePermissions(Format.sealedPermissions)
    }
    try directory.putInPlace(file, temporaryName, as: old.name)
    return new
  }

  private func checked(_ file: StorageFile) throws(LedgerError) -> SegmentIndex {
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
  }
}
