// A response: its status, its JSON body and its headers; and how a large body is passed to the HTTP library.
import Base
import CMicroHTTPD
import Intake
import Projections

/// One response, before it has a connection.
struct HTTPResponse: Error, Sendable {
  static let json = "application/json"

  var status: Int
  var body: ResponseBody
  var contentType = HTTPResponse.json
  /// The headers that only some responses have.
  var headers: [(name: String, value: String)] = []
  /// Whether the connection ends with it.
  var closes = false

  /// An error with one cause.
  init(_ status: Int, _ code: ErrorCode, _ message: String, field: String = "") {
    self.init(status: status, problems: [(field, code.rawValue, message)])
  }

  init(status: Int, body: [UInt8]) { self.init(status: status, body: ResponseBody(body)) }

  init(status: Int, body: ResponseBody) {
    self.status = status
    self.body = body
  }

  /// 422: every problem that was found.
  init(_ problems: [FieldProblem], status: Int = 422) {
    self.init(
      status: status, problems: problems.map { ($0.field, $0.code.rawValue, $0.message) })
  }

  private init(status: Int, problems: [(field: String, code: String, message: String)]) {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("errors")
    writer.beginArray()
    for problem in problems {
      writer.beginObject()
      writer.key("field")
      writer.string(problem.field)
      writer.key("code")
      writer.string(problem.code)
      writer.key("message")
      writer.string(problem.message)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    self.init(status: status, body: writer.bytes)
  }

  /// The service's result as an HTTP response.
  init(_ answer: ClientResponse) {
    switch answer {
    case .receipt(let status, let body): self.init(status: status, body: body)
    case .ownership(let body): self.init(status: 200, body: body)
    case .notification(let answer): self.init(answer)
    case .refused(let problems): self.init(problems)
    case .later(let problems, let seconds): self = .later(problems, afterSeconds: seconds)
    case .notFound: self = .receiptNotFound
    case .erasureAccepted(let id, let body):
      self = HTTPResponse(status: 202, body: body).with("Location", "\(Route.erasuresPath)/\(id)")
    case .erasure(let body): self.init(status: 200, body: body)
    case .erasureNotFound: self = .erasureNotFound
    case .unavailable(let seconds): self = .unavailable(retryAfterSeconds: seconds)
    }
  }

  func closing() -> HTTPResponse {
    var answer = self
    answer.closes = true
    return answer
  }

  func with(_ name: String, _ value: String) -> HTTPResponse {
    var answer = self
    answer.headers.append((name, value))
    return answer
  }
}

/// What is wrong with a request outside its fields, as a code for programs.
enum ErrorCode: String, CaseIterable {
  case malformedRequest = "malformed_request"
  case unexpectedQuery = "unexpected_query"
  case unexpectedBody = "unexpected_body"
  case notJSON = "not_json"
  case unauthorized
  case insufficientScope = "insufficient_scope"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case requestTimeout = "request_timeout"
  case lengthRequired = "length_required"
  case bodyTooLarge = "body_too_large"
  case targetTooLong = "target_too_long"
  case unsupportedMediaType = "unsupported_media_type"
  case headTooLarge = "head_too_large"
  case unavailable
}

extension HTTPResponse {
  static let receiptNotFound = HTTPResponse(404, .notFound, "there is no such receipt")
  static let erasureNotFound = HTTPResponse(404, .notFound, "there is no such request to erase")
  static let pathNotFound = HTTPResponse(404, .notFound, "this path does not exist")
  static let requestTimeout = HTTPResponse(
    408, .requestTimeout, "the request did not arrive in time"
  ).closing()

  static let brokenLine = malformed(
    "the request line is not a method, a target and a version with one space between them")

  static func malformed(_ message: String) -> HTTPResponse {
    HTTPResponse(400, .malformedRequest, message).closing()
  }

  static func methodNotAllowed(_ allowed: String) -> HTTPResponse {
    HTTPResponse(405, .methodNotAllowed, "only \(allowed) is allowed for this path").with(
      "Allow", allowed)
  }

  static func bodyTooLarge(limitBytes: Int) -> HTTPResponse {
    HTTPResponse(413, .bodyTooLarge, "the body is larger than \(limitBytes) bytes").closing()
  }

  static func unavailable(
    retryAfterSeconds: Int, _ message: String = "the server cannot accept this now"
  ) -> HTTPResponse {
    HTTPResponse(503, .unavailable, message).with(
      "Retry-After", String(max(1, retryAfterSeconds)))
  }

  /// 503 for problems that are temporary.
  static func later(_ problems: [FieldProblem], afterSeconds seconds: Int) -> HTTPResponse {
    HTTPResponse(problems, status: 503).with("Retry-After", String(max(1, seconds)))
  }

  /// - Parameter error: the error code of RFC 6750; nil if no token was sent.
  static func unauthorized(_ message: String, error: String? = nil) -> HTTPResponse {
    var challenge = bearerChallenge
    if let error { challenge += ", error=\"\(error)\"" }
    return HTTPResponse(401, .unauthorized, message).with("WWW-Authenticate", challenge)
  }

  /// A valid token with another scope.
  static func insufficientScope(_ scope: Configuration.Token.Scope) -> HTTPResponse {
    HTTPResponse(403, .insufficientScope, "this path needs a token of the scope \(scope.rawValue)")
      .with(
        "WWW-Authenticate",
        "\(bearerChallenge), error=\"insufficient_scope\", scope=\"\(scope.rawValue)\"")
  }

  private static let bearerChallenge = "Bearer realm=\"receipt-ledger\""

  /// The reason phrase of a status; only needed when the library does not write it.
  static func reason(_ status: Int) -> String {
    switch status {
    case 408: "Request Timeout"
    case 413: "Content Too Large"
    case 503: "Service Unavailable"
    default: "Bad Request"
    }
  }

  /// The complete response as sent, for a connection that ends with it.
  func wireBytes(requestID: String) -> [UInt8] {
    var head = "HTTP/1.1 \(status) \(Self.reason(status))\r\nConnection: close\r\n"
    head += "Content-Type: \(contentType)\r\nCache-Control: no-store\r\n"
    head += "X-Request-Id: \(requestID)\r\nContent-Length: \(body.byteCount)\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    return Array((head + "\r\n").utf8) + body.bytes
  }
}

// MARK: - Response bodies

/// Passes one large body to the library piece by piece, as the peer reads it. Only the library's thread uses it.
final class ResponseStream {
  /// The library holds one piece at a time. A body of at most this size is passed at once.
  static let pieceByteCount = 32 << 10

  private var reader: ResponseBodyReader
  private let connection: Connection

  private init(_ body: ResponseBody, _ connection: Connection) {
    reader = ResponseBodyReader(body)
    self.connection = connection
  }

  /// The library's object for a body; nil if there is not enough memory.
  static func response(_ body: ResponseBody, _ connection: Connection) -> OpaquePointer? {
    if body.byteCount <= pieceByteCount {
      return body.bytes.withUnsafeBytes { cmhd_response($0.baseAddress, $0.count) }
    }
    let stream = Unmanaged.passRetained(ResponseStream(body, connection))
    let response = cmhd_response_in_pieces(
      UInt64(body.byteCount), pieceByteCount, readPiece, releaseStream, stream.toOpaque())
    if response == nil { stream.release() }
    return response
  }

  /// The bytes that the library and this object hold of a body.
  static func heldByteCount(_ body: ResponseBody) -> Int {
    body.heldByteCount + min(body.byteCount, pieceByteCount)
  }

  /// Called when the previous piece has been sent.
  fileprivate func next(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    connection.recordProgress()
    return reader.read(into: buffer)
  }
}

private func readPiece(
  context: UnsafeMutableRawPointer?, position: UInt64, buffer: UnsafeMutablePointer<CChar>?,
  size: Int
) -> Int {
  guard let context, let buffer else { return cmhdEndOfStream }
  let stream = Unmanaged<ResponseStream>.fromOpaque(context).takeUnretainedValue()
  let count = stream.next(UnsafeMutableRawBufferPointer(start: buffer, count: size))
  return count > 0 ? count : cmhdEndOfStream
}

/// Ends the connection because fewer bytes came than announced. MHD_CONTENT_READER_END_WITH_ERROR is a cast, which
/// Swift does not import.
private let cmhdEndOfStream = -2

private func releaseStream(context: UnsafeMutableRawPointer?) {
  if let context { Unmanaged<ResponseStream>.fromOpaque(context).release() }
}
