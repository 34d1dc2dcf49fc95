// Writes rows into the database in batches, during a fold from nothing on a separate thread.
import Base
import Ledger
package import Revenue

/// A statement of a `RowWriter` that rows are written to.
package struct RowTarget {
  fileprivate let index: Int
}

/// Accepts rows value by value. Rows of one target are written in the order in which they were begun.
///
/// During a fold from nothing, a separate thread writes, so SQLite works while the next events are folded. While it
/// writes, no other code may use the database; `drain` waits for it. Code that reads a table that rows are written to
/// must also call `drain`, because rows wait in memory until their batch is full.
package final class RowWriter {
  /// Behind a pointer: otherwise each added value would pay for an exclusive-access check.
  private struct State {
    var batch = RowBatch()
    var target = -1
    /// Whether each row is sent as soon as it ends.
    var isSingle = false
  }

  private struct Target {
    let statement: RowStatement
    let valueCount: Int
    /// Rows of the targets of one group are written in the order in which they were begun.
    let group: Int
    let isSingle: Bool
    /// Nil while the batch is the current one.
    var batch: RowBatch?
  }

  private let database: Database
  /// Kept texts must outlive the rows that point to them.
  private let arena: TextArena
  private var targets: [Target] = []
  private let state: UnsafeMutablePointer<State>
  private let lane: RowWriterThread?
  /// A failure inside a function that cannot throw; thrown at the end of the row.
  private var failure: DatabaseError?

  package init(_ database: Database, _ arena: TextArena, isThreaded: Bool) {
    self.database = database
    self.arena = arena
    // If no thread can be started, the caller's thread writes.
    lane = isThreaded ? try? RowWriterThread(database) : nil
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    lane?.stop()
    state.pointee.batch.deallocate()
    for target in targets { target.batch?.deallocate() }
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// For an insert: `INSERT INTO table` or a variant of it, with the columns if not all are given.
  package func target(_ insert: String, valueCount: Int) throws(DatabaseError) -> RowTarget {
    try target(
      reading: "\(insert) SELECT \(RowTable.columns(valueCount)) FROM row_batch",
      valueCount: valueCount)
  }

  /// For rows of which some already exist: these are updated in place. Replacing a row rewrites all its index entries,
  /// on pages all over the file; an update rewrites only those of changed columns.
  /// - Parameters:
  ///   - table: with its columns.
  ///   - key: the column that identifies the row.
  ///   - columns: those that may differ from the existing row.
  package func target(
    upserting table: String, valueCount: Int, key: String, changing columns: [String]
  ) throws(DatabaseError) -> RowTarget {
    try target(
      reading: """
        INSERT INTO \(table) SELECT \(RowTable.columns(valueCount)) FROM row_batch WHERE true
        ON CONFLICT(\(key)) DO UPDATE SET
        \(columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
        """, valueCount: valueCount)
  }

  /// For any statement that reads its rows from the table `row_batch`, with the columns `c0`, `c1`, ….
  /// - Parameters:
  ///   - other: a target whose rows and these keep their common order.
  ///   - isSingle: whether the statement must see one row at a time.
  package func target(
    reading sql: String, valueCount: Int, inOrderWith other: RowTarget? = nil,
    isSingle: Bool = false
  ) throws(DatabaseError) -> RowTarget {
    precondition(valueCount <= RowTable.columnLimit, "a row has too many values")
    // The first target is added before any row, so the connection is not in use yet.
    try database.registerRowTable()
    targets.append(
      Target(
        statement: RowStatement(sql), valueCount: valueCount,
        group: other.map { targets[$0.index].group } ?? targets.count, isSingle: isSingle,
        batch: nil))
    return RowTarget(index: targets.count - 1)
  }

  /// Begins a row. Its values must follow, then `end`.
  @inline(__always)
  package func begin(_ target: RowTarget) {
    if state.pointee.target != target.index { change(to: target.index) }
  }

  private func change(to index: Int) {
    let current = state.pointee.target
    if current >= 0 {
      targets[current].batch = state.pointee.batch
      state.pointee.batch = targets[index].batch ?? lane?.spare() ?? RowBatch()
    }
    targets[index].batch = nil
    state.pointee.target = index
    state.pointee.isSingle = targets[index].isSingle
    do throws(DatabaseError) { try sendOthers(ofGroupOf: index) } catch {
      failure = error
      state.pointee.isSingle = true
    }
  }

  /// Sends the rows of the group's other targets before those that follow.
  private func sendOthers(ofGroupOf index: Int) throws(DatabaseError) {
    let group = targets[index].group
    for other in targets.indices where other != index && targets[other].group == group {
      guard var batch = targets[other].batch, !batch.isEmpty else { continue }
      defer { targets[other].batch = batch }
      try send(&batch, targets[other])
    }
  }

  @inline(__always)
  func add(_ value: Int64) {
    state.pointee.batch.add(RowValue(kind: .integer, word: value))
  }

  @inline(__always)
  package func add(_ value: Int) { add(Int64(value)) }

  @inline(__always)
  package func add(_ value: Int64?) {
    if let value { add(value) } else { state.pointee.batch.add(RowValue(kind: .null)) }
  }

  /// Adds a text, which is copied; nil becomes null.
  @inline(__always)
  package func add(text: Text?) {
    if let text { state.pointee.batch.add(text, .text) } else { add(Int64?.none) }
  }

  /// Adds a text of the arena, which is not copied.
  @inline(__always)
  package func add(kept text: Text) {
    guard let start = text.baseAddress, !text.isEmpty else { return add(text: text) }
    let address = Int64(Int(bitPattern: start))
    state.pointee.batch.add(
      RowValue(kind: .keptText, byteCount: UInt32(text.count), word: address))
  }

  /// Adds bytes, which are copied.
  package func add(blob: Text?) {
    if let blob { state.pointee.batch.add(blob, .blob) } else { add(Int64?.none) }
  }

  /// Adds a symbol; no symbol becomes null.
  @inline(__always)
  func add(symbol: Symbol) { add(symbol >= 0 ? Int64(symbol) : nil) }

  /// Adds a position; a negative one becomes null.
  @inline(__always)
  func add(position: Int) { add(position >= 0 ? Int64(position) : nil) }

  /// Ends a row.
  @inline(__always)
  package func end() throws(DatabaseError) {
    if state.pointee.isSingle || state.pointee.batch.isFull { try flush() }
  }

  /// Writes the rows of the current batch, or queues them for the thread.
  private func flush() throws(DatabaseError) {
    if let failure { throw failure }
    let target = targets[state.pointee.target]
    try send(&state.pointee.batch, target)
  }

  private func send(_ batch: inout RowBatch, _ target: Target) throws(DatabaseError) {
    precondition(batch.valueCount % target.valueCount == 0, "a row has the wrong number of values")
    let work = RowWriterThread.Work(
      rows: batch, valueCount: target.valueCount, statement: target.statement)
    if let lane {
      try lane.send(work)
      batch = lane.spare()
    } else {
      defer { batch.removeAll() }
      try work.write(database)
    }
  }

  /// Runs statements after the rows queued so far, in parallel with the fold if there is a thread.
  package func execute(_ sql: String) throws(DatabaseError) {
    try sendAll()
    guard let lane else { return try database.execute(sql) }
    try lane.send(RowWriterThread.Work(sql: sql))
  }

  private func sendAll() throws(DatabaseError) {
    for index in targets.indices {
      guard var batch = targets[index].batch, !batch.isEmpty else { continue }
      defer { targets[index].batch = batch }
      try send(&batch, targets[index])
    }
    if !state.pointee.batch.isEmpty { try flush() }
  }

  /// Waits until every row is written.
  package func drain() throws(DatabaseError) {
    try sendAll()
    try lane?.wait()
  }
}

// MARK: - Batches

/// Rows for one target as flat values, and the bytes of their texts, so that passing hundreds of rows to another thread
/// allocates nothing. The creator frees it.
struct RowBatch {
  /// The number of values or bytes at which a batch is full.
  static let (fullValueCount, fullByteCount) = (8192, 192 << 10)
  /// Leaves room for one row beyond a full batch.
  private static let valueCapacity = fullValueCount + RowTable.columnLimit
  private static let firstByteCapacity = 64 << 10

  private(set) var values = UnsafeMutablePointer<RowValue>.allocate(capacity: valueCapacity)
  private(set) var valueCount = 0
  private(set) var bytes = UnsafeMutableRawPointer.allocate(
    byteCount: firstByteCapacity, alignment: 8)
  private var byteCapacity = firstByteCapacity
  private var byteCount = 0

  func deallocate() {
    values.deallocate()
    bytes.deallocate()
  }

  /// The allocated memory, used or not.
  var allocatedByteCount: Int {
    Self.valueCapacity * MemoryLayout<RowValue>.stride + byteCapacity
  }

  var isEmpty: Bool { valueCount == 0 }
  @inline(__always)
  var isFull: Bool { valueCount >= Self.fullValueCount || byteCount >= Self.fullByteCount }

  mutating func removeAll() {
    (valueCount, byteCount) = (0, 0)
    if byteCapacity <= 4 * Self.fullByteCount { return }
    // Shrinks again, so that one huge text does not hold memory until the end.
    bytes.deallocate()
    byteCapacity = Self.firstByteCapacity
    bytes = .allocate(byteCount: byteCapacity, alignment: 8)
  }

  @inline(__always)
  mutating func add(_ value: RowValue) {
    (values + valueCount).initialize(to: value)
    valueCount &+= 1
  }

  @inline(__always)
  mutating func add(_ text: Text, _ kind: RowValue.Kind) {
    if byteCount &+ text.count > byteCapacity { grow(by: text.count) }
    add(RowValue(kind: kind, byteCount: UInt32(text.count), word: Int64(byteCount)))
    guard let start = text.baseAddress else { return }
    (bytes + byteCount).copyMemory(from: start, byteCount: text.count)
    byteCount &+= text.count
  }

  private mutating func grow(by additionalCount: Int) {
    byteCapacity = max(2 * byteCapacity, byteCount + additionalCount)
    let grown = UnsafeMutableRawPointer.allocate(byteCount: byteCapacity, alignment: 8)
    grown.copyMemory(from: bytes, byteCount: byteCount)
    bytes.deallocate()
    bytes = grown
  }
}

// MARK: - Writer thread

/// A statement that writes rows. The thread that first runs it prepares it: preparing it earlier would have to wait
/// for all queued rows.
final class RowStatement {
  private let sql: String
  private var prepared: Statement?

  init(_ sql: String) { self.sql = sql }

  func run(_ database: Database) throws(DatabaseError) {
    if let prepared { return try prepared.run() }
    let statement = try database.prepare(sql)
    prepared = statement
    try statement.run()
  }
}

/// Writes batches and runs statements in the order in which they were sent.
final class RowWriterThread: Sendable {
  /// A batch with the statement that writes it, or separate statements.
  ///
  /// Sendable because the sender gives it away and does not use it again.
  struct Work: @unchecked Sendable {
    fileprivate var rows: RowBatch?
    private var valueCount = 0
    private var statement: RowStatement?
    private var sql = ""

    init(rows: RowBatch, valueCount: Int, statement: RowStatement) {
      (self.rows, self.valueCount, self.statement) = (rows, valueCount, statement)
    }

    init(sql: String) { self.sql = sql }

    /// The memory that it holds.
    var byteCount: Int { rows?.allocatedByteCount ?? 0 }

    func write(_ database: Database) throws(DatabaseError) {
      guard let rows, let statement else { return try database.execute(sql) }
      if rows.isEmpty { return }
      try database.withRows(
        RowSource(
          first: rows.values, end: rows.values + rows.valueCount, rowValueCount: valueCount,
          bytes: rows.bytes)
      ) { () throws(DatabaseError) in try statement.run(database) }
    }
  }

  /// The connection. Sendable because only the thread uses it while there is work.
  private struct Connection: @unchecked Sendable {
    let database: Database
  }

  private struct State {
    var waiting: [Work] = []
    var waitingByteCount = 0
    var spares: [RowBatch] = []
    var isWriting = false
    var isStopped = false
    var failure: DatabaseError?
  }

  /// Conditions: the thread has work; the fold can continue.
  private static let (hasWork, hasProgress) = (0, 1)
  /// Hundreds of batches, so that the fold need not wait while an index is created.
  private static let waitingByteCountMax = 64 << 20
  private let monitor = Monitor(State(), conditionCount: 2)
  private let thread: WorkerThread

  init(_ database: Database) throws(LedgerError) {
    let monitor = monitor
    let connection = Connection(database: database)
    thread = try WorkerThread.start { Self.work(monitor, connection.database) }
  }

  private static func work(_ monitor: Monitor<State>, _ database: Database) {
    while true {
      let next: (work: Work, mayWrite: Bool)? = monitor.wait(on: hasWork) { state in
        if state.isStopped { return .some(nil) }
        if !state.waiting.isEmpty {
          state.isWriting = true
          let work = state.waiting.removeFirst()
          state.waitingByteCount -= work.byteCount
          return .some((work, state.failure == nil))
        }
        return nil
      }
      guard var next else { return }
      var found: DatabaseError?
      if next.mayWrite {
        do throws(DatabaseError) { try next.work.write(database) } catch { found = error }
      }
      next.work.rows?.removeAll()
      monitor.withLock { state in
        if state.failure == nil { state.failure = found }
        state.isWriting = false
        if let rows = next.work.rows { state.spares.append(rows) }
      }
      monitor.signal(hasProgress)
    }
  }

  /// If it throws, the work's batch still belongs to the caller.
  func send(_ work: Work) throws(DatabaseError) {
    try monitor.wait(on: Self.hasProgress) { (state) throws(DatabaseError) in
      if let failure = state.failure { throw failure }
      if state.waitingByteCount >= Self.waitingByteCountMax { return Void?.none }
      state.waiting.append(work)
      state.waitingByteCount += work.byteCount
      return ()
    }
    monitor.signal(Self.hasWork)
  }

  /// An empty batch; reuses one that was written, if there is one.
  func spare() -> RowBatch { monitor.withLock { $0.spares.popLast() } ?? RowBatch() }

  /// Waits until all is written.
  func wait() throws(DatabaseError) {
    try monitor.wait(on: Self.hasProgress) { (state) throws(DatabaseError) in
      if let failure = state.failure { throw failure }
      return state.waiting.isEmpty && !state.isWriting ? () : Void?.none
    }
  }

  /// Ends the thread. Discards what is not written yet: a caller that needs it has already waited.
  func stop() {
    monitor.withLock { $0.isStopped = true }
    monitor.signal(Self.hasWork)
    thread.join()
    monitor.withLock { state in
      for batch in state.spares + state.waiting.compactMap(\.rows) { batch.deallocate() }
    }
  }
}
