// Worker threads that inflate blocks ahead of the reader, which receives them in order.
import Base
import Glibc

/// An inflated block.
struct InflatedBlock {
  let block: BlockLocation
  let events: ByteBuffer
  let frontierAfter: Frontier
  var prepared: AnyObject?
  var rewritten: RewrittenBlock?
}

/// A block that redacted lines changed.
struct RewrittenBlock {
  let segment: SegmentIndex
  /// The member that replaces the block's.
  let member: ByteBuffer
}

/// Inflates the blocks of a source on worker threads; the calling thread receives them in order.
final class BlockPipeline {
  /// What the threads share with the reader.
  private struct State {
    /// How many blocks were started and how many were delivered.
    var issuedCount = 0
    var deliveredCount = 0
    var ready: [Int: Result<InflatedBlock, LedgerError>] = [:]
    var freeBuffers: [ByteBuffer] = []
    /// Prepared objects that are no longer needed: the threads that allocated them free them, in parallel with the
    /// reader.
    var spent: [AnyObject] = []
    /// Whether a thread is reading from the source: one at a time does, outside the lock.
    var isReading = false
    var isExhausted = false
  }

  private enum Condition {
    static let work = 0
    static let ready = 1
  }

  private let monitor: Monitor<State>
  private var threads: [WorkerThread] = []

  /// - Parameters:
  ///   - redactedLines: replace lines of blocks before they are prepared.
  ///   - prepare: called on the worker threads.
  init(
    _ source: any BlockSequence, workerCount: Int, priority: ThreadPriority = .usual,
    redactedLines: RedactedLines? = nil, prepare: BlockPreparation? = nil
  ) throws(LedgerError) {
    monitor = Monitor(State(), conditionCount: 2)
    let work = Work(
      monitor: monitor, source: source, windowCount: 2 * workerCount + 2, prepare: prepare,
      redactedLines: redactedLines)
    do throws(LedgerError) {
      for _ in 0..<workerCount {
        threads.append(try WorkerThread.start(priority) { work.run() })
      }
    } catch {
      stop()
      throw error
    }
  }

  deinit { stop() }

  /// The next block; nil after the last. Return its buffer with `recycle`.
  func next() throws(LedgerError) -> InflatedBlock? {
    let result = monitor.wait(on: Condition.ready) {
      state -> Result<InflatedBlock, LedgerError>?? in
      if let result = state.ready.removeValue(forKey: state.deliveredCount) {
        state.deliveredCount += 1
        monitor.signal(Condition.work)
        return .some(result)
      }
      return state.isExhausted && state.deliveredCount == state.issuedCount ? .some(nil) : nil
    }
    return try result?.get()
  }

  func recycle(_ block: InflatedBlock) {
    monitor.withLock { state in
      if let prepared = block.prepared { state.spent.append(prepared) }
      if block.events.capacity <= 8 << 20 { state.freeBuffers.append(block.events) }
    }
  }

  /// Stops the threads.
  func stop() {
    monitor.withLock { $0.isExhausted = true }
    monitor.broadcast(Condition.work)
    for thread in threads { thread.join() }
    threads = []
  }

  private struct Job {
    let index: Int
    let item: BlockItem
    let buffer: ByteBuffer
    let spent: [AnyObject]
  }

  /// The work of the threads. They keep it alive, and it does not know the pipeline.
  ///
  /// Sendable because only the thread that set `isReading` uses the source; the rest does not change.
  private final class Work: @unchecked Sendable {
    private let monitor: Monitor<State>
    private let source: any BlockSequence
    private let windowCount: Int
    private let prepare: BlockPreparation?
    private let redactedLines: RedactedLines?

    init(
      monitor: Monitor<State>, source: any BlockSequence, windowCount: Int,
      prepare: BlockPreparation?, redactedLines: RedactedLines?
    ) {
      self.monitor = monitor
      self.source = source
      self.windowCount = windowCount
      self.prepare = prepare
      self.redactedLines = redactedLines
    }

    func run() {
      let inflater = BlockInflater()
      let spare = ByteBuffer()
      while let job = nextJob() {
        let result: Result<InflatedBlock, LedgerError>
        do throws(LedgerError) {
          var block = try inflater.inflate(
            job.item, with: redactedLines, into: job.buffer, spare: spare)
          block.prepared = prepare?(job.buffer.bytes, block.block.first, block.block.eventCount)
          result = .success(block)
        } catch { result = .failure(error) }
        monitor.withLock { $0.ready[job.index] = result }
        monitor.signal(Condition.ready)
      }
    }

    private func nextJob() -> Job? {
      let claimed: Bool = monitor.wait(on: Condition.work) { state -> Bool? in
        if state.isExhausted { return false }
        guard !state.isReading, state.issuedCount - state.deliveredCount < windowCount else {
          return nil
        }
        state.isReading = true
        return true
      }
      guard claimed else { return nil }
      let item: Result<BlockItem?, LedgerError>
      do throws(LedgerError) { item = .success(try source.next()) } catch { item = .failure(error) }
      let job = monitor.withLock { state -> Job? in
        state.isReading = false
        switch item {
        case .success(let item?):
          let buffer = state.freeBuffers.popLast() ?? ByteBuffer(capacity: 2 << 20)
          let job = Job(index: state.issuedCount, item: item, buffer: buffer, spent: state.spent)
          state.issuedCount += 1
          state.spent = []
          return job
        case .success(nil): state.isExhausted = true
        case .failure(let error):
          state.ready[state.issuedCount] = .failure(error)
          state.issuedCount += 1
          state.isExhausted = true
        }
        return nil
      }
      if job != nil {
        monitor.signal(Condition.work)
      } else {
        monitor.broadcast(Condition.work)
        monitor.broadcast(Condition.ready)
      }
      return job
    }
  }
}

// MARK: - Delivered events

/// Prepares a block's lines before they are delivered; receives their bytes, first position and count. The result is
/// used only while the bytes are valid. Called on several threads.
package typealias BlockPreparation =
  @Sendable (UnsafeRawBufferPointer, Position, Int) -> AnyObject?

/// A run of event lines. The bytes are valid only inside the closure that receives the chunk.
package struct EventChunk {
  /// Whole lines, including their line feeds.
  package let bytes: UnsafeRawBufferPointer
  /// The position of the first line.
  package let firstPosition: Position
  /// The number of lines.
  package let count: Int
  /// The tree after the last line.
  package let frontierAfter: Frontier
  /// The result of the reader's `prepare` for a whole block, made on the thread that inflated it; otherwise nil.
  package let prepared: AnyObject?

  init(
    bytes: UnsafeRawBufferPointer, firstPosition: Position, count: Int, frontierAfter: Frontier,
    prepared: AnyObject? = nil
  ) {
    self.bytes = bytes
    self.firstPosition = firstPosition
    self.count = count
    self.frontierAfter = frontierAfter
    self.prepared = prepared
  }

  /// The position after the last line.
  package var endPosition: Position { firstPosition + count }

  /// Parses line after line. Throws `corruption` at a line that is not the expected event; an error of the body ends
  /// the loop.
  /// - Parameter isWanted: whether the line at a position is parsed; by default, each one.
  package func forEachEvent(
    where isWanted: (Position) -> Bool = { _ in true }, _ body: (EventLine) throws -> Void
  ) throws {
    var position = firstPosition
    var lines = EventLines(bytes)
    while let text = lines.next() {
      guard isWanted(position) else {
        position += 1
        continue
      }
      guard let line = EventLine(text), line.position == position else {
        throw LedgerError(
          .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
          operation: "read event", cause: "the line is not this event")
      }
      try body(line)
      position += 1
    }
    guard position == endPosition, lines.isAtEnd else {
      throw LedgerError(
        .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
        operation: "read event", cause: "there are fewer lines than the header says")
    }
  }
}

/// Finds lines in a run of lines by counting line feeds.
enum LineRange {
  /// The offset of the line with this index; nil if there are fewer lines.
  static func offset(ofLine index: Int, in bytes: UnsafeRawBufferPointer) -> Int? {
    guard let base = bytes.baseAddress else { return index == 0 ? 0 : nil }
    var offset = 0
    for _ in 0..<index {
      guard let end = memchr(base + offset, 0x0A, bytes.count - offset) else { return nil }
      offset = UnsafeRawPointer(end) - base + 1
    }
    return offset
  }

  /// The part of a run of lines beginning at `first` that lies in a range of positions.
  static func part(
    _ bytes: UnsafeRawBufferPointer, first: Position, _ range: Range<Position>
  ) -> UnsafeRawBufferPointer? {
    guard let start = offset(ofLine: range.lowerBound - first, in: bytes) else { return nil }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
    guard let byteCount = offset(ofLine: range.count, in: rest) else { return nil }
    return UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
  }
}
