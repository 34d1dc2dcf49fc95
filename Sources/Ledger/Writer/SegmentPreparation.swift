// Writes the new files of segments while another reader has their blocks at hand.
import Base

/// A block with redacted lines in place, in the new file of its segment.
struct PreparedBlock {
  let block: BlockLocation
  /// How many of its lines are redacted ones that were taken.
  let lineCount: Int
  let file: StorageFile
  let preparation: SegmentPreparation
}

/// A redacted line of a block.
package struct ReplacedLine {
  package let position: Position
  /// Where the line that it replaces begins, in the lines of the block.
  package let offsetBytes: Int
  /// The line without its line feed.
  package let text: [UInt8]

  package init(position: Position, offsetBytes: Int, text: [UInt8]) {
    self.position = position
    self.offsetBytes = offsetBytes
    self.text = text
  }
}

/// The new files of segments that get redacted lines, made as these lines are found: their blocks need not be read
/// and inflated once more for it, and readers can read the new blocks from then on. One thread calls `take` and
/// `finish`; the rest is thread-safe.
///
/// It only saves time: a segment that is not whole is written anew as without it, and so are all of them after a
/// failure. Its files have temporary names until `rewriteSegments` puts them in use.
package final class SegmentPreparation: @unchecked Sendable {
  /// How many bytes of segments are prepared at most: their new files exist beside them all at the same time.
  static let byteCountMax = 1 << 30
  /// Up to this many blocks are compressed at the level of sealing, where they are compressed: that takes a moment.
  static let fewBlockCount = 64

  /// A segment, its new file, and what is in that so far.
  private struct Part {
    let old: SegmentIndex
    let copy: SegmentCopy
    var blocks: [Position: (location: BlockLocation, lineCount: Int)] = [:]
  }

  private struct Job {
    let index: Int
    let part: Int
    let block: BlockLocation
    let segment: SegmentIndex
    let events: ByteBuffer
    let edits: [ContentEdit]
    let encoders: BlockEncoders
  }

  private struct State: @unchecked Sendable {
    // Used under the lock only.
    var parts: [Part] = []
    var jobs: [Job] = []
    /// How many jobs there were, and how many of their members are written.
    var jobCount = 0
    var doneCount = 0
    /// Members that wait for those before them.
    var members: [Int: (job: Job, member: ByteBuffer)] = [:]
    var freeBuffers: [ByteBuffer] = []
    /// Whether nothing more is taken.
    var isEnded = false
    var isDropped = false
  }

  private enum Condition {
    static let work = 0
    static let room = 1
  }

  private let open: (Position) throws(LedgerError) -> SegmentIndex
  private let directory: LedgerDirectory
  private let careful: BlockEncoders
  private let quick: BlockEncoders
  private let windowCount: Int
  private let monitor = Monitor(State(), conditionCount: 2)
  // Used by the thread that calls `take`.
  private var threads: [WorkerThread] = []
  private var firsts: ArraySlice<Position>
  private var segment: SegmentIndex?
  private var byteCount = 0
  /// Where the next block may begin.
  private var takenEnd = 0

  /// - Parameters:
  ///   - firsts: the positions by which all segments are named, in order.
  ///   - workerCount: how many threads make members; with 0 they are made by `take`.
  ///   - open: reads the headers of a segment. Segments may grow meanwhile, but must not be replaced.
  init(
    _ directory: LedgerDirectory, firsts: [Position], careful: BlockEncoders,
    quick: BlockEncoders, workerCount: Int, priority: ThreadPriority,
    open: @escaping (Position) throws(LedgerError) -> SegmentIndex
  ) throws(LedgerError) {
    self.directory = directory
    self.firsts = firsts[...]
    self.careful = careful
    self.quick = quick
    self.open = open
    windowCount = 2 * workerCount
    do throws(LedgerError) {
      for _ in 0..<workerCount {
        threads.append(try WorkerThread.start(priority) { [unowned self] in work() })
      }
    } catch {
      end()
      throw error
    }
  }

  // MARK: Taking

  /// Takes redacted lines of a block. A block that comes after later ones, or again, is left out.
  /// - Parameters:
  ///   - chunk: the whole block without them.
  ///   - lines: some of its lines as they are to be, by position.
  package func take(_ chunk: borrowing EventChunk, _ lines: [ReplacedLine]) {
    guard !lines.isEmpty, chunk.firstPosition >= takenEnd, !monitor.withLock({ $0.isEnded })
    else { return }
    takenEnd = chunk.endPosition
    do throws(LedgerError) {
      guard let segment = try segment(holding: chunk.firstPosition),
        let block = segment.block(holding: chunk.firstPosition),
        block.first == chunk.firstPosition, block.eventCount == chunk.count
      else { return }
      let events = monitor.withLock { $0.freeBuffers.popLast() } ?? ByteBuffer(capacity: 2 << 20)
      var replacement = LineReplacement(chunk.bytes, first: block.first, into: events)
      for line in lines {
        try line.text.withUnsafeBufferPointer { (text) throws(LedgerError) in
          try replacement.replace(
            at: line.position, offset: line.offsetBytes, with: UnsafeRawBufferPointer(text))
        }
      }
      guard replacement.finish() else { return }
      // What is wrong with it is said when the segment is written without a preparation.
      guard events.count <= Format.blockByteCountMax else { return drop() }
      add(block, segment, events, replacement.edits)
    } catch { drop() }
  }

  /// The segment that holds a position; nil for one that is not to be prepared.
  private func segment(holding position: Position) throws(LedgerError) -> SegmentIndex? {
    var first: Position?
    while let next = firsts.first, next <= position {
      first = next
      firsts = firsts.dropFirst()
    }
    guard let first else { return segment }
    let opened = try open(first)
    byteCount += opened.endOffsetBytes
    segment = byteCount <= Self.byteCountMax ? opened : nil
    if let segment {
      monitor.withLock {
        $0.parts.append(Part(old: segment, copy: SegmentCopy(directory, segment)))
      }
    }
    return segment
  }

  private func add(
    _ block: BlockLocation, _ segment: SegmentIndex, _ events: ByteBuffer, _ edits: [ContentEdit]
  ) {
    let isSynchronous = threads.isEmpty
    let job = monitor.wait(on: Condition.room) { state -> Job?? in
      if state.isEnded { return .some(nil) }
      if !isSynchronous, state.jobs.count >= windowCount { return nil }
      let job = Job(
        index: state.jobCount, part: state.parts.count - 1, block: block, segment: segment,
        events: events, edits: edits,
        encoders: state.jobCount < Self.fewBlockCount ? careful : quick)
      state.jobCount += 1
      if !isSynchronous { state.jobs.append(job) }
      return .some(job)
    }
    monitor.signal(Condition.work)
    if isSynchronous, let job { carryOut(job) }
  }

  /// Waits until all that was taken is in the new files. Nothing more is taken.
  package func finish() { end() }

  private func end() {
    monitor.withLock { $0.isEnded = true }
    monitor.broadcast(Condition.work)
    for thread in threads { thread.join() }
    threads = []
  }

  // MARK: Making members

  private func work() {
    while let job = nextJob() { carryOut(job) }
  }

  private func nextJob() -> Job? {
    let job = monitor.wait(on: Condition.work) { state -> Job?? in
      if !state.jobs.isEmpty { return .some(state.jobs.removeFirst()) }
      return state.isEnded ? .some(nil) : nil
    }
    monitor.signal(Condition.room)
    return job
  }

  private func carryOut(_ job: Job) {
    do throws(LedgerError) {
      let member = try job.encoders.encode(
        job.block, of: job.segment, events: job.events.bytes, edits: job.edits)
      try monitor.withLock { state throws(LedgerError) in
        state.members[job.index] = (job, member)
        try write(&state)
      }
    } catch { drop() }
  }

  /// Writes the members that are next.
  private func write(_ state: inout State) throws(LedgerError) {
    while !state.isDropped, let (job, member) = state.members.removeValue(forKey: state.doneCount) {
      let offsetBytes = try state.parts[job.part].copy.replace(job.block, with: member.bytes)
      let location = BlockLocation(
        first: job.block.first, eventCount: job.block.eventCount, ordinal: job.block.ordinal,
        offsetBytes: offsetBytes, memberByteCount: member.count,
        contentByteCount: job.events.count)
      state.parts[job.part].blocks[job.block.first] = (location, job.edits.count)
      state.doneCount += 1
      job.encoders.recycle(member)
      if job.events.capacity <= 8 << 20 { state.freeBuffers.append(job.events) }
    }
  }

  // MARK: Using the files

  /// The new one of a segment's block; nil if there is none.
  func prepared(_ block: BlockLocation, of segment: SegmentIndex) -> PreparedBlock? {
    monitor.withLock { state in
      guard let part = state.parts.last(where: { $0.old.first == segment.first }),
        let new = part.blocks[block.first], let file = part.copy.file,
        part.old.isSameFile(as: segment)
      else { return nil }
      return PreparedBlock(
        block: new.location, lineCount: new.lineCount, file: file, preparation: self)
    }
  }

  /// The new file of a segment; nil if it is not exactly one with these lines, or was taken before. Its caller finishes
  /// or discards it.
  func takeCopy(of segment: SegmentIndex, with lines: RedactedLines) -> SegmentCopy? {
    monitor.withLock { state in
      guard let index = state.parts.firstIndex(where: { $0.old.first == segment.first }) else {
        return nil
      }
      let part = state.parts.remove(at: index)
      let firsts = segment.blocks(holding: lines).map(\.first)
      if part.old.isSameFile(as: segment), Set(firsts) == Set(part.blocks.keys) {
        return part.copy
      }
      part.copy.discard()
      return nil
    }
  }

  /// Removes the files that were not put in use; nothing more is taken. On any thread.
  func drop() {
    monitor.withLock { state in
      for part in state.parts { part.copy.discard() }
      (state.parts, state.jobs, state.members) = ([], [], [:])
      (state.isEnded, state.isDropped) = (true, true)
    }
    monitor.broadcast(Condition.work)
    monitor.broadcast(Condition.room)
  }

  /// Ends the threads and removes the files that were not put in use.
  package func discard() {
    drop()
    end()
  }

  deinit { precondition(threads.isEmpty, "a preparation is finished before it is dropped") }
}
