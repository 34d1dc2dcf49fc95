// The load generator against a scripted server: what it sends, what it counts, when it gives up.
import Base
import Foundation
import TestSupport
import Testing

@Suite("The load generator", .bounded)
struct UploadLoadTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try Data("secret-token\n".utf8).write(to: URL(fileURLWithPath: directory.path("token")))
    let bodies = (0..<3).map { #"{"receipt":"A\#($0)","metadata":{"upload":"000000000000"}}"# }
    try write(bodies.joined(separator: "\n") + "\n", "bodies")
  }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path(name)))
  }

  func lines(_ name: String) throws -> [String] {
    try String(contentsOfFile: directory.path(name), encoding: .utf8)
      .split(separator: "\n").map(String.init)
  }

  func run(_ arguments: String...) throws -> Outcome {
    try Outcome(of: "upload-load", arguments, in: directory.path)
  }

  func url(_ server: ScriptedServer) -> String { "http://127.0.0.1:\(server.port)" }

  @Test("responses are counted by status, and recorded with the receipt's id")
  func countsByStatus() throws {
    let server = try ScriptedServer { .answer([200, 200, 206, 402, 503][$0.index % 5]) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--rate", "2000",
      "--duration", "1", "--count", "200", "--connections", "4", "--answers", "answers", "--json")
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let json = try outcome.json()
    for key in ["planned", "sent", "answered"] { expectEqual(json[key], .number("200"), "\(key)") }
    expectEqual(json["unanswered"], .number("0"))
    let expected = [("200", "80"), ("206", "40"), ("402", "40"), ("503", "40")]
    expectEqual(json["by_status"], .object(expected.map { .init($0.0, .number($0.1)) }))
    expectEqual(json["connections_made"], .number("4"))
    let answers = try lines("answers").map { try JSONValue(Array($0.utf8)) }
    expectEqual(Set(answers.compactMap { $0["upload"]?.integerValue }), Set(0..<200))
    #expect(answers.allSatisfy { $0["receipt"] == .string(ScriptedServer.Reaction.receiptID) })
    let statuses = answers.compactMap { $0["status"]?.integerValue }
    expectEqual(statuses.count { $0 == 402 }, 40)
    expectEqual(server.requests.count, 200)
  }

  @Test("each body is sent unchanged, in turn, with the token; keep-alive is used")
  func bodiesInTurn() throws {
    let server = try ScriptedServer { _ in .answer(200) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--in-flight", "1",
      "--count", "7", "--json")
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    expectEqual(server.requests.map(\.text), (try (0..<7).map { try lines("bodies")[$0 % 3] }))
    expectEqual(server.connectionCount, 1)
    #expect(
      server.requests.allSatisfy {
        $0.head[0] == "POST /client/itunes_connect/receipts HTTP/1.1"
          && $0.head.contains("Authorization: Bearer secret-token")
          && $0.head.contains("Content-Type: application/json")
      })
    #expect(!(outcome.output + outcome.diagnostics).contains("secret-token"))
  }

  @Test("--random takes all bodies, in an order that the seed decides")
  func bodiesAtRandom() throws {
    let orders = try ["1", "1", "2"].map { seed in
      let server = try ScriptedServer { _ in .answer(200) }
      defer { server.stop() }
      let outcome = try run(
        "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--in-flight", "1",
        "--count", "30", "--random", seed)
      expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
      return server.requests.map(\.text)
    }
    expectEqual(orders[0], orders[1])
    #expect(orders[0] != orders[2])
    try expectEqual(Set(orders[0]), Set(lines("bodies")))
  }

  @Test("--unique numbers each upload within its metadata")
  func unique() throws {
    let server = try ScriptedServer { _ in .answer(200) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--in-flight", "2",
      "--count", "25", "--unique")
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let expected = (0..<25).map { number in
      let digits = String(repeating: "0", count: number < 10 ? 11 : 10) + String(number)
      return #"{"receipt":"A\#(number % 3)","metadata":{"upload":"\#(digits)"}}"#
    }
    expectEqual(Set(server.requests.map(\.text)), Set(expected))
    try write(#"{"receipt":"A"}"#, "plain")
    let refused = try run(
      "--url", url(server), "--bodies", "plain", "--token-file", "token", "--in-flight", "1",
      "--unique")
    expectEqual(refused.exitCode, 1)
    expectEqual(
      refused.diagnostics,
      "upload-load: read plain: --unique needs \"upload\":\"000000000000\" in each body\n")
  }

  @Test("a large body is sent whole, though the socket accepts it in pieces")
  func largeBody() throws {
    let body = #"{"receipt":"\#(String(repeating: "A", count: 5_000_000))"}"#
    try write(body, "large")
    let server = try ScriptedServer { _ in .answer(422) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "large", "--token-file", "token", "--in-flight", "2",
      "--count", "4", "--json")
    try expectEqual(outcome.json()["by_status"], .object([.init("422", .number("4"))]))
    expectEqual(server.requests.map(\.text), [body, body, body, body])
  }

  @Test("connections that the server closes after a response lose nothing")
  func closedAfterAnswer() throws {
    let server = try ScriptedServer { $0.index % 3 == 2 ? .answerAndClose(200) : .answer(200) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--in-flight", "3",
      "--count", "60", "--json")
    let json = try outcome.json()
    #expect(json["answered"] == .number("60") && json["unanswered"] == .number("0"))
    #expect(server.connectionCount >= 20)
  }

  @Test("with --reconnect cut connections are counted as unanswered, and it continues")
  func reconnect() throws {
    let server = try ScriptedServer { $0.index % 10 == 9 ? .close : .answer(206) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--rate", "1000",
      "--count", "100", "--connections", "8", "--reconnect", "--answers", "answers", "--json")
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let json = try outcome.json()
    expectEqual(json["sent"], .number("100"))
    #expect(json["answered"] == .number("90") && json["unanswered"] == .number("10"))
    try expectEqual(lines("answers").count, 90)
  }

  @Test("without --reconnect a cut connection ends it; earlier responses stay on file")
  func cutEndsIt() throws {
    let server = try ScriptedServer { $0.index == 5 ? .close : .answer(200) }
    defer { server.stop() }
    let outcome = try run(
      "--url", url(server), "--bodies", "bodies", "--token-file", "token", "--in-flight", "1",
      "--count", "50", "--answers", "answers")
    expectEqual(outcome.exitCode, 1)
    expectEqual(
      outcome.diagnostics,
      "upload-load: upload to 127.0.0.1:\(server.port): "
        + "the connection ended without an answer\n")
    try expectEqual(lines("answers").count, 5)
  }

  @Test("it continues when the server is back")
  func serverComesBack() throws {
    let first = try ScriptedServer { _ in .answer(200) }
    let port = first.port
    let second = Monitor<ScriptedServer?>(nil)
    let revival = try WorkerThread {
      _ = eventually { first.requests.count >= 50 }
      first.stop()
      // The time without a server. Nothing waits for it.
      usleep(150_000)
      let server = try? ScriptedServer(port: port) { _ in .answer(206) }
      second.withLock { $0 = server }
    }
    defer {
      revival.join()
      second.withLock { $0 }?.stop()
    }
    let outcome = try run(
      "--url", "http://127.0.0.1:\(port)", "--bodies", "bodies", "--token-file", "token",
      "--rate", "300", "--duration", "1", "--connections", "4", "--reconnect", "--json")
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let json = try outcome.json()
    let answered = try #require(json["answered"]?.integerValue)
    let unanswered = try #require(json["unanswered"]?.integerValue)
    #expect(json["sent"] == .number("300") && answered + unanswered == 300)
    #expect(unanswered <= 4)
    #expect((json["by_status"]?["206"]?.integerValue ?? 0) > 0)
    #expect((json["connections_failed"]?.integerValue ?? 0) > 0)
  }

  @Test(
    "wrong usage is reported, and exits with 2",
    arguments: [
      (["--bodies", "bodies"], "one of --rate and --in-flight is needed"),
      (["--rate", "1", "--in-flight", "1"], "one of --rate and --in-flight is needed"),
      (["--rate", "0"], "--rate '0' must be an integer from 1 to 100000"),
      (["--rate", "1", "--rate", "2"], "--rate is given twice"),
      (["--rate"], "--rate needs a value"), (["--fast"], "unknown argument '--fast'"),
      (["--rate", "1"], "--url is missing"),
      (["--rate", "1", "--url", "https://x"], "--url needs an http:// address"),
      (
        ["--rate", "1", "--url", "http://example.com:80"],
        "--url names neither an IPv4 address nor localhost"
      ),
      (
        ["--rate", "1", "--url", "http://127.0.0.1:x"],
        "--url 'http://127.0.0.1:x' has no readable host and port"
      ),
      (
        ["--rate", "1", "--url", "http://127.0.0.1:1"], "--bodies is missing"
      ),
      (
        ["--rate", "1", "--url", "http://127.0.0.1:1", "--bodies", "bodies"],
        "none of --token-file, --no-token and UPLOAD_TOKEN is given"
      ),
    ])
  func usage(arguments: [String], message: String) throws {
    let outcome = try Outcome(of: "upload-load", arguments, in: directory.path)
    expectEqual(outcome.diagnostics, "upload-load: \(message)\nTry 'upload-load --help'.\n")
    #expect(outcome.exitCode == 2 && outcome.output.isEmpty)
  }
}

extension ScriptedServer.Reaction {
  static let receiptID = "6f1c0f5e-3d4a-5b6c-8d7e-9f0a1b2c3d4e"

  /// A status, with a receipt's id in the body.
  static func answer(_ status: Int, headers: [String] = []) -> Self {
    let body = #"{"id":"\#(receiptID)","in_app_purchases":[{"id":""}]}"#
    return .respond(status, Array(body.utf8), headers: headers)
  }

  /// Says that the connection closes after the answer, and closes it.
  static func answerAndClose(_ status: Int) -> Self {
    .all([.answer(status, headers: ["Connection: close"]), .close])
  }
}
