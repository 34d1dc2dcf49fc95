// The thread that writes rows in parallel with the fold, and the batches queued for it.
import Base
import Ledger

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
  /// Sendable because the sender gives it away whole and does not use it again.
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
