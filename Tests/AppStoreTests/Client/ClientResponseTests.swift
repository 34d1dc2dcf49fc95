// The client against a server that answers: requests, the switch of endpoints, contents, HTTP statuses.
import AppStore
import Foundation
import HTTPClient
import TestSupport
import Testing

@Suite("The App Store client: responses", .bounded) struct ClientResponseTests {
  // MARK: Requests

  struct RequestCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var receipt = "cmVjZWlwdA=="
    var secret: String?
    let body: String
  }

  static let requestCases: [RequestCase] = [
    .init(
      testDescription: "without a secret there is no password",
      body: #"{"receipt-data":"cmVjZWlwdA==","exclude-old-transactions":false}"#),
    .init(
      testDescription: "with a secret", secret: "5ec3e7",
      body: #"{"receipt-data":"cmVjZWlwdA==","password":"5ec3e7","exclude-old-transactions":false}"#
    ),
    .init(
      testDescription: "what JSON must escape is escaped", secret: "a\"b\\c\n\u{1}é",
      body: "{\"receipt-data\":\"cmVjZWlwdA==\",\"password\":\"a\\\"b\\\\c\\n\\u0001é\","
        + "\"exclude-old-transactions\":false}"),
    .init(
      testDescription: "a plus and a slash stay", receipt: "+/+/",
      body: #"{"receipt-data":"+/+/","exclude-old-transactions":false}"#),
    .init(
      // For a body of this size, libcurl would wait for 100 Continue.
      testDescription: "a receipt of 4 MiB", receipt: String(repeating: "A", count: 4 << 20),
      body: "{\"receipt-data\":\"" + String(repeating: "A", count: 4 << 20)
        + "\",\"exclude-old-transactions\":false}"),
  ]

  @Test("a request is one JSON object, posted", arguments: requestCases)
  func request(_ given: RequestCase) async throws {
    let server = try ScriptedServer { _ in .json(#"{"status":0}"#) }
    let client = try VerifyReceiptClient(.on(server))
    let answer = await client.ask(given.receipt, secret: given.secret)
    expectEqual(Told(answer.content), .json(#"{"status":0}"#))
    expectEqual(answer.endpoint, .production)
    expectEqual(answer.httpStatus, 200)
    #expect((0..<300_000).contains(answer.durationMs))
    let request = try #require(server.requests.first)
    expectEqual(server.requests.count, 1)
    expectEqual(request.head[0], "POST /production HTTP/1.1")
    expectEqual(request.body, Array(given.body.utf8))
    expectEqual(request.values("content-type"), ["application/json"])
    expectEqual(request.values("user-agent"), ["receipt-ledger"])
    expectEqual(request.values("host"), ["127.0.0.1:\(server.port)"])
    for name in ["expect", "transfer-encoding", "authorization", "cookie", "accept-encoding"] {
      expectEqual(request.values(name), [], "\(name)")
    }
  }

  // MARK: The switch of endpoints

  struct SwitchCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let production: String
    var sandbox = #"{"status":0,"environment":"Sandbox"}"#
    let asked: [String]
    var content: String?
  }

  static let switchCases: [SwitchCase] = [
    .init(
      testDescription: "21007 leads to the sandbox", production: #"{"status":21007}"#,
      asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "21008 leads to the other one too", production: #"{"status":21008}"#,
      asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "there is no way back", production: #"{"status":21007}"#,
      sandbox: #"{"status":21008}"#, asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "21007 for ever", production: #"{"status":21007}"#,
      sandbox: #"{"status":21007}"#, asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "a status in a string", production: #"{ "status" : "21007" }"#,
      asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "a status at the end",
      production: #"{"receipt":{"in_app":[{}]},"status":21007}"#,
      asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "an escaped key", production: #"{"stat\u0075s":21007}"#,
      asked: ["/production", "/sandbox"]),
    .init(
      testDescription: "another status", production: #"{"status":21003}"#,
      asked: ["/production"], content: #"{"status":21003}"#),
    .init(
      testDescription: "a status further in", production: #"{"receipt":{"status":21007}}"#,
      asked: ["/production"], content: #"{"receipt":{"status":21007}}"#),
    .init(
      testDescription: "a status that is no integer", production: #"{"status":21007.0}"#,
      asked: ["/production"], content: #"{"status":21007.0}"#),
    .init(
      testDescription: "a status of the wrong type", production: #"{"status":[21007]}"#,
      asked: ["/production"], content: #"{"status":[21007]}"#),
    .init(
      testDescription: "a status beyond all bounds",
      production: #"{"status":210072100721007210072100721007}"#,
      asked: ["/production"], content: #"{"status":210072100721007210072100721007}"#),
    .init(
      testDescription: "no object", production: "21007", asked: ["/production"], content: "21007"),
  ]

  @Test("the other endpoint is asked once, if the status requires it", arguments: switchCases)
  func endpointSwitch(_ given: SwitchCase) async throws {
    let server = try ScriptedServer {
      .json($0.path == "/production" ? given.production : given.sandbox)
    }
    let client = try VerifyReceiptClient(.on(server))
    let answer = await client.ask(secret: "5ec3e7")
    expectEqual(server.requests.map(\.path), given.asked)
    expectEqual(Set(server.requests.map(\.body)).count, 1)
    expectEqual(Told(answer.content), .json(given.content ?? given.sandbox))
    expectEqual(answer.endpoint, (given.asked.count == 2 ? .sandbox : .production))
  }

  @Test("a failed call to the other endpoint is not a reply of the first")
  func switchToNobody() async throws {
    let server = try ScriptedServer {
      $0.path == "/production" ? .json(#"{"status":21007}"#) : .close
    }
    let client = try VerifyReceiptClient(.on(server))
    let answer = await client.ask()
    expectEqual(Told(answer.content), .nothing(.connectionFailed))
    expectEqual(answer.endpoint, .sandbox)
    #expect(answer.httpStatus == nil)
  }

  @Test("the second endpoint has the whole timeout, however long the first took")
  func switchTimeout() async throws {
    let server = try ScriptedServer {
      .all([
        .sleep(milliseconds: 6_000),
        .json($0.path == "/production" ? #"{"status":21007}"# : #"{"status":0}"#),
      ])
    }
    var options = VerifyReceiptOptions.on(server)
    options.timeoutMs = 10_000
    let client = try VerifyReceiptClient(options)
    let answer = await client.ask()
    expectEqual(Told(answer.content), .json(#"{"status":0}"#))
    #expect(answer.durationMs >= 11_990)
  }

  // MARK: Contents

  static let deep = String(repeating: "[", count: 100_000)
  static let kept: [(sent: String, kept: String)] = [
    (
      "{ \"status\" : 0 ,\n\t\"b\" : 1.0e2, \"a\" : \"\\u00e9 \\/\" }\r\n",
      "{\"status\":0,\"b\":1.0e2,\"a\":\"\\u00e9 \\/\"}"
    ),
    ("[]", "[]"), ("null", "null"), (#""text""#, #""text""#),
  ]

  @Test("JSON is kept as sent, without white space", arguments: kept)
  func json(_ given: (sent: String, kept: String)) async throws {
    let server = try ScriptedServer { _ in .json(given.sent) }
    let client = try VerifyReceiptClient(.on(server))
    expectEqual(Told(await client.ask().content), .json(given.kept))
  }

  static let strange: [[UInt8]] = [
    [], Array("<html><body>Service Unavailable</body></html>".utf8), Array("{\"status\":0".utf8),
    Array(#"{"status":0}{"status":0}"#.utf8), Array(#"{"status":0,"status":21007}"#.utf8),
    Array(#"{"status":NaN}"#.utf8), Array("\u{FEFF}{\"status\":0}".utf8),
    Array(#"{"status":0,"x":""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8),
    Array(#"{"a":"\ud800"}"#.utf8), Array(deep.utf8.prefix(60_000)),
    [0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 3], [UInt8](repeating: 0, count: 1_000),
  ]

  @Test("content that is not JSON is kept as it came", arguments: strange)
  func noJSON(_ sent: [UInt8]) async throws {
    let server = try ScriptedServer { _ in .respond(200, sent) }
    let client = try VerifyReceiptClient(.on(server))
    let answer = await client.ask()
    guard case .other(let kept) = answer.content else {
      Issue.record("taken as \(answer.content)")
      return
    }
    expectEqual(kept, sent)
    expectEqual(answer.httpStatus, 200)
  }

  @Test("of content that is not JSON, 64 KiB are kept")
  func muchNoJSON() async throws {
    let server = try ScriptedServer { _ in .json(Self.deep) }
    let client = try VerifyReceiptClient(.on(server))
    expectEqual(Told(await client.ask().content), .other(String(Self.deep.prefix(65_536))))
  }

  @Test("content and length may come in chunks, or end with the connection")
  func framing() async throws {
    let chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"status\r\n4\r\n\":0}\r\n0\r\nX: y\r\n\r\n"
    let untilClose = "HTTP/1.0 200 OK\r\n\r\n{\"status\":0}"
    let informed =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"status\":0}"
    for text in [chunked, untilClose, informed] {
      let server = try ScriptedServer { _ in .all([.text(text), .close]) }
      let client = try VerifyReceiptClient(.on(server))
      expectEqual(Told(await client.ask().content), .json(#"{"status":0}"#), "\(text)")
    }
  }

  // MARK: HTTP statuses

  @Test(
    "another HTTP status is not a reply, whatever comes with it",
    arguments: [201, 204, 301, 302, 307, 400, 401, 404, 407, 429, 500, 502, 503, 599])
  func httpStatus(_ status: Int) async throws {
    let server = try ScriptedServer { request in
      // An HTTP error with a status of the App Store's is not from the App Store; a redirection might lead anywhere.
      .respond(
        status, status == 204 ? [] : Array(#"{"status":0}"#.utf8),
        headers: [
          "Location: /elsewhere", "WWW-Authenticate: Basic realm=x", "Set-Cookie: a=b",
        ])
    }
    let client = try VerifyReceiptClient(.on(server))
    for count in 1...2 {
      let answer = await client.ask()
      expectEqual(Told(answer.content), .nothing(.httpStatus))
      expectEqual(answer.httpStatus, status)
      expectEqual(server.requests.count, count)
    }
    #expect(server.requests.allSatisfy { $0.path == "/production" && $0.values("cookie") == [] })
  }
}
