// The audit of a whole log: every byte inflated and hashed, every rule of the format checked.
import Base
import Glibc

/// Goes over a log once, without a lock and past all damage. Used by one thread.
package final class LogAudit {
  /// Called now and then with the bytes done and the total; ends the audit by throwing.
  package typealias Progress = (_ doneBytes: Int, _ totalBytes: Int) throws -> Void
  /// Given lines that are whole, as they are met; the bytes are valid only meanwhile.
  typealias Salvage = (AuditedLines, _ bytes: UnsafeRawBufferPointer) throws -> Void

  let directory: LedgerDirectory
  private let workerCount: Int
  private let hasher = SHA256()
  var report = AuditReport()
  /// Sizes whose roots are wanted and not passed yet, descending.
  private var wantedSizes: [Int]

  /// The tree of what was read so far; nil where damage makes it unknowable.
  var tree: Frontier? = Frontier()
  /// Whether position, tree and time follow from the events read, not only from a header.
  var isCertain = true
  var position: Position = 0
  /// Where the last block that is whole ended, in this segment: nothing behind it lies before that.
  private var wholeEnd: Position = 0
  private(set) var lastEventAtMs: Int64 = 0

  private var segmentName = Format.logDirectoryName
  private var segmentFirst: Position = 0
  private var segmentBlockCount = 0
  private var segmentIsWhole = true
  private var segmentIsForeign = false
  /// Whether the last block's lines are those of this log as far as can be told; faulty lines excepted.
  private var blockIsSound = false
  /// A damaged block whose end is not known yet.
  private var unsettled: AuditFinding?
  private(set) var tornMember: (file: String, block: Int)?

  /// - Parameters:
  ///   - rootsAt: sizes at which the root is to be told, computed from the events.
  ///   - workers: how many threads inflate and hash; 0 is the calling one.
  package init(_ directory: LedgerDirectory, rootsAt sizes: [Int] = [], workers: Int = 2) {
    self.directory = directory
    workerCount = min(workers, 64)
    wantedSizes = Set(sizes).sorted(by: >)
  }

  /// Audits the log. Throws only what keeps it from looking at all, and what `progress` throws.
  package func run(progress: Progress = { _, _ in }) throws -> AuditReport {
    try run(progress: progress, salvage: { _, _ in })
  }

  /// The same; `salvage` is called only where there are no workers.
  func run(progress: Progress, salvage: Salvage) throws -> AuditReport {
    // Tails before blocks: one that vanishes meanwhile is in a block by then.
    let tails = try AuditTails(directory)
    let walk = try AuditWalk(directory)
    let total = walk.byteCount + tails.byteCount
    noteRoots()
    if workerCount == 0 {
      try auditInline(walk, tails, total, progress, salvage)
    } else {
      try auditThreaded(walk, tails, total, progress)
    }
    for step in walk.takeSteps() { take(step, tails) }
    let following = tails.open.first { $0.first >= position }?.first
    if let following, following > position, damageHidesItsEnd {
      position = following
      tree = nil
    }
    settle(endingAt: following)
    if report.segmentCount == 0 {
      find(
        .missing, directory.logPath(Format.segmentName(0)), at: 0, "the first segment is missing")
    }
    try auditTails(tails, salvage)
    for name in tails.temporaryNames {
      report.note("\(name) is not complete; the next writer completes or removes it")
    }
    report.size = position
    report.frontier = tree
    report.isTreeCertain = report.isWhole
    return report
  }

  // MARK: Blocks

  private func auditThreaded(
    _ walk: AuditWalk, _ tails: AuditTails, _ total: Int, _ progress: Progress
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
      for step in walk.takeSteps() { take(step, tails, result.map { $0?.result }) }
      if case .success(let block?) = result { pipeline.recycle(block) }
      try progress(report.byteCount, total)
    }
  }

  private func auditInline(
    _ walk: AuditWalk, _ tails: AuditTails, _ total: Int, _ progress: Progress,
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
      for step in walk.takeSteps() { take(step, tails, result) }
      if blockIsSound, case .success((_, let lines)?) = result {
        try salvage(lines, events.bytes)
      }
      try progress(report.byteCount, total)
    }
  }

  private func take(
    _ step: AuditStep, _ tails: AuditTails,
    _ result: Result<BlockResult?, LedgerError> = .success(nil)
  ) {
    switch step {
    case .segment(let name, let first, let opening): begin(name, first, opening)
    case .block(let header, let block, let file, let mayBeTorn):
      segmentBlockCount += 1
      report.byteCount += header.memberByteCount
      switch result {
      case .success((let frontier, let lines)?): take(lines, frontier, header, block, file)
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
      settle(endingAt: nil)
      // The walk does not know positions where the bytes do not tell them, nor where it is whole again.
      unsettled = AuditFinding(
        finding.damage.verdict, finding.damage.file, block: finding.damage.block,
        at: finding.damage.position ?? position, finding.cause)
      segmentIsWhole = false
      isCertain = false
    }
  }

  func find(
    _ verdict: LedgerError.Verdict, _ file: String, block: Int? = nil, at position: Position?,
    to endPosition: Position? = nil, _ cause: String
  ) {
    report.add(
      AuditFinding(verdict, file, block: block, at: position, to: endPosition, cause))
    segmentIsWhole = false
  }

  private func begin(_ name: String, _ first: Position, _ opening: MemberHeader?) {
    let isAccountedFor = damageHidesItsEnd
    settle(endingAt: first)
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
    noteRoots()
  }

  private func take(
    _ lines: AuditedLines, _ frontier: Frontier, _ header: MemberHeader, _ block: BlockLocation,
    _ file: String
  ) {
    report.blockCount += 1
    settle(endingAt: block.first)
    if !place(block, file) { return }
    for fault in lines.faults {
      find(.tampered, file, block: block.ordinal, at: fault.position, fault.cause)
    }
    if let breach = lines.breach {
      find(
        .tampered, file, block: block.ordinal, at: breach.position, to: block.endPosition,
        breach.cause)
      adopt(frontier, header.lastEventAtMs)
      return
    }
    report.eventCount += block.eventCount
    if isCertain, lines.firstEventAtMs < lastEventAtMs {
      find(
        .tampered, file, block: block.ordinal, at: block.first,
        "the event's time is earlier than the previous event's")
    }
    if header.lastEventAtMs != lines.lastEventAtMs {
      find(
        .tampered, file, block: block.ordinal, at: block.first,
        "its header's time does not match its last event")
    }
    extend(by: lines)
    blockIsSound = !segmentIsForeign
    if tree != frontier {
      if isCertain {
        blockIsSound = false
        find(
          .tampered, file, block: block.ordinal, at: block.first, to: block.endPosition,
          "its events do not match its header's tree")
      }
      tree = frontier
    }
    position = block.endPosition
    wholeEnd = position
    // What follows is compared with this block from now on.
    isCertain = true
  }

  /// Whether a block continues the log, or at least follows after a gap.
  private func place(_ block: BlockLocation, _ file: String) -> Bool {
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
    isCertain = false
    position = block.first
    tree = nil
    return true
  }

  /// Takes a header's word where nothing better can be had.
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
    settle(endingAt: block.first)
    unsettled = AuditFinding(
      error.damage?.verdict ?? .unreadable, file, block: block.ordinal,
      at: isCertain ? position : block.first, error.cause)
    segmentIsWhole = false
    isCertain = false
    if block.first == position, case .block(let frontier) = header.detail {
      adopt(frontier, header.lastEventAtMs)
    }
  }

  /// Reports the last damaged block, now that it shows where the log is whole again: its own header
  /// may be what is damaged.
  private func settle(endingAt end: Position?) {
    guard let finding = unsettled else { return }
    unsettled = nil
    let isBehind = (end ?? 0) > (finding.damage.position ?? 0)
    report.add(
      AuditFinding(
        finding.damage, endPosition: isBehind ? end : nil, cause: finding.cause))
  }

  /// Whether the last block was damaged so that nothing tells how many events it held: what is whole again
  /// behind it may begin anywhere.
  private var damageHidesItsEnd: Bool { unsettled?.damage.position == position }

  func extend(by lines: AuditedLines) {
    lastEventAtMs = lines.lastEventAtMs
    for (position, trust, byteCount) in lines.trust {
      report.note(trust, at: position, byteCount: byteCount)
    }
    guard var tree else { return }
    self.tree = nil
    for leafHash in lines.leafHashes {
      tree.append(leafHash: leafHash, hasher)
      if tree.size == wantedSizes.last {
        wantedSizes.removeLast()
        report.roots[tree.size] = tree.root(hasher)
      }
    }
    self.tree = tree
  }

  /// Records the tree's current root if it was requested.
  private func noteRoots() {
    wantedSizes.removeAll { $0 < position || $0 < 0 }
    guard let tree, wantedSizes.last == tree.size else { return }
    wantedSizes.removeLast()
    report.roots[tree.size] = tree.root(hasher)
  }

  private func close(_ header: MemberHeader, _ offset: Int) {
    report.byteCount += header.memberByteCount
    settle(endingAt: header.endPosition)
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
    // Where the segment is damaged that was said; its closing member then can't match.
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

/// What inflating and hashing a block gives.
private typealias BlockResult = (frontier: Frontier, lines: AuditedLines)

extension InflatedBlock {
  fileprivate var result: BlockResult? {
    (prepared as? AuditedLines).map { (frontierAfter, $0) }
  }
}
