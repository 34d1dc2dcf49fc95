// One request and its response, from the request line to the last byte sent.
import Base
import CMicroHTTPD
import Glibc
import Intake
import Projections

/// A request from its head to its response.
///
/// Sendable because the library calls it on one thread at a time; other threads only call `complete`, which uses only
/// the monitor.
final class RequestHandler: @unchecked Sendable {
  private enum Step {
    case head
    case body
    case working
  }

  /// The state shared by the service's thread and the library's.
  private struct Reply {
    /// Nil once the library has received it.
    var answer: HTTPResponse?
    var isAnswered = false
    var isSuspended = false
    /// Counted in the budget for responses.
    var heldBytes = 0
  }

  private let listener: Listener
  private let handle: OpaquePointer
  private let connection: Connection
  let requestID: String
  private let startedAtMs = Timestamp.now()
  private let startedMicroseconds = MonotonicClock.nowMicroseconds()
  private let target: UnsafeRawBufferPointer?
  private let reply = Monitor(Reply())

  // Only the library's thread uses the following.
  private var step = Step.head
  private var method = "other"
  private var route = Route.unknown
  private var appFamily: UUID16?
  private var clientText: String?
  private var isClientWithheld = false
  private var body: [UInt8] = []
  private var chargedBytes = 0
  private var reachedService = false
  private var bodyBytesIn = 0
  private var bodyBytesMax = 0
  private var refusal: HTTPResponse?
  private var closesAfter = false
  private var isLibraryAnswer = true
  private var status = 0
  private var bodyBytesOut = 0

  /// - Parameter target: in the library's buffer, whole; valid until the head has been handled.
  init(
    listener: Listener, handle: OpaquePointer, connection: Connection,
    target: UnsafeRawBufferPointer?
  ) {
    self.listener = listener
    self.handle = handle
    self.connection = connection
    self.target = target
    requestID = listener.nextRequestID()
    clientText = connection.peerText
    connection.beginRequest(
      requestID, deadlineMs: MonotonicClock.nowMs() + listener.options.requestMs)
  }

  // MARK: Calls of the library

  /// The library has something for the request: its head, a piece of its body, its end, or the notice that it resumes.
  /// False ends the connection.
  func proceed(
    method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
    piece: UnsafeRawBufferPointer
  ) -> Bool {
    guard !connection.isExpired else { return false }
    switch step {
    case .head:
      step = .body
      return readHead(method, version)
    case .body:
      if !piece.isEmpty { return receivePiece(piece) }
      step = .working
      return dispatch()
    case .working:
      guard let answer = reply.withLock({ $0.answer.take() }) else { return false }
      return send(answer)
    }
  }

  private func readHead(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>) -> Bool {
    do throws(HTTPResponse) {
      let head = try RequestHead(
        listener.rawHead(of: handle, method: method, target: target, version: version))
      self.method = head.method
      // A proxy could see another end of a chunked body: nothing after it is trusted.
      closesAfter = head.isChunked
      do throws(HTTPResponse) {
        try admit(head)
      } catch {
        guard head.hasBody else {
          refusal = error
          return true
        }
        throw error.closing()
      }
    } catch {
      connection.markMayBeSending()
      return send(error)
    }
    return true
  }

  private func admit(_ head: RequestHead) throws(HTTPResponse) {
    route = Route(
      path: head.path, servesMetrics: listener.servesMetrics,
      notificationsPath: listener.notificationsPath)
    if let peer = connection.peer {
      let client = listener.trustedProxies.client(peer: peer, forwardedFor: head.forwardedFor)
      if client != peer { clientText = client.description }
    }
    if connection.isSurplus { throw .unavailable(retryAfterSeconds: 1).closing() }
    var limitBytes = listener.options.bodyBytesMax
    if route.namesUser { limitBytes = min(limitBytes, UserRequest.bodyBytesMax) }
    if route == .notifications { limitBytes = NotificationRequest.bodyBytesMax }
    appFamily = try route.admit(
      head, authenticator: listener.authenticator, bodyBytesMax: limitBytes)
    // Checked before any of the body is read: what is stored should also be answered.
    if route.needsToken, !listener.answers.hasRoom { throw .unavailable(retryAfterSeconds: 1) }
    bodyBytesMax = min(limitBytes, head.contentLength ?? limitBytes)
    let expectedBytes = min(head.contentLength ?? 0, Self.firstChargeBytesMax)
    guard charge(expectedBytes) else { throw .unavailable(retryAfterSeconds: 1) }
    body.reserveCapacity(expectedBytes)
  }

  /// The memory that a request may reserve before any of its body has arrived.
  private static let firstChargeBytesMax = 64 << 10

  private var bodies: ByteBudget {
    route == .notifications ? listener.notificationBodies : listener.bodies
  }

  private func charge(_ count: Int) -> Bool {
    guard bodies.reserve(count) else { return false }
    chargedBytes += count
    return true
  }

  private func receivePiece(_ piece: UnsafeRawBufferPointer) -> Bool {
    bodyBytesIn += piece.count
    guard refusal == nil else { return true }
    let needed = body.count + piece.count
    if needed > bodyBytesMax { return sendLast(.bodyTooLarge(limitBytes: bodyBytesMax)) }
    if needed > chargedBytes {
      let wanted = min(max(needed, 2 * chargedBytes), bodyBytesMax)
      guard charge(wanted - chargedBytes) else {
        return sendLast(.unavailable(retryAfterSeconds: 1).closing())
      }
      body.reserveCapacity(wanted)
    }
    body.append(contentsOf: piece)
    return true
  }

  /// The library accepts no response in the middle of a body.
  private func sendLast(_ answer: HTTPResponse) -> Bool {
    if connection.sendLast(answer) { record(answer) }
    return false
  }

  private func dispatch() -> Bool {
    if let refusal { return send(refusal) }
    do throws(HTTPResponse) { return try perform() } catch { return send(error) }
  }

  private func perform() throws(HTTPResponse) -> Bool {
    let service = listener.service
    switch route {
    case .unknown: throw .pathNotFound
    case .health:
      guard service.canAppend else { throw .unavailable(retryAfterSeconds: 5) }
      return send(HTTPResponse(status: 200, body: Array("{\"status\":\"ok\"}".utf8)))
    case .readiness:
      if let refusal = listener.refusal {
        throw .unavailable(retryAfterSeconds: 5, "not ready: \(refusal.rawValue)")
      }
      return send(HTTPResponse(status: 200, body: Array("{\"status\":\"ready\"}".utf8)))
    case .metrics: return send(listener.exposition())
    case .receipt(let text):
      guard let appFamily, let id = Self.id(text) else { throw .receiptNotFound }
      return work { service.receipt(id, of: appFamily, completion: $0) }
    case .erasure(let text):
      guard let appFamily, let id = Self.id(text) else { throw .erasureNotFound }
      return work { service.erasure(id, of: appFamily, completion: $0) }
    case .notifications:
      let text = try NotificationRequest.text(body)
      body = []
      let notification = PostedNotification(text: text, receivedAtMs: startedAtMs)
      return work { service.notification(notification, completion: $0) }
    case .purchases, .entitlements, .erasures, .upload, .transactions:
      guard let appFamily else { throw .unauthorized("Authorization is missing") }
      return try perform(of: appFamily)
    }
  }

  /// Performs what an app family's token allows and a body says.
  private func perform(of appFamily: UUID16) throws(HTTPResponse) -> Bool {
    let service = listener.service
    switch route {
    case .erasures:
      let order = try ErasureRequest(body).order(of: appFamily, receivedAtMs: startedAtMs)
      body = []
      return work { service.erase(order, completion: $0) }
    case .upload:
      let fields = try UploadRequest.fields(body, isClientWithheld: &isClientWithheld)
      let upload = upload(fields, of: appFamily)
      return work { service.upload(upload, completion: $0) }
    case .transactions:
      let fields = try UploadRequest.signedFields(body, isClientWithheld: &isClientWithheld)
      let upload = upload(fields, of: appFamily)
      return work { service.transactions(upload, completion: $0) }
    default:
      guard let question = try UserRequest(body).question(route, of: appFamily) else {
        throw .pathNotFound
      }
      return work { service.answer(question, completion: $0) }
    }
  }

  /// In capitals it would be a second spelling of the path.
  private static func id(_ text: String) -> UUID16? {
    UUID16(text).flatMap { $0.description == text ? $0 : nil }
  }

  /// An upload, in place of the body that it was read from.
  private func upload<Fields>(_ fields: Fields, of appFamily: UUID16) -> ClientUpload<Fields> {
    body = []
    return ClientUpload(
      fields: fields, appFamily: appFamily, peerAddress: clientText, receivedAtMs: startedAtMs)
  }

  /// Hands the request to the service and suspends the connection until there is a response.
  private func work(
    _ start: (@escaping @Sendable (ClientResponse) -> Void) -> Void
  ) -> Bool {
    guard connection.enter(.working, deadlineMs: .max) else { return false }
    guard listener.beginWork(self) else {
      return send(.unavailable(retryAfterSeconds: 1).closing())
    }
    reachedService = true
    start { [self] answer in complete(HTTPResponse(answer)) }
    let answer = reply.withLock { reply in
      if !reply.isAnswered {
        reply.isSuspended = true
        MHD_suspend_connection(handle)
      }
      return reply.answer.take()
    }
    guard let answer else { return true }
    return send(answer)
  }

  /// Accepts the response; only the first one counts. The connection lives while it is suspended, and is not used after
  /// it was resumed. If responses use all their memory, the client is asked to retry.
  func complete(_ answer: HTTPResponse) {
    reply.withLock { reply in
      guard !reply.isAnswered else { return }
      reply.isAnswered = true
      let heldBytes = ResponseStream.heldByteCount(answer.body)
      if route == .notifications {
        // Such a response is small and rare, so it does not wait for room.
        reply.answer = answer
      } else if listener.answers.reserve(heldBytes, evenAlone: true) {
        reply.heldBytes = heldBytes
        reply.answer = answer
      } else {
        reply.answer = .unavailable(retryAfterSeconds: 1)
      }
      if reply.isSuspended { listener.resume(handle) }
    }
  }

  private func record(_ answer: HTTPResponse) {
    isLibraryAnswer = false
    status = answer.status
    bodyBytesOut = method == "HEAD" ? 0 : answer.body.byteCount
  }

  private func send(_ answer: HTTPResponse) -> Bool {
    var answer = answer
    if closesAfter || listener.isDraining { answer.closes = true }
    let options = listener.options
    let sizeMs = Int64(answer.body.byteCount) * 1000 / Int64(options.answerBytesEachSecond)
    let deadlineMs = MonotonicClock.nowMs() + options.answerMs + sizeMs
    guard connection.enter(.answering, deadlineMs: deadlineMs),
      listener.queue(answer, requestID: requestID, on: handle, connection)
    else { return false }
    record(answer)
    return true
  }

  /// The request has ended, for any reason.
  func end() {
    listener.endWork(self)
    bodies.release(chargedBytes)
    if route == .notifications, !reachedService { listener.countBadNotification() }
    listener.answers.release(
      reply.withLock { reply in
        defer { (reply.answer, reply.heldBytes) = (nil, 0) }
        return reply.heldBytes
      })
    if isLibraryAnswer { status = Int(cmhd_status(handle)) }
    if status == 0, connection.wasTimedOut { status = 408 }
    let nowMs = MonotonicClock.nowMs()
    _ = connection.enter(.waiting, deadlineMs: nowMs + listener.options.idleMs)
    let duration = MonotonicClock.nowMicroseconds() - startedMicroseconds
    listener.log(
      AccessLogEntry(
        timeMs: startedAtMs, requestID: requestID, method: Self.shown(method),
        route: route.template, status: status, bodyBytesIn: bodyBytesIn,
        bodyBytesOut: bodyBytesOut, durationMicroseconds: duration,
        peer: isClientWithheld ? nil : clientText, appFamily: appFamily))
  }

  /// An unknown method could contain any text.
  private static func shown(_ method: String) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
    return known.contains(method) ? method : "other"
  }
}
