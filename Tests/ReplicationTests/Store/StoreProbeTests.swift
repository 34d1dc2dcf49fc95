// The probe, which finds stores that a copy cannot use, and the store in memory, which follows a
// script.
import Replication
import TestSupport
import Testing

@Suite("the probe of a store") struct StoreProbeTests {
  private func failure(_ store: any ObjectStore) throws -> StoreProbe.Failure {
    try #require(#expect(throws: StoreProbe.Failure.self) { try StoreProbe.check(store) })
  }

  @Test("a good store passes, and nothing is left in it")
  func good() throws {
    let store = MemoryStore()
    store.objects = ["steps/1": [1]]
    try StoreProbe.check(store)
    expectEqual(store.keys, ["steps/1"])
    let folder = try TemporaryDirectory()
    try StoreProbe.check(DirectoryStore(path: folder.path))
  }

  @Test("a store that ignores If-None-Match is unfit, and nothing is left in it")
  func unconditional() throws {
    let store = MemoryStore()
    store.ignoresConditions = true
    try expectEqual(
      failure(store).description,
      "the store cannot be used for replication: "
        + "it does not honour If-None-Match: a second create succeeded")
    #expect(store.keys.isEmpty)
  }

  @Test("a store that returns less than was stored is unfit")
  func short() throws {
    let store = MemoryStore()
    store.setScript { $0.operation == .get ? .cutsOff(afterBytes: 63) : .happens }
    guard case .unfit = try failure(store) else { return #expect(Bool(false), "it is unfit") }
  }

  @Test("a create whose response was lost tells nothing about the store, and is cleaned up")
  func lostAnswer() throws {
    let store = MemoryStore()
    store.setScript { $0.index == 1 ? .happensButFails(.unavailable) : .happens }
    guard case .unanswered(let error) = try failure(store) else {
      return #expect(Bool(false), "it could not be asked")
    }
    expectEqual(error.kind, .unavailable)
    #expect(store.keys.isEmpty)
  }

  @Test("an unreachable store is not called unfit", arguments: 0..<12)
  func unanswered(_ place: Int) throws {
    let store = MemoryStore()
    store.setScript { $0.index == place ? .fails(.denied) : .happens }
    guard case .unanswered(let error) = try failure(store) else {
      return #expect(Bool(false), "it could not be asked")
    }
    expectEqual(error.kind, .denied)
    #expect(store.keys.isEmpty)
  }
}

@Suite("the store in memory") struct MemoryStoreTests {
  @Test("a late put is stored when it is released, after everything since")
  func late() throws {
    let old = MemoryStore()
    let new = MemoryStore(sharing: old)
    old.setScript { $0.operation == .create ? .isLate : .happens }
    for key in ["steps/1", "steps/2"] {
      #expect(throws: ObjectStoreError.self) { try old.create(key, .bytes([1])) }
    }
    expectEqual(old.heldCount, 2)
    try expectEqual(new.create("steps/1", .bytes([2])), .stored)
    expectEqual(old.release(), [.exists, .stored])
    expectEqual(new.objects, ["steps/1": [2], "steps/2": [1]])
    expectEqual(old.calls.map { $0.key }, ["steps/1", "steps/2"])
  }

  @Test("a full store refuses, and keeps what it has")
  func full() throws {
    let store = MemoryStore()
    store.byteCountMax = 3
    try store.put("a", .bytes([1, 2]))
    #expect(throws: ObjectStoreError.self) { try store.put("b", .bytes([1, 2])) }
    try store.put("a", .bytes([1, 2, 3]))
    expectEqual(store.objects, ["a": [1, 2, 3]])
  }

  @Test("more than a thousand objects are listed in pages")
  func pages() throws {
    let store = MemoryStore()
    for number in 0..<1_001 { store.objects["k/\(2_000 + number)"] = [] }
    let page = try store.list(prefix: "k/", after: nil)
    expectEqual(page.count, 1_000)
    try expectEqual(store.list(prefix: "k/", after: page.last?.key).map { $0.key }, ["k/3000"])
    store.cancel()
    #expect(throws: ObjectStoreError.self) { try store.list(prefix: "", after: nil) }
  }
}
