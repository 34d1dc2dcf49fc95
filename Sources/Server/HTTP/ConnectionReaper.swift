// Watches over all connections: ends those whose time is over, lets refused ones finish sending, and gives
// memory back that many have used.
import Base
import CMicroHTTPD
import Glibc
import Ledger

final class ConnectionReaper: Sendable {
  private struct State {
    var connections: [ObjectIdentifier: Connection] = [:]
    var lingering: [Lingering] = []
    var isDraining = false
    var isClosed = false
  }

  /// A socket whose answer is sent, and whose peer may still be sending.
  private struct Lingering {
    let descriptor: Int32
    let deadlineMs: Int64
    var drainedBytes = 0
  }

  private let state = Monitor(State())
  private let thread = Monitor<WorkerThread?>(nil)

  private static let periodMs: Int32 = 50
  private static let lingerMs: Int64 = 2000
  private static let lingerBytesMax = 8 << 20
  private static let lingeringMax = 256
  /// Less than this, once free, is left to the C library.
  private static let freedBytesMin = 16 << 20

  private let budgets: [ByteBudget]

  /// - Parameter budgets: of the memory that is given back after a peak.
  init(budgets: [ByteBudget]) { self.budgets = budgets }

  func start() throws(LedgerError) {
    let started = try WorkerThread.start { [self] in run() }
    thread.withLock { $0 = started }
  }

  var count: Int { state.withLock { $0.connections.count } }

  func add(_ connection: Connection) {
    state.withLock { $0.connections[ObjectIdentifier(connection)] = connection }
  }

  /// The library closes the connection's socket after this.
  /// - Parameter requestID: see `Connection.close`.
  func remove(_ connection: Connection, requestID: (() -> String)?) {
    let kept = connection.close(requestID: requestID)
    if let kept { shutdown(kept, Int32(SHUT_WR)) }
    let lingers = state.withLock { state in
      state.connections[ObjectIdentifier(connection)] = nil
      guard let kept, state.lingering.count < Self.lingeringMax, !state.isClosed else {
        return false
      }
      state.lingering.append(
        Lingering(descriptor: kept, deadlineMs: MonotonicClock.nowMs() + Self.lingerMs))
      return true
    }
    if let kept, !lingers { close(kept) }
  }

  /// From now on a connection that waits for a request is ended.
  func drain() { state.withLock { $0.isDraining = true } }

  /// Ends the watch, and every connection that lingers.
  func finish() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    state.withLock { $0.isClosed = true }
    running?.join()
    let lingering = state.withLock { state in
      defer { state.lingering = [] }
      return state.lingering
    }
    for lingering in lingering { close(lingering.descriptor) }
  }

  private func run() {
    while true {
      let (connections, lingering, isDraining, isClosed) = state.withLock { state in
        (Array(state.connections.values), state.lingering, state.isDraining, state.isClosed)
      }
      if isClosed { return }
      // Outside the lock, which the threads that answer requests need. Only this thread removes what lingers.
      let rest = lingering.compactMap(Self.drained)
      state.withLock { $0.lingering.replaceSubrange(..<lingering.count, with: rest) }
      let nowMs = MonotonicClock.nowMs()
      for connection in connections {
        connection.expire(nowMs: nowMs)
        if isDraining { connection.endIfWaiting() }
      }
      giveMemoryBack()
      poll(nil, 0, Self.periodMs)
    }
  }

  /// The C library keeps freed memory between blocks still in use.
  private func giveMemoryBack() {
    let ended = budgets.compactMap { $0.endedPeak(minBytes: Self.freedBytesMin) }
    if !ended.isEmpty { cmhd_give_memory_back() }
  }

  /// Reads what has come and throws it away; nil once the peer has ended, or its time is over.
  private static func drained(_ lingering: Lingering) -> Lingering? {
    var lingering = lingering
    let isOver = withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
      while lingering.drainedBytes < lingerBytesMax {
        let count = recv(
          lingering.descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count == 0 { return true }
        if count < 0 { return errno != EAGAIN && errno != EINTR }
        lingering.drainedBytes += count
      }
      return true
    }
    guard isOver || MonotonicClock.nowMs() >= lingering.deadlineMs else { return lingering }
    close(lingering.descriptor)
    return nil
  }
}
