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
  ///   - rewritten: new files of some of the segments.
  ///   - progress: called with the bytes of segments that are done and those of all segments concerned.
  ///   - isCancelled: asked for each block.
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

  /// Throws what `rewriteSegments` would throw before it changes anything. Otherwise returns new files of segments for
  /// a reader that shows these lines to fill.
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
      // What is on disk is then unknown, as after a failed append.
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
