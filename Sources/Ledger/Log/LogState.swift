// The state of the whole log on disk: segments, tails and damage.
package import Base
import Glibc

/// A closed segment that another segment follows.
struct SealedSegment: Sendable {
  let first: Position
  let endPosition: Position
  /// The root of the tree after its last event.
  let root: SHA256Digest
}

/// A tail's name, and its file if it was opened.
private struct FoundTail {
  let first: Position
  let name: String
  let kept: StorageFile?

  /// The file; nil if it no longer exists.
  func opened(_ directory: LedgerDirectory) throws(LedgerError) -> StorageFile? {
    if let kept { return kept }
    return try directory.openFileIfPresent(name)
  }
}

/// The result of reading through a ledger's log.
package struct LogState {
  private(set) var sealed: [SealedSegment] = []
  /// The last segment that could be opened.
  var newest: SegmentIndex?
  /// The tails that continue the blocks, in order; all but the last are whole.
  package var tails: [TailView] = []
  /// The first positions of tails whose events are all in blocks.
  private(set) var coveredTails: [Position] = []
  /// Names of temporary files that were never completed.
  private(set) var temporaryNames: [String] = []
  /// Whether the newest segment ends with a torn member whose events are in a tail.
  private(set) var hasTornMember = false
  /// The size of the torn frame at the end of the last tail.
  private(set) var tornTailByteCount = 0
  /// Whether the log continues after the limit.
  var isLimited = false
  /// The first damage; everything before it is intact.
  private(set) var damage: LedgerError?

  /// The number of whole events.
  var size: Int { tails.last?.endPosition ?? newest?.endPosition ?? 0 }
  var frontier: Frontier { tails.last?.frontierAfter ?? newest?.frontierAfter ?? Frontier() }
  var lastEventAtMs: Int64 { tails.last?.lastEventAtMs ?? newest?.lastEventAtMs ?? 0 }

  /// Reads through a log: openings and closings of the sealed segments, the headers of the newest, and the tails.
  ///
  /// Throws only if the log cannot be examined at all; damage is reported in `damage`. What an earlier state contains
  /// is not read again.
  /// - Parameter keptTailCount: how many tails stay open in addition to the last one. None need to if no other
  ///   process can remove them.
  /// - Parameter limit: frames of the newest tail that extend beyond this position are left out.
  /// - Parameter part: the only events that are needed; other files are not opened and may be missing.
  package init(
    _ directory: LedgerDirectory, _ hasher: SHA256, keptTailCount: Int,
    knowing earlier: LogState? = nil, limit: Position = .max, part: Range<Position>? = nil
  ) throws(LedgerError) {
    // Tails are opened before the blocks are read: a tail that vanishes in between is in a block by then, and an open
    // tail stays readable. The second list includes every segment that contains it. Tails beyond the limit of open
    // files are opened one by one; if one has vanished, everything is read again.
    guard let early = try directory.listIfPresent(Format.logDirectoryName) else {
      temporaryNames = []
      damage = LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: 0), operation: "open log",
        cause: "there is no such directory in \(directory.path)")
      return
    }
    let tailFirsts =
      early
      .compactMap(Format.tailFirst).sorted()
    var files: [FoundTail] = []
    for (index, first) in tailFirsts.enumerated() {
      let name = directory.logPath(Format.tailName(first))
      guard index < keptTailCount || index == tailFirsts.count - 1 else {
        files.append(FoundTail(first: first, name: name, kept: nil))
        continue
      }
      if let file = try directory.openFileIfPresent(name) {
        files.append(FoundTail(first: first, name: name, kept: file))
      }
    }
    let names = try directory.list(Format.logDirectoryName)
    temporaryNames = names.filter { $0.hasSuffix(Format.temporarySuffix) }.sorted()
    do throws(LedgerError) {
      let firsts = names.compactMap(Format.segmentFirst).sorted()
      let stop = try walkSegments(
        directory, part.map { Self.firsts(firsts, of: $0) } ?? firsts, part?.lowerBound ?? 0,
        knowing: earlier)
      // What follows the part, including damage, does not matter.
      if let part, let newest, newest.endPosition >= part.upperBound { return }
      try walkTails(
        directory, files, afterSegment: stop, hasher, knowing: earlier, limit: limit)
    } catch {
      guard error.kind == .corruption else { throw error }
      damage = error
      try reopenLastSealed(directory)
    }
  }

  /// The segments that a part needs: from the last one that begins at or before it.
  private static func firsts(_ firsts: [Position], of part: Range<Position>) -> [Position] {
    guard let start = firsts.lastIndex(where: { $0 <= part.lowerBound }) else { return [] }
    return firsts[start...].filter { $0 <= part.lowerBound || $0 < part.upperBound }
  }

  /// - Parameter start: the position from which on events are needed.
  private mutating func walkSegments(
    _ directory: LedgerDirectory, _ firsts: [Position], _ start: Position,
    knowing earlier: LogState?
  ) throws(LedgerError) -> SegmentIndex.Stop {
    guard let first = firsts.first, first == 0 || start > 0 else {
      throw missing(
        directory, start == 0 ? Format.segmentName(0) : "", at: start,
        start == 0
          ? "the first segment is missing" : "no segment begins at or before this position")
    }
    var previous: SegmentClosing?
    for (index, first) in firsts.enumerated() {
      if let known = earlier?.sealed, index < known.count, known[index].first == first,
        index + 1 < firsts.count, known[index].endPosition == firsts[index + 1]
      {
        sealed.append(known[index])
        continue
      }
      let segment: SegmentIndex
      if let known = earlier?.newest, known.first == first, try !known.isReplaced(directory) {
        segment = known
      } else {
        segment = try SegmentIndex(directory, first: first)
      }
      if let previous {
        guard segment.frontierBefore.root == previous.root,
          segment.lastEventAtMsBefore == previous.lastEventAtMs
        else { throw mismatch(segment, "it does not continue the segment before it") }
      }
      if index == firsts.count - 1 {
        newest = segment
        return try walkNewest()
      }
      var found: SegmentClosing?
      var failure: LedgerError?
      do throws(LedgerError) { found = try segment.closing() } catch { failure = error }
      guard let closing = found else {
        newest = segment
        if case .damaged(let fault) = try walkNewest() { throw fault }
        if let failure { throw failure.unreadable(segment.file, at: newest?.endPosition) }
        throw LedgerError(
          .init(verdict: .corrupt, file: segment.name, position: newest?.endPosition),
          operation: "open segment", cause: "its closing member is damaged or missing")
      }
      sealed.append(
        SealedSegment(first: first, endPosition: closing.endPosition, root: closing.root))
      guard closing.endPosition == firsts[index + 1] else {
        throw missing(
          directory, Format.segmentName(closing.endPosition), at: closing.endPosition,
          "the segment is missing")
      }
      previous = closing
    }
    return .end
  }

  /// After damage, makes the last segment before it the newest, so that it can be read.
  private mutating func reopenLastSealed(_ directory: LedgerDirectory) throws(LedgerError) {
    guard newest == nil, let last = sealed.popLast() else { return }
    do throws(LedgerError) {
      newest = try SegmentIndex(directory, first: last.first)
      _ = try walkNewest()
    } catch {
      // Damage in this segment comes first.
      guard error.kind == .corruption else { throw error }
      damage = error
    }
  }

  private mutating func walkNewest() throws(LedgerError) -> SegmentIndex.Stop {
    guard var segment = newest else { return .end }
    defer { newest = segment }
    return try segment.extend()
  }

  /// Adds the blocks that were appended to the newest segment, replacing their tails. Returns false if that does not
  /// explain the files found; the whole log must then be read again.
  mutating func addNewBlocks() throws(LedgerError) -> Bool {
    guard damage == nil, var segment = newest, !segment.isClosed else { return false }
    let stop: SegmentIndex.Stop
    do throws(LedgerError) { stop = try segment.extend() } catch {
      guard error.kind == .corruption else { throw error }
      return false
    }
    // Events after a closed segment are in other segments, even if their tails are already removed.
    if segment.isClosed { return false }
    switch stop {
    case .end: break
    case .torn:
      // A block that is being written still has its tail.
      guard tails.contains(where: { $0.first == segment.endPosition }) else { return false }
    case .damaged: return false
    }
    if segment.endPosition > newest?.endPosition ?? 0 {
      // Tails and blocks must contain the same history.
      guard let last = tails.firstIndex(where: { $0.endPosition == segment.endPosition }),
        tails[last].frontierAfter == segment.frontierAfter,
        tails[last].lastEventAtMs == segment.lastEventAtMs
      else { return false }
      tails.removeFirst(last + 1)
    }
    newest = segment
    return true
  }

  private mutating func walkTails(
    _ directory: LedgerDirectory, _ files: [FoundTail],
    afterSegment stop: SegmentIndex.Stop, _ hasher: SHA256, knowing earlier: LogState?,
    limit: Position
  ) throws(LedgerError) {
    if case .damaged(let fault) = stop { throw fault }
    let blocksEnd = newest?.endPosition ?? 0
    let buffer = ByteBuffer(capacity: 256 << 10)
    let covered = files.filter { $0.first < blocksEnd }
    coveredTails = covered.map(\.first)
    if let last = covered.last, let file = try last.opened(directory) {
      let end: Position
      do throws(LedgerError) {
        end = try TailView.coveredEnd(file, first: last.first, buffer)
      } catch { throw error.unreadable(file, at: last.first) }
      if end > blocksEnd {
        throw LedgerError(
          .init(verdict: .tampered, file: last.name, position: blocksEnd),
          operation: "walk tail", cause: "it holds events beyond the block that covers it")
      }
    }
    let open = files.filter { $0.first >= blocksEnd }
    if case .torn = stop {
      guard open.first?.first == blocksEnd, let newest else {
        throw LedgerError(
          .init(
            verdict: .missing, file: newest?.name ?? Format.logDirectoryName,
            block: newest?.blocks.count, position: blocksEnd),
          operation: "walk segment",
          cause: "its last member is damaged and no tail holds its events")
      }
      hasTornMember = newest.endOffsetBytes > 0
    }
    for (index, found) in open.enumerated() {
      guard found.first == size, let opened = try found.opened(directory) else {
        throw missing(
          directory, Format.tailName(size), at: size, "no tail begins where the log ends")
      }
      let file = try TailFile(
        opened, directory, first: found.first, isKept: found.kept != nil)
      var tail =
        earlier?.tail(file, after: frontier)
        ?? TailView(file, frontierBefore: frontier, lastEventAtMsBefore: lastEventAtMs)
      let isLast = index == open.count - 1
      let stop: TailView.Stop
      do throws(LedgerError) {
        // A tail that another follows was synced before the next one began.
        stop = try tail.extend(opened, hasher, buffer, limit: isLast ? limit : .max)
      } catch {
        tails.append(tail)
        throw error
      }
      tails.append(tail)
      switch stop {
      case .end: break
      case .limited: isLimited = true
      case .damaged(let fault): throw fault
      case .torn(let byteCount):
        if !isLast { throw tail.damage("a frame is damaged and a newer tail follows") }
        tornTailByteCount = byteCount
      }
    }
  }

  /// The known state of a tail, if it is the same file and continues the same history.
  private func tail(_ file: TailFile, after frontier: Frontier) -> TailView? {
    guard damage == nil, let index = tails.firstIndex(where: { $0.first == frontier.size }) else {
      return nil
    }
    let before = index == 0 ? newest?.frontierAfter ?? Frontier() : tails[index - 1].frontierAfter
    guard before == frontier, tails[index].file.fileNumber == file.fileNumber else { return nil }
    return tails[index].with(file)
  }

  private func missing(
    _ directory: LedgerDirectory, _ name: String, at position: Position, _ cause: String
  ) -> LedgerError {
    LedgerError(
      .init(verdict: .missing, file: directory.logPath(name), position: position),
      operation: "open log", cause: cause)
  }

  private func mismatch(_ segment: SegmentIndex, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: segment.name, position: segment.first),
      operation: "open segment", cause: cause)
  }
}

// MARK: - Search for valid parts

/// Iterates over the offsets at which a valid frame or member could begin. Valid parts after invalid ones distinguish
/// damage from a torn write.
struct ValidPartSearch {
  private let bytes: UnsafeRawBufferPointer
  private let start: UInt8
  private var offset = 0
  // Crafted bytes could have a plausible header at every offset. The total number of checksummed bytes is limited;
  // reaching the limit counts as damage.
  private var budgetBytes = 1 << 30

  /// Searches for parts that begin with a given byte, except at the very first offset.
  init(_ bytes: UnsafeRawBufferPointer, start: UInt8) {
    self.bytes = bytes
    self.start = start
  }

  /// All bytes from the next candidate offset on.
  mutating func next() -> UnsafeRawBufferPointer? {
    guard let base = bytes.baseAddress, offset + 1 < bytes.count,
      let found = memchr(base + offset + 1, Int32(start), bytes.count - offset - 1)
    else { return nil }
    offset = UnsafeRawPointer(found) - base
    return UnsafeRawBufferPointer(rebasing: bytes[offset...])
  }

  /// Subtracts a checksum's bytes from the budget; false if the budget is used up.
  mutating func spend(_ byteCount: Int) -> Bool {
    budgetBytes -= byteCount
    return budgetBytes >= 0
  }
}
