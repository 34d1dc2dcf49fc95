// Requests that break the grammar of HTTP, each with its answer, and whether the connection ends.
import Server
import Testing

struct BrokenRequest: CustomTestStringConvertible, Sendable {
  let name: String
  let request: String
  let status: Int
  /// Nil where the library answers before it asks: with a page of its own.
  var code: String? = "malformed_request"

  var testDescription: String { name }
}

@Suite("HTTP framing") struct HTTPFramingTests {
  private static let path = "/client/itunes_connect/receipts"
  private static let authorization = "Authorization: Bearer \(ServerFixture.token)"

  /// A well-formed upload but for the lines given.
  private static func upload(
    line: String = "POST \(path) HTTP/1.1", host: String = "Host: localhost\r\n",
    length: String = "Content-Length: 18\r\n", _ more: String = ""
  ) -> String {
    "\(line)\r\n\(host)Content-Type: application/json\r\n\(authorization)\r\n\(length)\(more)\r\n"
      + "{\"receipt\":\"AAAA\"}"
  }

  static let broken: [BrokenRequest] = [
    BrokenRequest(
      name: "Content-Length with Transfer-Encoding",
      request: upload("Transfer-Encoding: chunked\r\n"), status: 400),
    BrokenRequest(
      name: "Transfer-Encoding before Content-Length",
      request: upload(host: "Transfer-Encoding: chunked\r\nHost: localhost\r\n"), status: 400),
    BrokenRequest(
      name: "Content-Length twice", request: upload("Content-Length: 18\r\n"), status: 400),
    BrokenRequest(
      name: "Content-Length twice with two values", request: upload("content-length: 2\r\n"),
      status: 400),
    BrokenRequest(
      name: "Content-Length as a list", request: upload(length: "Content-Length: 18, 18\r\n"),
      status: 400, code: nil),
    BrokenRequest(
      name: "Content-Length with a sign", request: upload(length: "Content-Length: +18\r\n"),
      status: 400, code: nil),
    BrokenRequest(
      name: "Content-Length negative", request: upload(length: "Content-Length: -1\r\n"),
      status: 400, code: nil),
    BrokenRequest(
      name: "Content-Length hexadecimal", request: upload(length: "Content-Length: 0x12\r\n"),
      status: 400, code: nil),
    BrokenRequest(
      name: "Content-Length empty", request: upload(length: "Content-Length:\r\n"), status: 400,
      code: nil),
    BrokenRequest(
      name: "Host twice", request: upload("Host: localhost\r\n"), status: 400),
    BrokenRequest(
      name: "Host missing", request: upload(host: ""), status: 400),
    BrokenRequest(
      name: "Host empty", request: upload(host: "Host:\r\n"), status: 400),
    BrokenRequest(
      name: "Host with a path", request: upload(host: "Host: localhost/x\r\n"), status: 400),
    BrokenRequest(
      name: "Host with a user", request: upload(host: "Host: me@localhost\r\n"), status: 400),
    BrokenRequest(
      name: "Host with a port that is none", request: upload(host: "Host: localhost:x\r\n"),
      status: 400),
    BrokenRequest(
      name: "Host of two names", request: upload(host: "Host: a, b\r\n"), status: 400),
    BrokenRequest(
      name: "Transfer-Encoding twice",
      request: upload(
        length: "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n"),
      status: 400),
    BrokenRequest(
      name: "Transfer-Encoding gzip", request: upload(length: "Transfer-Encoding: gzip\r\n"),
      status: 400),
    BrokenRequest(
      name: "white space behind chunked, which the library would wait for",
      request: upload(length: "Transfer-Encoding: chunked \r\n"), status: 411,
      code: "length_required"),
    BrokenRequest(
      name: "a tab behind chunked", request: upload(length: "Transfer-Encoding: chunked\t\r\n"),
      status: 411, code: "length_required"),
    BrokenRequest(
      name: "the request's line led by a space", request: upload(line: " POST \(path) HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "the request's line led by a tab", request: upload(line: "\tPOST \(path) HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "the request's line split by tabs",
      request: upload(line: "POST\t\(path)\tHTTP/1.1"), status: 400),
    BrokenRequest(
      name: "the request's line is one word", request: upload(line: "POST"), status: 400),
    BrokenRequest(
      name: "Transfer-Encoding of two",
      request: upload(length: "Transfer-Encoding: gzip, chunked\r\n"),
      status: 400),
    BrokenRequest(
      name: "Transfer-Encoding identity",
      request: upload(length: "Transfer-Encoding: identity\r\n"),
      status: 400),
    BrokenRequest(
      name: "Transfer-Encoding with a vertical tab",
      request: upload(length: "Transfer-Encoding: \u{0B}chunked\r\n"), status: 400),
    BrokenRequest(
      name: "Transfer-Encoding in HTTP/1.0",
      request: upload(line: "POST \(path) HTTP/1.0", length: "Transfer-Encoding: chunked\r\n"),
      status: 400),
    BrokenRequest(
      name: "space before the colon", request: upload("X-Odd : 1\r\n"), status: 400),
    BrokenRequest(
      name: "tab before the colon", request: upload("X-Odd\t: 1\r\n"), status: 400),
    BrokenRequest(
      name: "space before the colon of Content-Length",
      request: upload(length: "Content-Length : 18\r\n"), status: 400),
    BrokenRequest(
      name: "space before the colon of Transfer-Encoding",
      request: upload("Transfer-Encoding : chunked\r\n"), status: 400),
    BrokenRequest(
      name: "space in a header's name", request: upload("X Odd: 1\r\n"), status: 400),
    BrokenRequest(
      name: "a header without a name", request: upload(": 1\r\n"), status: 400),
    BrokenRequest(
      name: "a folded header", request: upload("X-Odd: 1\r\n 2\r\n"), status: 400),
    BrokenRequest(
      name: "a folded header of one space", request: upload("X-Odd: 1\r\n \r\n"), status: 400),
    BrokenRequest(
      name: "a header folded with a tab",
      request: upload("X-Odd: 1\r\n\tTransfer-Encoding: chunked\r\n"),
      status: 400),
    BrokenRequest(
      name: "a header's line that ends with LF", request: upload("X-Odd: 1\n"), status: 400),
    BrokenRequest(
      name: "a header behind a lone LF", request: upload("X-Odd: 1\nX-Odder: 2\r\n"), status: 400),
    BrokenRequest(
      name: "a header behind a lone CR", request: upload("X-Odd: 1\rX-Odder: 2\r\n"), status: 400),
    BrokenRequest(
      name: "an empty header behind a lone LF", request: upload("X-Odd:\nX-Odder: 2\r\n"),
      status: 400),
    BrokenRequest(
      name: "a request's line that ends with LF",
      request: upload(line: "POST \(path) HTTP/1.1\nX-Odd: 1"), status: 400),
    BrokenRequest(
      name: "a head that ends with LF",
      request: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n", status: 400),
    BrokenRequest(
      name: "a NUL in a value", request: upload("X-Odd: 1\u{0}2\r\n"), status: 400),
    BrokenRequest(
      name: "a control character in a value", request: upload("X-Odd: 1\u{1}2\r\n"), status: 400),
    BrokenRequest(
      name: "two spaces before the target", request: upload(line: "POST  \(path) HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "two spaces behind the target", request: upload(line: "POST \(path)  HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "a space in the target", request: upload(line: "POST \(path)/a b HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "a byte above 127 in the target", request: upload(line: "POST \(path)/ü HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "a fragment in the target", request: upload(line: "POST \(path)#a HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "a target without a slash", request: upload(line: "POST client HTTP/1.1"), status: 400),
    BrokenRequest(
      name: "a target of a star", request: upload(line: "OPTIONS * HTTP/1.1"), status: 400),
    BrokenRequest(
      name: "a method that is no token", request: upload(line: "PO(ST \(path) HTTP/1.1"),
      status: 400),
    BrokenRequest(
      name: "a long target",
      request: upload(line: "POST /\(String(repeating: "a", count: 2048)) HTTP/1.1"),
      status: 414, code: "target_too_long"),
    BrokenRequest(
      name: "a large head", request: upload("X-Odd: \(String(repeating: "a", count: 17_000))\r\n"),
      status: 431, code: "head_too_large"),
    BrokenRequest(
      name: "a head that is larger than the library's buffer",
      request: upload("X-Odd: \(String(repeating: "a", count: 40_000))\r\n"), status: 431, code: nil
    ),
    BrokenRequest(
      name: "a target that is larger than the library's buffer",
      request: upload(line: "POST /\(String(repeating: "a", count: 40_000)) HTTP/1.1"), status: 414,
      code: nil),
    BrokenRequest(
      name: "a thousand short headers",
      request: upload(String(repeating: "a: b\r\n", count: 1500)), status: 431, code: nil),
    BrokenRequest(
      name: "a request's line without a version", request: upload(line: "POST \(path)"),
      status: 400, code: nil),
    BrokenRequest(
      name: "a chunk whose size is no number",
      request: upload(length: "Transfer-Encoding: chunked\r\n") + "zz\r\n", status: 400, code: nil),
    BrokenRequest(
      name: "another version of the protocol", request: upload(line: "POST \(path) HTTP/2.0"),
      status: 505, code: nil),
    BrokenRequest(
      name: "a body that is announced too large",
      request: upload(length: "Content-Length: 4194305\r\n"), status: 413, code: "body_too_large"),
    BrokenRequest(
      name: "a body that is announced larger than any number",
      request: upload(length: "Content-Length: 99999999999999999999999\r\n"), status: 413,
      code: nil),
  ]

  @Test(
    "what the library answers by itself has no second answer behind it",
    arguments: [
      "POST /\(String(repeating: "a", count: 40_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /healthz\tHTTP/1.1\r\nHost: localhost\r\n\r\n",
    ])
  func oneAnswer(_ request: String) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(request)
    #expect([400, 414].contains(try client.answer()?.status))
    #expect(try client.answer() == nil)
  }

  @Test("a connection that ends without a request hears nothing", arguments: ["", "\r\n", "GET "])
  func nothingToSay(_ beginning: String) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(beginning)
    client.endSending()
    #expect(try client.answer() == nil)
  }

  @Test("is refused, and the connection ends", arguments: broken)
  func refused(_ broken: BrokenRequest) throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(broken.request)
    let answer = try client.answer()
    #expect(answer?.status == broken.status)
    if let code = broken.code {
      #expect(answer?.errorCodes == [code])
      #expect(answer?.header("content-type") == "application/json")
    }
    // The library's own answers may be followed by a rest that is no answer.
    if broken.code != nil { #expect(try client.answer() == nil) }
    #expect(try client.isEnded())
    #expect(fixture.service.uploads.isEmpty)
  }

  @Test("a whole upload is answered, and the connection goes on")
  func whole() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    for count in 1...3 {
      client.send(Self.upload())
      let answer = try #require(try client.answer())
      #expect(answer.status == 200)
      #expect(answer.body == ScriptedService.receiptBody)
      #expect(fixture.service.uploads.count == count)
    }
  }
}
