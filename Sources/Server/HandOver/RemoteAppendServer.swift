// The hand-over: while a server holds the ledger, commands append through it over ledger.sock.
import Base
import Glibc
package import Ledger

/// Accepts drafts from commands of the same user and appends them. One session at a time may append; others wait a
/// while for their turn.
package final class RemoteAppendServer: Sendable {
  /// Limits; docs/handover.md has the defaults.
  package struct Options: Sendable {
    /// The most connections at once, including those that wait for their turn.
    package var connectionsMax = 4
    /// How long a session waits for its turn.
    package var turnTimeoutMs: Int32 = 10_000
    /// How long a session may be silent.
    package var idleTimeoutMs: Int32 = 900_000
    /// How long a greeting, or the next piece of a frame, may take to arrive.
    package var pieceTimeoutMs: Int32 = 30_000

    package init() {}
  }

  struct Session {
    let connection: RemoteAppendConnection
    var thread: WorkerThread?
    var isFinished = false
  }

  struct State {
    var sessions: [Int: Session] = [:]
    var nextSession = 0
    /// The session that may append, and its process.
    var turn: (session: Int, processID: Int32)?
    var isStopping = false
  }

  let writer: LedgerWriter
  let options: Options
  let claims: HandedOverClaims?
  let onAppended: @Sendable () -> Void
  let onOutcome: @Sendable (LedgerError?) -> Void
  let onRetry: @Sendable () -> Void
  private let listener: Int32
  private let state = Monitor(State(), conditionCount: 1)
  private let thread = Monitor<WorkerThread?>(nil)
  /// The condition that the turn is free, or that no more turns are given.
  private static let turn = 0

  /// Listens until `stop()`, after which the writer may be closed. A socket left by a dead server is replaced: the
  /// writer's lock proves that no other server is running.
  /// - Parameter claims: nil if no notifications arrive another way.
  /// - Parameter onAppended: called when a session's events have become durable, on that session's thread.
  /// - Parameter onOutcome: called with the error of a failed append, or nil after appends have succeeded; on that
  ///   thread, too.
  /// - Parameter onRetry: called to try all pending receipts now.
  package init(
    writer: LedgerWriter, options: Options = Options(), claims: HandedOverClaims? = nil,
    onAppended: @escaping @Sendable () -> Void = {},
    onOutcome: @escaping @Sendable (LedgerError?) -> Void = { _ in },
    onRetry: @escaping @Sendable () -> Void = {}
  ) throws(LedgerError) {
    self.writer = writer
    self.options = options
    self.claims = claims
    self.onAppended = onAppended
    self.onOutcome = onOutcome
    self.onRetry = onRetry
    listener = try Self.listen(writer.directory)
    // The threads keep it alive until `stop()`.
    let started = try WorkerThread.start { self.acceptAll() }
    thread.withLock { $0 = started }
  }

  deinit { close(listener) }

  private static func listen(_ directory: LedgerDirectory) throws(LedgerError) -> Int32 {
    try directory.root.unlink(RemoteAppendProtocol.socketName)
    let descriptor = RemoteAppendAddress.makeSocket()
    let code: Int32? = RemoteAppendAddress.with(directory.root) { address, size in
      // The socket's own mode becomes the mode of its name: there is no moment with other permissions, and no name that
      // could lead to another file before its mode is changed.
      guard descriptor >= 0, fchmod(descriptor, 0o600) == 0, bind(descriptor, address, size) == 0,
        Glibc.listen(descriptor, 8) == 0
      else { return errno }
      return 0
    }
    guard let code, code == 0 else {
      let cause = systemErrorText(code ?? errno)
      if descriptor >= 0 { close(descriptor) }
      throw LedgerError(
        .inputOutput, operation: "listen",
        object: directory.fullPath(RemoteAppendProtocol.socketName),
        cause: cause)
    }
    return descriptor
  }

  /// Ends all sessions, stops listening, and removes the socket. What was submitted is durable when it returns. Call it
  /// before the writer is closed; calling it again does nothing.
  package func stop() {
    let connections = state.withLock { state -> [RemoteAppendConnection]? in
      if state.isStopping { return nil }
      state.isStopping = true
      return state.sessions.values.map(\.connection)
    }
    guard let connections else { return }
    state.broadcast(Self.turn)
    try? writer.directory.root.unlink(RemoteAppendProtocol.socketName)
    shutdown(listener, SocketConstant.shutdownBoth)
    for connection in connections { connection.shutDown() }
    thread.withLock { $0.take() }?.join()
    let threads = state.withLock { state in state.sessions.values.compactMap(\.thread) }
    for thread in threads { thread.join() }
    state.withLock { $0.sessions = [:] }
  }

  // MARK: Connections

  private func acceptAll() {
    while !state.withLock({ $0.isStopping }) {
      let descriptor = accept(listener, nil, nil)
      if descriptor >= 0 {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        admit(RemoteAppendConnection(descriptor))
      } else if errno != EINTR, errno != ECONNABORTED, !state.withLock({ $0.isStopping }) {
        // Usually no descriptors are free: others are closed meanwhile.
        usleep(100_000)
      }
    }
  }

  private func admit(_ connection: RemoteAppendConnection) {
    reap()
    // Root may do everything that the user may.
    guard let peer = connection.peer, peer.userID == geteuid() || peer.userID == 0 else {
      return refuse(connection, "only the ledger's owner may use it")
    }
    let number = state.withLock { state -> Int? in
      guard !state.isStopping, state.sessions.count < options.connectionsMax else { return nil }
      state.nextSession += 1
      state.sessions[state.nextSession] = Session(connection: connection)
      return state.nextSession
    }
    guard let number else { return refuse(connection, "too many commands are waiting") }
    do throws(LedgerError) {
      let started = try WorkerThread.start { [self] in
        RemoteAppendSession(
          server: self, number: number, processID: peer.processID, connection: connection
        ).run()
        state.withLock { $0.sessions[number]?.isFinished = true }
      }
      state.withLock { $0.sessions[number]?.thread = started }
    } catch {
      state.withLock { $0.sessions[number] = nil }
      refuse(connection, "it cannot start another session")
    }
  }

  private func refuse(_ connection: RemoteAppendConnection, _ cause: String) {
    let error = LedgerError(
      .locked, operation: "open for writing", object: writer.directory.path, cause: cause)
    // The frame fits the socket's buffer; the server does not wait for the peer to read it.
    try? connection.send(.failure, RemoteAppendWriter.failure(error), timeoutMs: 0)
  }

  /// Joins the threads of sessions that have ended.
  private func reap() {
    let threads = state.withLock { state -> [WorkerThread] in
      let finished = state.sessions.filter { $0.value.isFinished && $0.value.thread != nil }
      for number in finished.keys { state.sessions[number] = nil }
      return finished.values.compactMap(\.thread)
    }
    for thread in threads { thread.join() }
  }

  // MARK: Turns

  /// The result of waiting for the turn.
  enum TurnOutcome {
    case acquired, stopping
    /// The time limit has passed, and this process has the turn.
    case held(by: Int32)
  }

  /// Waits for the turn of a session, up to `turnTimeoutMs`.
  func acquireTurn(_ number: Int, processID: Int32) -> TurnOutcome {
    var holder: Int32 = 0
    let outcome = state.wait(on: Self.turn, limitMs: Int64(options.turnTimeoutMs)) {
      state -> TurnOutcome? in
      if state.isStopping { return .stopping }
      if let turn = state.turn {
        holder = turn.processID
        return nil
      }
      state.turn = (number, processID)
      return .acquired
    }
    return outcome ?? .held(by: holder)
  }

  func releaseTurn(_ number: Int) {
    state.withLock { state in
      if state.turn?.session == number { state.turn = nil }
    }
    state.broadcast(Self.turn)
  }

  var isStopping: Bool { state.withLock { $0.isStopping } }
}
