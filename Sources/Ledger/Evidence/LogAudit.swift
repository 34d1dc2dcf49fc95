// The audit of a whole log: every byte inflated and hashed, every rule of the format checked.
import Base
import Glibc

/// Reads a log once, without a lock, and continues past damage. Not thread-safe.
package final class LogAudit {
  /// Called at intervals with the bytes read and the total. To cancel the audit, throw.
  package typealias Progress = (_ doneBytes: Int, _ totalBytes: Int) throws -> Void
  /// Receives intact lines in the order of the log. The bytes are valid only during the call.
  typealias Salvage = (AuditedLines, _ bytes: UnsafeRawBufferPointer) throws -> Void

  private let directory: LedgerDirectory
  private let workerCount: Int
  private let hasher = SHA256()
  private var report = AuditReport()
  /// Requested tree sizes that are still ahead, descending.
  private var wantedSizes: [Int]
  private var redactions = RedactionAudit()

  /// The tree of the events read so far; nil after damage that hides it.
  private var tree: Frontier? = Frontier()
  /// Whether position, tree and time were computed from events, not only copied from a header.
  private var isCertain = true
  private var position: Position = 0
  /// The end of this segment's last intact block: later blocks cannot begin before it.
  private var wholeEnd: Position = 0
  private var lastEventAtMs: Int64 = 0

  private var segmentName = Format.logDirectoryName
  private var segmentFirst: Position = 0
  private var segmentBlockCount = 0
  private var segmentIsWhole = true
  private var segmentIsForeign = false
  /// Whether the last block's lines belong to this log, apart from lines that are faulty themselves.
  private var blockIsSound = false
  /// A damaged block that is not reported yet, because its end is not known.
  private var damagedBlock: AuditFinding?
  private var tornMember: (file: String, block: Int)?

  /// - Parameters:
  ///   - rootsAt: sizes whose roots the report must contain, computed from the events.
  ///   - workers: how many threads inflate and hash; 0 uses the calling thread.
  package init(_ directory: LedgerDirectory, rootsAt sizes: [Int] = [], workers: Int = 2) {
    self.directory = directory
    workerCount = min(workers, 64)
    wantedSizes = Set(sizes).sorted(by: >)
  }

  /// Audits the log. Throws only errors that prevent the audit, and those of `progress`.
  package func run(progress: Progress = { _, _ in }) throws -> AuditReport {
    try run(progress: progress, salvage: { _, _ in })
  }

  /// As above. `salvage` is called only without workers.
  func run(progress: Progress, salvage: Salvage) throws -> AuditReport {
    // Also after the segments are opened: an erasure may begin meanwhile.
    try addPendingRedactions()
    // Tails first: a tail that disappears during the audit has been sealed into a block.
    let tails = try AuditTails(directory)
    let walk = try AuditWalk(directory)
    try addPendingRedactions()
    let total = walk.byteCount + tails.byteCount
    recordRoot()
    if workerCount == 0 {
      try auditInline(walk, total, progress, salvage)
    } else {
      try auditThreaded(walk, total, progress)
    }
    for step in walk.nextSteps() { process(step) }
    let following = tails.open.first { $0.first >= position }?.first
    if let following, following > position, damageHidesItsEnd {
      position = following
      tree = nil
    }
    reportDamagedBlock(endingAt: following)
    if report.segmentCount == 0 {
      find(
        .missing, directory.logPath(Format.segmentName(0)), at: 0, "the first segment is missing")
    }
    try auditTails(tails, salvage)
    for name in tails.temporaryNames {
      report.addNote("\(name) is not complete; the next writer completes or removes it")
    }
    report.size = position
    report.frontier = tree
    redactions.finish(&report, directory)
    report.isTreeCertain = report.isWhole
    return report
  }

  private func addPendingRedactions() throws(LedgerError) {
    do throws(LedgerError) {
      redactions.addPending(try directory.redactions.current(directory))
    } catch {
      guard error.kind == .corruption else { throw error }
      let finding = AuditFinding(error, file: RedactionFile.name, at: nil)
      if !report.findings.contains(finding) { report.add(finding) }
    }
  }

  // MARK: Blocks

  private func auditThreaded(
    _ walk: AuditWalk, _ total: Int, _ progress: Progress
  ) throws {
    let pipeline = try BlockPipeline(walk, workerCount: workerCount) {
      AuditedLines($0, firstPosition: $1, count: $2)
    }
    defer { pipeline.stop() }
    while true {
      let result: Result<InflatedBlock?, LedgerError>
      do throws(LedgerError) { result = .success(try pipeline.next()) } catch {
        result = .failure(error)
      }
      if case .success(nil) = result { return }
      for step in walk.nextSteps() { process(step, result.map { $0?.result }) }
      if case .success(let block?) = result { pipeline.recycle(block) }
      try progress(report.byteCount, total)
    }
  }

  private func auditInline(
    _ walk: AuditWalk, _ total: Int, _ progress: Progress,
    _ salvage: Salvage
  ) throws {
    let inflater = BlockInflater()
    let events = ByteBuffer(capacity: 64 << 10)
    while let item = walk.next() {
      let result: Result<BlockResult?, LedgerError>
      do throws(LedgerError) {
        let frontier = try inflater.inflate(item.block, of: item.file, into: events)
        let lines = AuditedLines(
          events.bytes, firstPosition: item.block.first, count: item.block.eventCount)
        result = .success((frontier, lines))
      } catch { result = .failure(error) }
      blockIsSound = false
      for step in walk.nextSteps() { process(step, result) }
      if blockIsSound, case .success((_, let lines)?) = result {
        try salvage(lines, events.bytes)
      }
      try progress(report.byteCount, total)
    }
  }

  private func process(
    _ step: AuditStep, _ result: Result<BlockResult?, LedgerError> = .success(nil)
  ) {
    switch step {
    case .segment(let file, let first, let opening):
      begin(file.name, first, opening)
    case .block(let header, let block, let file, let mayBeTorn):
      segmentBlockCount += 1
      report.byteCount += header.memberByteCount
      switch result {
      case .success((let frontier, let lines)?): checkBlock(lines, frontier, header, block, file)
      case .success(nil): break
      case .failure(let error):
        if mayBeTorn, error.kind == .corruption, error.damage?.verdict != .unreadable {
          tornMember = (file, block.ordinal)
        } else {
          fail(error, header, block, file)
        }
      }
    case .closing(let header, let offset): close(header, offset)
    case .torn(let file, let block, let byteCount):
      report.byteCount += byteCount
      tornMember = (file, block)
    case .end(let isClosed, let isNewest):
      if !isClosed, !isNewest, segmentIsWhole {
        find(
          .corrupt, segmentName, at: position, "its closing member is damaged or missing")
      }
    case .finding(let finding):
      reportDamagedBlock(endingAt: nil)
      // The walk may not know the position, and never knows where the damage ends.
      damagedBlock = AuditFinding(
        finding.damage.verdict, finding.damage.file, block: finding.damage.block,
        at: finding.damage.position ?? position, finding.cause)
      segmentIsWhole = false
      isCertain = false
    }
  }

  private func find(
    _ verdict: LedgerError.Verdict, _ file: String, block: Int? = nil, at position: Position?,
    to endPosition: Position? = nil, _ cause: String
  ) {
    report.add(
      AuditFinding(verdict, file, block: block, at: position, to: endPosition, cause))
    segmentIsWhole = false
  }

  /// Continues at a position whose tree follows from nothing before it.
  private func resume(at position: Position) {
    tree = nil
    isCertain = false
    self.position = position
  }

  private func begin(_ name: String, _ first: Position, _ opening: MemberHeader?) {
    let isAccountedFor = damageHidesItsEnd
    reportDamagedBlock(endingAt: first)
    segmentName = name
    segmentFirst = first
    segmentBlockCount = 0
    segmentIsWhole = true
    segmentIsForeign = false
    report.segmentCount += 1
    if first > position {
      if !isAccountedFor {
        find(
          .missing, directory.logPath(Format.segmentName(position)), at: position, to: first,
          "the segment is missing")
      }
      isCertain = false
    } else if first < position {
      find(
        .tampered, name, at: first, "the previous segments hold events up to position \(position)")
      isCertain = false
    }
    position = first
    wholeEnd = first
    if !isCertain { tree = nil }
    guard let opening, case .opening(let id, let before) = opening.detail else { return }
    report.byteCount += opening.memberByteCount
    if id != directory.identity.id {
      find(.tampered, name, at: first, "it belongs to another ledger")
      isCertain = false
      segmentIsForeign = true
    }
    if opening.first != first {
      find(.tampered, name, at: first, "its opening member has position \(opening.first)")
      isCertain = false
      return
    }
    if isCertain {
      if before != tree {
        find(.tampered, name, at: first, "its tree does not match the previous events")
        isCertain = false
      } else if opening.lastEventAtMs != lastEventAtMs {
        find(.tampered, name, at: first, "its time does not match the previous event")
      }
    }
    tree = before
    lastEventAtMs = opening.lastEventAtMs
    recordRoot()
  }

  private func checkBlock(
    _ lines: AuditedLines, _ frontier: Frontier, _ header: MemberHeader, _ block: BlockLocation,
    _ file: String
  ) {
    report.blockCount += 1
    reportDamagedBlock(endingAt: block.first)
    if !checkContinuity(block, file) { return }
    func find(at position: Position, to end: Position? = nil, _ cause: String) {
      self.find(.tampered, file, block: block.ordinal, at: position, to: end, cause)
    }
    for fault in lines.faults { find(at: fault.position, fault.cause) }
    if let breach = lines.breach {
      find(at: breach.position, to: block.endPosition, breach.cause)
      adopt(frontier, header.lastEventAtMs)
      return
    }
    report.eventCount += block.eventCount
    if isCertain, lines.firstEventAtMs < lastEventAtMs {
      find(at: block.first, "the event's time is earlier than the previous event's")
    }
    if header.lastEventAtMs != lines.lastEventAtMs {
      find(at: block.first, "its header's time does not match its last event")
    }
    extend(by: lines)
    redactions.add(lines, file: file, block: block.ordinal)
    blockIsSound = !segmentIsForeign
    if tree != frontier {
      if isCertain {
        blockIsSound = false
        find(
          at: block.first, to: block.endPosition, "its events do not match its header's tree")
      }
      tree = frontier
    }
    position = block.endPosition
    wholeEnd = position
    // Later blocks are compared with this one.
    isCertain = true
  }

  /// Whether a block continues the log, or follows a gap.
  private func checkContinuity(_ block: BlockLocation, _ file: String) -> Bool {
    if block.first == position { return true }
    if block.first < (isCertain ? position : wholeEnd) {
      find(
        .tampered, file, block: block.ordinal, at: position,
        "a block of position \(block.first) is here")
      return false
    }
    if isCertain {
      find(
        .missing, file, block: block.ordinal, at: position, to: block.first,
        "no block holds the events before position \(block.first)")
    }
    resume(at: block.first)
    return true
  }

  /// Continues from a header's tree and time if the events cannot be read.
  private func adopt(_ frontier: Frontier, _ timeMs: Int64) {
    tree = frontier
    position = frontier.size
    lastEventAtMs = timeMs
    isCertain = false
    wantedSizes.removeAll { $0 < position }
  }

  private func fail(
    _ error: LedgerError, _ header: MemberHeader, _ block: BlockLocation, _ file: String
  ) {
    reportDamagedBlock(endingAt: block.first)
    damagedBlock = AuditFinding(
      error.damage?.verdict ?? .unreadable, file, block: block.ordinal,
      at: isCertain ? position : block.first, error.cause)
    segmentIsWhole = false
    isCertain = false
    if block.first == position, case .block(let frontier) = header.detail {
      adopt(frontier, header.lastEventAtMs)
    }
  }

  /// Reports the last damaged block. Only the next intact part shows where the damage ends: the damage may be in the
  /// block's own header.
  private func reportDamagedBlock(endingAt end: Position?) {
    guard let finding = damagedBlock else { return }
    damagedBlock = nil
    let isBehind = (end ?? 0) > (finding.damage.position ?? 0)
    report.add(
      AuditFinding(
        finding.damage, endPosition: isBehind ? end : nil, cause: finding.cause))
  }

  /// Whether the last block's damage hides how many events it held: the next intact part may begin
  /// at any position.
  private var damageHidesItsEnd: Bool { damagedBlock?.damage.position == position }

  private func extend(by lines: AuditedLines) {
    lastEventAtMs = lines.lastEventAtMs
    for (position, trust, byteCount) in lines.trust {
      report.addTrust(trust, at: position, byteCount: byteCount)
    }
    guard var tree else { return }
    self.tree = nil
    for leafHash in lines.leafHashes {
      tree.append(leafHash: leafHash, hasher)
      if tree.size == wantedSizes.last { recordRoot(of: tree) }
    }
    self.tree = tree
  }

  /// Records the tree's current root if it was requested.
  private func recordRoot() {
    wantedSizes.removeAll { $0 < position || $0 < 0 }
    if let tree, wantedSizes.last == tree.size { recordRoot(of: tree) }
  }

  private func recordRoot(of tree: Frontier) {
    wantedSizes.removeLast()
    report.roots[tree.size] = tree.root(hasher)
  }

  private func close(_ header: MemberHeader, _ offset: Int) {
    report.byteCount += header.memberByteCount
    reportDamagedBlock(endingAt: header.endPosition)
    guard case .closing(let blockCount, let byteCount, let root) = header.detail else { return }
    if header.first == segmentFirst, header.endPosition > position {
      if isCertain, blockCount > segmentBlockCount {
        find(
          .missing, segmentName, block: segmentBlockCount, at: position, to: header.endPosition,
          "no block holds the events before position \(header.endPosition)")
        isCertain = false
      }
      if !isCertain {
        position = header.endPosition
        tree = nil
      }
    }
    // A damaged segment is already reported, and its closing member cannot match.
    guard segmentIsWhole else { return }
    guard header.first == segmentFirst, header.endPosition == position,
      blockCount == segmentBlockCount, byteCount == offset, root == tree?.root(hasher),
      header.lastEventAtMs == lastEventAtMs
    else {
      find(
        .tampered, segmentName, at: position, "its closing member does not match its blocks")
      return
    }
  }
}

// MARK: Tails

extension LogAudit {
  /// Audits the tails, the first of which begins where the blocks end. Intact events go to `salvage`.
  private func auditTails(_ tails: AuditTails, _ salvage: Salvage) throws {
    if let torn = tornMember {
      if tails.open.contains(where: { $0.first == position }) {
        report.addNote(
          "\(torn.file) ends with a truncated block whose events are in a tail; the next "
            + "writer removes the block")
      } else if isBeingWritten() {
        report.addNote("\(torn.file) grew while it was read")
      } else {
        find(
          .missing, torn.file, block: torn.block, at: position,
          "its last member is damaged and no tail holds its events")
      }
    }
    for finding in tails.findings { report.add(finding) }
    let blocksEnd = position
    for (index, tail) in tails.open.enumerated() {
      report.tailCount += 1
      if tail.first < blocksEnd {
        auditCovered(tail, blocksEnd)
        continue
      }
      if tail.first > position {
        find(
          .missing, directory.logPath(Format.tailName(position)), at: position, to: tail.first,
          "no tail begins where the log ends")
        resume(at: tail.first)
      }
      let content: ByteBuffer
      do throws(LedgerError) { content = try tail.content() } catch {
        if error.isOfVanishedTail { throw sealedError(tail) }
        report.add(AuditFinding(error, file: tail.file.name, at: position))
        isCertain = false
        continue
      }
      try auditTail(tail, content, isNewest: index == tails.open.count - 1, salvage)
    }
  }

  /// Whether a writer was active, which looks like a torn member: it created and removed the member's
  /// tail after the tails were opened, and the log is intact by now.
  private func isBeingWritten() -> Bool {
    guard let reader = try? LogReader(directory) else { return false }
    return reader.damage == nil && reader.head.size > position
  }

  /// A tail that was sealed before it could be read, because the limit of open files is low, is not damage.
  private func sealedError(_ tail: AuditTails.Tail) -> LedgerError {
    LedgerError(
      .inputOutput, operation: "audit", object: tail.file.name,
      cause: "it was sealed during the audit, and the limit of open files is too low to keep it "
        + "open; raise the limit, or try again")
  }

  private func auditCovered(_ tail: AuditTails.Tail, _ blocksEnd: Position) {
    let end: Position
    do throws(LedgerError) {
      end = try TailView.coveredEnd(try tail.file.opened(), first: tail.first, ByteBuffer())
    } catch {
      if error.isOfVanishedTail { return }
      return report.add(AuditFinding(error, file: tail.file.name, at: tail.first))
    }
    if end > blocksEnd, isCertain {
      find(
        .tampered, tail.file.name, at: blocksEnd,
        "it holds events beyond the block that covers it")
    } else if report.findings.contains(where: { $0.touches(tail.first..<max(end, tail.first + 1)) })
    {
      report.addNote(
        "\(tail.file.name) was sealed, but the log is damaged there: keep this file; the next "
          + "writer compares the two")
    } else {
      report.addNote("\(tail.file.name) is sealed already")
    }
  }

  private func auditTail(
    _ tail: AuditTails.Tail, _ content: ByteBuffer, isNewest: Bool, _ salvage: Salvage
  ) throws {
    let name = tail.file.name
    report.byteCount += content.count
    var offset = 0
    while offset < content.count {
      let rest = UnsafeRawBufferPointer(rebasing: content.bytes[offset...])
      if let header = FrameHeader(rest), header.isWhole(in: rest) {
        let events = UnsafeRawBufferPointer(
          rebasing: rest[header.headerByteCount..<header.frameByteCount])
        if let lines = checkFrame(header, events, name) { try salvage(lines, events) }
        offset += header.frameByteCount
        continue
      }
      let search = AuditTails.nextFrame(rest)
      guard let next = search.frame else {
        if !search.isTorn {
          find(.corrupt, name, at: position, "the bytes here are not a frame, whole or cut short")
        } else if isNewest {
          report.addNote(
            "\(name) ends with \(rest.count) bytes of a write that was cut short; the next "
              + "writer removes them")
        } else {
          find(.corrupt, name, at: position, "a frame is damaged and a newer tail follows")
        }
        return
      }
      find(.corrupt, name, at: position, to: next.first, "a frame is damaged")
      resume(at: next.first)
      offset += next.offsetBytes
    }
  }

  /// Returns the lines if they are intact.
  private func checkFrame(
    _ header: FrameHeader, _ events: UnsafeRawBufferPointer, _ name: String
  ) -> AuditedLines? {
    if header.first != position {
      let isGap = header.first > position
      find(
        isGap ? .missing : .tampered, name, at: position, to: isGap ? header.first : nil,
        "a frame of position \(header.first) is here")
      resume(at: header.first)
    }
    let lines = AuditedLines(
      events, firstPosition: header.first, count: header.eventCount)
    for fault in lines.faults { find(.tampered, name, at: fault.position, fault.cause) }
    if let breach = lines.breach {
      find(.tampered, name, at: breach.position, to: header.endPosition, breach.cause)
      tree = nil
      isCertain = false
    } else {
      if isCertain, lines.firstEventAtMs < lastEventAtMs {
        find(
          .tampered, name, at: header.first,
          "the event's time is earlier than the previous event's")
      }
      report.eventCount += header.eventCount
      extend(by: lines)
      redactions.add(lines, file: name)
    }
    position = header.endPosition
    return lines.breach == nil ? lines : nil
  }
}

/// The result of inflating and hashing a block.
private typealias BlockResult = (frontier: Frontier, lines: AuditedLines)

extension InflatedBlock {
  fileprivate var result: BlockResult? {
    (prepared as? AuditedLines).map { (frontierAfter, $0) }
  }
}
