// Generations and snapshots, with a crash at every call: the old ones or the new ones.
import Base
import Ledger
import TestSupport
import Testing

import Projections

@Suite("Files of the projections: crashes")
struct ProjectionFilesCrashTests {
  private static func directory(_ storage: FaultyStorage) throws -> LedgerDirectory {
    try LedgerDirectory.open(path: "/ledger", storage: storage)
  }

  private static func newLedger() throws -> FaultyStorage {
    let storage = FaultyStorage()
    _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage)
    return storage
  }

  // MARK: Generations

  /// Puts a generation with these bytes in use; SQLite's part is left out.
  private static func putInUse(_ content: [UInt8], _ storage: FaultyStorage) throws {
    let directory = try directory(storage)
    let generations = Generations(directory)
    try generations.withLock(Projector.Observer()) { () throws(ProjectionError) in
      let path = generations.newPath()
      try generations.create(path.building)
      do throws(LedgerError) {
        let name = String(path.building.dropFirst("/ledger/projections/".count))
        try directory.root.folder("projections").openFile(name, .readWrite)
          .write(content, offsetBytes: 0)
      } catch { throw .ledger(error) }
      try generations.putInUse(building: path.building, final: path.final)
    }
  }

  private static func generation(_ storage: FaultyStorage) throws -> String {
    guard let path = Generations(try directory(storage)).current else { return "none" }
    return String(decoding: storage.content(path), as: UTF8.self)
  }

  private static let old = [UInt8](repeating: UInt8(ascii: "o"), count: 1500)
  private static let new = [UInt8](repeating: UInt8(ascii: "n"), count: 2500)

  // MARK: Snapshots

  private static func digest(_ bytes: [UInt8]) -> SHA256Digest {
    bytes.withUnsafeBytes { SHA256.hash($0) }
  }

  /// Saves a database of these bytes at a number of events.
  private static func save(
    _ content: [UInt8], size: Int, _ storage: FaultyStorage
  ) throws {
    storage.place("/ledger/database", content)
    let directory = try directory(storage)
    var progress = Progress()
    let hasher = SHA256()
    for index in 0..<size {
      let leaf = [UInt8(index)].withUnsafeBytes { TreeHash.leaf($0, hasher) }
      progress.frontier.append(leafHash: leaf, hasher)
    }
    progress.position = size
    let database = try directory.root.openFile("database", .readOnly)
    _ = try SnapshotStore(directory).save(
      database, progress, [], content: digest([]), isCancelled: { false }
    ) { (_) throws(ProjectionError) in 1 }
  }

  /// The snapshots; each must have its whole file, by size and length of the database.
  private static func snapshots(_ storage: FaultyStorage) throws -> String {
    let store = SnapshotStore(try directory(storage))
    #expect(store.unreadable.isEmpty)
    return store.snapshots.map { snapshot in
      let header = snapshot.header
      let bytes = storage.content("/ledger/snapshots/\(header.file)")
      expectEqual(digest(bytes), header.sha256, "the file of \(header.size)")
      return "\(header.size): \(header.byteCount)"
    }.joined(separator: ", ")
  }

  private static let operations: [CrashedOperation] = [
    .init(
      "put the first generation in use", prepare: newLedger,
      run: { try putInUse(new, $0) }, state: generation),
    .init(
      "switch generations",
      prepare: {
        let storage = try newLedger()
        try putInUse(old, storage)
        return storage
      }, run: { try putInUse(new, $0) }, state: generation),
    .init(
      "create a snapshot", prepare: newLedger, run: { try save(new, size: 7, $0) },
      state: snapshots),
    .init(
      "replace a snapshot",
      prepare: {
        let storage = try newLedger()
        try save(old, size: 5, storage)
        return storage
      }, run: { try save(new, size: 5, $0) }, state: snapshots),
    .init(
      "remove a snapshot",
      prepare: {
        let storage = try newLedger()
        try save(old, size: 5, storage)
        try save(new, size: 7, storage)
        return storage
      },
      run: { storage in
        _ = try SnapshotStore(try directory(storage)).prune { (all) throws(ProjectionError) in
          all.filter { $0.header.size == 7 }
        }
      }, state: snapshots),
  ]

  @Test("A crash at every call leaves the old files or the new ones")
  func everyCall() throws {
    for operation in Self.operations {
      let result = try operation.problems()
      #expect(result.problems.isEmpty, "\(result.problems.prefix(5))")
      print("crash points tried: \(result.pointCount) (\(operation.name))")
    }
  }
}
