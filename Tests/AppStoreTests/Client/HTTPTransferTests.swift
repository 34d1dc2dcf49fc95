// The client of HTTP itself: which addresses it connects to, and the limits of a body that is passed on.
import Base
import HTTPClient
import TestSupport
import Testing

@Suite("A transfer over HTTP", .bounded) struct HTTPTransferTests {
  private static func request(_ server: ScriptedServer, bodyBytesMax: Int = 2) -> HTTPRequest {
    var request = HTTPRequest(.get, server.url(""), bodyBytesMax: bodyBytesMax)
    request.avoidsProxy = true
    return request
  }

  private static func transfer() throws -> HTTPTransfer {
    try #require(HTTPTransfer(HTTPOptions(connectTimeoutMs: 600_000)))
  }

  @Test("each address is checked before it is connected to, that of a kept connection too")
  func addresses() throws {
    let server = try ScriptedServer { _ in .json("{}") }
    let asked = Monitor<[String]>([])
    let transfer = try Self.transfer()
    var request = Self.request(server)
    request.isAllowed = { address in
      asked.withLock { $0.append(address) }
      return true
    }
    expectEqual(transfer.perform(request).body, Array("{}".utf8))
    #expect(asked.withLock { $0.count >= 1 && $0.allSatisfy { $0 == "127.0.0.1" } })
    request.isAllowed = { _ in false }
    expectEqual(transfer.perform(request).failure, .refusedAddress)
    try expectEqual(Self.transfer().perform(request).failure, .refusedAddress)
    expectEqual(server.requests.count, 1)
    expectEqual(server.connectionCount, 1)
    // A refusal ends with its request: another failure has its own cause.
    var unanswered = HTTPRequest(.get, "http://127.0.0.1:1/", bodyBytesMax: 2)
    unanswered.avoidsProxy = true
    expectEqual(transfer.perform(unanswered).failure, .cannotConnect)
  }

  @Test("nothing is passed on of a body that is announced as too large")
  func announced() throws {
    let server = try ScriptedServer { _ in .text("HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nab") }
    let outcome = try Self.transfer().perform(Self.request(server)) { _ in
      Issue.record("nothing may be passed on")
      return true
    }
    expectEqual(outcome.failure, .bodyTooLarge)
    expectEqual(outcome.status, 200)
  }
}
