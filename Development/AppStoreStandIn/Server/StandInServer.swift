// The stand-in itself: real HTTP on loopback, a thread for each connection so that any may block.
package import AppStore
package import AppStoreAuthority
private import Base
private import CMicroHTTPD
private import Glibc
private import Synchronization

/// What a stand-in is started with.
package struct StandInOptions: Sendable {
  /// 0: the system chooses.
  package var port: UInt16 = 0
  /// What `password` must be for receipts with subscriptions; nil accepts any.
  package var sharedSecret: String?
  /// Control requests that hold from the start on.
  package var controls: [[UInt8]] = []
  /// Nil: there is no App Store Server API.
  package var serverAPI: ServerAPIOptions?

  package init() {}
}

/// Why a stand-in could not be started or controlled.
package struct StandInError: Error, CustomStringConvertible {
  package let description: String
}

/// A stand-in for the App Store's verifyReceipt and its Server API. It runs from `init` to `stop` or its end.
package final class StandInServer: @unchecked Sendable {
  // Unchecked: the daemon's pointer is set once, before anyone else sees the object.
  private var daemon: OpaquePointer?
  private let desk: FakeVerifyReceipt
  private let serverAPI: ServerAPIDesk?
  private let state = Monitor(StandInState())
  private let isStopping = Atomic(false)
  /// The loopback port.
  package private(set) var port: UInt16 = 0

  private static let connectionsMax: UInt32 = 1_000
  private static let bodyBytesMax = 8 << 20

  package init(authority: TestAuthority, options: StandInOptions = StandInOptions()) throws {
    desk = try FakeVerifyReceipt(authority: authority, sharedSecret: options.sharedSecret)
    var serverAPI = options.serverAPI.map(ServerAPIDesk.init)
    if let desk = serverAPI {
      let state = state
      serverAPI?.dispatcher = NotificationDispatcher(desk, options.serverAPI?.notifications) {
        ServerAPIDesk.Moment(
          memory: state.withLock { $0.memory }, nowMs: state.withLock { $0.clock.nowMs },
          signedMs: Timestamp.now())
      }
    }
    self.serverAPI = serverAPI
    for request in options.controls { try control(request) }
    try serverAPI?.dispatcher?.start()
    try listen(options.port)
  }

  deinit { stop() }

  package var productionURL: String { "http://127.0.0.1:\(port)/verifyReceipt" }
  package var sandboxURL: String { "http://127.0.0.1:\(port)/sandbox/verifyReceipt" }
  package var controlURL: String { "http://127.0.0.1:\(port)/control" }

  package var hasServerAPI: Bool { serverAPI != nil }
  /// The base addresses of the App Store Server API.
  package var serverAPIProductionURL: String { "http://127.0.0.1:\(port)" }
  package var serverAPISandboxURL: String { "http://127.0.0.1:\(port)/sandbox" }

  package func url(_ endpoint: AppStoreEndpoint) -> String {
    endpoint == .production ? productionURL : sandboxURL
  }

  /// Carries out a control request, as `POST /control` does.
  package func control(_ request: String) throws(StandInError) {
    do throws(ControlError) { try control(Array(request.utf8)) } catch {
      throw StandInError(description: "control the stand-in: \(error)")
    }
  }

  /// The counters, as `GET /control` gives them.
  package var counts: [UInt8] { state.withLock { $0.countsJSON } }

  /// Closes all connections. What hangs is let go.
  package func stop() {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    if let daemon { MHD_stop_daemon(daemon) }
    daemon = nil
    serverAPI?.dispatcher?.close()
  }

  private func listen(_ port: UInt16) throws(StandInError) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let context = Unmanaged.passUnretained(self).toOpaque()
    daemon = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        cmicrohttpd_start_thread_per_connection(
          $0, Self.connectionsMax, takeRequest, endRequest, countConnection, context)
      }
    }
    guard let daemon else {
      throw StandInError(
        description: "listen on 127.0.0.1:\(port): \(String(cString: strerror(errno)))")
    }
    self.port = cmicrohttpd_port(daemon)
  }

  // MARK: One request

  fileprivate func noteConnection() { state.withLock { $0.connectionCount += 1 } }

  fileprivate func answer(_ request: Request, _ connection: OpaquePointer) -> MHD_Result {
    guard !request.isTooLarge else { return send(.refusal(413, "too large"), on: connection) }
    switch (request.path, request.method) {
    case ("/verifyReceipt", "POST"): return verify(request, .production, connection)
    case ("/sandbox/verifyReceipt", "POST"): return verify(request, .sandbox, connection)
    case ("/verifyReceipt", _), ("/sandbox/verifyReceipt", _):
      return send(.json(#"{"status":21000}"#), on: connection)
    case ("/control", "GET"):
      return send(
        .answer(
          httpStatus: 200, contentType: ResponsePlan.jsonType, body: counts, pace: .atOnce),
        on: connection)
    case ("/control", "POST"): return control(request, connection)
    case _ where serverAPI != nil && ServerAPICall.at(request.method, request.path) != nil:
      return callServerAPI(request, connection)
    default: return send(.refusal(404, "there is nothing here"), on: connection)
    }
  }

  /// Carries out a control request, and notifies of what it made happen.
  private func control(_ request: [UInt8]) throws(ControlError) {
    let (told, address) = try state.withLock { state throws(ControlError) in
      let count = state.memory.told.count
      try state.control(request)
      defer { state.notificationsAddress = nil }
      return (state.memory.told.dropFirst(count), state.notificationsAddress)
    }
    if let address { serverAPI?.dispatcher?.redirect(to: address) }
    for told in told { serverAPI?.dispatcher?.tell(told) }
  }

  private func control(_ request: Request, _ connection: OpaquePointer) -> MHD_Result {
    do throws(ControlError) {
      try control(request.body)
      return send(.json(#"{"done":true}"#), on: connection)
    } catch { return send(.refusal(400, error.description), on: connection) }
  }

  private func verify(
    _ request: Request, _ endpoint: AppStoreEndpoint, _ connection: OpaquePointer
  ) -> MHD_Result {
    let (plan, resetCount) = state.withLock {
      ($0.beginCall(at: StandInEndpoint(endpoint)), $0.resetCount)
    }
    wait(ms: plan.pause.ms, resetCount: resetCount)
    let (answer, status) = plan.answer(to: request.body, at: endpoint, by: desk)
    // Counted before it is sent, so that whoever has the answer sees it counted.
    state.withLock { $0.endCall(at: StandInEndpoint(endpoint), status: status) }
    return send(answer, on: connection, resetCount: resetCount)
  }

  private func callServerAPI(_ request: Request, _ connection: OpaquePointer) -> MHD_Result {
    guard let serverAPI,
      let (environment, call) = ServerAPICall.at(request.method, request.path)
    else { return MHD_Result.NO }
    func text(_ value: UnsafePointer<CChar>?) -> String? { value.map { String(cString: $0) } }
    let asked = ServerAPIRequest(
      call: call, environment: environment,
      authorization: text(cmicrohttpd_header(connection, "Authorization")),
      revision: text(cmicrohttpd_argument(connection, "revision")),
      sort: text(cmicrohttpd_argument(connection, "sort")),
      paginationToken: text(cmicrohttpd_argument(connection, "paginationToken")),
      statuses: Self.arguments("status", connection),
      body: request.body)
    let (plan, freeAtMs, resetCount) = state.withLock { state in
      (
        state.beginCall(at: .serverAPI, call.name),
        state.takeCall(
          of: environment.rawValue, callsPerSecond: serverAPI.options.callsPerSecond,
          nowMs: Timestamp.now()), state.resetCount
      )
    }
    wait(ms: plan.pause.ms, resetCount: resetCount)
    let (answer, status) = plan.answer(to: asked, by: serverAPI, freeAtMs: freeAtMs)
    state.withLock { $0.endCall(at: .serverAPI, status: status) }
    return send(answer, on: connection, resetCount: resetCount)
  }

  /// Every value of an argument of the query.
  private static func arguments(_ name: String, _ connection: OpaquePointer) -> [String] {
    final class Values { var all: [(name: String, value: String)] = [] }
    let values = Values()
    MHD_get_connection_values(
      connection, .GET_ARGUMENT_KIND,
      { context, _, name, value in
        guard let context, let name else { return MHD_Result.YES }
        Unmanaged<Values>.fromOpaque(context).takeUnretainedValue().all
          .append((String(cString: name), value.map { String(cString: $0) } ?? ""))
        return MHD_Result.YES
      }, Unmanaged.passUnretained(values).toOpaque())
    return values.all.filter { $0.name == name }.map(\.value)
  }

  /// Waits in small steps, so that a reset or the end of all lets go.
  func wait(ms: Int64, resetCount: Int) {
    let stepMs: Int64 = 50
    var leftMs = ms
    while leftMs > 0 {
      usleep(UInt32(min(leftMs, stepMs)) * 1000)
      leftMs -= stepMs
      if isStopping.load(ordering: .relaxed) { return }
      if leftMs > 0, state.withLock({ $0.resetCount }) != resetCount { return }
    }
  }

  private func send(
    _ plan: ResponsePlan, on connection: OpaquePointer, resetCount: Int = 0
  ) -> MHD_Result {
    switch plan {
    case .none: return MHD_Result.NO
    case .answer(let httpStatus, let type, let body, .atOnce, let retryAfter):
      let response = body.withUnsafeBytes { bytes in
        MHD_create_response_from_buffer(
          bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
          .RESPMEM_MUST_COPY)
      }
      return queue(response, httpStatus, type, retryAfter, on: connection)
    case .answer(let httpStatus, let type, let body, let pace, _):
      return stream(
        StreamedBody(body: body, pace: pace, server: self, resetCount: resetCount), httpStatus,
        type, on: connection)
    case .padding(let bytes):
      return stream(
        StreamedBody(paddingBytes: bytes, server: self), 200, ResponsePlan.jsonType, on: connection)
    }
  }

  private func stream(
    _ body: StreamedBody, _ httpStatus: Int, _ type: String, on connection: OpaquePointer
  ) -> MHD_Result {
    let context = Unmanaged.passRetained(body).toOpaque()
    let response = MHD_create_response_from_callback(
      UInt64(body.sizeBytes), 32_768, readBody, context, freeBody)
    guard response != nil else {
      Unmanaged<StreamedBody>.fromOpaque(context).release()
      return MHD_Result.NO
    }
    return queue(response, httpStatus, type, on: connection)
  }

  private func queue(
    _ response: OpaquePointer?, _ httpStatus: Int, _ type: String, _ retryAfter: String? = nil,
    on connection: OpaquePointer
  ) -> MHD_Result {
    guard let response else { return MHD_Result.NO }
    defer { MHD_destroy_response(response) }
    _ = MHD_add_response_header(response, "Content-Type", type)
    if let retryAfter { _ = MHD_add_response_header(response, "Retry-After", retryAfter) }
    return MHD_queue_response(connection, UInt32(httpStatus), response)
  }

  /// A request as far as it has come.
  fileprivate final class Request {
    let method: String
    let path: String
    var body: [UInt8] = []
    var isTooLarge = false

    init(method: String, path: String) {
      self.method = method
      self.path = path
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
      if isTooLarge || body.count + bytes.count > bodyBytesMax {
        isTooLarge = true
        body = []
      } else {
        body.append(contentsOf: bytes)
      }
    }
  }
}

extension ResponsePlan {
  fileprivate static func refusal(_ httpStatus: Int, _ cause: String) -> ResponsePlan {
    let object = JSONValue.object([JSONValue.Member("error", .string(cause))])
    return .answer(
      httpStatus: httpStatus, contentType: jsonType, body: object.bytes, pace: .atOnce)
  }
}

// MARK: What libmicrohttpd calls

private func takeRequest(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ url: UnsafePointer<CChar>?, _ method: UnsafePointer<CChar>?,
  _ version: UnsafePointer<CChar>?, _ uploadData: UnsafePointer<CChar>?,
  _ uploadSize: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let url, let method, let uploadSize, let slot else {
    return MHD_Result.NO
  }
  guard let held = slot.pointee else {
    let request = StandInServer.Request(
      method: String(cString: method), path: String(cString: url))
    slot.pointee = Unmanaged.passRetained(request).toOpaque()
    return MHD_Result.YES
  }
  let request = Unmanaged<StandInServer.Request>.fromOpaque(held).takeUnretainedValue()
  if uploadSize.pointee > 0 {
    request.append(UnsafeRawBufferPointer(start: uploadData, count: uploadSize.pointee))
    uploadSize.pointee = 0
    return MHD_Result.YES
  }
  return Unmanaged<StandInServer>.fromOpaque(context).takeUnretainedValue()
    .answer(request, connection)
}

private func endRequest(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
  guard let slot, let held = slot.pointee else { return }
  Unmanaged<StandInServer.Request>.fromOpaque(held).release()
  slot.pointee = nil
}

private func countConnection(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
  _ code: MHD_ConnectionNotificationCode
) {
  guard let context, code == .CONNECTION_NOTIFY_STARTED else { return }
  Unmanaged<StandInServer>.fromOpaque(context).takeUnretainedValue().noteConnection()
}

private func readBody(
  _ context: UnsafeMutableRawPointer?, _ position: UInt64, _ target: UnsafeMutablePointer<CChar>?,
  _ capacity: Int
) -> Int {
  guard let context, let target else { return -2 }
  let body = Unmanaged<StreamedBody>.fromOpaque(context).takeUnretainedValue()
  return body.read(
    from: Int64(clamping: position),
    into: UnsafeMutableRawBufferPointer(start: target, count: capacity))
}

private func freeBody(_ context: UnsafeMutableRawPointer?) {
  if let context { Unmanaged<StreamedBody>.fromOpaque(context).release() }
}
