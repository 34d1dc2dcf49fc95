// Objects as files: what is stored where, what is refused, and two creators of a key.
import Base
import Foundation
import Replication
import TestSupport
import Testing

@Suite("a directory as a store", .bounded) struct DirectoryStoreTests {
  private let folder: TemporaryDirectory
  private let store: DirectoryStore

  init() throws {
    folder = try TemporaryDirectory()
    store = DirectoryStore(path: folder.path)
  }

  private func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path(path)).sorted()
  }

  private func permissions(_ name: String) -> UInt32 {
    var status = stat()
    stat(folder.path(name), &status)
    return status.st_mode & 0o7777
  }

  private func makeEmpty(_ name: String) throws {
    try Data().write(to: URL(fileURLWithPath: folder.path(name)))
  }

  private func kind(_ body: () throws -> Void) throws -> ObjectStoreError.Kind {
    try #require(#expect(throws: ObjectStoreError.self) { try body() }).kind
  }

  @Test("objects are files that only their owner can read, and nothing else is left")
  func files() throws {
    try store.put("a/b/c.txt", .bytes([1, 2]))
    try expectEqual(store.create("a/b/d", .bytes([])), .stored)
    try expectEqual(store.create("a/b/d", .bytes([3])), .exists)
    try expectEqual(store.get("a/b/c.txt", byteCountMax: 2), [1, 2])
    try expectEqual(store.get("a/b/d", byteCountMax: 2), [])
    try store.put("a/b/c.txt", .bytes([4]))
    try expectEqual(store.get("a/b/c.txt", byteCountMax: 1), [4])
    try expectEqual(names("a/b"), ["c.txt", "d"])
    expectEqual(permissions("a/b"), 0o700)
    expectEqual(permissions("a/b/c.txt"), 0o600)
    try expectEqual(kind { _ = try store.get("a/b/c.txt", byteCountMax: 0) }, .tooLarge)
    #expect(try store.contains("a/b/d"))
    try store.delete("a/b/d")
    try store.delete("a/b/d")
    try store.delete("x/y")
    #expect(try !store.contains("a/b/d"))
    #expect(try store.get("x/y", byteCountMax: 1) == nil)
    #expect(try !store.read("a/b/d", byteCountMax: 1) { _ in })
  }

  @Test(
    "once a directory has a mark, every call without that mark fails as temporary and changes nothing"
  )
  func marks() throws {
    let mark = UUID16.random()
    #expect(try store.mark() == nil)
    try store.put("a/b", .bytes([1]))
    try store.setMark(mark)
    try expectEqual(names("."), ["a", "copy-id"])
    expectEqual(permissions("copy-id"), 0o600)
    try expectEqual(DirectoryStore(path: folder.path).mark(), mark)
    let calls: [(String, (DirectoryStore) throws -> Void)] = [
      ("put", { try $0.put("a/c", .bytes([1])) }),
      ("create", { _ = try $0.create("a/d", .bytes([1])) }),
      ("get", { _ = try $0.get("a/b", byteCountMax: 1) }),
      ("contains", { _ = try $0.contains("a/b") }), ("delete", { try $0.delete("a/b") }),
      ("list", { _ = try $0.list(prefix: "a/", after: nil) }),
    ]
    let path = folder.path("copy-id")
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let marks: [Data?] = [
      nil, Data(), whole.dropLast(), whole + [0x0A], Data("\(UUID16.random())\n".utf8),
      Data(repeating: 0x61, count: 1 << 16),
    ]
    store.require(mark: mark)
    for other in marks {
      try? FileManager.default.removeItem(atPath: path)
      try other?.write(to: URL(fileURLWithPath: path))
      for (name, call) in calls {
        let found = try kind { try call(store) }
        expectEqual(found, .unavailable, "\(name), \(other?.count ?? -1)")
      }
      try expectEqual(names("a"), ["b"])
    }
    try? FileManager.default.removeItem(atPath: path)
    expectEqual(symlink("a/b", path), 0)
    try expectEqual(kind { try store.put("a/c", .bytes([1])) }, .unavailable)
    try store.setMark(mark)
    try store.put("a/c", .bytes([1]))
    try expectEqual(names("a"), ["b", "c"])
  }

  @Test("a file that differs from its digest is not stored")
  func digest() throws {
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: folder.path("source")))
    let descriptor = open(folder.path("source"), O_RDONLY)
    defer { close(descriptor) }
    for (byteCount, content) in [(3, [9, 9, 9] as [UInt8]), (4, [1, 2, 3])] {
      let body = ObjectBody.file(
        descriptor: descriptor, offsetBytes: 0, byteCount: byteCount,
        sha256: content.withUnsafeBytes { SHA256.hash($0) })
      try expectEqual(kind { try store.put("a/k", body) }, .unexpected)
      try expectEqual(kind { _ = try store.create("a/k", body) }, .unexpected)
    }
    try expectEqual(names("a"), [])
  }

  @Test("of two creators of a key one wins, and its bytes are there")
  func races() throws {
    for round in 0..<50 {
      let outcomes = Monitor([PutOutcome?](repeating: nil, count: 4))
      let threads = try (0..<4).map { (number: UInt8) in
        try WorkerThread { [store] in
          let outcome = try? store.create(
            "race/\(round)", .bytes([UInt8](repeating: number, count: 5_000)))
          outcomes.withLock { $0[Int(number)] = outcome }
        }
      }
      for thread in threads { thread.join() }
      let result = outcomes.withLock { $0 }
      expectEqual(result.filter { $0 == .stored }.count, 1)
      expectEqual(result.filter { $0 == .exists }.count, 3)
      let winner = try #require(result.firstIndex(of: .stored))
      try expectEqual(
        store.get("race/\(round)", byteCountMax: 5_000),
        [UInt8](repeating: UInt8(winner), count: 5_000))
    }
    try expectEqual(names("race").count, 50)
  }

  @Test("links are followed to the root, never below it")
  func links() throws {
    let outside = try TemporaryDirectory()
    try Data([7]).write(to: URL(fileURLWithPath: outside.path("secret")))
    try store.put("a/real", .bytes([1]))
    symlink(outside.path("secret"), folder.path("a/link"))
    symlink(outside.path, folder.path("dir"))
    symlink(folder.path("missing"), folder.path("a/dangling"))
    for key in ["a/link", "dir/secret", "a/dangling"] {
      try expectEqual(kind { _ = try store.get(key, byteCountMax: 9) }, .unexpected)
      try expectEqual(kind { _ = try store.contains(key) }, .unexpected)
      try expectEqual(kind { _ = try store.create(key, .bytes([2])) }, .unexpected)
    }
    try expectEqual(kind { try store.put("dir/new", .bytes([2])) }, .unexpected)
    try expectEqual(kind { try store.delete("dir/secret") }, .unexpected)
    try expectEqual(kind { try store.put("a", .bytes([2])) }, .unexpected)
    try expectEqual(store.list(prefix: "", after: nil), [ObjectEntry(key: "a/real", byteCount: 1)])
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: outside.path), ["secret"])
    symlink(folder.path, outside.path("way"))
    try expectEqual(DirectoryStore(path: outside.path("way")).get("a/real", byteCountMax: 1), [1])
  }

  @Test("a root that is missing, a file, or writable by others is refused")
  func roots() throws {
    try store.put("k", .bytes([1]))
    for path in ["missing", "k", "k/x"] {
      let other = DirectoryStore(path: folder.path(path))
      try expectEqual(kind { try other.put("k", .bytes([1])) }, .noBucket)
      try expectEqual(kind { _ = try other.get("k", byteCountMax: 1) }, .noBucket)
      try expectEqual(kind { _ = try other.list(prefix: "", after: nil) }, .noBucket)
    }
    for mode: mode_t in [0o770, 0o702] {
      chmod(folder.path, mode)
      try expectEqual(kind { _ = try store.get("k", byteCountMax: 1) }, .noBucket)
    }
    chmod(folder.path, 0o755)
    try expectEqual(store.get("k", byteCountMax: 1), [1])
  }

  @Test("keys that no copy has are refused")
  func keys() throws {
    let deep = Array(repeating: "a", count: 17).joined(separator: "/")
    for key in ["", "/etc/x", "../x", "a/../../x", "a//b", "a/.new-0123456789abcdef", deep, "a\0b"]
    {
      try expectEqual(kind { try store.put(key, .bytes([1])) }, .unexpected, "\(key)")
    }
  }

  @Test("lists are ordered by the keys' bytes, in whatever folders they are")
  func order() throws {
    let keys = ["a-b", "a.b", "a/b", "a/b-c", "a/b/c", "a0", "b", "b-/x"]
    for key in keys where key != "a/b" { try store.put(key, .bytes([1])) }
    let stored = keys.filter { $0 != "a/b" }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    func list(_ prefix: String, _ after: String?) throws -> [String] {
      try store.list(prefix: prefix, after: after).map { $0.key }
    }
    try expectEqual(list("", nil), stored)
    for (place, key) in stored.enumerated() {
      try expectEqual(list("", key), Array(stored[(place + 1)...]))
      for length in 1...key.utf8.count {
        let prefix = String(key.prefix(length))
        try expectEqual(list(prefix, nil), stored.filter { $0.hasPrefix(prefix) })
      }
    }
  }

  @Test("beyond a thousand, a list continues after the last key, with or without empty folders")
  func pages() throws {
    mkdir(folder.path("many"), 0o700)
    let keys = (0..<2_500).map { "many/\(10_000 + $0)" }
    for key in keys { try makeEmpty(key) }
    for number in 0..<1_100 { mkdir(folder.path("many/0\(1_000 + number)"), 0o700) }
    var listed: [String] = []
    while true {
      let page = try store.list(prefix: "many/", after: listed.last)
      listed += page.map { $0.key }
      if page.count < 1_000 { break }
    }
    expectEqual(listed, keys)
  }

  @Test("leftovers of a crash are not listed, and removed after a day")
  func leftovers() throws {
    try store.put("a/k", .bytes([1]))
    for (name, days) in [("k.new-0123456789abcdef", 2), ("k.new-fedcba9876543210", 0)] {
      try makeEmpty("a/" + name)
      var times = [timeval(tv_sec: time(nil) - days * 86_400 - 60, tv_usec: 0)]
      times.append(times[0])
      utimes(folder.path("a/" + name), &times)
    }
    try expectEqual(store.list(prefix: "a/", after: nil), [ObjectEntry(key: "a/k", byteCount: 1)])
    try expectEqual(names("a"), ["k", "k.new-fedcba9876543210"])
  }

  @Test("a cancelled store refuses every call")
  func cancel() throws {
    store.cancel()
    try expectEqual(kind { try store.put("k", .bytes([1])) }, .cancelled)
    try expectEqual(kind { _ = try store.list(prefix: "", after: nil) }, .cancelled)
  }
}
