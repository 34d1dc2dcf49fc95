// A client that sends bytes as given, and a scripted service.
import Base
import Foundation
import Glibc
import Intake
import Projections
import Server
import Testing

/// One response as it came over the wire.
struct WireResponse: Sendable {
  var status: Int
  /// Names in lower case.
  var headers: [(name: String, value: String)]
  var body: [UInt8]

  func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  var json: JSONValue? { try? JSONValue(body) }

  /// The codes of an error's body; nil for a body of another shape.
  var errorCodes: [String]? {
    guard case .object(let members)? = json, members.map(\.key) == ["errors"],
      let errors = json?["errors"]?.arrayValue, !errors.isEmpty
    else { return nil }
    var codes: [String] = []
    for error in errors {
      guard case .object(let members) = error, members.map(\.key) == ["field", "code", "message"],
        error["field"]?.stringValue != nil, error["message"]?.stringValue?.isEmpty == false,
        let code = error["code"]?.stringValue
      else { return nil }
      codes.append(code)
    }
    return codes
  }
}

struct WireError: Error, CustomStringConvertible {
  let description: String
}

/// A connection on which the test controls every byte.
final class WireClient: Sendable {
  private let descriptor: Int32
  private let received = Monitor<[UInt8]>([])

  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var limit = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else { throw WireError(description: "connect: errno \(errno)") }
  }

  deinit { close(descriptor) }

  /// Sends all of it, or as much as the server still accepts.
  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, SocketConstant.noSignal)
      }
      if count <= 0 { return }
      rest = rest.dropFirst(count)
    }
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  /// Ends the sending side.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Disconnects at once, with a reset.
  func abort() {
    var reset = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
    shutdown(descriptor, SocketConstant.shutdownBoth)
  }

  /// Bytes received; empty at the end of the stream.
  fileprivate func receive() throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    if count < 0 {
      if errno == ECONNRESET { return [] }
      throw WireError(description: "receive: errno \(errno)")
    }
    return Array(buffer.prefix(count))
  }

  /// The next response; nil if the connection ends first.
  func answer(isHead: Bool = false) throws -> WireResponse? {
    while true {
      if let answer = try received.withLock({ try Self.take(&$0, isHead: isHead) }) {
        if answer.status == 100 { continue }
        return answer
      }
      let more = try receive()
      if more.isEmpty {
        return nil
      }
      received.withLock { $0 += more }
    }
  }

  private static func take(_ bytes: inout [UInt8], isHead: Bool) throws -> WireResponse? {
    let text = String(decoding: bytes, as: Unicode.ASCII.self)
    guard let end = text.utf8.firstRange(of: "\r\n\r\n".utf8) else { return nil }
    let headCount = text.utf8.distance(from: text.utf8.startIndex, to: end.upperBound)
    let lines = String(decoding: bytes.prefix(headCount - 4), as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: false)
    guard let first = lines.first, first.hasPrefix("HTTP/1."),
      let status = Int(first.dropFirst(9).prefix(3))
    else { throw WireError(description: "no status line") }
    var answer = WireResponse(status: status, headers: [], body: [])
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else {
        throw WireError(description: "no header: \(line)")
      }
      answer.headers.append(
        (line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " })))
    }
    let bodyCount = isHead || status == 100 ? 0 : Int(answer.header("content-length") ?? "0") ?? 0
    guard bytes.count >= headCount + bodyCount else { return nil }
    answer.body = Array(bytes[headCount..<headCount + bodyCount])
    bytes.removeFirst(headCount + bodyCount)
    return answer
  }
}

extension WireClient {
  /// Reads until the server ends the connection, whatever it sends before.
  func isEnded() throws -> Bool {
    while try !receive().isEmpty {}
    return true
  }
}

extension String.UTF8View {
  fileprivate func firstRange(of pattern: String.UTF8View) -> Range<Index>? {
    var place = startIndex
    let count = pattern.count
    while place != endIndex {
      if self[place...].prefix(count).elementsEqual(pattern) {
        return place..<index(place, offsetBy: count)
      }
      place = index(after: place)
    }
    return nil
  }
}

/// Responds as scripted; by default with a small receipt.
final class ScriptedService: ClientService {
  typealias Completion = @Sendable (ClientResponse) -> Void

  private struct State {
    var onUpload: @Sendable (ClientUpload<UploadFields>, @escaping Completion) -> Void
    var uploads: [ClientUpload<UploadFields>] = []
    var transactions: [ClientUpload<SignedUploadFields>] = []
    var questions: [UserQuestion] = []
    var purchasesBody = Array("{}".utf8)
    var entitlementsBody = Array("{}".utf8)
    var notifications: [PostedNotification] = []
    var notificationAnswer = NotificationResponse.recorded
    var orders: [ErasureOrder] = []
    var erasureBody = Array("{}".utf8)
    var canAppend = true
    var refusal: UploadRefusal?
  }

  static let receiptBody = Array("{\"id\":\"00000000-0000-4000-8000-00000000000a\"}".utf8)
  static let knownReceipt = "00000000-0000-4000-8000-00000000000a"

  private let state: Monitor<State>
  private let knownBody: [UInt8]
  private let transactionsBody: [UInt8]

  /// - Parameters:
  ///   - knownBody: the response to a lookup of the one known receipt.
  ///   - transactionsBody: the response to signed transactions.
  init(
    knownBody: [UInt8] = ScriptedService.receiptBody,
    transactionsBody: [UInt8] = ScriptedService.receiptBody,
    onUpload: @escaping @Sendable (ClientUpload<UploadFields>, @escaping Completion) -> Void = {
      $1(.receipt(status: 200, body: .init(ScriptedService.receiptBody)))
    }
  ) {
    self.knownBody = knownBody
    self.transactionsBody = transactionsBody
    state = Monitor(State(onUpload: onUpload))
  }

  var uploads: [ClientUpload<UploadFields>] { state.withLock { $0.uploads } }
  var transactions: [ClientUpload<SignedUploadFields>] { state.withLock { $0.transactions } }
  var notifications: [PostedNotification] { state.withLock { $0.notifications } }

  /// Gives this response to notifications from now on.
  func setNotificationAnswer(_ answer: NotificationResponse) {
    state.withLock { $0.notificationAnswer = answer }
  }

  func setCanAppend(_ value: Bool) { state.withLock { $0.canAppend = value } }

  func setRefusal(_ value: UploadRefusal?) { state.withLock { $0.refusal = value } }

  func upload(_ upload: ClientUpload<UploadFields>, completion: @escaping Completion) {
    let onUpload = state.withLock { state in
      state.uploads.append(upload)
      return state.onUpload
    }
    onUpload(upload, completion)
  }

  func transactions(_ upload: ClientUpload<SignedUploadFields>, completion: @escaping Completion) {
    state.withLock { $0.transactions.append(upload) }
    completion(.receipt(status: 200, body: ResponseBody(transactionsBody)))
  }

  func notification(_ notification: PostedNotification, completion: @escaping Completion) {
    let answer = state.withLock { state in
      state.notifications.append(notification)
      return state.notificationAnswer
    }
    completion(.notification(answer))
  }

  func receipt(_ id: UUID16, of appFamily: UUID16, completion: @escaping Completion) {
    completion(
      id.description == Self.knownReceipt
        ? .receipt(status: 200, body: ResponseBody(knownBody)) : .notFound)
  }

  /// Responds as scripted; by default with an empty list.
  func answer(_ question: UserQuestion, completion: @escaping Completion) {
    let body = state.withLock { state in
      state.questions.append(question)
      if case .entitlements = question.question { return state.entitlementsBody }
      return state.purchasesBody
    }
    completion(.ownership(ResponseBody(body)))
  }

  static let knownErasure = "00000000-0000-4000-8000-00000000000b"

  func erase(_ order: ErasureOrder, completion: @escaping Completion) {
    state.withLock { $0.orders.append(order) }
    guard let id = UUID16(Self.knownErasure) else { return completion(.erasureNotFound) }
    let body =
      #"{"id":"\#(id)","state":"waiting","requested_at":"2026-11-21T08:11:20.042Z"}"#
    completion(.erasureAccepted(id: id, ResponseBody(Array(body.utf8))))
  }

  func erasure(_ id: UUID16, of appFamily: UUID16, completion: @escaping Completion) {
    let body = state.withLock { $0.erasureBody }
    completion(
      id.description == Self.knownErasure ? .erasure(ResponseBody(body)) : .erasureNotFound)
  }

  var orders: [ErasureOrder] { state.withLock { $0.orders } }

  func setErasureBody(_ body: [UInt8]) { state.withLock { $0.erasureBody = body } }

  var questions: [UserQuestion] { state.withLock { $0.questions } }

  func setBodies(purchases: [UInt8], entitlements: [UInt8]) {
    state.withLock { ($0.purchasesBody, $0.entitlementsBody) = (purchases, entitlements) }
  }

  var canAppend: Bool { state.withLock { $0.canAppend } }
  var refusal: UploadRefusal? { state.withLock { $0.refusal } }
}

/// A server with everything it is made of.
struct ServerFixture {
  static let token = "token-of-a-test"
  static let readToken = "token-of-a-test-that-reads"
  static let eraseToken = "token-of-a-test-that-erases"
  static let family = "11111111-2222-4333-8444-555555555555"

  let server: HTTPServer
  let service: ScriptedService
  let authenticator: TokenAuthenticator
  let metrics: Metrics

  init(
    service: ScriptedService = ScriptedService(), accessLog: AccessLog? = nil,
    _ change: (inout HTTPServerOptions) -> Void = { _ in }
  ) throws {
    var options = HTTPServerOptions()
    options.threadCount = 2
    options.listen = "127.0.0.1:0"
    // On a busy machine, opening 200 connections takes longer than the timeout for clients, yet less than a test waits.
    options.requestMs = 90_000
    options.idleMs = 90_000
    options.answerMs = 90_000
    options.answerPieceMs = 90_000
    change(&options)
    self.service = service
    metrics = Metrics()
    authenticator = TokenAuthenticator([
      Self.configured(Self.token, id: "t1"),
      Self.configured(Self.readToken, id: "t2", scope: .read),
      Self.configured(Self.eraseToken, id: "t3", scope: .erase),
    ])
    server = try HTTPServer(
      options, service: service, authenticator: authenticator, metrics: metrics,
      accessLog: accessLog)
  }

  static func configured(
    _ token: String, id: String, revokedAtMs: Int64? = nil, family: String = family,
    scope: Configuration.Token.Scope = .upload
  ) -> Configuration.Token {
    Configuration.Token(
      id: id, sha256: Array(token.utf8).withUnsafeBytes { SHA256.hash($0) },
      appFamilyID: family, scope: scope, createdAtMs: 0, revokedAtMs: revokedAtMs)
  }

  func connect() throws -> WireClient { try WireClient(port: server.port) }

  /// Sends one request and returns its response.
  func exchange(_ request: String) throws -> WireResponse? {
    let client = try connect()
    client.send(request)
    return try client.answer(isHead: request.hasPrefix("HEAD "))
  }

  static func upload(
    _ body: String = "{\"receipt\":\"AAAA\"}", headers: [String] = [], token: String? = token
  ) -> String {
    var lines = [
      "POST /client/itunes_connect/receipts HTTP/1.1", "Host: localhost",
      "Content-Type: application/json", "Content-Length: \(body.utf8.count)",
    ]
    if let token { lines.append("Authorization: Bearer \(token)") }
    return (lines + headers + ["", body]).joined(separator: "\r\n")
  }

  /// A request to the path for signed transactions.
  static func transactions(_ body: String, token: String? = token) -> String {
    upload(body, token: token).replacing(
      "/client/itunes_connect/receipts", with: "/client/app_store/transactions")
  }

  /// A question about a user.
  static func question(
    _ body: String, path: String = "/v1/purchases", token: String? = readToken
  ) -> String {
    upload(body, token: token).replacing("/client/itunes_connect/receipts", with: path)
  }

  static func get(_ path: String, headers: [String] = ["Authorization: Bearer \(token)"]) -> String
  {
    (["GET \(path) HTTP/1.1", "Host: localhost"] + headers + ["", ""]).joined(separator: "\r\n")
  }
}

extension ServerFixture {
  /// The whole access log of a server, in the order of the requests.
  static func accessLog(
    _ change: (inout HTTPServerOptions) -> Void, during body: (ServerFixture) throws -> Void
  ) throws -> [JSONValue] {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let log = try AccessLog(descriptor: ends[1])
    let fixture = try ServerFixture(accessLog: log, change)
    try body(fixture)
    fixture.server.shutdown(graceMs: 5_000)
    log.finish()
    close(ends[1])
    let text = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true).readDataToEndOfFile()
    // A client may have its response, and ask again, before the line is written.
    let lines = try text.split(separator: 0x0A).map { try JSONValue(Array($0)) }
    return lines.sorted { number(of: $0) < number(of: $1) }
  }

  /// Requests are numbered as they come.
  private static func number(of line: JSONValue) -> Int {
    Int(line["request_id"]?.stringValue?.split(separator: "-").last ?? "") ?? 0
  }
}
