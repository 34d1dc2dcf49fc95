// Keys and checkpoints, with a crash at every call: the old state or the new one.
import Ledger
import TestSupport
import Testing

@Suite("Keys and checkpoints: crashes")
struct CheckpointCrashTests {
  private static func directory(_ storage: FaultyStorage) throws -> LedgerDirectory {
    try LedgerDirectory.open(path: "/ledger", storage: storage)
  }

  /// The number of public keys; the newest must have its private key.
  private static func keys(_ storage: FaultyStorage) throws -> String {
    let store = KeyStore(try directory(storage))
    let known = try store.publicKeys()
    let signing = try store.signingKey()?.verifierKey
    expectEqual(signing, known.last)
    return "\(known.count) keys"
  }

  /// A ledger with a key and this many events.
  private static func signable(_ count: Int) throws -> FaultyStorage {
    let storage = try CrashRig.newLedger()
    _ = try KeyStore(directory(storage)).create(isFurther: false)
    let writer = try LedgerWriter.open(directory(storage))
    _ = try writer.append((0..<count).map(CrashRig.draft))
    try writer.close()
    return storage
  }

  private static func sign(_ storage: FaultyStorage, size: Int? = nil) throws {
    let directory = try directory(storage)
    _ = try CheckpointStore(directory).sign(try LogReader(directory), size: size)
  }

  /// The checkpoints, which must all be readable and on the log; `heads` never counts more than are kept.
  private static func checkpoints(_ storage: FaultyStorage) throws -> String {
    let directory = try directory(storage)
    let (store, reader) = (CheckpointStore(directory), try LogReader(directory))
    let sizes = try store.sizes()
    for size in sizes {
      try expectEqual(store.checkpoint(size: size)?.root, reader.frontier(at: size).root)
    }
    if let heads = try store.signedHeads() {
      #expect(try store.disagreement(of: heads, reader) == nil)
    }
    return "\(sizes)"
  }

  private static let operations: [CrashedOperation] = [
    .init(
      "create the first key", prepare: CrashRig.newLedger,
      run: { _ = try KeyStore(directory($0)).create(isFurther: true) }, state: keys),
    .init(
      "create a further key",
      prepare: {
        let storage = try CrashRig.newLedger()
        _ = try KeyStore(directory(storage)).create(isFurther: false)
        return storage
      },
      run: { _ = try KeyStore(directory($0)).create(isFurther: true) }, state: keys),
    .init(
      "sign the first checkpoint", prepare: { try signable(3) }, run: { try sign($0) },
      state: checkpoints),
    .init(
      "sign a further checkpoint",
      prepare: {
        let storage = try signable(5)
        try sign(storage, size: 2)
        return storage
      }, run: { try sign($0) }, state: checkpoints),
  ]

  @Test("A crash at every call leaves the old keys and checkpoints or the new ones")
  func everyCall() throws {
    for operation in Self.operations {
      let result = try operation.problems(seeds: 3 + CrashRig.seedCount)
      #expect(result.problems.isEmpty, "\(result.problems.prefix(5))")
      CrashRig.tell(result.pointCount, operation.name)
    }
  }
}
