// The client under many calls: connections, bounds, the end.
import AppStore
import Base
import Foundation
import TestSupport
import Testing

@Suite("The App Store client, used by many") struct ClientLoadTests {
  @Test("calls one after the other share a connection")
  func keepAlive() throws {
    let server = try ScriptedServer {
      .json($0.path == "/production" ? #"{"status":21007}"# : #"{"status":0}"#)
    }
    let client = try VerifyReceiptClient(.on(server))
    for _ in 0..<20 { #expect(Told(client.askAndWait().content) == .json(#"{"status":0}"#)) }
    #expect(server.requests.count == 40)
    #expect(server.connectionCount == 1)
  }

  @Test("a kept connection that the server has closed is replaced")
  func staleConnection() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    let client = try VerifyReceiptClient(.on(server))
    for _ in 0..<5 {
      #expect(Told(await client.ask().content) == .json("{}"))
      server.dropConnections()
    }
    #expect(server.requests.count == 5)
  }

  @Test("never more calls at once than allowed, and each has its own answer")
  func callsMax() async throws {
    let server = try ScriptedServer { request in
      .all([.sleep(milliseconds: 5), .respond(200, Self.receipt(of: request.body))])
    }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 8
    let client = try VerifyReceiptClient(options)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          let text = "\(100_000 + number)"
          #expect(Told(await client.ask(text).content) == .json(text))
        }
      }
    }
    #expect(server.requests.count == 200)
    #expect(server.mostActiveCount <= 8)
    #expect(server.mostActiveCount > 1)
    #expect(server.connectionCount <= 8)
  }

  /// The receipt of a request's body.
  private static func receipt(of body: [UInt8]) -> [UInt8] {
    let words = String(decoding: body, as: UTF8.self).components(separatedBy: "\"")
    return Array(words[3].utf8)
  }

  @Test("beyond the calls that may wait, a call is refused")
  func waitingMax() async throws {
    let server = try ScriptedServer { _ in .hang }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 2
    options.waitingMax = 3
    let client = try VerifyReceiptClient(options)
    let tally = Tally()
    for _ in 0..<20 { Self.ask(client, tally) }
    #expect(try await eventually { tally.total == 15 })
    #expect(tally["too_many_calls"] == 15)
    client.shutDown()
    #expect(tally["cancelled"] == 5)
    #expect(tally.total == 20)
    #expect(server.requests.count <= 2)
  }

  @Test("beyond the bytes that may wait, a call is refused; the first may always wait")
  func waitingBytesMax() async throws {
    let server = try ScriptedServer { _ in .hang }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 1
    options.waitingBytesMax = 1_000
    let client = try VerifyReceiptClient(options)
    let tally = Tally()
    Self.ask(client, tally)
    #expect(try await eventually { server.requests.count == 1 })
    for byteCount in [4_000, 4, 4_000] { Self.ask(client, tally, byteCount: byteCount) }
    #expect(try await eventually { tally.total == 2 })
    #expect(tally["too_many_calls"] == 2)
    client.shutDown()
    #expect(tally["cancelled"] == 2)
  }

  private static func ask(_ client: VerifyReceiptClient, _ tally: Tally, byteCount: Int = 4) {
    let request = VerifyReceiptRequest(
      receiptText: [UInt8](repeating: 0x41, count: byteCount), sharedSecret: nil)
    client.verify(request) { answer in
      if case .none(let failure) = answer.content { return tally.add(failure.rawValue) }
      tally.add("answered")
    }
  }

  @Test("a call that waits too long for its turn has timed out")
  func waitsTooLong() async throws {
    let server = try ScriptedServer { _ in .hang }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 1
    options.timeoutMs = 400
    let client = try VerifyReceiptClient(options)
    // The first holds the only place for 400 ms, the second gets it then or has timed out itself.
    let answers = await client.askMany(6)
    #expect(answers.map { Told($0.content) } == Array(repeating: .nothing(.timeout), count: 6))
    #expect(server.requests.count < 6)
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
    let answers = await client.askMany(300)
    let counts = Dictionary(grouping: answers) { "\(Told($0.content))" }.mapValues(\.count)
    #expect(answers.count == 300)
    #expect(counts.count == 3)
    #expect((counts["\(Told.json("{}"))"] ?? 0) > 0)
  }

  // MARK: The end

  @Test("shutting down cancels what is under way and what waits, each once")
  func shutDown() async throws {
    let server = try ScriptedServer { _ in .hang }
    var options = VerifyReceiptOptions.on(server)
    options.callsMax = 4
    let client = try VerifyReceiptClient(options)
    let tally = Tally()
    for _ in 0..<10 { Self.ask(client, tally) }
    #expect(try await eventually { server.requests.count == 4 })
    client.shutDown()
    #expect(tally["cancelled"] == 10)
    client.shutDown()
    Self.ask(client, tally)
    #expect(tally["cancelled"] == 11)
    #expect(tally.total == 11)
  }

  @Test("calls that race with the end are answered or cancelled, never lost")
  func shutDownUnderLoad() async throws {
    let server = try ScriptedServer { _ in .json("{}") }
    for _ in 0..<10 {
      let client = try VerifyReceiptClient(.on(server))
      let tally = Tally()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { for _ in 0..<50 { Self.ask(client, tally) } } }
        group.addTask { client.shutDown() }
      }
      client.shutDown()
      #expect(try await eventually { tally.total == 200 })
      #expect(tally["answered"] + tally["cancelled"] == 200)
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
