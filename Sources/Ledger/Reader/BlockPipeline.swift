// Worker threads inflate blocks ahead of the reader, which receives them in order.
import Base

/// An inflated block.
struct InflatedBlock {
  let block: BlockLocation
  let events: ByteBuffer
  let frontierAfter: Frontier
  var prepared: AnyObject?
}

/// Inflates the blocks of a source on worker threads; the calling thread receives them in order.
final class BlockPipeline: @unchecked Sendable {
  private struct State {
    let source: any BlockSequence
    /// How many blocks were started and how many were delivered.
    var issuedCount = 0
    var deliveredCount = 0
    var ready: [Int: Result<InflatedBlock, LedgerError>] = [:]
    var freeBuffers: [ByteBuffer] = []
    /// Prepared objects that are no longer needed: the threads that allocated them free them, in parallel with the
    /// reader.
    var spent: [AnyObject] = []
    var isExhausted = false
  }

  private enum Condition {
    static let work = 0
    static let ready = 1
  }

  private let monitor: Monitor<State>
  private let windowCount: Int
  private let prepare: BlockPreparation?
  private let redactedLines: RedactedLines?
  private var threads: [WorkerThread] = []

  /// - Parameters:
  ///   - redactedLines: replace lines of blocks before they are prepared.
  ///   - prepare: called on the worker threads.
  init(
    _ source: any BlockSequence, workerCount: Int, priority: ThreadPriority = .usual,
    redactedLines: RedactedLines? = nil, prepare: BlockPreparation?
  ) throws(LedgerError) {
    self.prepare = prepare
    self.redactedLines = redactedLines
    monitor = Monitor(State(source: source), conditionCount: 2)
    windowCount = 2 * workerCount + 2
    do throws(LedgerError) {
      for _ in 0..<workerCount {
        threads.append(try WorkerThread.start(priority) { [unowned self] in work() })
      }
    } catch {
      stop()
      throw error
    }
  }

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

  /// Ends the threads. Must be called before the last reference is released.
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

  private func work() {
    let inflater = BlockInflater()
    let spare = ByteBuffer()
    while let job = nextJob() {
      let result: Result<InflatedBlock, LedgerError>
      do throws(LedgerError) {
        let frontier = try inflater.inflate(
          job.item, with: redactedLines, into: job.buffer, spare: spare)
        let block = job.item.block
        result = .success(
          InflatedBlock(
            block: block, events: job.buffer, frontierAfter: frontier,
            prepared: prepare?(job.buffer.bytes, block.first, block.eventCount)))
      } catch { result = .failure(error) }
      monitor.withLock { $0.ready[job.index] = result }
      monitor.signal(Condition.ready)
    }
  }

  private func nextJob() -> Job? {
    monitor.wait(on: Condition.work) { state -> Job?? in
      if state.isExhausted { return .some(nil) }
      guard state.issuedCount - state.deliveredCount < windowCount else { return nil }
      do throws(LedgerError) {
        if let item = try state.source.next() {
          let buffer = state.freeBuffers.popLast() ?? ByteBuffer(capacity: 2 << 20)
          defer { state.issuedCount += 1 }
          let spent = state.spent
          state.spent = []
          return .some(Job(index: state.issuedCount, item: item, buffer: buffer, spent: spent))
        }
      } catch {
        state.ready[state.issuedCount] = .failure(error)
        state.issuedCount += 1
      }
      state.isExhausted = true
      monitor.broadcast(Condition.work)
      monitor.broadcast(Condition.ready)
      return .some(nil)
    }
  }
}
