// One listening socket and the library behind it. Only this file contains the library's callbacks.
import Base
import CMicroHTTPD
import Glibc
import Synchronization

/// The current proxies; they may be replaced while requests are answered.
final class ProxyList: Sendable {
  private let proxies: Monitor<TrustedProxies>

  init(_ proxies: TrustedProxies) { self.proxies = Monitor(proxies) }

  var current: TrustedProxies { proxies.withLock { $0 } }

  func replace(_ proxies: TrustedProxies) { self.proxies.withLock { $0 = proxies } }
}

/// The current path of notifications; it may be replaced while requests are answered.
final class CurrentPath: Sendable {
  private let path: Monitor<String>

  init(_ path: String) { self.path = Monitor(path) }

  var current: String { path.withLock { $0 } }

  func replace(_ path: String) { self.path.withLock { $0 = path } }
}

/// What both listeners of a server share.
struct ListenerParts: Sendable {
  let options: HTTPServerOptions
  let proxies: ProxyList
  let service: any ClientService
  let authenticator: TokenAuthenticator
  let metrics: Metrics
  let accessLog: AccessLog?
  let keeper: ConnectionReaper
  let bodies: ByteBudget
  /// The budget of notifications, which uploads must not use up.
  let notificationBodies: ByteBudget
  let answers: ByteBudget
  let notificationsPath: CurrentPath
}

/// One address that the server listens on.
///
/// Sendable because `loops` changes only in `init`, before its threads start, and the library locks its own state.
final class Listener: @unchecked Sendable {
  private struct Work {
    var exchanges: [ObjectIdentifier: RequestHandler] = [:]
    var isDraining = false
    var isClosed = false
  }

  private let parts: ListenerParts
  let servesMetrics: Bool
  private let connectionsMax: Int
  private var loops: [ListenerLoop] = []
  private let listening: Int32
  private let work = Monitor(Work())
  private let isStopped = Atomic(false)
  private let connectionCount = Atomic<Int>(0)
  private let requestCount = Atomic<UInt64>(0)
  private let requestPrefix = UUID16.random().description.prefix(8)
  let port: UInt16

  var options: HTTPServerOptions { parts.options }
  var trustedProxies: TrustedProxies { parts.proxies.current }
  var service: any ClientService { parts.service }
  var authenticator: TokenAuthenticator { parts.authenticator }
  var bodies: ByteBudget { parts.bodies }
  /// The rounds of its threads.
  var rounds: [StepCount] { loops.map(\.rounds) }
  var notificationBodies: ByteBudget { parts.notificationBodies }
  var notificationsPath: String { parts.notificationsPath.current }
  var answers: ByteBudget { parts.answers }

  /// The number of connections above the limit that get an error response; further ones are closed at once.
  private static let refusedConnectionsMax = 64
  /// The library's buffer for one connection: the largest head that it reads, and the pieces of a body.
  private static let bufferBytes = 32 << 10

  init(
    _ parts: ListenerParts, on address: ListenAddress, servesMetrics: Bool, threadCount: Int,
    connectionsMax: Int
  ) throws(Failure) {
    self.parts = parts
    self.servesMetrics = servesMetrics
    self.connectionsMax = connectionsMax
    listening = try address.listen(backlog: 1024)
    port = ListenAddress.port(of: listening)
    var plan = cmhd_plan()
    plan.connection_limit = UInt32(
      (connectionsMax + 2 * Self.refusedConnectionsMax) / threadCount + 1)
    plan.memory_bytes = Self.bufferBytes
    plan.memory_increment_bytes = 8 << 10
    plan.accept = acceptConnection
    plan.handle = handleRequest
    plan.completed = completeRequest
    plan.notify = notifyConnection
    plan.request_line = beginRequest
    plan.unescape = keepEscapes
    plan.context = Unmanaged.passUnretained(self).toOpaque()
    for _ in 0..<threadCount {
      // Each daemon closes its own descriptor of the socket.
      plan.listen_fd = fcntl(listening, F_DUPFD_CLOEXEC, 0)
      let daemon = plan.listen_fd < 0 ? nil : cmhd_start(&plan)
      guard let daemon, let loop = ListenerLoop(daemon, waitMs: options.waitMs) else {
        let code = errno
        if daemon == nil, plan.listen_fd >= 0 { Glibc.close(plan.listen_fd) }
        stop()
        throw Failure("serve on", address.description, errno: code)
      }
      loops.append(loop)
    }
    // Threads look for a loop among all, so these are complete first.
    for loop in loops where !loop.start() {
      let code = errno
      stop()
      throw Failure("serve on", address.description, errno: code)
    }
  }

  deinit { stop() }

  /// Why an upload would not be accepted now; nil if it would.
  var refusal: UploadRefusal? {
    if isDraining { return .stopping }
    if let refusal = service.refusal { return refusal }
    return bodies.hasRoom && answers.hasRoom ? nil : .busy
  }

  // MARK: Ending

  /// Accepts no more connections: new ones are closed at once. Open ones get their responses and are then closed.
  func drain() {
    // Without MHD_quiesce_daemon: with epoll, it and the library's own threads may both remove the listening socket
    // from the set, and the second removal aborts the process (libmicrohttpd 0.9.75, daemon.c).
    work.withLock { $0.isDraining = true }
  }

  var isDraining: Bool { work.withLock { $0.isDraining } }
  var hasWork: Bool { work.withLock { !$0.exchanges.isEmpty } }
  var hasConnections: Bool { connectionCount.load(ordering: .relaxed) > 0 }

  /// Answers 503 to all requests that the service is still handling. The service's own responses are then ignored.
  func abandonWork() {
    let exchanges = work.withLock { work in
      work.isClosed = true
      return Array(work.exchanges.values)
    }
    for exchange in exchanges {
      exchange.complete(.unavailable(retryAfterSeconds: 1).closing())
    }
  }

  /// Closes every connection. The library must not be stopped while a connection is suspended.
  func stop() {
    if isStopped.exchange(true, ordering: .relaxed) { return }
    abandonWork()
    for loop in loops { loop.end() }
    for loop in loops { loop.stop() }
    Glibc.close(listening)
  }

  // MARK: Exchanges

  func nextRequestID() -> String {
    let number = requestCount.wrappingAdd(1, ordering: .relaxed).newValue
    return "\(requestPrefix)-\(number)"
  }

  /// False once the server no longer waits for the service.
  func beginWork(_ exchange: RequestHandler) -> Bool {
    work.withLock { work in
      guard !work.isClosed else { return false }
      work.exchanges[ObjectIdentifier(exchange)] = exchange
      return true
    }
  }

  func endWork(_ exchange: RequestHandler) {
    _ = work.withLock { $0.exchanges.removeValue(forKey: ObjectIdentifier(exchange)) }
  }

  /// Continues with a suspended connection, which must not be used afterwards.
  func resume(_ handle: OpaquePointer) {
    let daemon = cmhd_daemon(handle)
    MHD_resume_connection(handle)
    loops.first { $0.daemon == daemon }?.wake()
  }

  func log(_ entry: AccessLogEntry) {
    parts.metrics.count(.requests, label: entry.status == 0 ? "none" : String(entry.status))
    parts.metrics.observe(
      .requestSeconds, seconds: Double(entry.durationMicroseconds) / 1_000_000)
    parts.accessLog?.append(entry)
  }

  /// Counts a notification that never reached the service.
  func countBadNotification() {
    parts.metrics.count(.notifications, label: NotificationResult.badRequest.rawValue)
  }

  func exposition() -> HTTPResponse {
    parts.metrics.set(.ready, refusal == nil ? 1 : 0)
    parts.metrics.set(.connections, Double(parts.keeper.count))
    parts.metrics.set(.bodyBytes, Double(bodies.usedBytes + notificationBodies.usedBytes))
    parts.metrics.set(.answerBytes, Double(answers.usedBytes))
    var answer = HTTPResponse(status: 200, body: parts.metrics.exposition())
    answer.contentType = Metrics.contentType
    return answer
  }

  func rawHead(
    of handle: OpaquePointer, method: UnsafePointer<CChar>, target: UnsafeRawBufferPointer?,
    version: UnsafePointer<CChar>
  ) -> RawHead {
    func bytes(_ text: UnsafePointer<CChar>) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(start: text, count: strlen(text))
    }
    var head = RawHead(
      method: bytes(method), target: target, version: bytes(version),
      countBytes: cmhd_head_bytes(handle))
    head.headers.reserveCapacity(16)
    withUnsafeMutablePointer(to: &head) { head in
      cmhd_headers(handle, collectHeader, head)
    }
    return head
  }

  func queue(
    _ answer: HTTPResponse, requestID: String, on handle: OpaquePointer, _ connection: Connection
  ) -> Bool {
    guard let response = ResponseStream.response(answer.body, connection) else { return false }
    defer { MHD_destroy_response(response) }
    var isWhole = true
    func add(_ name: String, _ value: String) {
      if MHD_add_response_header(response, name, value) != .YES { isWhole = false }
    }
    add("Content-Type", answer.contentType)
    add("Cache-Control", "no-store")
    add("X-Request-Id", requestID)
    for (name, value) in answer.headers { add(name, value) }
    if answer.closes { add("Connection", "close") }
    return isWhole && MHD_queue_response(handle, UInt32(answer.status), response) == .YES
  }

  // MARK: Connections

  fileprivate func admits() -> Bool {
    !isDraining
      && connectionCount.load(ordering: .relaxed) < connectionsMax + Self.refusedConnectionsMax
  }

  fileprivate func open(_ handle: OpaquePointer) -> Connection {
    let count = connectionCount.add(1, ordering: .relaxed).newValue
    let connection = Connection(
      descriptor: cmhd_fd(handle), peer: cmhd_peer(handle).flatMap { NetworkAddress($0) },
      isSurplus: count > connectionsMax, pieceMs: options.answerPieceMs,
      deadlineMs: MonotonicClock.nowMs() + options.requestMs)
    parts.keeper.add(connection)
    return connection
  }

  fileprivate func close(_ connection: Connection) {
    connectionCount.subtract(1, ordering: .relaxed)
    if isDraining {
      parts.keeper.remove(connection, requestID: nil)
    } else {
      parts.keeper.remove(connection) { self.nextRequestID() }
    }
  }
}

/// One daemon of the library, and the thread that runs it.
///
/// Sendable because the daemon is the thread's until `stop`, but for what the library locks.
private final class ListenerLoop: @unchecked Sendable {
  let daemon: OpaquePointer
  let rounds = StepCount()
  private let waitMs: Int32
  private let wakeDescriptor: Int32
  /// Whether a wait that has begun, or the next one, will end for a wake.
  private let isWoken = Atomic(false)
  private let isEnded = Atomic(false)
  private var thread: WorkerThread?
  /// A connection that continues for its last response needs a few rounds to send it.
  private static let lastRoundCount = 8

  /// Nil, with `errno`, if the system refuses a descriptor; the daemon is then stopped.
  init?(_ daemon: OpaquePointer, waitMs: Int32) {
    self.daemon = daemon
    self.waitMs = waitMs
    wakeDescriptor = cmhd_wake_descriptor(daemon)
    if wakeDescriptor >= 0 { return }
    let code = errno
    MHD_stop_daemon(daemon)
    errno = code
    return nil
  }

  /// False, with `errno`, if no thread can be started.
  func start() -> Bool {
    do throws(SystemError) { thread = try WorkerThread { [self] in run() } } catch {
      errno = error.code
      return false
    }
    return true
  }

  private func run() {
    while !isEnded.load(ordering: .acquiring) {
      MHD_run_wait(daemon, waitMs)
      isWoken.store(false, ordering: .sequentiallyConsistent)
      rounds.add()
    }
  }

  /// Ends the wait, so that connections which were resumed continue.
  func wake() {
    if isWoken.exchange(true, ordering: .sequentiallyConsistent) { return }
    cmhd_wake(wakeDescriptor)
  }

  func end() {
    isEnded.store(true, ordering: .releasing)
    cmhd_wake(wakeDescriptor)
  }

  /// Waits for the thread, and closes every connection.
  func stop() {
    thread?.join()
    for _ in 0..<Self.lastRoundCount { MHD_run(daemon) }
    MHD_stop_daemon(daemon)
    Glibc.close(wakeDescriptor)
  }
}

// MARK: Callbacks of the library

private func listener(_ context: UnsafeMutableRawPointer?) -> Listener? {
  context.map { Unmanaged<Listener>.fromOpaque($0).takeUnretainedValue() }
}

private func acceptConnection(
  context: UnsafeMutableRawPointer?, address: UnsafePointer<sockaddr>?, size: socklen_t
) -> MHD_Result {
  listener(context)?.admits() == true ? .YES : .NO
}

private func notifyConnection(
  context: UnsafeMutableRawPointer?, handle: OpaquePointer?,
  slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, code: MHD_ConnectionNotificationCode
) {
  guard let listener = listener(context), let handle, let slot else { return }
  if cmhd_is_start(code) != 0 {
    slot.pointee = Unmanaged.passRetained(listener.open(handle)).toOpaque()
  } else if let connection = slot.pointee {
    slot.pointee = nil
    listener.close(Unmanaged<Connection>.fromOpaque(connection).takeRetainedValue())
  }
}

/// Called with the request line; the returned value represents the request until its end.
private func beginRequest(
  context: UnsafeMutableRawPointer?, target: UnsafePointer<CChar>?, handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let listener = listener(context), let handle,
    let connection = cmhd_socket_context(handle)
  else { return nil }
  let exchange = RequestHandler(
    listener: listener, handle: handle,
    connection: Unmanaged<Connection>.fromOpaque(connection).takeUnretainedValue(),
    target: target.map { UnsafeRawBufferPointer(start: $0, count: strlen($0)) })
  return Unmanaged.passRetained(exchange).toOpaque()
}

/// Leaves paths as they were sent.
private func keepEscapes(
  context: UnsafeMutableRawPointer?, handle: OpaquePointer?, text: UnsafeMutablePointer<CChar>?
) -> Int {
  text.map { strlen($0) } ?? 0
}

private func handleRequest(
  context: UnsafeMutableRawPointer?, handle: OpaquePointer?, url: UnsafePointer<CChar>?,
  method: UnsafePointer<CChar>?, version: UnsafePointer<CChar>?, piece: UnsafePointer<CChar>?,
  pieceSize: UnsafeMutablePointer<Int>?, slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let exchange = slot?.pointee, let method, let version, let pieceSize else { return .NO }
  let bytes = UnsafeRawBufferPointer(start: piece, count: piece == nil ? 0 : pieceSize.pointee)
  pieceSize.pointee = 0
  let goesOn = Unmanaged<RequestHandler>.fromOpaque(exchange).takeUnretainedValue().proceed(
    method: method, version: version, piece: bytes)
  return goesOn ? .YES : .NO
}

private func completeRequest(
  context: UnsafeMutableRawPointer?, handle: OpaquePointer?,
  slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, code: MHD_RequestTerminationCode
) {
  guard let exchange = slot?.pointee else { return }
  slot?.pointee = nil
  Unmanaged<RequestHandler>.fromOpaque(exchange).takeRetainedValue().end()
}

private func collectHeader(
  context: UnsafeMutableRawPointer?, kind: MHD_ValueKind, name: UnsafePointer<CChar>?,
  nameSize: Int, value: UnsafePointer<CChar>?, valueSize: Int
) -> MHD_Result {
  context?.assumingMemoryBound(to: RawHead.self).pointee.headers.append(
    RawHead.Header(
      name: UnsafeRawBufferPointer(start: name, count: name == nil ? 0 : nameSize),
      value: UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize)))
  return .YES
}
