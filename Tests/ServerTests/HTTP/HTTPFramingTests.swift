// Requests that break the grammar of HTTP: the response to each, and whether the connection ends.
import Server
import TestSupport
import Testing

struct BrokenRequest: CustomTestStringConvertible, Sendable {
  let name: String
  let request: String
  let status: Int
  /// Nil where the library responds by itself, with its own page.
  var code: String? = "malformed_request"

  var testDescription: String { name }
}

@Suite("HTTP framing", .bounded) struct HTTPFramingTests {
  private static let path = "/client/itunes_connect/receipts"
  private static let authorization = "Authorization: Bearer \(ServerFixture.token)"

  /// A well-formed upload except for the given lines.
  private static func upload(
    line: String = "POST \(path) HTTP/1.1", host: String = "Host: localhost\r\n",
    length: String = "Content-Length: 18\r\n", _ more: String = ""
  ) -> String {
    "\(line)\r\n\(host)Content-Type: application/json\r\n\(authorization)\r\n\(length)\(more)\r\n"
      + "{\"receipt\":\"AAAA\"}"
  }

  /// Requests that get 400 `malformed_request`.
  private static let malformed: KeyValuePairs = [
    "Content-Length with Transfer-Encoding": upload("Transfer-Encoding: chunked\r\n"),
    "Transfer-Encoding before Content-Length": upload(
      host: "Transfer-Encoding: chunked\r\nHost: localhost\r\n"),
    "Content-Length twice": upload("Content-Length: 18\r\n"),
    "Content-Length twice with two values": upload("content-length: 2\r\n"),
    "Host twice": upload("Host: localhost\r\n"),
    "Host missing": upload(host: ""),
    "Host empty": upload(host: "Host:\r\n"),
    "Host with a path": upload(host: "Host: localhost/x\r\n"),
    "Host with a user": upload(host: "Host: me@localhost\r\n"),
    "Host with a port that is none": upload(host: "Host: localhost:x\r\n"),
    "Host of two names": upload(host: "Host: a, b\r\n"),
    "Transfer-Encoding twice": upload(
      length: "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n"),
    "Transfer-Encoding gzip": upload(length: "Transfer-Encoding: gzip\r\n"),
    "the request's line led by a space": upload(line: " POST \(path) HTTP/1.1"),
    "the request's line led by a tab": upload(line: "\tPOST \(path) HTTP/1.1"),
    "the request's line split by tabs": upload(line: "POST\t\(path)\tHTTP/1.1"),
    "the request's line is one word": upload(line: "POST"),
    "Transfer-Encoding of two": upload(length: "Transfer-Encoding: gzip, chunked\r\n"),
    "Transfer-Encoding identity": upload(length: "Transfer-Encoding: identity\r\n"),
    "Transfer-Encoding with a vertical tab": upload(length: "Transfer-Encoding: \u{0B}chunked\r\n"),
    "Transfer-Encoding in HTTP/1.0": upload(
      line: "POST \(path) HTTP/1.0", length: "Transfer-Encoding: chunked\r\n"),
    "space before the colon": upload("X-Odd : 1\r\n"),
    "tab before the colon": upload("X-Odd\t: 1\r\n"),
    "space before the colon of Content-Length": upload(length: "Content-Length : 18\r\n"),
    "space before the colon of Transfer-Encoding": upload("Transfer-Encoding : chunked\r\n"),
    "space in a header's name": upload("X Odd: 1\r\n"),
    "a header without a name": upload(": 1\r\n"),
    "a folded header": upload("X-Odd: 1\r\n 2\r\n"),
    "a folded header of one space": upload("X-Odd: 1\r\n \r\n"),
    "a header folded with a tab": upload("X-Odd: 1\r\n\tTransfer-Encoding: chunked\r\n"),
    "a header's line that ends with LF": upload("X-Odd: 1\n"),
    "a header behind a lone LF": upload("X-Odd: 1\nX-Odder: 2\r\n"),
    "a header behind a lone CR": upload("X-Odd: 1\rX-Odder: 2\r\n"),
    "an empty header behind a lone LF": upload("X-Odd:\nX-Odder: 2\r\n"),
    "a request's line that ends with LF": upload(line: "POST \(path) HTTP/1.1\nX-Odd: 1"),
    "a head that ends with LF": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
    "a NUL in a value": upload("X-Odd: 1\u{0}2\r\n"),
    "a control character in a value": upload("X-Odd: 1\u{1}2\r\n"),
    "two spaces before the target": upload(line: "POST  \(path) HTTP/1.1"),
    "two spaces behind the target": upload(line: "POST \(path)  HTTP/1.1"),
    "a space in the target": upload(line: "POST \(path)/a b HTTP/1.1"),
    "a byte above 127 in the target": upload(line: "POST \(path)/ü HTTP/1.1"),
    "a fragment in the target": upload(line: "POST \(path)#a HTTP/1.1"),
    "a target without a slash": upload(line: "POST client HTTP/1.1"),
    "a target of a star": upload(line: "OPTIONS * HTTP/1.1"),
    "a method that is no token": upload(line: "PO(ST \(path) HTTP/1.1"),
  ]

  static let broken =
    malformed.map { BrokenRequest(name: $0.key, request: $0.value, status: 400) } + [
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
        name: "white space behind chunked, which the library would wait for",
        request: upload(length: "Transfer-Encoding: chunked \r\n"), status: 411,
        code: "length_required"),
      BrokenRequest(
        name: "a tab behind chunked", request: upload(length: "Transfer-Encoding: chunked\t\r\n"),
        status: 411, code: "length_required"),
      BrokenRequest(
        name: "a long target",
        request: upload(line: "POST /\(String(repeating: "a", count: 2048)) HTTP/1.1"),
        status: 414, code: "target_too_long"),
      BrokenRequest(
        name: "a large head",
        request: upload("X-Odd: \(String(repeating: "a", count: 17_000))\r\n"),
        status: 431, code: "head_too_large"),
      BrokenRequest(
        name: "a head that is larger than the library's buffer",
        request: upload("X-Odd: \(String(repeating: "a", count: 40_000))\r\n"), status: 431,
        code: nil
      ),
      BrokenRequest(
        name: "a target that is larger than the library's buffer",
        request: upload(line: "POST /\(String(repeating: "a", count: 40_000)) HTTP/1.1"),
        status: 414,
        code: nil),
      BrokenRequest(
        name: "a thousand short headers",
        request: upload(String(repeating: "a: b\r\n", count: 1500)), status: 431, code: nil),
      BrokenRequest(
        name: "a request's line without a version", request: upload(line: "POST \(path)"),
        status: 400, code: nil),
      BrokenRequest(
        name: "a chunk whose size is no number",
        request: upload(length: "Transfer-Encoding: chunked\r\n") + "zz\r\n", status: 400, code: nil
      ),
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
    "a response by the library itself is not followed by a second one",
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

  @Test(
    "a connection that ends without a request gets no response", arguments: ["", "\r\n", "GET "])
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
    expectEqual(answer?.status, broken.status)
    if let code = broken.code {
      expectEqual(answer?.errorCodes, [code])
      expectEqual(answer?.header("content-type"), "application/json")
    }
    // The library's own page may leave bytes behind that are not a response.
    if broken.code != nil { #expect(try client.answer() == nil) }
    #expect(try client.isEnded())
    #expect(fixture.service.uploads.isEmpty)
  }

  @Test("a whole upload is answered, and the connection stays open")
  func whole() throws {
    let fixture = try ServerFixture()
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    for count in 1...3 {
      client.send(Self.upload())
      let answer = try #require(try client.answer())
      expectEqual(answer.status, 200)
      expectEqual(answer.body, ScriptedService.receiptBody)
      expectEqual(fixture.service.uploads.count, count)
    }
  }
}
