// Rewrites segments with redacted lines in place of others; unchanged parts are copied byte by byte.
import Base

/// Replaces lines of segments. The caller ensures that nothing else changes the segment meanwhile.
struct SegmentRewriter {
  private static let workerCount = 2

  let directory: LedgerDirectory
  let lines: RedactedLines
  let encoders: BlockEncoders
  let priority: ThreadPriority
  /// Called with the number of bytes of the old segment that are processed.
  let progress: (Int) -> Void
  /// Called for each block; if it returns true, the segment stays unchanged.
  let isCancelled: () -> Bool

  /// Replaces the segment's file durably. Returns the index of the new segment; nil if all its lines were already
  /// redacted, so that nothing was written.
  ///
  /// If it throws before the new file has its name, the old file is unchanged.
  /// - Parameter rewritten: may already hold the new file.
  func rewrite(
    _ old: SegmentIndex, _ rewritten: RewrittenSegments? = nil
  ) throws(LedgerError) -> SegmentIndex? {
    if let copy = rewritten?.removeCopy(of: old, with: lines) {
      do throws(LedgerError) { return try copy.finish(old) } catch {
        copy.discard()
        throw error
      }
    }
    let blocks = old.blocks(holding: lines)
    if blocks.isEmpty { return nil }
    let copy = SegmentCopy(directory, old)
    do throws(LedgerError) {
      try copyBlocks(blocks, of: old, to: copy)
      return try copy.finish(old)
    } catch {
      copy.discard()
      throw error
    }
  }

  private func copyBlocks(
    _ blocks: [BlockLocation], of old: SegmentIndex, to copy: SegmentCopy
  ) throws(LedgerError) {
    let workerCount = min(Self.workerCount, blocks.count)
    let pipeline = try BlockPipeline(
      ListedBlocks(blocks, BlockRewriting(segment: old, encoders: encoders)),
      workerCount: workerCount, priority: priority, redactedLines: lines)
    defer { pipeline.stop() }
    while let block = try pipeline.next() {
      if isCancelled() {
        throw LedgerError(
          .closed, operation: Self.operation, object: old.name, cause: "it was stopped")
      }
      // Unless all its lines were already redacted.
      if let member = block.rewritten?.member {
        try copy.replace(block.block, with: member.bytes)
        encoders.recycle(member)
      }
      progress(block.block.endOffsetBytes)
      pipeline.recycle(block)
    }
  }

  static let operation = "rewrite segment"
}

/// The blocks that hold lines to be replaced.
private final class ListedBlocks: BlockSequence {
  private var blocks: ArraySlice<BlockLocation>
  private let rewriting: BlockRewriting

  init(_ blocks: [BlockLocation], _ rewriting: BlockRewriting) {
    self.blocks = blocks[...]
    self.rewriting = rewriting
  }

  func next() -> BlockItem? {
    blocks.popFirst().map {
      BlockItem(block: $0, file: rewriting.segment.file, rewriting: rewriting)
    }
  }
}

extension SegmentIndex {
  /// The blocks that hold redacted lines.
  func blocks(holding lines: RedactedLines) -> [BlockLocation] {
    blocks.filter { lines.contains(in: $0.first..<$0.endPosition) }
  }

  /// Throws `invalidInput` if a block would exceed its size limit. Reads only blocks that come near it.
  func checkSizes(with lines: RedactedLines) throws(LedgerError) {
    for block in blocks {
      let range = block.first..<block.endPosition
      guard block.contentByteCount + lines.byteCount(in: range) > Format.blockByteCountMax
      else { continue }
      let events = ByteBuffer(capacity: block.contentByteCount)
      _ = try BlockInflater().inflate(block, of: file, into: events)
      try lines.apply(to: events, first: block.first, count: block.eventCount)
      if events.count > Format.blockByteCountMax {
        throw LedgerError(
          .invalidInput, operation: SegmentRewriter.operation,
          object: "\(name), block \(block.ordinal)",
          cause: "with its redacted lines it would be larger than a block may be")
      }
    }
  }
}

// MARK: - Erasures by the writer

extension LedgerWriter {
  /// Seals every event that was appended before the call into a block and removes its tail, at once. Appends continue
  /// meanwhile. Returns the end position of the blocks, which is at or after the end of those events.
  ///
  /// Throws if a block cannot be written, for example because the disk is full, or if the writer closes.
  @discardableResult
  package func sealAll() throws(LedgerError) -> Position {
    try whileOpen { () throws(LedgerError) in
      let end = try betweenCommits { (tails) throws(LedgerError) -> Position in
        try tails.rollOver()
        return tails.nextPosition
      }
      return try sealer.sealAll(upTo: end)
    }
  }

  /// Rewrites the segments that hold lines at these positions, with the redacted lines in place. Durable when it
  /// returns. Segments whose lines are all redacted are left alone, so it can be repeated after any failure. Appends
  /// continue meanwhile.
  ///
  /// Throws `invalidInput` if a position is not in a block (`sealAll` seals it), or if the format version of the ledger
  /// does not allow redacted lines; `closed` if it was stopped, or the writer closes.
  /// - Parameters:
  ///   - rewritten: new files of some of the segments.
  ///   - progress: called with the processed bytes and the total bytes of the affected segments.
  ///   - isCancelled: called for each block.
  package func rewriteSegments(
    _ lines: RedactedLines, rewritten: RewrittenSegments? = nil,
    progress: (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in },
    isCancelled: () -> Bool = { false }
  ) throws(LedgerError) {
    try whileOpen { () throws(LedgerError) in
      try rewriteTurn.withLock { _ throws(LedgerError) in
        try rewriteAll(lines, rewritten, progress, isCancelled)
      }
    }
  }

  /// Throws what `rewriteSegments` would throw before it changes anything. Otherwise returns new files of segments,
  /// which a reader that shows these lines fills.
  package func prepareRewriting(_ lines: RedactedLines) throws(LedgerError) -> RewrittenSegments {
    try whileOpen { () throws(LedgerError) in
      let affected = try checkedSegments(lines)
      var byteCount = 0
      let first = affected.prefix {
        byteCount += $0.byteCount
        return byteCount <= RewrittenSegments.byteCountMax
      }
      return RewrittenSegments(directory, firsts: Set(first.map(\.first)), encoders: encoders)
    }
  }

  private var encoders: BlockEncoders { BlockEncoders(level: options.compressionLevel) }

  /// The affected segments. Throws if one can't be rewritten.
  private func checkedSegments(
    _ lines: RedactedLines
  ) throws(LedgerError) -> [(first: Position, byteCount: Int)] {
    let affected = try affectedSegments(lines)
    for segment in affected { try openedSegment(segment.first).checkSizes(with: lines) }
    return affected
  }

  private func rewriteAll(
    _ lines: RedactedLines, _ rewritten: RewrittenSegments?, _ progress: (Int, Int) -> Void,
    _ isCancelled: () -> Bool
  ) throws(LedgerError) {
    let segments = try checkedSegments(lines)
    let total = segments.reduce(0) { $0 + $1.byteCount }
    let encoders = encoders
    var done = 0
    for segment in segments {
      let doneBefore = done
      try withoutActuallyEscaping(progress) { (progress) throws(LedgerError) in
        try withoutActuallyEscaping(isCancelled) { (isCancelled) throws(LedgerError) in
          let rewriter = SegmentRewriter(
            directory: directory, lines: lines, encoders: encoders,
            priority: options.sealingPriority, progress: { progress(doneBefore + $0, total) },
            isCancelled: { [unowned self] in isCancelled() || isClosing })
          try rewrite(segment.first, rewriter, rewritten)
        }
      }
      done += segment.byteCount
      progress(done, total)
    }
    // A process may have renamed a segment and ended before it could sync the rename.
    do throws(LedgerError) { try directory.syncLogDirectory() } catch {
      sealer.fail(error)
      throw error
    }
  }

  /// The segments that hold one of the positions, in order, with their sizes.
  private func affectedSegments(
    _ lines: RedactedLines
  ) throws(LedgerError) -> [(first: Position, byteCount: Int)] {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(
        .invalidInput, operation: SegmentRewriter.operation, object: Format.logDirectoryName,
        cause: cause)
    }
    guard try directory.reread().identity.formatVersion >= Format.versionWithRedactions else {
      throw refusal("the format version of the ledger does not allow redacted lines")
    }
    let end = sealer.sealed.end
    if let last = lines.positions.last, last >= end {
      throw refusal("position \(last) is not in a block yet")
    }
    let firsts = try directory.list(Format.logDirectoryName).compactMap(Format.segmentFirst)
      .sorted()
    var affected: [(first: Position, byteCount: Int)] = []
    for (index, first) in firsts.enumerated() where first < end {
      let next = index + 1 < firsts.count ? firsts[index + 1] : end
      guard lines.contains(in: first..<next) else { continue }
      let name = directory.logPath(Format.segmentName(first))
      affected.append((first, try directory.statusIfPresent(name)?.sizeBytes ?? 0))
    }
    return affected
  }

  private func openedSegment(_ first: Position) throws(LedgerError) -> SegmentIndex {
    var segment = try SegmentIndex(directory, first: first)
    // A block that is being written at the segment's end does not matter: the redacted lines precede it.
    if case .damaged(let damage) = try segment.extend() { throw damage }
    return segment
  }

  private func rewrite(
    _ first: Position, _ rewriter: SegmentRewriter, _ rewritten: RewrittenSegments?
  ) throws(LedgerError) {
    do throws(LedgerError) {
      // The newest segment grows: no block is written to it meanwhile.
      if first == sealer.sealed.newestFirst, try rewriteNewest(first, rewriter, rewritten) {
        return
      }
      let segment = try openedSegment(first)
      guard segment.isClosed else {
        throw LedgerError(
          .init(verdict: .corrupt, file: segment.name, position: segment.endPosition),
          operation: SegmentRewriter.operation, cause: "its closing member is damaged or missing")
      }
      _ = try rewriter.rewrite(segment, rewritten)
    } catch {
      // The content on disk is then unknown, as after a failed append.
      if error.leavesDiskUnknown { sealer.fail(error) }
      throw error
    }
  }

  /// False if another segment has become the newest.
  private func rewriteNewest(
    _ first: Position, _ rewriter: SegmentRewriter, _ rewritten: RewrittenSegments?
  ) throws(LedgerError) -> Bool {
    try sealer.betweenBlocks { (blocks) throws(LedgerError) in
      let newest = blocks.newest
      guard newest.first == first else { return false }
      do throws(LedgerError) {
        if let rewritten = try rewriter.rewrite(newest, rewritten) {
          blocks.replaceNewest(with: rewritten)
        }
        return true
      } catch {
        // The name may refer to the new file now: blocks must not be appended to the old one.
        if (try? newest.isReplaced(directory)) != false { sealer.fail(error) }
        throw error
      }
    }
  }
}

// MARK: - New files from a reader's blocks

/// What a reader needs to make a new member for a block.
struct BlockRewriting {
  let segment: SegmentIndex
  let encoders: BlockEncoders
}

/// New files of segments with redacted lines. A reader that shows these lines fills them: the threads that inflate its
/// blocks also deflate the changed ones, so that no block is inflated twice. Used by the reader's thread.
///
/// It only saves time: `rewriteSegments` writes what is missing here, and everything after a failure. The files have
/// temporary names until `rewriteSegments` puts them in use; unused ones are removed with this object.
package final class RewrittenSegments {
  /// The most bytes of segments that get new files this way; these exist next to the old ones until the commit.
  static let byteCountMax = 1 << 30

  /// A segment, its new file, and the blocks that the file contains so far.
  private struct Part {
    let old: SegmentIndex
    let copy: SegmentCopy
    var firsts: Set<Position> = []
  }

  private let directory: LedgerDirectory
  private let encoders: BlockEncoders
  /// The first positions of the segments.
  private let firsts: Set<Position>
  private var parts: [Part] = []
  /// The earliest position of the next block.
  private var end = 0
  private var hasFailed = false

  init(_ directory: LedgerDirectory, firsts: Set<Position>, encoders: BlockEncoders) {
    self.directory = directory
    self.firsts = firsts
    self.encoders = encoders
  }

  deinit { discard() }

  /// How the blocks of a segment get new members; nil if it is not one of these segments. Thread-safe.
  func rewriting(_ segment: SegmentIndex) -> BlockRewriting? {
    firsts.contains(segment.first) ? BlockRewriting(segment: segment, encoders: encoders) : nil
  }

  /// Writes the new member of a block, unless a later one was already written, or the same one.
  func add(_ block: BlockLocation, _ rewritten: RewrittenBlock) {
    defer { encoders.recycle(rewritten.member) }
    guard block.first >= end, !hasFailed else { return }
    end = block.endPosition
    let segment = rewritten.segment
    if parts.last?.old.first != segment.first {
      parts.append(Part(old: segment, copy: SegmentCopy(directory, segment)))
    }
    let last = parts.count - 1
    do throws(LedgerError) {
      try parts[last].copy.replace(block, with: rewritten.member.bytes)
      parts[last].firsts.insert(block.first)
    } catch {
      hasFailed = true
      discard()
    }
  }

  /// The new file of a segment; nil if it does not have exactly these lines, or was already taken. The caller finishes
  /// or discards it.
  func removeCopy(of segment: SegmentIndex, with lines: RedactedLines) -> SegmentCopy? {
    guard let index = parts.firstIndex(where: { $0.old.first == segment.first }) else {
      return nil
    }
    let part = parts.remove(at: index)
    if part.old.isSameFile(as: segment),
      part.firsts == Set(segment.blocks(holding: lines).map(\.first))
    {
      return part.copy
    }
    part.copy.discard()
    return nil
  }

  private func discard() {
    for part in parts { part.copy.discard() }
    parts = []
  }
}
