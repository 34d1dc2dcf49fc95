// The client under many calls: connections, the end.
import AppStore
import Base
import Foundation
import HTTPClient
import TestSupport
import Testing

@Suite("The App Store client: many calls", .bounded) struct ClientLoadTests {
  @Test("successive calls share a connection")
  func keepAlive() throws {
    let server = try ScriptedServer {
      .json($0.path == "/production" ? #"{"status":21007}"# : #"{"status":0}"#)
    }
    let client = try VerifyReceiptClient(.on(server))
    for _ in 0..<20 { expectEqual(Told(client.askAndWait().content), .json(#"{"status":0}"#)) }
    expectEqual(server.requests.count, 40)
    expectEqual(server.connectionCount, 1)
  }

  @Test("a kept connection that the server has closed is replaced")
  func staleConnection() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    let client = try VerifyReceiptClient(.on(server))
    for _ in 0..<5 {
      expectEqual(Told(await client.ask().content), .json("{}"))
      server.dropConnections()
    }
    expectEqual(server.requests.count, 5)
  }

  @Test("each of many calls has its own response, and connections are reused")
  func ownAnswers() throws {
    let server = try ScriptedServer { request in
      .all([.sleep(milliseconds: 5), .respond(200, Self.receipt(of: request.body))])
    }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 8
    let client = try VerifyReceiptClient(options)
    let wrong = Tally()
    let callers = try (0..<8).map { caller in
      try WorkerThread {
        for number in 0..<25 {
          let text = "\(100_000 + 25 * caller + number)"
          if Told(client.askAndWait(text).content) != .json(text) { wrong.add(text) }
        }
      }
    }
    for caller in callers { caller.join() }
    expectEqual(wrong.total, 0)
    expectEqual(server.requests.count, 200)
    #expect(server.mostActiveCount <= 8)
    #expect(server.mostActiveCount > 1)
    #expect(server.connectionCount <= 8)
  }

  /// The receipt of a request's body.
  private static func receipt(of body: [UInt8]) -> [UInt8] {
    let words = String(decoding: body, as: UTF8.self).components(separatedBy: "\"")
    return Array(words[3].utf8)
  }

  private static func ask(_ client: VerifyReceiptClient, _ tally: Tally) {
    let request = VerifyReceiptRequest(
      receiptText: [UInt8](repeating: 0x41, count: 4), sharedSecret: nil)
    client.verify(request) { answer in
      if case .none(let failure) = answer.content { return tally.add(failure.rawValue) }
      tally.add("answered")
    }
  }

  @Test("many calls, some answered, some not, all end once")
  func mixture() async throws {
    let server = try ScriptedServer { request in
      switch request.index % 5 {
      case 0: .close
      case 1: .respond(503, [])
      case 2: .all([.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), .close])
      default: .json("{}")
      }
    }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 16
    let client = try VerifyReceiptClient(options)
    var answers: [VerifyReceiptResponse] = []
    for _ in 0..<20 { answers += await client.askMany(15) }
    let counts = Dictionary(grouping: answers) { "\(Told($0.content))" }.mapValues(\.count)
    expectEqual(answers.count, 300)
    expectEqual(counts.count, 3)
    #expect((counts["\(Told.json("{}"))"] ?? 0) > 0)
  }

  // MARK: The end

  @Test("shutting down cancels every call in progress, each once")
  func shutDown() async throws {
    let server = try ScriptedServer { _ in .hang }
    let client = try VerifyReceiptClient(.on(server))
    let tally = Tally()
    for _ in 0..<10 { Self.ask(client, tally) }
    #expect(try await eventually { server.requests.count == 10 })
    client.shutDown()
    expectEqual(tally["cancelled"], 10)
    client.shutDown()
    Self.ask(client, tally)
    expectEqual(tally["cancelled"], 11)
    expectEqual(tally.total, 11)
  }

  @Test("calls that race with the end are answered or cancelled, never lost")
  func shutDownUnderLoad() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    for _ in 0..<10 {
      let client = try VerifyReceiptClient(.on(server))
      let tally = Tally()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { for _ in 0..<20 { Self.ask(client, tally) } } }
        group.addTask { client.shutDown() }
      }
      client.shutDown()
      #expect(try await eventually { tally.total == 80 })
      expectEqual(tally["answered"] + tally["cancelled"], 80)
    }
  }

  @Test("a completion may shut the client down, and may hold the last reference to it")
  func endsItself() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    let tally = Tally()
    let kept = Monitor<VerifyReceiptClient?>(try VerifyReceiptClient(.on(server)))
    let first = kept.withLock { $0 }
    first?.verify(.init(receiptText: [0x41], sharedSecret: nil)) { [first] _ in
      first?.shutDown()
      tally.add("first")
    }
    #expect(try await eventually { tally["first"] == 1 })
    var second: VerifyReceiptClient? = try VerifyReceiptClient(.on(server))
    second?.verify(.init(receiptText: [0x41], sharedSecret: nil)) { [second] _ in
      tally.add(second == nil ? "none" : "second")
    }
    second = nil
    #expect(try await eventually { tally["second"] == 1 })
  }
}
