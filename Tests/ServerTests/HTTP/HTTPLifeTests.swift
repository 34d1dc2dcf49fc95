// Slow, many or lost connections, and the server's shutdown.
import Base
import Glibc
import Projections
import Server
import TestSupport
import Testing

/// Keeps completions until a test releases them.
private final class HeldResponses: Sendable {
  private let held = Monitor<[ScriptedService.Completion]>([])

  var count: Int { held.withLock { $0.count } }

  func hold(_ completion: @escaping ScriptedService.Completion) {
    held.withLock { $0.append(completion) }
  }

  func release() {
    let all = held.withLock { held in
      defer { held = [] }
      return held
    }
    for completion in all {
      completion(.receipt(status: 206, body: .init(ScriptedService.receiptBody)))
    }
  }
}

@Suite("HTTP connections", .bounded) struct HTTPLifeTests {
  private static func holding() throws -> (ServerFixture, HeldResponses) {
    let held = HeldResponses()
    return (try ServerFixture(service: ScriptedService { held.hold($1) }), held)
  }

  @Test("many uploads wait while the service works, and all are answered")
  func many() throws {
    let (fixture, held) = try Self.holding()
    defer { fixture.server.shutdown(graceMs: 0) }
    let clients = try (0..<200).map { _ in try fixture.connect() }
    for client in clients { client.send(ServerFixture.upload()) }
    #expect(eventually { held.count == clients.count }, "\(held.count) of \(clients.count)")
    held.release()
    let statuses = try clients.map { try $0.answer()?.status }
    #expect(statuses.allSatisfy { $0 == 206 }, "\(statuses)")
  }

  @Test("a response is sent once it is made, however long its thread would wait")
  func sentAtOnce() throws {
    let held = HeldResponses()
    let fixture = try ServerFixture(service: ScriptedService { held.hold($1) }) {
      $0.waitMs = 3_600_000
    }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    for round in 0..<3 {
      client.send(ServerFixture.upload())
      #expect(eventually { held.count == 1 })
      held.release()
      #expect(try client.answer()?.status == 206, "round \(round)")
    }
  }

  /// The library collects up to 128 events at once; it must handle them even if no other follows.
  @Test("requests of so many clients at once are answered", arguments: 125...131)
  func allAtOnce(count: Int) throws {
    // Holds the thread that reads requests, so that the others come together.
    let isHeld = Monitor(false, conditionCount: 1)
    let mayGo = Monitor(false, conditionCount: 1)
    let requestCount = Monitor(0)
    let service = ScriptedService { _, completion in
      let number = requestCount.withLock { count in
        count += 1
        return count
      }
      if number == count + 2 {
        isHeld.withLock { $0 = true }
        isHeld.broadcast(0)
        mayGo.wait(on: 0) { $0 ? () : nil }
      }
      completion(.receipt(status: 200, body: .init(ScriptedService.receiptBody)))
    }
    let fixture = try ServerFixture(service: service) { $0.threadCount = 1 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let clients = try (0...count).map { _ in try fixture.connect() }
    for client in clients {
      client.send(ServerFixture.upload())
      try expectEqual(client.answer()?.status, 200)
    }
    clients[0].send(ServerFixture.upload())
    isHeld.wait(on: 0) { $0 ? () : nil }
    for client in clients.dropFirst() { client.send(ServerFixture.upload()) }
    mayGo.withLock { $0 = true }
    mayGo.broadcast(0)
    for client in clients { try expectEqual(client.answer()?.status, 200) }
  }

  @Test("a response to a client that has left is dropped")
  func goneWhileWorking() throws {
    let (fixture, held) = try Self.holding()
    defer { fixture.server.shutdown(graceMs: 0) }
    var clients = try (0..<50).map { _ in try fixture.connect() }
    for client in clients { client.send(ServerFixture.upload()) }
    #expect(eventually { held.count == 50 })
    for client in clients { client.abort() }
    clients = []
    held.release()
    let after = try fixture.connect()
    after.send(ServerFixture.upload())
    #expect(eventually { held.count == 1 })
    held.release()
    try expectEqual(after.answer()?.status, 206)
  }

  @Test("a response that is given twice is sent once")
  func twice() throws {
    let service = ScriptedService { _, completion in
      completion(.receipt(status: 200, body: .init(ScriptedService.receiptBody)))
      completion(.unavailable(retryAfterSeconds: 1))
    }
    let fixture = try ServerFixture(service: service)
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    for _ in 0..<3 {
      client.send(ServerFixture.upload())
      try expectEqual(client.answer()?.status, 200)
    }
  }

  @Test("responses from other threads while clients vanish at any point")
  func storm() throws {
    let threads = WorkerPool(count: 3)
    defer { threads.finish() }
    let service = ScriptedService { _, completion in
      threads.add { completion(.receipt(status: 200, body: .init(ScriptedService.receiptBody))) }
    }
    let fixture = try ServerFixture(service: service)
    defer { fixture.server.shutdown(graceMs: 0) }
    let whole = ServerFixture.upload()
    for round in 0..<20 {
      let clients = try (0..<20).map { _ in try fixture.connect() }
      for (index, client) in clients.enumerated() {
        client.send(
          index % 2 == 0 ? whole : String(whole.prefix((round * 20 + index) % whole.count)))
        if index % 4 != 0 { client.abort() }
      }
      for index in stride(from: 0, to: clients.count, by: 4) {
        try expectEqual(clients[index].answer()?.status, 200)
      }
    }
  }

  @Test("a body that does not arrive gets 408")
  func slowBody() throws {
    let fixture = try ServerFixture { $0.requestMs = 3_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(String(ServerFixture.upload().dropLast(5)))
    let answer = try client.answer()
    expectEqual(answer?.status, 408)
    expectEqual(answer?.errorCodes, ["request_timeout"])
    #expect(try client.answer() == nil)
    #expect(fixture.service.uploads.isEmpty)
  }

  @Test("a head that does not arrive gets 408")
  func slowHead() throws {
    let fixture = try ServerFixture { $0.requestMs = 3_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send("POST /client/itunes_connect/receipts HTTP/1.1\r\nHost: loc")
    try expectEqual(client.answer()?.status, 408)
    #expect(try client.answer() == nil)
  }

  @Test("a connection that sends nothing is closed", arguments: ["", "POST /cl"])
  func silent(_ beginning: String) throws {
    let fixture = try ServerFixture { $0.requestMs = 3_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(beginning)
    #expect(try client.answer() == nil)
  }

  @Test("a connection that sends nothing after its response is closed")
  func idle() throws {
    let fixture = try ServerFixture { $0.idleMs = 3_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let client = try fixture.connect()
    client.send(ServerFixture.upload())
    try expectEqual(client.answer()?.status, 200)
    #expect(try client.answer() == nil)
  }

  @Test("bodies over the limit for all together get 503")
  func budget() throws {
    let fixture = try ServerFixture { $0.bodiesBytesMax = 100_000 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let large = ServerFixture.upload("{\"receipt\":\"\(String(repeating: "A", count: 200_000))\"}")
    let answer = try fixture.exchange(large)
    expectEqual(answer?.status, 503)
    #expect(answer?.header("retry-after") != nil)
    // The memory that it held is free again.
    #expect(eventually { (try? fixture.exchange(ServerFixture.upload()))?.status == 200 })
  }

  @Test("a connection over the limit gets 503")
  func connections() throws {
    let fixture = try ServerFixture { $0.connectionsMax = 2 }
    defer { fixture.server.shutdown(graceMs: 0) }
    let kept = try (0..<2).map { _ in try fixture.connect() }
    for client in kept {
      client.send(ServerFixture.upload())
      try expectEqual(client.answer()?.status, 200)
    }
    let answer = try fixture.exchange(ServerFixture.upload())
    expectEqual(answer?.status, 503)
    expectEqual(answer?.errorCodes, ["unavailable"])
    expectEqual(fixture.service.uploads.count, kept.count)
    // Surplus connections do not keep the earlier ones from being served.
    let surplus = try (0..<3).map { _ in try fixture.connect() }
    surplus[2].send(ServerFixture.upload())
    try expectEqual(surplus[2].answer()?.status, 503)
    for client in kept {
      client.send(ServerFixture.upload())
      try expectEqual(client.answer()?.status, 200)
    }
  }

  @Test("a shutdown waits for uploads in progress, and closes idle and new connections")
  func shutdown() throws {
    let (fixture, held) = try Self.holding()
    let (idle, busy) = (try fixture.connect(), try fixture.connect())
    busy.send(ServerFixture.upload())
    #expect(eventually { held.count == 1 })
    let ended = WorkerPool(count: 1)
    let server = fixture.server
    ended.add { server.shutdown(graceMs: 120_000) }
    #expect(try idle.answer() == nil)
    let late = try fixture.connect()
    late.send(ServerFixture.upload())
    #expect(try late.answer() == nil)
    held.release()
    let answer = try busy.answer()
    expectEqual(answer?.status, 206)
    expectEqual(answer?.header("connection"), "close")
    ended.finish()
    #expect(throws: WireError.self) { _ = try fixture.connect() }
  }

  @Test(
    "a shutdown without grace ends idle connections, and drops the service's own response")
  func shutdownAtOnce() throws {
    for _ in 0..<10 {
      let (fixture, held) = try Self.holding()
      let clients = try (0..<20).map { _ in try fixture.connect() }
      for client in clients { client.send(ServerFixture.upload()) }
      #expect(eventually { held.count == clients.count })
      fixture.server.shutdown(graceMs: 0)
      held.release()
      for client in clients { #expect(try client.isEnded()) }
    }
  }

  @Test("a shutdown whose grace ends answers 503, and drops the service's own response")
  func shutdownAbandons() throws {
    let (fixture, held) = try Self.holding()
    let client = try fixture.connect()
    client.send(ServerFixture.upload())
    #expect(eventually { held.count == 1 })
    fixture.server.shutdown(graceMs: 200)
    try expectEqual(client.answer()?.status, 503)
    held.release()
  }
}

/// A few threads that run the jobs they are given.
final class WorkerPool: Sendable {
  private let jobs = Monitor<(waiting: [@Sendable () -> Void], isClosed: Bool)>(
    ([], false), conditionCount: 1)
  private let threads: Monitor<[pthread_t]>

  init(count: Int) {
    threads = Monitor([])
    for _ in 0..<count {
      var thread = pthread_t()
      pthread_create(
        &thread, nil,
        { argument in
          if let argument {
            Unmanaged<WorkerPool>.fromOpaque(argument).takeRetainedValue().run()
          }
          return nil
        }, Unmanaged.passRetained(self).toOpaque())
      threads.withLock { $0.append(thread) }
    }
  }

  func add(_ job: @escaping @Sendable () -> Void) {
    jobs.withLock { $0.waiting.append(job) }
    jobs.signal(0)
  }

  /// Waits until all jobs are done.
  func finish() {
    jobs.withLock { $0.isClosed = true }
    jobs.broadcast(0)
    let running = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in running { pthread_join(thread, nil) }
  }

  private func run() {
    while let job = next() { job() }
  }

  /// Nil once all jobs are done and the queue is closed.
  private func next() -> (@Sendable () -> Void)? {
    jobs.wait(on: 0) { jobs -> (@Sendable () -> Void)?? in
      if !jobs.waiting.isEmpty { return .some(jobs.waiting.removeFirst()) }
      return jobs.isClosed ? .some(nil) : nil
    }
  }
}
