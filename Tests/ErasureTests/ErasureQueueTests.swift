// The queue of requests: what survives, what is limited, and that a finished request names no
// person.
import Base
import Ledger
import TestSupport
import Testing

import Erasure

@Suite struct ErasureQueueTests {
  private func ledger(_ folder: TemporaryDirectory) throws -> LedgerDirectory {
    try LedgerDirectory.create(path: folder.path + "/ledger", origin: "erasure.test")
  }

  @Test(
    "A request is read as it was added",
    arguments: [
      ErasureSubject.user("alice@example.com", appFamily: nil),
      .user("a \"quoted\" name", appFamily: .random()), .receipt("r"), .position(12),
    ])
  func roundTrip(_ subject: ErasureSubject) throws {
    let folder = try TemporaryDirectory()
    let queue = ErasureQueue(try ledger(folder))
    let record = ErasureRecord(
      subject, reason: "user_request", requestedAtMs: 1_700_000_000_000, isUrgent: true)
    try queue.add(record)
    try expectEqual(queue.record(record.id), record)
    try expectEqual(queue.open(), [record])
  }

  @Test("A finished request keeps its certificate and names no person")
  func finished() throws {
    let folder = try TemporaryDirectory()
    let queue = ErasureQueue(try ledger(folder))
    let record = ErasureRecord(
      .user("alice", appFamily: nil), reason: "user_request", requestedAtMs: 1, isUrgent: false)
    try queue.add(record)
    var certificate = ErasureCertificate()
    certificate.erasure = 7
    certificate.events = [(.receiptUploaded, 2), (.receiptVerified, 3)]
    certificate.size = 12
    certificate.finishedAtMs = 5
    try queue.finish(record, .success(certificate))
    let found = try #require(try queue.record(record.id))
    expectEqual(found.state, .done)
    expectEqual(found.certificate, certificate)
    #expect(!String(decoding: found.bytes, as: UTF8.self).contains("alice"))
    #expect(try queue.open().isEmpty)
  }

  @Test("Of finished requests the oldest are removed; one that waits stays, however old")
  func tidied() throws {
    let folder = try TemporaryDirectory()
    let queue = ErasureQueue(try ledger(folder))
    for time in [3, 1, 4, 0, 2] as [Int64] {
      let record = ErasureRecord(
        .receipt("r"), reason: "user_request", requestedAtMs: time, isUrgent: false)
      try queue.add(record)
      if time > 0 { try queue.finish(record, .failure(.interrupted)) }
    }
    try queue.tidy()
    try expectEqual(queue.records().map(\.requestedAtMs), [0, 1, 2, 3, 4])
    try queue.tidy(keeping: 3)
    try expectEqual(queue.records().map(\.requestedAtMs), [0, 2, 3, 4])
  }

  @Test("A file of another form is damage, not a request")
  func damaged() throws {
    let folder = try TemporaryDirectory()
    let ledger = try ledger(folder)
    let id = UUID16.random()
    try ledger.root.madeFolder("erasures").replaceFile("\(id).json", with: Array("{}".utf8))
    #expect(throws: ErasureError.self) { try ErasureQueue(ledger).records() }
  }
}
