// Reads a log, without a lock, while a writer may append.
package import Base
import Glibc

/// The end of the whole part of a log.
package struct LogHead: Sendable, Equatable {
  /// The number of events, which is the position after the last.
  package let size: Int
  /// The tree of all events.
  package let frontier: Frontier
  /// The time of the last event in milliseconds since 1970; 0 if there is none.
  package let lastEventAtMs: Int64

  /// The root of the tree.
  package var root: SHA256Digest { frontier.root }
}

/// What a reader shows of a log.
package enum LogView: Sendable {
  /// Everything that is whole, including what a writer has not synced or could not sync.
  case whole
  /// What is certain to be on disk: for derived data that must not outlive it.
  case durable
}

/// A view of a log as it was at the last `refresh`. Not thread-safe.
package final class LogReader {
  private static let attemptCount = 5
  /// How many reads in a row must show a gap before it counts as one although a writer is active.
  private static let agreeingLooksMax = 50
  /// How long to read until two views agree.
  private static let stableWaitMsMax: Int64 = 60_000
  private static let restingTailCountMax = 8

  package let directory: LedgerDirectory
  package let view: LogView
  private let hasher = SHA256()
  private let keptTailCount: Int
  /// The only events that are read; nil if it is the whole log.
  private let part: Range<Position>?
  private let scratch = ByteBuffer(capacity: 256 << 10)
  private(set) var state: LogState
  /// Lines that an erasure has redacted, shown instead of those in the log; nil if there are none.
  package private(set) var redactedLines: RedactedLines?
  /// Receives the blocks that these lines change.
  package var rewritten: RewrittenSegments?
  /// Whether `redactedLines` were given and stay in use.
  private let keepsRedactedLines: Bool
  /// Whether everything in this view is known to be on disk.
  var isSettled = false
  /// The lock file, in which the writer publishes the durable position.
  lazy var lockFile = ReaderLock(directory)
  // The head of the view, if the state was read again since: the state may extend beyond it.
  private var headOfView: LogHead?
  // The last segment and block that were used, for reading single events.
  private var lastSegment: SegmentIndex?
  private var lastBlock: InflatedBlock?
  private lazy var inflater = BlockInflater()
  // The newest tail whose name is known to be on disk.
  private var syncedTailName: String?

  /// Opens a log for reading. Damage does not prevent that: see `damage`.
  /// - Parameter keptTailCount: how many tails it keeps open in addition to the last one; by default, as many as the
  ///   system's limit allows. It opens the others when it reads them.
  /// - Parameter redactedLines: the lines that it shows instead of those in the log, whatever `erasures/lines` holds;
  ///   by default, those of that file, as long as it exists.
  package init(
    _ directory: LedgerDirectory, _ view: LogView = .whole, keptTailCount: Int? = nil,
    redactedLines: RedactedLines? = nil
  ) throws(LedgerError) {
    self.directory = directory
    self.view = view
    keepsRedactedLines = redactedLines != nil
    // Read before the segments, here and later: once the file is removed, all of them are rewritten.
    if let redactedLines {
      self.redactedLines = redactedLines
    } else {
      self.redactedLines = try directory.redactions.current(directory)
    }
    self.keptTailCount =
      keptTailCount ?? OpenFileLimit.tailCountMax(limit: OpenFileLimit.current)
    part = nil
    state = try LogReader.stableState(
      directory, hasher, keptTailCount: self.keptTailCount, knowing: nil,
      limit: view == .whole ? .max : 0, part: nil)
    if view == .durable { try refreshDurably() }
  }

  /// Opens a part of a log: only files that hold its events are opened; the others may be missing. Tails need the
  /// segment before them.
  package init(
    _ directory: LedgerDirectory, part: Range<Position>, redactedLines: RedactedLines? = nil
  ) throws(LedgerError) {
    self.directory = directory
    keepsRedactedLines = redactedLines != nil
    if let redactedLines {
      self.redactedLines = redactedLines
    } else {
      self.redactedLines = try directory.redactions.current(directory)
    }
    view = .whole
    keptTailCount = OpenFileLimit.tailCountMax(limit: OpenFileLimit.current)
    self.part = part
    state = try LogReader.stableState(
      directory, hasher, keptTailCount: keptTailCount, knowing: nil, limit: .max, part: part)
  }

  /// Whether the log contains events after this view that are not known to be on disk.
  package var isLimited: Bool { state.isLimited }

  /// The whole part on disk: blocks and the valid frames of tails, up to the first damage.
  package var head: LogHead {
    headOfView ?? headOfState
  }

  private var headOfState: LogHead {
    LogHead(size: state.size, frontier: state.frontier, lastEventAtMs: state.lastEventAtMs)
  }

  /// The damage that ends the readable part, as far as opening the log detects it.
  package var damage: LedgerError? { state.damage }

  /// Refreshes a view that uses many tails: sealed tails occupy the disk as long as a process has them open. Leaves any
  /// other view unchanged: following the log costs more than a few open tails.
  package func closeSealedTails() throws(LedgerError) {
    if state.tails.count > Self.restingTailCountMax { try refresh() }
  }

  /// Reads what a writer has appended since the last refresh.
  package func refresh() throws(LedgerError) {
    switch view {
    case .whole: try refresh(upTo: .max)
    case .durable: try refreshDurably()
    }
  }

  /// Reads what was appended up to a position. Never drops known events.
  func refresh(upTo limit: Position) throws(LedgerError) {
    headOfView = nil
    try refreshRedactions()
    // The segment is checked last: a tail that was sealed meanwhile has made it grow. While many tails wait, blocks
    // arrive all the time; they are read without checking the other tails.
    if state.damage == nil, let newest = state.newest, try extendTails(limit) {
      if try !newest.isReplaced(directory) {
        if try !hasGrown(newest) { return }
        if try state.addNewBlocks() { return }
      }
    }
    state = try LogReader.stableState(
      directory, hasher, keptTailCount: keptTailCount, knowing: state, limit: limit, part: part)
  }

  /// Detects redacted lines that were added or removed.
  private func refreshRedactions() throws(LedgerError) {
    if keepsRedactedLines { return }
    let found = try directory.redactions.current(directory)
    if found === redactedLines { return }
    redactedLines = found
    lastBlock = nil
    lastSegment = nil
  }

  /// Ensures that nothing redacted is shown: detects redacted lines, and reads rewritten segments again. The view's
  /// head does not change.
  private func honourRedactions() throws(LedgerError) {
    try refreshRedactions()
    if let lastSegment, try lastSegment.isReplaced(directory) {
      self.lastSegment = nil
      lastBlock = nil
    }
    if let newest = state.newest, try newest.isReplaced(directory) {
      lastBlock = nil
      try reread()
    }
  }

  private func hasGrown(_ newest: SegmentIndex) throws(LedgerError) -> Bool {
    if newest.isClosed {
      let next = directory.logPath(Format.segmentName(newest.endPosition))
      return try directory.statusIfPresent(next) != nil
    }
    return try newest.file.sizeBytes() != newest.walkedByteCount
  }

  /// Reads the state of the log. An active writer can look like damage for a moment, so damage must be seen twice, and
  /// a gap also without any sign of a writer between the two reads.
  private static func stableState(
    _ directory: LedgerDirectory, _ hasher: SHA256, keptTailCount: Int,
    knowing earlier: LogState?, limit: Position, part: Range<Position>?
  ) throws(LedgerError) -> LogState {
    var state = try LogState(
      directory, hasher, keptTailCount: keptTailCount, knowing: earlier, limit: limit, part: part)
    guard state.damage != nil else { return state }
    var agreeing = 1
    var pauseMs: UInt32 = 1
    let deadlineMs = MonotonicClock.nowMs() + stableWaitMsMax
    var before: LogTraces?
    while let damage = state.damage {
      let between = try LogTraces(directory)
      state = try LogState(
        directory, hasher, keptTailCount: keptTailCount, limit: limit, part: part)
      if state.damage == damage {
        agreeing += 1
        let isGap = damage.damage?.verdict == .missing
        let isQuiet = try LogTraces(directory) == before
        if !isGap || isQuiet || agreeing == agreeingLooksMax { return state }
      } else {
        agreeing = 1
      }
      if state.damage != nil, MonotonicClock.nowMs() >= deadlineMs {
        throw LedgerError(
          .inputOutput, operation: "open log", object: Format.logDirectoryName,
          cause: "a writer changed it during every attempt; try again")
      }
      before = between
      usleep(pauseMs * 1000)
      pauseMs = min(2 * pauseMs, 50)
    }
    return state
  }

  /// Reads the log again if a tail of the view that was not kept open has become a block. The view's head does not
  /// change.
  private func reread() throws(LedgerError) {
    let head = head
    try refreshRedactions()
    // Events that a durable view has not shown may not be on disk.
    state = try LogReader.stableState(
      directory, hasher, keptTailCount: keptTailCount, knowing: state,
      limit: view == .whole ? .max : head.size, part: part)
    headOfView = head
  }

  /// Runs a closure that reads tails; repeats it if a tail has vanished meanwhile.
  func withTails<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    for _ in 1..<LogReader.attemptCount {
      do throws(LedgerError) { return try body() } catch {
        guard error.isOfVanishedTail else { throw error }
        try reread()
      }
    }
    return try body()
  }

  /// Reads new frames and new tails; false if the whole log must be read again.
  private func extendTails(_ limit: Position) throws(LedgerError) -> Bool {
    state.isLimited = false
    if var tail = state.tails.popLast() {
      let endBefore = tail.endOffsetBytes
      let stop: TailView.Stop
      do throws(LedgerError) { stop = try tail.extend(hasher, scratch, limit: limit) } catch {
        state.tails.append(tail)
        throw error
      }
      state.tails.append(tail)
      // A new writer continues in a copy of the tail, so this file no longer grows.
      if tail.endOffsetBytes == endBefore,
        try directory.statusIfPresent(tail.name)?.fileNumber != tail.file.fileNumber
      {
        return false
      }
      switch stop {
      case .end: break
      case .limited:
        state.isLimited = true
        return true
      case .torn: return true
      case .damaged: return false
      }
    }
    while true {
      let name = directory.logPath(Format.tailName(state.size))
      // A tail at this position may already be open and still be empty.
      if state.tails.last?.first == state.size { return true }
      guard let file = try directory.openFileIfPresent(name) else { return true }
      var tail = TailView(
        try TailFile(file, directory, first: state.size, isKept: true),
        frontierBefore: state.frontier, lastEventAtMsBefore: state.lastEventAtMs)
      let stop = try tail.extend(file, hasher, scratch, limit: limit)
      // The last tail stays open whatever the limit.
      if let last = state.tails.indices.last, last >= keptTailCount {
        state.tails[last].closeFile()
      }
      state.tails.append(tail)
      if case .damaged = stop { return false }
      if case .limited = stop {
        state.isLimited = true
        return true
      }
    }
  }

  /// Syncs what this view uses and what may not be on disk yet, so that derived data cannot outlive it. Blocks were
  /// synced before their tails were removed. A durable view needs this only with a writer that does not publish the
  /// durable position, and if the log is not writable.
  package func syncTails() throws(LedgerError) {
    if isSettled { return }
    // A tail is begun only after the last sync of the previous tail has returned.
    guard let newest = state.tails.last else { return }
    try newest.file.opened().syncData()
    // A tail is visible as soon as it has its name, which its writer syncs a moment later. While it is empty, the
    // writer can still remove it, and another file can get its name.
    guard !newest.isEmpty, newest.file.name != syncedTailName else { return }
    try directory.syncLogDirectory()
    syncedTailName = newest.file.name
  }

  /// Delivers the events of a range in order, on the calling thread, while worker threads inflate the next blocks.
  /// The body returns false to stop.
  ///
  /// Without `to` it reads up to the head and then throws any damage behind it, so that a reader that reaches the end
  /// always learns that the log is incomplete. Blocks that `isWanted` rejects are skipped by their headers and not
  /// read; chunks then leave positions out. Throws `invalidInput` for positions beyond the head, `corruption` at a
  /// block that does not match its checksum (after delivering everything before it), and the errors of the body.
  package func read(
    from: Position, to: Position? = nil, workers: Int = 2, priority: ThreadPriority = .usual,
    syncTails: Bool = false, isWanted: BlockFilter? = nil, prepare: BlockPreparation? = nil,
    _ body: (borrowing EventChunk) throws -> Bool
  ) throws {
    let size = head.size
    let end = min(to ?? size, size)
    if from < 0 || from > end || (to ?? 0) > size && state.damage == nil {
      throw LedgerError(
        .invalidInput, operation: "read", object: "positions from \(from)",
        cause: "the log ends at \(size)")
    }
    try honourRedactions()
    if syncTails { try self.syncTails() }
    var next = from
    var goneAt: Position?
    while true {
      do {
        guard
          try readOnce(
            next..<end, workers, priority, isWanted, prepare,
            { chunk in
              next = chunk.endPosition
              return try body(chunk)
            })
        else { return }
        break
      } catch let error as LedgerError where error.isOfVanishedTail && goneAt != next {
        // The tail was not kept open and became a block. If that happens again at the same position, it is damage.
        goneAt = next
        try reread()
      }
    }
    if let damage = state.damage, to ?? Int.max > state.size { throw damage }
  }

  private func readOnce(
    _ range: Range<Position>, _ workers: Int, _ priority: ThreadPriority,
    _ isWanted: BlockFilter?, _ prepare: BlockPreparation?,
    _ body: (borrowing EventChunk) throws -> Bool
  ) throws -> Bool {
    let blocksEnd = state.newest?.endPosition ?? 0
    let inBlocks = range.lowerBound..<max(range.lowerBound, min(range.upperBound, blocksEnd))
    if !inBlocks.isEmpty {
      let source = BlockSource(
        directory, state, inBlocks, isWanted: isWanted, rewritten: rewritten)
      guard try readBlocks(inBlocks, source, workers, priority, prepare, body) else { return false }
    }
    return try readTails(range, body)
  }

  private func readBlocks(
    _ range: Range<Position>, _ source: BlockSource, _ workers: Int, _ priority: ThreadPriority,
    _ prepare: BlockPreparation?, _ body: (borrowing EventChunk) throws -> Bool
  ) throws -> Bool {
    // A single block does not justify a thread.
    if workers < 1 || isWithinNewestBlock(range) {
      let events = ByteBuffer(capacity: 2 << 20)
      while let item = try source.next() {
        let block = try inflater.inflate(item, with: redactedLines, into: events)
        if let new = block.rewritten { rewritten?.add(block.block, new) }
        guard try body(try chunk(block, range)) else { return false }
      }
      return true
    }
    let pipeline = try BlockPipeline(
      source, workerCount: min(workers, 64), priority: priority, redactedLines: redactedLines,
      prepare: prepare)
    defer { pipeline.stop() }
    while let block = try pipeline.next() {
      if let new = block.rewritten { rewritten?.add(block.block, new) }
      guard try body(try chunk(block, range)) else { return false }
      pipeline.recycle(block)
    }
    return true
  }

  private func isWithinNewestBlock(_ range: Range<Position>) -> Bool {
    guard let last = state.newest?.blocks.last else { return false }
    return last.first <= range.lowerBound
  }

  private func chunk(
    _ inflated: InflatedBlock, _ range: Range<Position>
  ) throws(LedgerError) -> EventChunk {
    let block = inflated.block
    if block.first >= range.lowerBound && block.endPosition <= range.upperBound {
      return EventChunk(
        bytes: inflated.events.bytes, firstPosition: block.first, count: block.eventCount,
        frontierAfter: inflated.frontierAfter, prepared: inflated.prepared)
    }
    let part = range.clamped(to: block.first..<block.endPosition)
    guard let bytes = LineRange.part(inflated.events.bytes, first: block.first, part)
    else { throw lineCountDamage(block.first) }
    return EventChunk(
      bytes: bytes, firstPosition: part.lowerBound, count: part.count,
      frontierAfter: part.upperBound == block.endPosition
        ? inflated.frontierAfter : try frontier(at: part.upperBound))
  }

  private func lineCountDamage(_ position: Position) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
      operation: "read block", cause: "it holds fewer lines than its header says")
  }

  private func readTails(
    _ range: Range<Position>, _ body: (borrowing EventChunk) throws -> Bool
  ) throws -> Bool {
    let events = ByteBuffer()
    for tail in state.tails {
      let part = range.clamped(to: tail.first..<tail.endPosition)
      if part.isEmpty { continue }
      let index = tail.index(holding: part.lowerBound)
      try tail.readEvents(from: index, into: events)
      let first = tail.places[index].first
      try redactedLines?.apply(to: events, first: first, count: tail.endPosition - first)
      guard let bytes = LineRange.part(events.bytes, first: first, part)
      else { throw lineCountDamage(first) }
      let frontierAfter =
        part.upperBound == tail.endPosition
        ? tail.frontierAfter : try frontier(at: part.upperBound)
      let chunk = EventChunk(
        bytes: bytes, firstPosition: part.lowerBound, count: part.count,
        frontierAfter: frontierAfter)
      guard try body(chunk) else { return false }
    }
    return true
  }

  /// The tree of the log's first `position` events.
  package func frontier(at position: Position) throws(LedgerError) -> Frontier {
    try withTails { () throws(LedgerError) in try frontierOnce(at: position) }
  }

  private func frontierOnce(at position: Position) throws(LedgerError) -> Frontier {
    let head = head
    if position == head.size { return head.frontier }
    try check(position)
    if let (segment, block) = try locate(position) {
      let before = try segment.frontier(before: block)
      if position == block.first { return before }
      let events = try inflated(block, segment).events.bytes
      return try extended(before, events, first: block.first, to: position)
    }
    var before = state.newest?.frontierAfter ?? Frontier()
    for tail in state.tails {
      if position < tail.endPosition {
        try tail.readEvents(from: 0, into: scratch)
        return try extended(before, scratch.bytes, first: tail.first, to: position)
      }
      before = tail.frontierAfter
    }
    return before
  }

  /// One event's line, without its line feed.
  package func event(at position: Position) throws(LedgerError) -> [UInt8] {
    try honourRedactions()
    return try withTails { () throws(LedgerError) in try eventOnce(at: position) }
  }

  private func eventOnce(at position: Position) throws(LedgerError) -> [UInt8] {
    try check(position)
    var line: UnsafeRawBufferPointer?
    if let (segment, block) = try locate(position) {
      let events = try inflated(block, segment).events.bytes
      line = LineRange.part(events, first: block.first, position..<position + 1)
    } else if let tail = state.tails.first(where: { position < $0.endPosition }) {
      let index = tail.index(holding: position)
      try tail.readEvents(from: index, alone: true, into: scratch)
      line = LineRange.part(
        scratch.bytes, first: tail.places[index].first, position..<position + 1)
    }
    guard let line, let event = EventLine(UnsafeRawBufferPointer(rebasing: line.dropLast())),
      event.position == position
    else { throw lineCountDamage(position) }
    guard let redacted = try redactedLines?.replacement(for: event) else {
      return Array(event.bytes)
    }
    return redacted
  }

  private func check(_ position: Position) throws(LedgerError) {
    if 0..<head.size ~= position { return }
    if let damage = state.damage { throw damage }
    throw LedgerError(
      .invalidInput, operation: "read", object: "position \(position)",
      cause: head.size == 0 ? "the log is empty" : "the last position is \(head.size - 1)")
  }

  /// The block that contains a position; nil if a tail does.
  private func locate(
    _ position: Position
  ) throws(LedgerError) -> (SegmentIndex, BlockLocation)? {
    guard let newest = state.newest, position < newest.endPosition else { return nil }
    var segment = newest
    if position < newest.first {
      if let last = lastSegment, last.first <= position, position < last.endPosition {
        segment = last
      } else {
        let sealed = state.sealed.last { $0.first <= position }
        segment = try SegmentIndex(directory, first: sealed?.first ?? 0)
        var fault: LedgerError?
        do throws(LedgerError) {
          if case .damaged(let damage) = try segment.extend() { fault = damage }
        } catch { fault = error }
        if let fault, position >= segment.endPosition { throw fault }
        lastSegment = segment
      }
    }
    guard let block = segment.block(holding: position) else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: segment.name, block: segment.blocks.count, position: position),
        operation: "read", cause: "no intact block holds this position")
    }
    return (segment, block)
  }

  private func inflated(
    _ block: BlockLocation, _ segment: SegmentIndex
  ) throws(LedgerError) -> InflatedBlock {
    if let lastBlock, lastBlock.block.first == block.first { return lastBlock }
    let events = lastBlock?.events ?? ByteBuffer(capacity: 2 << 20)
    lastBlock = nil
    let frontier = try inflater.inflate(block, of: segment.file, into: events)
    let result = InflatedBlock(block: block, events: events, frontierAfter: frontier)
    lastBlock = result
    return result
  }

  private func extended(
    _ before: Frontier, _ events: UnsafeRawBufferPointer, first: Position, to position: Position
  ) throws(LedgerError) -> Frontier {
    var frontier = before
    var lines = EventLines(events)
    while frontier.size < position {
      guard let text = lines.next(), let line = EventLine(text), line.position == frontier.size
      else { throw lineCountDamage(frontier.size) }
      frontier.append(leafHash: line.leafHash(hasher), hasher)
    }
    return frontier
  }
}

/// What changes whenever a writer works: the names in the log's directory, and the position up to which it has synced.
private struct LogTraces: Equatable {
  let names: [String]
  let durablePosition: Position?

  init(_ directory: LedgerDirectory) throws(LedgerError) {
    names = try directory.listIfPresent(Format.logDirectoryName)?.sorted() ?? []
    // A lock file that cannot be read must not hide the damage.
    let lock = (try? directory.openFileIfPresent(Format.lockName)) ?? nil
    durablePosition = (try? lock?.lockContent().position) ?? nil
  }
}
