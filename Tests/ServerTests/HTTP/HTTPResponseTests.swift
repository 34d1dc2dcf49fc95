// Responses that are large or never read: the memory they use, and which clients are cut off.
import Base
import Glibc
import Projections
import Server
import TestSupport
import Testing

@Suite("HTTP responses", .bounded) struct HTTPResponseTests {
  /// 12.9 MB on the wire from 300 KB in memory: more than the system's buffers hold for a peer that does not read.
  static let large: ResponseBody = {
    let text = [UInt8](repeating: 0x61, count: 100_000)
    let value = [UInt8](repeating: 0x62, count: 200_000)
    return ResponseBody(
      text: text, values: [value],
      places: (0..<64).map { .init(textByteCount: $0 * 1000, value: 0) })
  }()

  private static func fixture(
    _ change: (inout HTTPServerOptions) -> Void
  ) throws -> ServerFixture {
    try ServerFixture(
      service: ScriptedService { $1(.receipt(status: 200, body: large)) }, change)
  }

  @Test("a large response arrives whole, and takes the memory of its values once")
  func whole() throws {
    let fixture = try Self.fixture { _ in }
    defer { fixture.server.shutdown(graceMs: 0) }
    #expect(Self.large.byteCount > 12_000_000 && Self.large.heldByteCount < 320_000)
    let client = try fixture.connect()
    for _ in 0..<2 {
      client.send(ServerFixture.upload())
      let answer = try client.answer()
      expectEqual(answer?.status, 200)
      expectEqual(answer?.body, Self.large.bytes)
    }
    #expect(eventually { fixture.server.answerBytes == 0 })
  }

  @Test("a HEAD request for a large response gets its length and no body")
  func head() throws {
    let service = ScriptedService(knownBody: Self.large.bytes)
    let known = try ServerFixture(service: service)
    defer { known.server.shutdown(graceMs: 0) }
    let request = ServerFixture.get(
      "/client/itunes_connect/receipts/\(ScriptedService.knownReceipt)")
    let answer = try known.exchange("HEAD" + request.dropFirst(3))
    expectEqual(answer?.status, 200)
    expectEqual(answer?.header("content-length"), "\(Self.large.byteCount)")
  }

  @Test("unread responses stay within their limit, and further uploads are refused unread")
  func unread() throws {
    let limitBytes = 1_500_000
    let fixture = try Self.fixture { $0.answersBytesMax = limitBytes }
    defer { fixture.server.shutdown(graceMs: 0) }
    var waiting: [WireClient] = []
    // Each takes 333 KB: the fourth leaves less than a quarter.
    for number in 1...4 {
      let client = try fixture.connect()
      client.send(ServerFixture.upload())
      waiting.append(client)
      #expect(eventually { fixture.server.answerBytes > number * 300_000 })
    }
    #expect(fixture.server.answerBytes <= limitBytes)
    for _ in 0..<20 {
      let client = try fixture.connect()
      // The body is not sent.
      client.send(String(ServerFixture.upload().dropLast(18)))
      let answer = try client.answer()
      expectEqual(answer?.status, 503)
      #expect(answer?.header("retry-after") != nil)
    }
    try expectEqual(fixture.exchange(ServerFixture.get("/readyz"))?.status, 503)
    try expectEqual(fixture.exchange(ServerFixture.get("/healthz"))?.status, 200)
    expectEqual(fixture.service.uploads.count, 4)
    // A client that reads after all gets everything.
    for client in waiting { try expectEqual(client.answer()?.body.count, Self.large.byteCount) }
    #expect(eventually { fixture.server.answerBytes == 0 })
    try expectEqual(fixture.exchange(ServerFixture.get("/readyz"))?.status, 200)
    try expectEqual(fixture.exchange(ServerFixture.upload())?.status, 200)
  }

  @Test("simultaneous responses share the limit: what does not fit gets 503")
  func burst() throws {
    let held = HeldCompletions()
    let service = ScriptedService { _, completion in held.add(completion) }
    let fixture = try ServerFixture(service: service) { $0.answersBytesMax = 1_100_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let clients = try (0..<12).map { _ in try fixture.connect() }
    for client in clients { client.send(ServerFixture.upload()) }
    #expect(eventually { held.count == clients.count })
    held.complete(.receipt(status: 200, body: Self.large))
    #expect(fixture.server.answerBytes <= 1_100_000)
    let statuses = try clients.map { try $0.answer()?.status }
    expectEqual(statuses.count { $0 == 200 }, 3)
    expectEqual(statuses.count { $0 == 503 }, 9)
  }

  @Test("a response larger than the limit is sent if it is the only one")
  func alone() throws {
    let fixture = try Self.fixture { $0.answersBytesMax = 1000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    try expectEqual(fixture.exchange(ServerFixture.upload())?.body.count, Self.large.byteCount)
  }

  @Test("a peer that stops reading is cut off, and its response's memory is freed")
  func cutOff() throws {
    let fixture = try Self.fixture { $0.answerPieceMs = 5_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let clients = try (0..<10).map { _ in try fixture.connect() }
    for client in clients { client.send(ServerFixture.upload()) }
    #expect(eventually { fixture.server.answerBytes > 3_000_000 })
    #expect(eventually { fixture.server.answerBytes == 0 })
    for client in clients { #expect(try client.answer() == nil) }
  }

  @Test("a peer that reads too slowly is cut off in the end")
  func tooSlow() throws {
    // Each piece is in time, the whole would not be.
    let fixture = try Self.fixture {
      $0.answerMs = 3_000
      $0.answerBytesEachSecond = 64 << 20
    }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(ServerFixture.upload())
    #expect(eventually { fixture.server.answerBytes > 0 })
    #expect(eventually { fixture.server.answerBytes == 0 })
    #expect(try client.answer() == nil)
  }
}

/// Completions that a test releases together.
private final class HeldCompletions: Sendable {
  private let held = Monitor<[ScriptedService.Completion]>([])

  var count: Int { held.withLock { $0.count } }

  func add(_ completion: @escaping ScriptedService.Completion) {
    held.withLock { $0.append(completion) }
  }

  func complete(_ answer: ClientResponse) {
    for completion in held.withLock({ $0 }) { completion(answer) }
  }
}
