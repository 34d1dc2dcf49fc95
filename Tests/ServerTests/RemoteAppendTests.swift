// The hand-over: sessions, turns, all kinds of ends, and what must not get through.
import Base
import Foundation
import Glibc
import Intake
import Ledger
import Server
import TestSupport
import Testing

/// A ledger held by a server in this process.
final class ServedLedger {
  private let temporary: TemporaryDirectory
  let directory: LedgerDirectory
  let writer: LedgerWriter
  let server: RemoteAppendServer
  /// Why appends failed, or nil where they succeeded, in the order in which the server reported
  /// them.
  let outcomes = Monitor<[LedgerError?]>([])

  init(
    folder: String = "ledger", _ configure: (inout RemoteAppendServer.Options) -> Void = { _ in }
  ) throws {
    temporary = try TemporaryDirectory()
    let path = temporary.path(folder)
    try FileManager.default.createDirectory(
      atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    directory = try LedgerDirectory.create(path: path, origin: "receipts.example/test")
    writer = try LedgerWriter.open(directory)
    var options = RemoteAppendServer.Options()
    // On a busy machine a turn takes long to come, and ended sessions are still counted.
    options.turnTimeoutMs = 60_000
    options.connectionsMax = 1_000
    configure(&options)
    server = try RemoteAppendServer(
      writer: writer, options: options,
      onOutcome: { [outcomes] outcome in outcomes.withLock { $0.append(outcome) } })
  }

  deinit {
    server.stop()
    try? writer.close()
  }

  func connect() throws -> RemoteAppender { try #require(try RemoteAppender.connect(directory)) }

  /// The data of all events.
  func events() throws -> [JSONValue] {
    let reader = try LogReader(directory)
    return try (0..<reader.head.size).map { position in
      try #require(try JSONValue(try reader.event(at: position))["data"])
    }
  }
}

/// A client that sends arbitrary bytes.
final class RawClient {
  private let descriptor: Int32

  init(_ directory: LedgerDirectory) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = directory.fullPath("ledger.sock")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) {
    _ = bytes.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, SocketConstant.noSignal)
    }
  }

  func send(_ kind: UInt8, _ content: [UInt8] = []) {
    send(Self.number(UInt32(content.count)) + [kind] + content)
  }

  static func number(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }

  static func block(_ content: [UInt8]) -> [UInt8] { number(UInt32(content.count)) + content }

  /// The greeting of this ledger.
  func begin(_ directory: LedgerDirectory, version: UInt8 = 2) {
    send(1, [version] + Self.block(Array(directory.identity.id.description.utf8)))
  }

  /// All bytes until the other side closes.
  func rest() -> [UInt8] {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(descriptor, &piece, piece.count, 0)
      if count <= 0 { return bytes }
      bytes += piece[..<count]
    }
  }

  /// The kind of the next frame.
  func kind() -> UInt8? {
    var header = [UInt8](repeating: 0, count: 5)
    guard recv(descriptor, &header, 5, Int32(MSG_WAITALL)) == 5 else { return nil }
    var content = [UInt8](repeating: 0, count: Int(header[0]) + Int(header[1]) << 8)
    if !content.isEmpty {
      _ = recv(descriptor, &content, content.count, Int32(MSG_WAITALL))
    }
    return header[4]
  }
}

@Suite(.bounded) struct RemoteAppendTests {
  private func draft(_ name: String = "Tide") -> EventDraft { RemoteAppendDrafts.app(name) }

  /// An upload, and a verification that names its position.
  private func linkedDrafts() -> [EventDraft] {
    TestEvent.upload(["status": 0]).drafts
  }

  @Test func eventsOfASessionAreAppendedInOrder() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    let tickets = try [[draft("a")], linkedDrafts(), [draft("b")]].map(session.submit)
    try session.flush()
    try expectEqual(tickets.map(session.positions), [0..<1, 1..<3, 3..<4])
    try expectEqual(session.positions(of: tickets[1]), 1..<3)
    try session.close()
    let events = try ledger.events()
    expectEqual(events.count, 4)
    expectEqual(events[2]["upload"]?.integerValue, 1)
    expectEqual(events[3]["name"]?.stringValue, "b")
  }

  @Test func whatBecomesOfHandedOverAppendsReachesTheServer() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    _ = try session.submit([draft("a")])
    try session.flush()
    expectEqual(ledger.outcomes.withLock { $0 }, [nil])
    try ledger.writer.close()
    #expect(throws: LedgerError.self) {
      _ = try session.submit([draft("b")])
      try session.flush()
    }
    expectEqual(ledger.outcomes.withLock { $0 }.last??.kind, .closed)
  }

  @Test func whoeverHoldsTheWriterAppendsBesideASession() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    _ = try session.submit([draft("a")])
    try session.flush()
    _ = try ledger.writer.append([draft("beside")])
    try expectEqual(session.positions(of: session.submit([draft("b")])), 2..<3)
  }

  @Test func manySubmissionsOutOfOneSessionAllStandInTheLog() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    var tickets: [RemoteAppender.Ticket] = []
    for number in 0..<5000 { tickets.append(try session.submit([draft("\(number)")])) }
    try session.close()
    try expectEqual(LogReader(ledger.directory).head.size, 5000)
    expectEqual(tickets.count, 5000)
  }

  @Test func aWishToRetryReachesTheServer() throws {
    let wished = DispatchSemaphore(value: 0)
    let ledger = try ServedLedger()
    ledger.server.stop()
    let server = try RemoteAppendServer(writer: ledger.writer, onRetry: { wished.signal() })
    defer { server.stop() }
    let session = try ledger.connect()
    try session.requestRetry()
    expectEqual(wished.wait(timeout: .now()), .success)
    try session.close()
  }

  @Test func aSecondSessionIsToldWhoHasTheTurn() throws {
    let ledger = try ServedLedger { $0.turnTimeoutMs = 3_000 }
    let session = try ledger.connect()
    let error = #expect(throws: LedgerError.self) { try RemoteAppender.connect(ledger.directory) }
    expectEqual(error?.kind, .locked)
    expectEqual(error?.cause, "process \(getpid()) is appending through the server")
    try session.close()
    try ledger.connect().close()
  }

  @Test func aSecondSessionWaitsForItsTurn() async throws {
    let ledger = try ServedLedger()
    let directory = ledger.directory
    let first = try ledger.connect()
    async let second = Task.detached {
      let session = try #require(try RemoteAppender.connect(directory))
      let positions = try session.positions(
        of: session.submit([RemoteAppendDrafts.app("Tide")]))
      try session.close()
      return positions
    }.value
    for number in 0..<100 { _ = try first.submit([draft("\(number)")]) }
    try first.close()
    try await expectEqual(second, 100..<101)
  }

  @Test func aClientThatVanishesFreesItsTurnAndLosesNothing() throws {
    let ledger = try ServedLedger()
    var session: RemoteAppender? = try ledger.connect()
    for number in 0..<50 { _ = try session?.submit([draft("\(number)")]) }
    session = nil
    let next = try ledger.connect()
    // All of the first session's events precede the first event of the next.
    try expectEqual(next.positions(of: next.submit([draft("next")])), 50..<51)
  }

  @Test func aClientThatStopsInsideAFrameFreesItsTurn() throws {
    let ledger = try ServedLedger { $0.pieceTimeoutMs = 3_000 }
    let client = try RawClient(ledger.directory)
    client.begin(ledger.directory)
    expectEqual(client.kind(), 0x81)
    client.send([200, 0, 0, 0, 2, 1, 1])
    try ledger.connect().close()
    #expect(client.rest().isEmpty)
  }

  @Test func aClientThatSaysNothingFreesItsTurn() throws {
    let ledger = try ServedLedger { $0.idleTimeoutMs = 3_000 }
    let idle = try ledger.connect()
    try ledger.connect().close()
    #expect(throws: LedgerError.self) { try idle.flush() }
  }

  @Test func connectionsBeyondTheLimitAreRefused() throws {
    let ledger = try ServedLedger { $0.connectionsMax = 2 }
    try withExtendedLifetime((0..<2).map { _ in try RawClient(ledger.directory) }) {
      let error = #expect(throws: LedgerError.self) {
        try RemoteAppender.connect(ledger.directory)
      }
      expectEqual(error?.kind, .locked)
      expectEqual(error?.cause, "too many commands are waiting")
    }
  }

  // MARK: Refused submissions

  private static let good =
    RawClient.block(Array("app.registered".utf8)) + RawClient.number(UInt32(1))
  private static func drafts(_ draft: [UInt8]) -> [UInt8] { RawClient.number(UInt32(1)) + draft }

  @Test(
    arguments: [
      ("unknown kind", 9, []),
      ("a server's kind", 0x84, []),
      ("a second greeting", 1, [1]),
      ("no count", 2, [1]),
      ("fewer drafts than announced", 2, RawClient.number(UInt32.max)),
      ("data that ends early", 2, drafts(good + RawClient.number(UInt32(99)) + [0x7B])),
      (
        "references that end early", 2,
        drafts(good + RawClient.block([0x7B, 0x7D]) + RawClient.number(UInt32.max))
      ),
      (
        "bytes behind the drafts", 2,
        drafts(good + RawClient.block([0x7B, 0x7D]) + RawClient.number(UInt32(0)) + [0])
      ),
      (
        "data that is no JSON", 2,
        drafts(good + RawClient.block(Array("{]}".utf8)) + RawClient.number(UInt32(0)))
      ),
      (
        "data with white space", 2,
        drafts(good + RawClient.block(Array("{ }".utf8)) + RawClient.number(UInt32(0)))
      ),
      (
        "data that is no object", 2,
        drafts(good + RawClient.block(Array("[]".utf8)) + RawClient.number(UInt32(0)))
      ),
      (
        "an unknown type", 2,
        drafts(
          RawClient.block(Array("app.deleted".utf8)) + RawClient.number(UInt32(1))
            + RawClient.block([0x7B, 0x7D]) + RawClient.number(UInt32(0)))
      ),
      (
        "a newer version", 2,
        drafts(
          RawClient.block(Array("app.registered".utf8)) + RawClient.number(UInt32(2))
            + RawClient.block([0x7B, 0x7D]) + RawClient.number(UInt32(0)))
      ),
      (
        "a reference that points outside", 2,
        drafts(
          good + RawClient.block(Array(#"{"upload":}"#.utf8)) + RawClient.number(UInt32(1))
            + RawClient.number(UInt32(99)) + RawClient.number(UInt32(0)))
      ),
      ("a short number of a submission", 3, [1, 2]),
      ("a long number of a submission", 3, [UInt8](repeating: 0, count: 9)),
      ("outcomes without a count", 7, [UInt8](repeating: 0, count: 8)),
    ] as [(String, UInt8, [UInt8])])
  func malformedFrameEndsTheSession(_ name: String, _ kind: UInt8, _ content: [UInt8]) throws {
    let ledger = try ServedLedger()
    let client = try RawClient(ledger.directory)
    client.begin(ledger.directory)
    expectEqual(client.kind(), 0x81)
    client.send(kind, content)
    expectEqual(client.kind(), 0xC0)
    #expect(client.rest().isEmpty)
    let next = try ledger.connect()
    try expectEqual(next.positions(of: next.submit([draft()])), 0..<1, "nothing was appended")
  }

  @Test func aHugeFrameIsRefusedByItsLengthAlone() throws {
    let ledger = try ServedLedger()
    let client = try RawClient(ledger.directory)
    client.begin(ledger.directory)
    expectEqual(client.kind(), 0x81)
    client.send([0xFF, 0xFF, 0xFF, 0xFF, 2])
    expectEqual(client.kind(), 0xC0)
    #expect(client.rest().isEmpty)
  }

  @Test func anotherVersionOrLedgerIsRefused() throws {
    let ledger = try ServedLedger()
    let newer = try RawClient(ledger.directory)
    newer.begin(ledger.directory, version: 3)
    #expect(
      String(decoding: newer.rest(), as: UTF8.self).contains("the server uses protocol version 2"))
    let other = try RawClient(ledger.directory)
    other.send(1, [2] + RawClient.block(Array("another".utf8)))
    #expect(String(decoding: other.rest(), as: UTF8.self).contains("another ledger"))
  }

  @Test func whatTheWriterRefusesIsToldAndEndsTheAppending() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    let good = try session.submit([draft("good")])
    let name = String(repeating: "x", count: 17 << 20)
    let large = try session.submit([draft(name)])
    let after = try session.submit([draft("after")])
    try expectEqual(session.positions(of: good), 0..<1)
    for ticket in [large, after] {
      let error = #expect(throws: LedgerError.self) { try session.positions(of: ticket) }
      expectEqual(error?.kind, .invalidInput)
    }
    #expect(throws: LedgerError.self) { try session.close() }
    try expectEqual(ledger.events().count, 1)
  }

  @Test func whatBecameOfEachSubmissionIsTold() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    var tickets = try (0..<300).map { try session.submit([draft("\($0)")]) }
    let all = session.outcome(of: tickets)
    #expect(all.failure == nil)
    expectEqual(all.positions, (0..<300).map { $0..<($0 + 1) })
    let name = String(repeating: "x", count: 17 << 20)
    tickets.append(try session.submit([draft(name)]))
    tickets.append(try session.submit(linkedDrafts()))
    let last = session.outcome(of: Array(tickets.suffix(3)))
    expectEqual(last.positions, [299..<300, nil, nil])
    expectEqual(last.failure?.kind, .invalidInput)
    #expect(session.outcome(of: []).positions.isEmpty)
  }

  @Test func whatWasNeverSubmittedOrIsTooMuchIsNotToldOf() throws {
    let ledger = try ServedLedger()
    let client = try RawClient(ledger.directory)
    client.begin(ledger.directory)
    expectEqual(client.kind(), 0x81)
    for (first, count) in [(UInt64(0), UInt32(1)), (.max, 2), (0, .max)] {
      client.send(7, RawClient.number(first) + RawClient.number(count))
      expectEqual(client.kind(), 0xC0)
    }
    client.send(7, RawClient.number(UInt64(0)) + RawClient.number(UInt32(0)))
    expectEqual(client.kind(), 0x87)
  }

  @Test func aSessionThatHasEndedTellsNothing() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    let ticket = try session.submit([draft()])
    ledger.server.stop()
    let outcome = session.outcome(of: [ticket])
    expectEqual(outcome.positions, [nil])
    expectEqual(outcome.failure?.operation, "append through the server")
  }

  // MARK: Sockets

  @Test func theSocketIsTheOwnersAlone() throws {
    let ledger = try ServedLedger()
    let attributes = try FileManager.default.attributesOfItem(
      atPath: ledger.directory.fullPath("ledger.sock"))
    expectEqual(attributes[.posixPermissions] as? Int, 0o600)
    expectEqual(attributes[.type] as? FileAttributeType, .typeSocket)
  }

  @Test func aLongPathIsNoObstacle() throws {
    let folder = (0..<4).map { _ in String(repeating: "long", count: 20) }.joined(separator: "/")
    let ledger = try ServedLedger(folder: folder)
    let session = try ledger.connect()
    try expectEqual(session.positions(of: session.submit([draft()])), 0..<1)
  }

  @Test func withoutAServerThereIsNoSession() throws {
    let ledger = try ServedLedger()
    ledger.server.stop()
    #expect(try RemoteAppender.connect(ledger.directory) == nil)
    #expect(!FileManager.default.fileExists(atPath: ledger.directory.fullPath("ledger.sock")))
  }

  @Test func aSocketThatADeadServerLeftIsReplaced() throws {
    let ledger = try ServedLedger()
    let path = ledger.directory.fullPath("ledger.sock")
    // A hard link keeps the socket's file when the server removes its own name.
    expectEqual(link(path, path + ".kept"), 0)
    ledger.server.stop()
    expectEqual(rename(path + ".kept", path), 0)
    #expect(try RemoteAppender.connect(ledger.directory) == nil)
    let next = try RemoteAppendServer(writer: ledger.writer)
    defer { next.stop() }
    let session = try ledger.connect()
    try expectEqual(session.positions(of: session.submit([draft()])), 0..<1)
  }

  @Test func stoppingEndsSessionsAndKeepsWhatWasConfirmed() throws {
    let ledger = try ServedLedger()
    let session = try ledger.connect()
    let ticket = try session.submit([draft()])
    try expectEqual(session.positions(of: ticket), 0..<1)
    ledger.server.stop()
    #expect(throws: LedgerError.self) { try session.flush() }
    try expectEqual(ledger.events().count, 1)
  }
}
