// Open work, which is webhooks' cursors and waiting erasure requests: copied, restored, and removed when it is done.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct OpenWorkCopyTests {
  private static let app = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  private static let first = "00000000-0000-4000-8000-000000000001"
  private static let second = "00000000-0000-4000-8000-000000000002"
  private static let cursor = #"{"next":"3.0","waiting":[]}"#

  /// A rig with a webhook's cursor, a waiting and a finished request, and the lines of a pass.
  private func rig() throws -> ReplicationRig {
    let rig = try ReplicationRig()
    rig.options.workMs = 3_600_000
    try rig.append(7)
    try write("webhooks/\(Self.app).json", Self.cursor, rig.directory)
    try write("webhooks/\(Self.app).json.new", "half of it", rig.directory)
    try request(Self.first, "waiting", of: "alice", rig.directory)
    try request(Self.second, "done", rig.directory)
    try write("erasures/lines.new", "a redacted line", rig.directory)
    return rig
  }

  private func write(_ name: String, _ text: String, _ directory: LedgerDirectory) throws {
    let parts = name.split(separator: "/").map(String.init)
    try directory.root.madeFolder(parts[0]).replaceFile(parts[1], with: Array(text.utf8))
  }

  private func request(
    _ id: String, _ state: String, of user: String? = nil, _ directory: LedgerDirectory
  ) throws {
    let subject = user.map { #","user_identifier":"\#($0)""# } ?? ""
    try write(
      "erasures/\(id).json", #"{"id":"\#(id)","state":"\#(state)"\#(subject)}"#, directory)
  }

  private func works(_ store: MemoryStore) -> [String: String] {
    store.objects.filter { $0.key.hasPrefix("work/") }
      .mapValues { String(decoding: $0, as: UTF8.self) }
  }

  private func restored(
    _ store: MemoryStore, _ temporary: TemporaryDirectory,
    _ change: (inout CopyRestore) -> Void = { _ in }
  ) throws -> (CopyRestore.Report, LedgerDirectory) {
    var restore = CopyRestore()
    change(&restore)
    let path = temporary.path("restored")
    let report = try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
    return (report, try LedgerDirectory.open(path: path))
  }

  private func openWork(_ directory: LedgerDirectory) throws -> [String: String] {
    try files(of: directory.path, in: ["webhooks", "erasures"])
      .filter { $0.key.contains("/") }.mapValues { String(decoding: $0, as: UTF8.self) }
  }

  @Test func aStepNamesItAsOneObjectOfRequestsAndCursorsAlone() throws {
    let rig = try rig()
    try rig.copyAll()
    let escaped = Self.cursor.replacing("\"", with: "\\\"")
    let waiting =
      #"{\"id\":\"\#(Self.first)\",\"state\":\"waiting\",\"user_identifier\":\"alice\"}"#
    expectEqual(
      Array(works(rig.content).values),
      [
        #"{"webhooks":{"\#(Self.app).json":"\#(escaped)"},"erasures":{"\#(Self.first).json":"\#(waiting)"}}"#
          + "\n"
      ])
    try rig.expectWhole()
    let headers = rig.content.objects.filter { $0.key.hasPrefix("steps/") }.values
      .map { String(decoding: $0.prefix { $0 != 0x0A }, as: UTF8.self) }
    let naming = headers.filter { $0.contains(#""work":"#) }
    #expect(naming.count == 1 && naming.allSatisfy { $0.contains(#","version":2,"epoch":"#) })
    // Earlier programs read steps without it.
    #expect(headers.allSatisfy { naming.contains($0) || !$0.contains("version") })
  }

  @Test func aLedgerWithoutAnyNamesNone() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try request(Self.second, "failed", rig.directory)
    try rig.copyAll()
    #expect(works(rig.content).isEmpty)
    #expect(try rig.check().work == nil)
  }

  @Test func whatIsDoneLeavesNothingOfThePerson() throws {
    let rig = try rig()
    try rig.copyAll()
    try request(Self.first, "done", rig.directory)
    try rig.copyAll()
    #expect(
      !rig.content.objects.values.contains { String(decoding: $0, as: UTF8.self).contains("alice") }
    )
    expectEqual(works(rig.content).count, 1)
    try FileManager.default.removeItem(atPath: rig.directory.fullPath("webhooks"))
    try rig.copyAll()
    expectEqual(Array(works(rig.content).values), [#"{"webhooks":{},"erasures":{}}"# + "\n"])
    try rig.expectWhole()
  }

  @Test func aCursorThatMovesIsStoredNowAndThenAndForWhoeverWaitsAtOnce() throws {
    let rig = try rig()
    try rig.copyAll()
    let gate = try #require(rig.replicator).gate(limitMs: 120_000)
    let before = works(rig.content)
    try write("webhooks/\(Self.app).json", #"{"next":"4.0","waiting":[]}"#, rig.directory)
    for count in 8...10 {
      try rig.append(1)
      #expect(rig.wait { rig.replicator?.status.confirmedSize == count })
    }
    expectEqual(works(rig.content), before)
    try request(Self.second, "waiting", of: "bob", rig.directory)
    try gate.waitForOpenWork()
    let named = try #require(try rig.check().work)
    let text = try #require(works(rig.content)[named])
    #expect(text.contains("bob") && text.contains("alice") && text.contains("4.0"))
    // Nothing has changed: the copy has it already.
    try gate.waitForOpenWork()
    try expectEqual(rig.check().work, named)
  }

  @Test func aRequestIsNotAcknowledgedWhileTheStoreIsAway() throws {
    let rig = try rig()
    try rig.copyAll()
    rig.store.setScript { $0.operation == .put ? .fails(.unavailable) : .happens }
    try request(Self.second, "waiting", of: "bob", rig.directory)
    let gate = try #require(rig.replicator).gate(limitMs: 50)
    let error = #expect(throws: LedgerError.self) { try gate.waitForOpenWork() }
    expectEqual(error?.kind, .unconfirmed)
    rig.store.clearScript()
    #expect(rig.wait { works(rig.content).values.contains { $0.contains("bob") } })
  }

  @Test func completeStepsAndATakeOverNameItOn() throws {
    let rig = try rig()
    rig.options.stepsBetweenComplete = 2
    try rig.copyAll()
    for _ in 0..<5 {
      try rig.append(1)
      try rig.copyAll()
    }
    let named = try #require(try rig.check().work)
    let temporary = try TemporaryDirectory()
    let (_, directory) = try restored(rig.content, temporary)
    rig.stop()
    try expectEqual(
      openWork(directory),
      [
        "webhooks/\(Self.app).json": Self.cursor,
        "erasures/\(Self.first).json":
          #"{"id":"\#(Self.first)","state":"waiting","user_identifier":"alice"}"#,
      ])
    // Work that is new since the restore comes with the promotion.
    try request(Self.second, "waiting", of: "bob", rig.directory)
    try rig.start().gate(limitMs: 120_000).waitForOpenWork()
    rig.stop()
    var promotion = Promotion()
    promotion.boundedWebhook = { Array("\($1) ".utf8) + $0 }
    _ = try promotion.run(directory, RetryingStore(rig.content, limitMs: 500))
    #expect(try openWork(directory).keys.contains("erasures/\(Self.second).json"))
    try expectEqual(openWork(directory)["webhooks/\(Self.app).json"], "12 " + Self.cursor)
    let check = try rig.check()
    #expect(check.epoch == 2 && check.work != nil && check.work != named)
  }

  @Test func aRestoreOfEarlierEventsSetsCursorsToItsEnd() throws {
    let rig = try rig()
    try rig.copyAll()
    let temporary = try TemporaryDirectory()
    let (report, directory) = try restored(rig.content, temporary) {
      $0.size = 2
      $0.boundedWebhook = { Array("\($1) ".utf8) + $0 }
    }
    expectEqual(report.size, 2)
    try expectEqual(openWork(directory)["webhooks/\(Self.app).json"], "2 " + Self.cursor)
    try expectEqual(openWork(directory).count, 2)
  }

  @Test(arguments: ["gone", "flipped", "{}\n", #"{"webhooks":{"../x":"y"},"erasures":{}}"# + "\n"])
  func whatIsMissingOrDamagedIsNamed(_ damage: String) throws {
    let rig = try rig()
    try rig.copyAll()
    let key = try #require(try rig.check().work)
    rig.stop()
    let store = rig.content
    var bytes = try #require(store.objects[key])
    switch damage {
    case "gone": try store.delete(key)
    case "flipped":
      bytes[20] ^= 1
      try store.put(key, .bytes(bytes))
    default: try store.put(key, .bytes(Array(damage.utf8)))
    }
    let error = #expect(throws: CopyError.self) {
      try restored(store, try TemporaryDirectory())
    }
    guard case .faults(let faults) = error else {
      Issue.record("no fault")
      return
    }
    expectEqual(faults.map(\.object), [key])
    let temporary = try TemporaryDirectory()
    let (report, directory) = try restored(store, temporary) { $0.isPartial = true }
    #expect(report.size == 7 && report.missing == faults)
    #expect(try openWork(directory).isEmpty)
    let audit = try CopyAudit().run(rig.directory, RetryingStore(store, limitMs: 500))
    expectEqual(audit?.faults.map(\.object), [key])
  }

  @Test(arguments: [
    "", "{}", #"{"webhooks":{},"erasures":{}}"#, #"{"erasures":{},"webhooks":{}}"# + "\n",
    #"{"webhooks":{},"erasures":{"lines":"x"}}"# + "\n",
    #"{"webhooks":{"x.json":"x"},"erasures":{}}"# + "\n",
    #"{"webhooks":{},"erasures":{"00000000-0000-4000-8000-000000000001.request":"x"}}"# + "\n",
    #"{"webhooks":{},"erasures":{"00000000-0000-4000-8000-000000000001.json":7}}"# + "\n",
  ])
  func whatNoProgramWroteIsNoOpenWork(_ text: String) {
    #expect(OpenWork(Array(text.utf8)) == nil)
  }

  @Test func aStepOfALaterVersionIsNamedAsOne() throws {
    let rig = try rig()
    try rig.copyAll()
    rig.stop()
    let step = try #require(
      rig.content.objects.first {
        $0.key.hasPrefix("steps/") && String(decoding: $0.value, as: UTF8.self).contains("version")
      })
    let later = String(decoding: step.value, as: UTF8.self).replacing(
      "\"version\":2", with: "\"version\":3")
    try rig.content.put(step.key, .bytes(Array(later.utf8)))
    let error = #expect(throws: CopyError.self) {
      try restored(rig.content, try TemporaryDirectory())
    }
    #expect(error?.description.contains("a later version of this program wrote it") == true)
  }
}
