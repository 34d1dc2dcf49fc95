// What an erasure needs of the writer: all events in blocks, and segments written anew.
import Base

extension LedgerWriter {
  /// Puts every event that was appended before the call into a block and removes its tail, at once. Appends go on
  /// meanwhile. Returns the end position of the blocks, which is not before that of those events.
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

  /// Writes the segments anew that hold lines of these positions, with the redacted lines instead of theirs. Durable
  /// when it returns. Segments whose lines are all redacted already are left alone, so it can be repeated after any
  /// failure. Appends go on meanwhile.
  ///
  /// Throws `invalidInput` if a position is not in a block (`sealAll` puts it there), or if the format version of the
  /// ledger does not allow redacted lines; `closed` if it was stopped, or the writer closes.
  /// - Parameters:
  ///   - preparation: new files of some of the segments. What is not put in use is removed.
  ///   - progress: called with the bytes of segments that are done and those of all segments concerned.
  ///   - isCancelled: asked for each block.
  package func rewriteSegments(
    _ lines: RedactedLines, preparation: SegmentPreparation? = nil,
    progress: (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in },
    isCancelled: () -> Bool = { false }
  ) throws(LedgerError) {
    defer { preparation?.discard() }
    try whileOpen { () throws(LedgerError) in
      try rewriteTurn.withLock { _ throws(LedgerError) in
        try rewriteAll(lines, preparation, progress, isCancelled)
      }
    }
  }

  /// Begins new files of segments that get redacted lines, for `rewriteSegments` with these lines. The caller gives it
  /// the lines block by block, and finishes or discards it.
  /// - Parameter workers: how many threads compress; with 0, each call does it itself.
  package func prepareSegments(workers: Int = 2) throws(LedgerError) -> SegmentPreparation {
    try whileOpen { () throws(LedgerError) in
      let firsts = try directory.list(Format.logDirectoryName).compactMap(Format.segmentFirst)
      return try SegmentPreparation(
        directory, firsts: firsts.sorted(), careful: BlockEncoders(level: options.compressionLevel),
        quick: BlockEncoders(level: options.rewritingLevel), workerCount: workers,
        priority: options.sealingPriority,
        open: { [unowned self] (first) throws(LedgerError) in try openedSegment(first) })
    }
  }

  /// Throws what `rewriteSegments` would throw before it changes anything.
  package func checkRewriting(_ lines: RedactedLines) throws(LedgerError) {
    try whileOpen { () throws(LedgerError) in _ = try check(try affectedSegments(lines), lines) }
  }

  /// Throws if one of these segments can't be written anew.
  /// - Returns: what encodes their blocks. More than a few blocks are compressed faster and less.
  private func check(
    _ affected: [(first: Position, byteCount: Int)], _ lines: RedactedLines
  ) throws(LedgerError) -> BlockEncoders {
    var blockCount = 0
    for affected in affected {
      let segment = try openedSegment(affected.first)
      try segment.checkSizes(with: lines)
      blockCount += segment.blocks(holding: lines).count
    }
    let isFew = blockCount <= SegmentPreparation.fewBlockCount
    return BlockEncoders(level: isFew ? options.compressionLevel : options.rewritingLevel)
  }

  private func rewriteAll(
    _ lines: RedactedLines, _ preparation: SegmentPreparation?, _ progress: (Int, Int) -> Void,
    _ isCancelled: () -> Bool
  ) throws(LedgerError) {
    let segments = try affectedSegments(lines)
    let total = segments.reduce(0) { $0 + $1.byteCount }
    let encoders = try check(segments, lines)
    var done = 0
    for segment in segments {
      let doneBefore = done
      try withoutActuallyEscaping(progress) { (progress) throws(LedgerError) in
        try withoutActuallyEscaping(isCancelled) { (isCancelled) throws(LedgerError) in
          let rewriter = SegmentRewriter(
            directory: directory, lines: lines, encoders: encoders,
            priority: options.sealingPriority, progress: { progress(doneBefore + $0, total) },
            isCancelled: { [unowned self] in isCancelled() || isClosing })
          try rewrite(segment.first, rewriter, preparation)
        }
      }
      done += segment.byteCount
      progress(done, total)
    }
    // A segment that was left alone may have got its name from a process that ended before it could sync that.
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
    // A block that is being written at its end does not matter: the redacted lines are before it.
    if case .damaged(let damage) = try segment.extend() { throw damage }
    return segment
  }

  private func rewrite(
    _ first: Position, _ rewriter: SegmentRewriter, _ preparation: SegmentPreparation?
  ) throws(LedgerError) {
    do throws(LedgerError) {
      // The newest segment grows: no block is written to it meanwhile.
      if first == sealer.sealed.newestFirst, try rewriteNewest(first, rewriter, preparation) {
        return
      }
      let segment = try openedSegment(first)
      guard segment.isClosed else {
        throw LedgerError(
          .init(verdict: .corrupt, file: segment.name, position: segment.endPosition),
          operation: SegmentRewriter.operation, cause: "its closing member is damaged or missing")
      }
      _ = try rewriter.rewrite(segment, preparation)
    } catch {
      // What is on disk is then unknown, as after a failed append.
      if error.leavesDiskUnknown { sealer.fail(error) }
      throw error
    }
  }

  /// False if another segment has become the newest.
  private func rewriteNewest(
    _ first: Position, _ rewriter: SegmentRewriter, _ preparation: SegmentPreparation?
  ) throws(LedgerError) -> Bool {
    try sealer.betweenBlocks { (blocks) throws(LedgerError) in
      let newest = blocks.newest
      guard newest.first == first else { return false }
      do throws(LedgerError) {
        if let rewritten = try rewriter.rewrite(newest, preparation) {
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
