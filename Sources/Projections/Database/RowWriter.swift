// Rows on their way into the database: written at once, or by a thread of their own beside the fold.
import Ledger

/// An insert statement of a `RowWriter`.
struct RowTarget {
  fileprivate let index: Int
}

/// Takes rows value by value and writes them in the order in which they were begun.
///
/// Beside a fold from nothing a thread does the writing: SQLite's share of the time then passes while the
/// next events are folded. While rows are under way no one else may use the database: `drain` waits.
final class RowWriter {
  private let database: Database
  private var statements: [Statement] = []
  /// Behind a pointer: each value that is added would otherwise pay for a check of exclusive access.
  private let batch: UnsafeMutablePointer<RowBatch>
  private let lane: RowLane?
  private static let batchSizeBytes = 1 << 18

  init(_ database: Database, isThreaded: Bool) {
    self.database = database
    // Where the system gives no thread, the caller's does the writing.
    lane = isThreaded ? try? RowLane() : nil
    batch = .allocate(capacity: 1)
    batch.initialize(to: RowBatch())
  }

  deinit {
    lane?.stop()
    batch.deinitialize(count: 1)
    batch.deallocate()
  }

  /// Prepares an insert. All targets are made before rows are written.
  func target(_ sql: String) throws(DatabaseError) -> RowTarget {
    try drain()
    statements.append(try database.prepare(sql))
    return RowTarget(index: statements.count - 1)
  }

  /// Begins a row; its values must follow, and `end`.
  @inline(__always)
  func begin(_ target: RowTarget) { batch.pointee.begin(target.index) }

  @inline(__always)
  func add(_ value: Int64) { batch.pointee.add(value) }

  @inline(__always)
  func add(_ value: Int) { batch.pointee.add(Int64(value)) }

  @inline(__always)
  func add(_ value: Int64?) {
    if let value { batch.pointee.add(value) } else { batch.pointee.addNull() }
  }

  /// Adds a text, which is copied; nil is null.
  @inline(__always)
  func add(text: Text?) {
    if let text { batch.pointee.add(text, isBlob: false) } else { batch.pointee.addNull() }
  }

  /// Adds bytes, which are copied.
  func add(blob: Text?) {
    if let blob { batch.pointee.add(blob, isBlob: true) } else { batch.pointee.addNull() }
  }

  /// Adds a symbol; none is null.
  @inline(__always)
  func add(symbol: Symbol) { add(symbol >= 0 ? Int64(symbol) : nil) }

  /// Adds a position; a negative one is null.
  @inline(__always)
  func add(position: Int) { add(position >= 0 ? Int64(position) : nil) }

  /// Ends a row.
  func end() throws(DatabaseError) {
    guard let lane else {
      try batch.pointee.write(statements)
      batch.pointee.removeAll()
      return
    }
    if batch.pointee.sizeBytes >= Self.batchSizeBytes {
      try lane.send(batch.pointee, statements)
      batch.pointee = lane.spare()
    }
  }

  /// Waits until every row is written.
  func drain() throws(DatabaseError) {
    guard let lane else { return }
    if batch.pointee.sizeBytes > 0 {
      try lane.send(batch.pointee, statements)
      batch.pointee = lane.spare()
    }
    try lane.wait()
  }
}

/// Rows as flat values, so that handing over thousands of them allocates nothing.
private struct RowBatch {
  private enum Tag: UInt8 { case row, null, integer, text, blob }

  private var tags: [Tag] = []
  private var integers: [Int64] = []
  private var bytes: [UInt8] = []

  var sizeBytes: Int { tags.count + integers.count * 8 + bytes.count }

  mutating func removeAll() {
    tags.removeAll(keepingCapacity: true)
    integers.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  @inline(__always)
  mutating func add(_ value: Int64) {
    tags.append(.integer)
    integers.append(value)
  }

  @inline(__always)
  mutating func addNull() { tags.append(.null) }

  @inline(__always)
  mutating func add(_ value: Text, isBlob: Bool) {
    tags.append(isBlob ? .blob : .text)
    integers.append(Int64(value.count))
    bytes.append(contentsOf: value)
  }

  @inline(__always)
  mutating func begin(_ target: Int) {
    tags.append(.row)
    integers.append(Int64(target))
  }

  /// Writes all rows.
  func write(_ statements: [Statement]) throws(DatabaseError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(DatabaseError) in
      let content = UnsafeRawBufferPointer(buffer)
      var (integer, offset) = (0, 0)
      var parameter: Int32 = 0
      var current: Statement?
      for tag in tags {
        parameter += 1
        switch tag {
        case .row:
          try current?.run()
          current = statements[Int(integers[integer])]
          parameter = 0
        case .null: current?.bind(parameter, Int64?.none)
        case .integer: current?.bind(parameter, integers[integer])
        case .text, .blob:
          let count = Int(integers[integer])
          let value = Text(rebasing: content[offset..<offset + count])
          if tag == .blob {
            current?.bind(parameter, blob: value)
          } else {
            current?.bind(parameter, text: value)
          }
          offset += count
        }
        if tag != .null { integer += 1 }
      }
      try current?.run()
    }
  }
}

/// The thread that writes, and the few batches on their way to it.
private final class RowLane: Sendable {
  private struct State {
    var waiting: [Work] = []
    var spares: [RowBatch] = []
    var isWriting = false
    var isStopped = false
    var failure: DatabaseError?
  }

  private struct Work {
    var batch: RowBatch
    var statements: [Statement]
  }

  /// Conditions: something for the thread to do, something for the fold to know.
  private static let (hasWork, hasProgress) = (0, 1)
  private static let depthLimit = 6
  private let monitor = Monitor(State(), conditionCount: 2)
  private let thread: WorkerThread

  init() throws(LedgerError) {
    let monitor = monitor
    thread = try WorkerThread { Self.work(monitor) }
  }

  private static func work(_ monitor: Monitor<State>) {
    while true {
      let next: (work: Work, mayWrite: Bool)? = monitor.wait(on: hasWork) { state in
        if !state.waiting.isEmpty {
          state.isWriting = true
          return .some((state.waiting.removeFirst(), state.failure == nil))
        }
        return state.isStopped ? .some(nil) : nil
      }
      guard let next else { return }
      var work = next.work
      var found: DatabaseError?
      if next.mayWrite {
        do throws(DatabaseError) { try work.batch.write(work.statements) } catch { found = error }
      }
      work.batch.removeAll()
      monitor.withLock { state in
        if state.failure == nil { state.failure = found }
        state.isWriting = false
        state.spares.append(work.batch)
      }
      monitor.signal(hasProgress)
    }
  }

  func send(_ batch: RowBatch, _ statements: [Statement]) throws(DatabaseError) {
    try monitor.wait(on: Self.hasProgress) { (state) throws(DatabaseError) in
      if let failure = state.failure { throw failure }
      if state.waiting.count >= Self.depthLimit { return Void?.none }
      state.waiting.append(Work(batch: batch, statements: statements))
      return ()
    }
    monitor.signal(Self.hasWork)
  }

  /// An empty batch that keeps the memory of one that was written.
  func spare() -> RowBatch { monitor.withLock { $0.spares.popLast() } ?? RowBatch() }

  /// Waits until every batch is written.
  func wait() throws(DatabaseError) {
    try monitor.wait(on: Self.hasProgress) { (state) throws(DatabaseError) in
      if let failure = state.failure { throw failure }
      return state.waiting.isEmpty && !state.isWriting ? () : Void?.none
    }
  }

  func stop() {
    monitor.withLock { $0.isStopped = true }
    monitor.signal(Self.hasWork)
    thread.join()
  }
}
