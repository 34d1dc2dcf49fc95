// A TCP connection's state, deadline and end; the watch over all connections; the budget of their memory.
import Base
import CMicroHTTPD
import Glibc
import Ledger

final class Connection: Sendable {
  enum Stage {
    /// Waiting for a request line: the connection is idle or new.
    case waiting
    /// A request line has arrived, but its head or body is incomplete.
    case reading
    /// The service is handling the request: there is no time limit.
    case working
    case answering
    /// Abandoned; further input is ignored.
    case expired
    case closed
  }

  private struct State {
    var stage = Stage.waiting
    var deadlineMs: Int64
    /// The deadline for the peer to read the next piece of a response.
    var pieceDeadlineMs = Int64.max
    var requestID = ""
    /// Whether the peer may still be sending when the connection ends.
    var mayBeSending = false
  }

  private let descriptor: Int32
  let peer: NetworkAddress?
  /// Whether it exceeds the limit of connections and only gets an error response.
  let isSurplus: Bool
  /// The peer as text, the same for every request.
  let peerText: String?
  private let pieceMs: Int64
  private let state: Monitor<State>

  /// - Parameter pieceMs: how long the peer may take for one piece of a response.
  init(
    descriptor: Int32, peer: NetworkAddress?, isSurplus: Bool, pieceMs: Int64, deadlineMs: Int64
  ) {
    self.descriptor = descriptor
    self.pieceMs = pieceMs
    self.isSurplus = isSurplus
    self.peer = peer
    peerText = peer?.description
    state = Monitor(State(deadlineMs: deadlineMs))
  }

  /// Moves on to a stage; false if the connection was abandoned.
  func enter(_ stage: Stage, deadlineMs: Int64) -> Bool {
    state.withLock { state in
      guard state.stage != .expired else { return false }
      state.stage = stage
      state.deadlineMs = deadlineMs
      state.pieceDeadlineMs = stage == .answering ? MonotonicClock.nowMs() + pieceMs : .max
      return true
    }
  }

  /// The peer has read a piece of the response.
  func recordProgress() {
    let nowMs = MonotonicClock.nowMs()
    state.withLock { $0.pieceDeadlineMs = nowMs + pieceMs }
  }

  /// A request's line has arrived.
  func beginRequest(_ requestID: String, deadlineMs: Int64) {
    state.withLock { state in
      guard state.stage != .expired else { return }
      state.stage = .reading
      (state.deadlineMs, state.pieceDeadlineMs) = (deadlineMs, .max)
      state.requestID = requestID
    }
  }

  func markMayBeSending() { state.withLock { $0.mayBeSending = true } }

  var isExpired: Bool { state.withLock { $0.stage == .expired } }

  /// Sends a response without the library, which cannot respond in the middle of a body, and abandons the connection.
  /// False if it was abandoned before.
  func sendLast(_ answer: HTTPResponse) -> Bool {
    state.withLock { state in
      guard state.stage == .reading else { return false }
      state.stage = .expired
      state.mayBeSending = true
      Self.send(answer.wireBytes(requestID: state.requestID), to: descriptor)
      return true
    }
  }

  /// Ends the connection if its deadline has passed.
  func expire(nowMs: Int64) {
    state.withLock { state in
      guard nowMs >= min(state.deadlineMs, state.pieceDeadlineMs) else { return }
      switch state.stage {
      case .working, .expired, .closed: return
      case .waiting: break
      case .reading:
        Self.send(
          HTTPResponse.requestTimeout.wireBytes(requestID: state.requestID), to: descriptor)
        state.mayBeSending = true
      case .answering:
        // The peer does not read the response: the system discards what it still holds of it.
        var abort = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
          descriptor, SOL_SOCKET, SO_LINGER, &abort, socklen_t(MemoryLayout<linger>.size))
      }
      state.stage = .expired
      shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  /// Ends the connection if it waits for a request.
  func endIfWaiting() {
    state.withLock { state in
      guard state.stage == .waiting else { return }
      state.stage = .expired
      shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  var wasTimedOut: Bool { state.withLock { $0.stage == .expired && $0.mayBeSending } }

  /// The library is about to close the socket, which is not used from now on. If the library closes it silently,
  /// because it cannot parse the first request line, the response is sent here.
  /// - Parameter requestID: returns an id for that response; nil if the server itself is stopping.
  /// - Returns: a descriptor of the same socket if the peer may still be sending. Closing the last descriptor would
  ///   then reset the connection, and the peer might never see the response.
  func close(requestID: (() -> String)?) -> Int32? {
    state.withLock { state in
      if let requestID, state.stage == .waiting, isPeerOpen, hasSentNothing {
        Self.send(HTTPResponse.brokenLine.wireBytes(requestID: requestID()), to: descriptor)
        state.mayBeSending = true
      }
      state.stage = .closed
      guard state.mayBeSending else { return nil }
      let kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      return kept < 0 ? nil : kept
    }
  }

  /// Whether nothing was ever sent to the peer, including by the library.
  private var hasSentNothing: Bool {
    // Linux's struct tcp_info, whose later members the C library does not declare: bytes not sent yet are at offset 144,
    // segments sent with data at 156.
    var info = [UInt8](repeating: 0, count: 160)
    var size = socklen_t(info.count)
    guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0,
      size == info.count
    else { return false }
    return (info[144..<148] + info[156..<160]).allSatisfy { $0 == 0 }
  }

  /// Whether the peer has neither ended its side nor disappeared.
  private var isPeerOpen: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    return count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR)
  }

  private static func send(_ bytes: [UInt8], to descriptor: Int32) {
    _ = bytes.withUnsafeBytes {
      Glibc.send(
        descriptor, $0.baseAddress, $0.count,
        Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }
  }
}

// MARK: - Watch over all connections

final class ConnectionReaper: Sendable {
  private struct State {
    var connections: [ObjectIdentifier: Connection] = [:]
    var lingering: [Lingering] = []
    var isDraining = false
    var isClosed = false
  }

  /// A socket whose response is sent and whose peer may still be sending.
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
  /// A smaller amount of freed memory is left to the C library.
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

  /// From now on connections that wait for a request are ended.
  func drain() { state.withLock { $0.isDraining = true } }

  /// Stops the watch, and ends every lingering connection.
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
      // Outside the lock, which the threads that answer requests need. Only this thread removes lingering sockets.
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

  /// The C library keeps freed memory that lies between blocks in use.
  private func giveMemoryBack() {
    let ended = budgets.compactMap { $0.endedPeak(minBytes: Self.freedBytesMin) }
    if !ended.isEmpty { cmhd_give_memory_back() }
  }

  /// Reads and discards what has arrived; nil once the peer has ended, or its deadline has passed.
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

// MARK: - Shared memory budget

/// The bytes that all requests use together, and their limit.
final class ByteBudget: Sendable {
  private struct State {
    var used = 0
    var peak = 0
  }

  private let state = Monitor(State())
  private let limitBytes: Int

  init(limitBytes: Int) { self.limitBytes = limitBytes }

  var usedBytes: Int { state.withLock { $0.used } }

  /// Whether a quarter is free: enough for the requests in progress.
  var hasRoom: Bool { usedBytes <= limitBytes - limitBytes / 4 }

  /// Reserves a number of bytes; false if they are not available.
  /// - Parameter evenAlone: whether a request that exceeds the whole budget may have all of it.
  func reserve(_ count: Int, evenAlone: Bool = false) -> Bool {
    state.withLock { state in
      guard state.used + count <= limitBytes || evenAlone && state.used == 0 else { return false }
      state.used += count
      state.peak = max(state.peak, state.used)
      return true
    }
  }

  func release(_ count: Int) {
    state.withLock { state in
      precondition(count <= state.used, "more bytes released than reserved")
      state.used -= count
    }
  }

  /// The peak of use since the last call that returned one; nil unless it was at least `minBytes` and all but a quarter
  /// of it has been released.
  func endedPeak(minBytes: Int) -> Int? {
    state.withLock { state in
      guard state.peak >= minBytes, state.used <= state.peak / 4 else { return nil }
      defer { state.peak = state.used }
      return state.peak
    }
  }
}
