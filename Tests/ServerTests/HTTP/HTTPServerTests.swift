// The response of each route: tokens, media types, bodies, methods and paths.
import Base
import Glibc
import Intake
import Projections
import Server
import TestSupport
import Testing

struct RouteCase: CustomTestStringConvertible, Sendable {
  let name: String
  let request: String
  let status: Int
  var codes: [String]?
  var header: (name: String, value: String)?

  var testDescription: String { name }
}

@Suite("HTTP routes", .bounded) struct HTTPServerTests {
  private static let body = "{\"receipt\":\"AAAA\"}"
  private static let path = "/client/itunes_connect/receipts"

  /// An upload with an unknown property of this many levels.
  private static func nested(_ levels: Int) -> String {
    "{\"receipt\":\"AAAA\",\"other\":" + String(repeating: "[", count: levels)
      + String(repeating: "]", count: levels) + "}"
  }

  private static func upload(_ body: String) -> String { ServerFixture.upload(body) }

  /// An upload with this Content-Type line, or without one.
  private static func upload(type: String?) -> String {
    let line = type.map { "\r\nContent-Type: \($0)" } ?? ""
    return ServerFixture.upload().replacing("\r\nContent-Type: application/json", with: line)
  }

  private static func upload(authorization: String) -> String {
    ServerFixture.upload(headers: ["Authorization: \(authorization)"], token: nil)
  }

  static let uploads: [RouteCase] = [
    RouteCase(name: "a receipt", request: upload(body), status: 200),
    RouteCase(
      name: "unknown properties", request: upload("{\"receipt\":\"AAAA\",\"other\":[{}]}"),
      status: 200),
    RouteCase(
      name: "every field null", status: 200,
      "{\"receipt\":\"AAAA\",\"country_code\":null,\"identifier_for_vendor\":null,"
        + "\"user_identifier\":null,\"ip_address\":null,\"metadata\":null}"),
    RouteCase(name: "no body", request: upload(""), status: 400, codes: ["not_json"]),
    RouteCase(
      name: "half a text", request: upload("{\"receipt\""), status: 400, codes: ["not_json"]),
    RouteCase(name: "no JSON", request: upload("receipt=AAAA"), status: 400, codes: ["not_json"]),
    RouteCase(
      name: "a property twice", request: upload("{\"receipt\":\"AAAA\",\"receipt\":\"AAAA\"}"),
      status: 400, codes: ["not_json"]),
    RouteCase(
      name: "a property twice, once escaped",
      request: upload("{\"receipt\":\"AAAA\",\"r\\u0065ceipt\":\"AAAA\"}"), status: 400,
      codes: ["not_json"]),
    RouteCase(
      name: "many levels", request: upload(String(repeating: "[", count: 100_000)), status: 400,
      codes: ["not_json"]),
    RouteCase(name: "as many levels as there may be", request: upload(nested(63)), status: 200),
    RouteCase(
      name: "a level too many", request: upload(nested(64)), status: 400, codes: ["not_json"]),
    RouteCase(name: "an array", request: upload("[]"), status: 422, codes: ["wrong_type"]),
    RouteCase(name: "an empty object", request: upload("{}"), status: 422, codes: ["missing"]),
    RouteCase(
      name: "several problems", status: 422,
      "{\"receipt\":\"?\",\"country_code\":\"ZZ\",\"user_identifier\":1,\"ip_address\":\"x\","
        + "\"metadata\":[]}",
      codes: ["not_base64", "unknown_country", "wrong_type", "invalid_address", "wrong_type"]),
    RouteCase(
      name: "a query",
      request: ServerFixture.upload().replacing("receipts HTTP", with: "receipts?a=1 HTTP"),
      status: 400, codes: ["unexpected_query"]),
    RouteCase(
      name: "a trailing slash",
      request: ServerFixture.upload().replacing("receipts HTTP", with: "receipts/ HTTP"),
      status: 404, codes: ["not_found"]),
    RouteCase(
      name: "a percent-encoded path",
      request: ServerFixture.upload().replacing("/client/", with: "/%63lient/"), status: 404,
      codes: ["not_found"]),
    RouteCase(
      name: "an absolute target",
      request: ServerFixture.upload().replacing("POST /", with: "POST http://example.com/"),
      status: 200),
    RouteCase(
      name: "another method", request: ServerFixture.upload().replacing("POST", with: "PUT"),
      status: 405, codes: ["method_not_allowed"], header: ("allow", "POST")),
    RouteCase(
      name: "a method in lower case",
      request: ServerFixture.upload().replacing("POST", with: "post"),
      status: 405, codes: ["method_not_allowed"], header: ("allow", "POST")),
    RouteCase(
      name: "another type", request: upload(type: "text/plain"), status: 415,
      codes: ["unsupported_media_type"]),
    RouteCase(
      name: "no type", request: upload(type: nil), status: 415, codes: ["unsupported_media_type"]),
    RouteCase(
      name: "another charset", request: upload(type: "application/json; charset=latin1"),
      status: 415,
      codes: ["unsupported_media_type"]),
    RouteCase(
      name: "the charset", request: upload(type: "Application/JSON;charset=\"UTF-8\""), status: 200),
    RouteCase(
      name: "two types",
      request: upload(type: "application/json\r\nContent-Type: application/json"),
      status: 415, codes: ["unsupported_media_type"]),
    RouteCase(
      name: "compressed", request: ServerFixture.upload(headers: ["Content-Encoding: gzip"]),
      status: 415, codes: ["unsupported_media_type"]),
    RouteCase(
      name: "no token", request: ServerFixture.upload(token: nil), status: 401,
      codes: ["unauthorized"], header: ("www-authenticate", "Bearer realm=\"receipt-ledger\"")),
    RouteCase(
      name: "an unknown token", request: ServerFixture.upload(token: "other"), status: 401,
      codes: ["unauthorized"],
      header: ("www-authenticate", "Bearer realm=\"receipt-ledger\", error=\"invalid_token\"")),
    RouteCase(
      name: "the token twice",
      request: ServerFixture.upload(headers: ["Authorization: Bearer \(ServerFixture.token)"]),
      status: 401, codes: ["unauthorized"]),
    RouteCase(
      name: "a token that only reads",
      request: ServerFixture.upload(token: ServerFixture.readToken), status: 403,
      codes: ["insufficient_scope"],
      header: (
        "www-authenticate",
        "Bearer realm=\"receipt-ledger\", error=\"insufficient_scope\", scope=\"upload\""
      )),
    RouteCase(
      name: "a receipt, with a token that only reads",
      request: ServerFixture.get(
        "\(path)/\(ScriptedService.knownReceipt)",
        headers: ["Authorization: Bearer \(ServerFixture.readToken)"]), status: 403,
      codes: ["insufficient_scope"]),
    RouteCase(
      name: "another scheme", request: upload(authorization: "Basic \(ServerFixture.token)"),
      status: 401, codes: ["unauthorized"]),
    RouteCase(
      name: "the scheme in lower case",
      request: upload(authorization: "bearer \(ServerFixture.token)"),
      status: 200),
    RouteCase(
      name: "the scheme alone", request: upload(authorization: "Bearer"), status: 401,
      codes: ["unauthorized"]),
    RouteCase(
      name: "two words", request: upload(authorization: "Bearer \(ServerFixture.token) x"),
      status: 401, codes: ["unauthorized"]),
    RouteCase(
      name: "a receipt that there is", status: 200,
      get: "\(path)/\(ScriptedService.knownReceipt)"),
    RouteCase(
      name: "a receipt that there is not", status: 404,
      get: "\(path)/00000000-0000-4000-8000-000000000002", codes: ["not_found"]),
    RouteCase(
      name: "a receipt whose id is in capitals", status: 404,
      get: "\(path)/\(ScriptedService.knownReceipt.uppercased())", codes: ["not_found"]),
    RouteCase(
      name: "an id that is none", status: 404, get: "\(path)/x", codes: ["not_found"]),
    RouteCase(
      name: "the list of receipts", status: 405, get: path, codes: ["method_not_allowed"]),
    RouteCase(
      name: "a receipt without a token",
      request: ServerFixture.get("\(path)/\(ScriptedService.knownReceipt)", headers: []),
      status: 401, codes: ["unauthorized"]),
    RouteCase(
      name: "a receipt, the head of it",
      request: ServerFixture.get("\(path)/\(ScriptedService.knownReceipt)").replacing(
        "GET ", with: "HEAD "), status: 200),
    RouteCase(
      name: "a look with a body",
      request: ServerFixture.get("/healthz", headers: ["Content-Length: 2"]) + "{}", status: 400,
      codes: ["unexpected_body"]),
    RouteCase(name: "health", request: ServerFixture.get("/healthz", headers: []), status: 200),
    RouteCase(name: "another path", status: 404, get: "/", codes: ["not_found"]),
    RouteCase(name: "metrics elsewhere", status: 404, get: "/metrics", codes: ["not_found"]),
  ]

  @Test("response", arguments: uploads)
  func answers(_ route: RouteCase) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let answer = try #require(try fixture.exchange(route.request))
    expectEqual(answer.status, route.status)
    if let codes = route.codes { expectEqual(answer.errorCodes, codes) }
    if let header = route.header { expectEqual(answer.header(header.name), header.value) }
    expectEqual(answer.header("content-type"), "application/json")
    #expect(answer.header("x-request-id")?.isEmpty == false)
    expectEqual(
      fixture.service.uploads.isEmpty, !(route.status == 200 && route.request.hasPrefix("P")))
  }

  @Test("an upload's fields, token and address reach the service")
  func fields() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    _ = try fixture.exchange(
      ServerFixture.upload(
        "{\"receipt\":\"AAAA\",\"country_code\":\"de\",\"user_identifier\":\"u\"}"))
    let upload = try #require(fixture.service.uploads.first)
    expectEqual(upload.appFamily.description, ServerFixture.family)
    expectEqual(upload.peerAddress, "127.0.0.1")
    expectEqual(upload.fields.receiptFile, [0, 0, 0])
    expectEqual(upload.fields.client.countryCode, "DE")
    expectEqual(upload.fields.client.userIdentifier, "u")
  }

  @Test("bytes that are not UTF-8 are not JSON")
  func invalidUTF8() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(ServerFixture.upload("{\"receipt\":\"AA@@\"}").utf8.map { $0 == 0x40 ? 0xFF : $0 })
    try expectEqual(client.answer()?.errorCodes, ["not_json"])
  }

  @Test("a chunked body is accepted, and the connection ends")
  func chunks() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(
      ServerFixture.upload("").replacing("Content-Length: 0", with: "Transfer-Encoding: chunked"))
    client.send("9\r\n{\"receipt\r\n9\r\n\":\"AAAA\"}\r\n0\r\n\r\n")
    try expectEqual(client.answer()?.status, 200)
    #expect(try client.answer() == nil)
    expectEqual(fixture.service.uploads.first?.fields.receiptFile, [0, 0, 0])
  }

  @Test("a chunked body that grows over the limit is cut off with 413")
  func chunksTooLarge() throws {
    let fixture = try ServerFixture { $0.bodyBytesMax = 100_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(
      ServerFixture.upload("").replacing("Content-Length: 0", with: "Transfer-Encoding: chunked"))
    for _ in 0..<20 { client.send("2000\r\n\(String(repeating: " ", count: 8192))\r\n") }
    let answer = try client.answer()
    expectEqual(answer?.status, 413)
    expectEqual(answer?.errorCodes, ["body_too_large"])
    #expect(try client.answer() == nil)
  }

  @Test("a large body is accepted whole")
  func largeBody() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let receipt = String(repeating: "AAAA", count: 1_000_000)
    let answer = try fixture.exchange(ServerFixture.upload("{\"receipt\":\"\(receipt)\"}"))
    expectEqual(answer?.status, 200)
    expectEqual(fixture.service.uploads.first?.fields.receiptText.count, 4_000_000)
  }

  @Test("a client that waits for 100 Continue sends no body in vain")
  func expectContinue() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    let request = ServerFixture.upload(headers: ["Expect: 100-continue"], token: "other")
    client.send(String(request.dropLast(Self.body.count)))
    try expectEqual(client.answer()?.status, 401)
    #expect(try client.answer() == nil)
  }

  @Test("bytes after a refused head are not read as a request")
  func nothingBehindRefusal() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(ServerFixture.upload(token: "other") + ServerFixture.upload())
    try expectEqual(client.answer()?.status, 401)
    #expect(try client.answer() == nil)
    #expect(fixture.service.uploads.isEmpty)
  }

  @Test("pipelined requests are answered in order")
  func pipelined() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(ServerFixture.upload() + ServerFixture.get("/healthz") + ServerFixture.upload("{}"))
    try expectEqual(client.answer()?.status, 200)
    try expectEqual(client.answer()?.body, Array("{\"status\":\"ok\"}".utf8))
    try expectEqual(client.answer()?.status, 422)
  }

  @Test("a log that accepts no more appends makes the server unhealthy")
  func unwell() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    fixture.service.setCanAppend(false)
    let answer = try fixture.exchange(ServerFixture.get("/healthz"))
    expectEqual(answer?.status, 503)
    expectEqual(answer?.errorCodes, ["unavailable"])
    #expect(answer?.header("retry-after") != nil)
  }

  @Test("readiness says whether an upload would be accepted, health whether the log accepts events")
  func readiness() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let ready = try fixture.exchange(ServerFixture.get("/readyz", headers: []))
    expectEqual(ready?.status, 200)
    expectEqual(ready?.body, Array("{\"status\":\"ready\"}".utf8))
    for refusal in UploadRefusal.allCases {
      fixture.service.setRefusal(refusal)
      let answer = try fixture.exchange(ServerFixture.get("/readyz", headers: []))
      expectEqual(answer?.status, 503)
      expectEqual(answer?.errorCodes, ["unavailable"])
      expectEqual(answer?.header("retry-after"), "5")
      let message = answer?.json?["errors"]?.arrayValue?.first?["message"]?.stringValue
      expectEqual(message, "not ready: \(refusal.rawValue)")
      try expectEqual(fixture.exchange(ServerFixture.get("/healthz"))?.status, 200)
    }
    fixture.service.setRefusal(nil)
    try expectEqual(fixture.exchange(ServerFixture.get("/readyz"))?.status, 200)
  }

  static let serviceAnswers: [(ClientResponse, Int)] = [
    (.receipt(status: 200, body: .init(ScriptedService.receiptBody)), 200),
    (.receipt(status: 206, body: .init(ScriptedService.receiptBody)), 206),
    (.receipt(status: 402, body: .init(ScriptedService.receiptBody)), 402),
    (.refused([FieldProblem("receipt", .receiptMalformed, "is no receipt")]), 422),
    (.notFound, 404), (.unavailable(retryAfterSeconds: 7), 503),
    (
      .later([FieldProblem("app_transaction", .signatureOutOfTime, "is early")], afterSeconds: 7),
      503
    ),
  ]

  @Test("the client gets what the service returns", arguments: serviceAnswers)
  func serviceAnswer(_ answer: ClientResponse, _ status: Int) throws {
    let fixture = try ServerFixture(service: ScriptedService { $1(answer) })
    defer { fixture.server.shutdown(graceMs: 0) }
    let got = try fixture.exchange(ServerFixture.upload())
    expectEqual(got?.status, status)
    if status == 503 { expectEqual(got?.header("retry-after"), "7") }
  }

  @Test("a revoked token is refused at once, a new one accepted")
  func replacedTokens() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    fixture.authenticator.replace([
      ServerFixture.configured(ServerFixture.token, id: "t1", revokedAtMs: 1),
      ServerFixture.configured("new", id: "t2"),
      ServerFixture.configured("nobody's", id: "t3", family: "none"),
    ])
    try expectEqual(fixture.exchange(ServerFixture.upload())?.status, 401)
    try expectEqual(fixture.exchange(ServerFixture.upload(token: "new"))?.status, 200)
    try expectEqual(fixture.exchange(ServerFixture.upload(token: "nobody's"))?.status, 401)
  }

  @Test("metrics are served on their own address")
  func metrics() throws {
    let fixture = try ServerFixture { $0.metricsListen = "127.0.0.1:0" }
    defer { fixture.server.shutdown(graceMs: 0) }
    _ = try fixture.exchange(ServerFixture.upload())
    let counted = eventually {
      guard let port = fixture.server.metricsPort, let client = try? WireClient(port: port) else {
        return false
      }
      client.send(ServerFixture.get("/metrics", headers: []))
      guard let answer = try? client.answer(), answer.status == 200,
        answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
      else { return false }
      return String(decoding: answer.body, as: UTF8.self).contains(
        "receipt_ledger_http_requests_total{status=\"200\"}")
    }
    #expect(counted)
  }

  @Test("an address in use is a clear error")
  func addressInUse() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let address = "127.0.0.1:\(fixture.server.port)"
    #expect(
      throws: Failure(
        operation: "listen on", object: address, cause: "the address is in use already")
    ) { _ = try ServerFixture { $0.listen = address } }
  }

  @Test(
    "a text that is not an address to listen on is refused",
    arguments: [
      "", "8080", ":8080", "localhost:8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
      "::1:8080", "[::1]", "[127.0.0.1]:80", "127.0.0.1:+80", "[::1:80",
    ])
  func noAddress(_ text: String) {
    #expect(throws: Failure.self) { _ = try ServerFixture { $0.listen = text } }
  }
}

extension RouteCase {
  init(name: String, status: Int, _ body: String, codes: [String]? = nil) {
    self.init(name: name, request: ServerFixture.upload(body), status: status, codes: codes)
  }

  init(name: String, status: Int, get path: String, codes: [String]? = nil) {
    self.init(name: name, request: ServerFixture.get(path), status: status, codes: codes)
  }
}
