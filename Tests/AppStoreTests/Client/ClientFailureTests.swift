// The client against a server that misbehaves, or does not exist.
import AppStore
import Foundation
import HTTPClient
import TestSupport
import Testing

@Suite("The App Store client: failures", .bounded) struct ClientFailureTests {
  typealias Reaction = ScriptedServer.Reaction
  private static let head = "HTTP/1.1 200 OK\r\n"

  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let reaction: Reaction
    let failure: AppStoreFailure
    var httpStatus: Int?
  }

  static let cases: [Case] = [
    .init(testDescription: "closed at once", reaction: .close, failure: .connectionFailed),
    .init(
      testDescription: "cut within the header", reaction: .all([.text(head), .close]),
      failure: .connectionFailed, httpStatus: 200),
    .init(
      testDescription: "cut within the body",
      reaction: .all([.text(head + "Content-Length: 100\r\n\r\n{\"status\":0}"), .close]),
      failure: .connectionFailed, httpStatus: 200),
    .init(
      testDescription: "cut within a chunk",
      reaction: .all([
        .text(head + "Transfer-Encoding: chunked\r\n\r\n40\r\n{\"status\":0}"), .close,
      ]), failure: .connectionFailed, httpStatus: 200),
    .init(
      testDescription: "a chunk of no size",
      reaction: .all([.text(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), .close]),
      failure: .connectionFailed, httpStatus: 200),
    .init(
      testDescription: "not HTTP", reaction: .all([.text("{\"status\":0}\r\n\r\n"), .close]),
      failure: .connectionFailed),
    .init(
      testDescription: "noise", reaction: .all([.send([0, 255, 13, 10, 13, 10, 7]), .close]),
      failure: .connectionFailed),
    .init(testDescription: "no word", reaction: .hang, failure: .timeout),
    .init(
      testDescription: "silence within the header", reaction: .all([.text(head), .hang]),
      failure: .timeout, httpStatus: 200),
    .init(
      testDescription: "silence within the body",
      reaction: .all([.text(head + "Content-Length: 100\r\n\r\n{\"status\":0}"), .hang]),
      failure: .timeout, httpStatus: 200),
  ]

  @Test("a call that breaks off has its reason", arguments: cases)
  func failure(_ given: Case) async throws {
    let server = try ScriptedServer { _ in given.reaction }
    var options = VerifyReceiptOptions.on(server)
    if given.failure == .timeout { options.timeoutMs = 5_000 }
    let client = try VerifyReceiptClient(options)
    let answer = await client.ask()
    expectEqual(Told(answer.content), .nothing(given.failure))
    expectEqual(answer.httpStatus, given.httpStatus)
    expectEqual(answer.endpoint, .production)
    if given.failure == .timeout { #expect(answer.durationMs >= 4_990) }
  }

  @Test("silence on a used connection is not a failure to connect")
  func silenceAfterUse() throws {
    let server = try ScriptedServer { $0.index == 0 ? .json("{}") : .hang }
    var options = VerifyReceiptOptions.on(server)
    options.timeoutMs = 5_000
    let client = try VerifyReceiptClient(options)
    expectEqual(Told(client.askAndWait().content), .json("{}"))
    expectEqual(Told(client.askAndWait().content), .nothing(.timeout))
    expectEqual(server.connectionCount, 1)
  }

  @Test("a port without a listener is a failure to connect")
  func refused() async throws {
    let (descriptor, port) = try ScriptedServer.listen(backlog: nil)
    defer { close(descriptor) }
    var options = VerifyReceiptOptions()
    options.productionURL = "http://127.0.0.1:\(port)/"
    let client = try VerifyReceiptClient(options)
    expectEqual(Told(await client.ask().content), .nothing(.connectionFailed))
  }

  /// A socket that has at least begun to connect.
  private static func connected(to port: Int) -> Int32? {
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_INET, kind, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port)).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if code == 0 || errno == EINPROGRESS { return descriptor }
    close(descriptor)
    return nil
  }

  @Test("a connection that is never accepted is a failure to connect")
  func connectTimeout() async throws {
    // With a full backlog, the system leaves further connections unanswered.
    let (listener, port) = try ScriptedServer.listen(backlog: 0)
    let fillers = (0..<8).compactMap { _ in Self.connected(to: port) }
    defer { for descriptor in fillers + [listener] { close(descriptor) } }
    var options = VerifyReceiptOptions()
    options.productionURL = "http://127.0.0.1:\(port)/"
    options.connectTimeoutMs = 300
    let client = try VerifyReceiptClient(options)
    let answer = await client.ask()
    expectEqual(Told(answer.content), .nothing(.connectTimeout))
    #expect(answer.httpStatus == nil)
  }

  @Test("an unknown host name is a failure to connect")
  func unknownName() async throws {
    var options = VerifyReceiptOptions()
    options.productionURL = "https://app-store.invalid/verifyReceipt"
    options.timeoutMs = 2_000
    let client = try VerifyReceiptClient(options)
    let told = Told(await client.ask().content)
    #expect(told == .nothing(.connectionFailed) || told == .nothing(.connectTimeout))
  }

  // MARK: Size limits

  private static let limit = 1 << 20
  private static func string(_ byteCount: Int) -> [UInt8] {
    Array("\"".utf8) + [UInt8](repeating: 0x61, count: byteCount - 2) + Array("\"".utf8)
  }

  static let tooMuch: [Case] = [
    .init(
      testDescription: "one byte more, announced", reaction: .respond(200, string(limit + 1)),
      failure: .answerTooLarge, httpStatus: 200),
    .init(
      testDescription: "a body without end",
      reaction: .flood(
        Array((head + "\r\n").utf8), thenAgain: [UInt8](repeating: 0x20, count: 65_536)),
      failure: .answerTooLarge, httpStatus: 200),
    .init(
      testDescription: "chunks without end",
      reaction: .flood(
        Array((head + "Transfer-Encoding: chunked\r\n\r\n").utf8),
        thenAgain: Array("10\r\n0123456789abcdef\r\n".utf8)),
      failure: .answerTooLarge, httpStatus: 200),
    .init(
      testDescription: "headers without end",
      reaction: .flood(
        Array(head.utf8), thenAgain: Array("X-Filler: 0123456789abcdef\r\n".utf8)),
      failure: .answerTooLarge, httpStatus: 200),
    .init(
      testDescription: "one header without end",
      reaction: .flood(
        Array((head + "X: ").utf8), thenAgain: [UInt8](repeating: 0x61, count: 4_096)),
      failure: .connectionFailed, httpStatus: 200),
    .init(
      testDescription: "an error without end",
      reaction: .flood(
        Array("HTTP/1.1 500 No\r\n\r\n".utf8), thenAgain: [UInt8](repeating: 0x20, count: 65_536)),
      failure: .answerTooLarge, httpStatus: 500),
  ]

  @Test("a response beyond its limit is cut off", arguments: tooMuch)
  func tooLarge(_ given: Case) async throws {
    let server = try ScriptedServer { $0.index == 0 ? given.reaction : .json("{}") }
    var options = VerifyReceiptOptions.on(server)
    options.answerBytesMax = Self.limit
    let client = try VerifyReceiptClient(options)
    let answer = await client.ask()
    expectEqual(Told(answer.content), .nothing(given.failure))
    expectEqual(answer.httpStatus, given.httpStatus)
    // The next call is not affected.
    expectEqual(Told(await client.ask().content), .json("{}"))
  }

  @Test("a response of exactly the limit is accepted")
  func asLargeAsAllowed() async throws {
    let text = String(decoding: Self.string(Self.limit), as: UTF8.self)
    let server = try ScriptedServer { _ in .json(text) }
    var options = VerifyReceiptOptions.on(server)
    options.answerBytesMax = Self.limit
    let client = try VerifyReceiptClient(options)
    expectEqual(Told(await client.ask().content), .json(text))
  }

  @Test("whatever bytes come, each call ends once", arguments: [11, 12, 13] as [UInt64])
  func noise(seed: UInt64) async throws {
    let server = try ScriptedServer { request in
      var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(request.index))
      var parts: [Reaction] = []
      if random.chance(percent: 70) { parts.append(.text("HTTP/1.1 \(random.below(600)) x\r\n")) }
      if random.chance(percent: 50) {
        parts.append(.text("Content-Length: \(random.below(99))\r\n\r\n"))
      }
      if random.chance(percent: 30) {
        parts.append(.text("Transfer-Encoding: chunked\r\n\r\n5\r\n"))
      }
      let count = random.below(300)
      parts.append(.send(random.bytes(count: count)))
      return .all(parts + [.close])
    }
    let client = try VerifyReceiptClient(.on(server))
    await expectEqual(client.askMany(60).count, 60)
  }

  // MARK: TLS

  @Test("a server without TLS gets no request")
  func noTLS() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    var options = VerifyReceiptOptions.on(server)
    options.productionURL = "https://127.0.0.1:\(server.port)/"
    options.timeoutMs = 2_000
    let client = try VerifyReceiptClient(options)
    let told = Told(await client.ask().content)
    // As an HTTP server it may wait for a line that never ends.
    #expect(told == .nothing(.tlsFailed) || told == .nothing(.connectTimeout))
    #expect(server.requests.isEmpty)
  }

  @Test("an untrusted certificate ends the call before anything is sent")
  func untrustedCertificate() async throws {
    let server = try TLSServer()
    defer { server.stop() }
    var options = VerifyReceiptOptions()
    options.productionURL = "https://localhost:\(server.port)/verifyReceipt"
    options.timeoutMs = 20_000
    let client = try VerifyReceiptClient(options)
    let answer = await client.ask("c2VjcmV0")
    expectEqual(Told(answer.content), .nothing(.tlsFailed))
    #expect(answer.httpStatus == nil)
    #expect(!server.printed().contains("c2VjcmV0"))
  }
}

/// OpenSSL's own test server, with a self-made certificate.
private final class TLSServer {
  private let process = Process()
  private let directory: TemporaryDirectory
  let port: Int

  init() throws {
    directory = try TemporaryDirectory("tls-server")
    let key = directory.path("key.pem")
    let certificate = directory.path("certificate.pem")
    let make = Process()
    make.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    make.arguments = [
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
      "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
      certificate,
    ]
    make.standardError = FileHandle.nullDevice
    try make.run()
    make.waitUntilExit()
    try #require(make.terminationStatus == 0)
    let output = directory.path("output")
    _ = FileManager.default.createFile(atPath: output, contents: nil)
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.executableURL = make.executableURL
    process.arguments = [
      "openssl", "s_server", "-accept", "localhost:0", "-key", key, "-cert", certificate,
    ]
    process.standardInput = Pipe()
    process.standardOutput = handle
    process.standardError = handle
    try process.run()
    // It prints `ACCEPT 127.0.0.1:40123` once it listens.
    var found: Int?
    _ = TestSupport.eventually {
      let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
      let line = text.split(separator: "\n", omittingEmptySubsequences: true)
        .first { $0.hasPrefix("ACCEPT") && text.contains("\($0)\n") }
      found = line.flatMap { $0.split(separator: ":").last.flatMap { Int($0) } }
      return found != nil
    }
    port = try #require(found)
  }

  func printed() -> String {
    (try? String(contentsOfFile: directory.path("output"), encoding: .utf8)) ?? ""
  }

  func stop() {
    // The thread that started it may block gentler signals.
    kill(process.processIdentifier, SIGKILL)
  }
}
