// Compares tails whose events are in blocks with those blocks before removing them, and rewrites damaged blocks.
import Base

/// A damaged block that can be rewritten in place, and the tail that contains its events.
struct BlockRepair {
  let segment: SegmentIndex
  let block: BlockLocation
  /// The tree before the block.
  let frontierBefore: Frontier
  let lastEventAtMsBefore: Int64
  /// Computed from the tail; the block's header contains the same.
  let frontierAfter: Frontier
  let tailFirst: Position
}

/// Checks the tails whose blocks already exist. The caller holds the lock.
struct CoveredTails {
  private let directory: LedgerDirectory
  private let state: LogState
  private let deflater: BlockDeflater
  private let inflater = BlockInflater()
  private let hasher = SHA256()
  // The tail and the block under comparison.
  private let tailEvents = ByteBuffer()
  private let blockEvents = ByteBuffer()
  private let member = ByteBuffer()
  private var lastSegment: SegmentIndex?
  private(set) var repairs: [BlockRepair] = []

  init(
    _ directory: LedgerDirectory, _ state: LogState, compressionLevel: Int32
  ) throws(LedgerError) {
    self.directory = directory
    self.state = state
    deflater = try BlockDeflater(level: compressionLevel)
  }

  /// Compares all of them with their blocks; changes nothing. After `repair` returns, each tail may be removed.
  ///
  /// Throws `corruption` if a tail contains events that its block does not, and the block cannot be rewritten.
  mutating func inspect() throws(LedgerError) {
    for first in state.coveredTails {
      let end = try readTail(first)
      var position = first
      repeat {
        let (segment, block) = try locate(position)
        try compare(block, segment, tailFirst: first, tailEnd: end)
        position = block.endPosition
      } while position < end
    }
  }

  /// Rewrites the damaged blocks durably. If interrupted, it can be repeated, because the tails still exist.
  func repair() throws(LedgerError) {
    for repair in repairs { try write(repair) }
  }

  // MARK: Tails

  /// Reads the lines of a tail's whole frames into `tailEvents` and returns their end position. Unreadable bytes, and
  /// bytes that are not a frame, count as missing.
  private func readTail(_ first: Position) throws(LedgerError) -> Position {
    tailEvents.count = 0
    let name = directory.logPath(Format.tailName(first))
    guard let file = try directory.openFileIfPresent(name) else { return first }
    do throws(LedgerError) {
      _ = try file.readWhole(
        min(try file.sizeBytes(), AuditTails.byteCountMax), offsetBytes: 0, into: tailEvents)
    } catch {
      guard error.operation == LedgerError.readOperation, error.isOfDevice else { throw error }
      tailEvents.count = 0
    }
    return FrameHeader.removeLeading(from: tailEvents, first: first)
  }

  private func tailPart(
    _ tailFirst: Position, _ range: Range<Position>
  ) -> UnsafeRawBufferPointer? {
    LineRange.part(tailEvents.bytes, first: tailFirst, range)
  }

  // MARK: Blocks

  private mutating func locate(
    _ position: Position
  ) throws(LedgerError) -> (SegmentIndex, BlockLocation) {
    var segment = state.newest
    var fault: LedgerError?
    if position < segment?.first ?? 0 {
      if let last = lastSegment, last.first <= position, position < last.endPosition {
        segment = last
      } else if let sealed = state.sealed.last(where: { $0.first <= position }) {
        var opened = try SegmentIndex(directory, first: sealed.first)
        if case .damaged(let damage) = try opened.extend() { fault = damage }
        lastSegment = opened
        segment = opened
      }
    }
    guard let segment, let block = segment.block(holding: position) else {
      throw fault
        ?? LedgerError(
          .init(
            verdict: .corrupt, file: segment?.name ?? Format.logDirectoryName, position: position),
          operation: Self.operation, cause: "no intact block holds this position")
    }
    return (segment, block)
  }

  private static let operation = "compare tail"

  /// Compares a block with its tail. An intact block with the same events is correct; if the block is damaged, the
  /// tail is correct.
  private mutating func compare(
    _ block: BlockLocation, _ segment: SegmentIndex, tailFirst: Position, tailEnd: Position
  ) throws(LedgerError) {
    let tailName = directory.logPath(Format.tailName(tailFirst))
    do throws(LedgerError) {
      _ = try inflater.inflate(block, of: segment.file, into: blockEvents)
    } catch {
      guard error.damage?.verdict == .corrupt else { throw error }
      guard tailFirst <= block.first, block.endPosition <= tailEnd else {
        throw refusal(error, "\(error.cause); \(tailName) does not hold all of its events")
      }
      let repair = try remade(block, segment, tailFirst: tailFirst)
      guard try encode(repair), try repairKeepsPlace(repair) else {
        throw refusal(
          error,
          "\(error.cause); \(tailName) holds its events, but the block cannot be rewritten in place"
        )
      }
      repairs.append(repair)
      return
    }
    let common = max(block.first, tailFirst)..<min(block.endPosition, tailEnd)
    if common.isEmpty { return }
    guard let ofBlock = LineRange.part(blockEvents.bytes, first: block.first, common),
      let ofTail = tailPart(tailFirst, common), Self.isSameOrRedacted(ofBlock, ofTail)
    else {
      // Two intact versions differ, and neither is older.
      throw LedgerError(
        .init(
          verdict: .tampered, file: segment.name, block: block.ordinal, position: block.first),
        operation: Self.operation, cause: "it is intact, but \(tailName) holds other events")
    }
  }

  /// Whether a block's lines are those of a tail. Only blocks are redacted: a redacted line of a block is right if the
  /// tail's line has the same leaf.
  private static func isSameOrRedacted(
    _ block: UnsafeRawBufferPointer, _ tail: UnsafeRawBufferPointer
  ) -> Bool {
    if block.elementsEqual(tail) { return true }
    var blockLines = EventLines(block)
    var tailLines = EventLines(tail)
    while let blockLine = blockLines.next() {
      guard let tailLine = tailLines.next() else { return false }
      if blockLine.elementsEqual(tailLine) { continue }
      guard let redacted = EventLine(blockLine), redacted.isRedacted,
        let whole = EventLine(tailLine),
        redacted.leafRecordStart.elementsEqual(whole.leafRecordStart)
      else { return false }
    }
    return blockLines.isAtEnd && tailLines.isAtEnd && tailLines.next() == nil
  }

  private func refusal(_ error: LedgerError, _ cause: String) -> LedgerError {
    guard let damage = error.damage else { return error }
    return LedgerError(damage, operation: Self.operation, cause: cause)
  }

  /// What a block must contain, from the member before it and the tail.
  private func remade(
    _ block: BlockLocation, _ segment: SegmentIndex, tailFirst: Position
  ) throws(LedgerError) -> BlockRepair {
    let (before, timeBefore) = try end(before: block, segment)
    var frontier = before
    guard let lines = tailPart(tailFirst, block.first..<block.endPosition) else {
      preconditionFailure("a tail has fewer lines than its frames say")
    }
    var run = EventRun(next: block.first, lastEventAtMs: timeBefore)
    let fault = run.fault(lines, eventCount: block.eventCount) { line in
      frontier.append(leafHash: line.leafHash(hasher), hasher)
    }
    if let fault {
      throw LedgerError(
        .init(
          verdict: .tampered, file: directory.logPath(Format.tailName(tailFirst)),
          position: run.next),
        operation: Self.operation, cause: fault)
    }
    return BlockRepair(
      segment: segment, block: block, frontierBefore: before, lastEventAtMsBefore: timeBefore,
      frontierAfter: frontier, tailFirst: tailFirst)
  }

  /// The tree and the time before a block. The member before it must be intact or also be rewritten.
  private func end(
    before block: BlockLocation, _ segment: SegmentIndex
  ) throws(LedgerError) -> (Frontier, Int64) {
    if block.ordinal == 0 { return (segment.frontierBefore, segment.lastEventAtMsBefore) }
    let previous = segment.blocks[block.ordinal - 1]
    let isThere: Bool
    do throws(LedgerError) {
      isThere = try segment.file.readWhole(
        previous.memberByteCount, offsetBytes: previous.offsetBytes, into: member)
    } catch {
      throw error.unreadable(segment.file, block: previous.ordinal, at: previous.first)
    }
    let isRepaired = repairs.contains {
      $0.segment.first == segment.first && $0.block.ordinal == previous.ordinal
    }
    // The header of a block to be rewritten was checked before.
    guard isThere, let header = MemberHeader(member.bytes),
      isRepaired || header.isWhole(in: member.bytes),
      case .block(let frontier) = header.detail, frontier.size == block.first
    else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: segment.name, block: previous.ordinal,
          position: previous.first),
        operation: Self.operation, cause: "it and the block after it are damaged")
    }
    return (frontier, header.lastEventAtMs)
  }

  /// Encodes a block's member again, into `member`; false if that is impossible.
  private func encode(_ repair: BlockRepair) throws(LedgerError) -> Bool {
    let block = repair.block
    guard let lines = tailPart(repair.tailFirst, block.first..<block.endPosition) else {
      return false
    }
    var run = EventRun(next: block.first, lastEventAtMs: repair.lastEventAtMsBefore)
    guard run.fault(lines, eventCount: block.eventCount, { _ in }) == nil else { return false }
    return MemberWriter(member).block(
      events: lines, eventCount: block.eventCount, deflated: deflater.deflate(lines),
      frontierAfter: repair.frontierAfter, lastEventAtMs: run.lastEventAtMs)
  }

  /// Whether the new member has the damaged one's exact size and header.
  private func repairKeepsPlace(_ repair: BlockRepair) throws(LedgerError) -> Bool {
    let block = repair.block
    let buffer = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
    guard member.count == block.memberByteCount, let made = MemberHeader(member.bytes),
      let found = try repair.segment.file.memberHeader(at: block.offsetBytes, buffer)
    else { return false }
    return found.first == made.first && found.eventCount == made.eventCount
      && found.detail == made.detail && found.contentByteCount == made.contentByteCount
      && found.lastEventAtMs == made.lastEventAtMs
  }

  private func write(_ repair: BlockRepair) throws(LedgerError) {
    let segment = repair.segment
    guard try readTail(repair.tailFirst) >= repair.block.endPosition, try encode(repair),
      member.count == repair.block.memberByteCount
    else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: segment.name, block: repair.block.ordinal,
          position: repair.block.first),
        operation: "rewrite block", cause: "its tail has changed")
    }
    let isProtected = try segment.file.status().permissions & 0o200 == 0
    if isProtected { try segment.file.changePermissions(Format.filePermissions) }
    let file = try directory.openFile(segment.name, .readWrite)
    try file.write(member.bytes, offsetBytes: repair.block.offsetBytes)
    try file.syncData()
    if isProtected { try file.changePermissions(Format.sealedPermissions) }
    let frontier = try inflater.inflate(repair.block, of: file, into: blockEvents)
    precondition(frontier == repair.frontierAfter, "the block written is not the block prepared")
  }
}
