// A tree of a few events with signed heads: what proofs are made from and judged by.
@testable import Base
@testable import Ledger

/// The events, the key and the heads, the same on every run.
final class SampleTree: TreeSource, Sendable {
  static let origin = "receipts.example/fuzz"
  /// Sizes at which there is a signed head.
  static let sizes = [0, 1, 2, 3, 7, 8, 13]

  static let shared = SampleTree()

  let records: [[UInt8]]
  let key: SigningKey
  let checkpoints: [Int: [UInt8]]

  private init() {
    let records = (0..<13).map { index in
      Array("{\"seq\":\(index),\"type\":\"receipt.uploaded\",\"v\":1,\"digest\":\"00\"}".utf8)
    }
    self.records = records
    guard let key = SigningKey(name: Self.origin, seed: [UInt8](repeating: 9, count: 32)) else {
      fatalError("the sample key cannot be made")
    }
    self.key = key
    var checkpoints: [Int: [UInt8]] = [:]
    for size in Self.sizes {
      let root = Self.frontier(of: records.prefix(size)).root
      var note = SignedNote(text: Checkpoint.text(origin: Self.origin, size: size, root: root))
      do { try note.sign(key) } catch { fatalError("a head cannot be signed: \(error)") }
      checkpoints[size] = note.bytes
    }
    self.checkpoints = checkpoints
  }

  var leafCount: Int { records.count }

  func leafHash(at index: Int) -> SHA256Digest { Self.leafHash(records[index]) }

  func frontier(at size: Int) -> Frontier { Self.frontier(of: records.prefix(size)) }

  private static func leafHash(_ record: [UInt8]) -> SHA256Digest {
    record.withUnsafeBytes { TreeHash.leaf($0, SHA256()) }
  }

  private static func frontier(of records: some Sequence<[UInt8]>) -> Frontier {
    var frontier = Frontier()
    for record in records { frontier.append(leafHash: leafHash(record), SHA256()) }
    return frontier
  }

  func inclusion(of index: Int, in size: Int) throws -> InclusionProof {
    InclusionProof(
      leafRecord: records[index], index: index,
      hashes: try TreeProof.inclusion(of: index, in: size, self),
      checkpoint: checkpoints[size] ?? [])
  }

  func consistency(from: Int, to: Int) throws -> ConsistencyProof {
    ConsistencyProof(
      oldCheckpoint: checkpoints[from] ?? [],
      hashes: try TreeProof.consistency(from: from, to: to, self),
      newCheckpoint: checkpoints[to] ?? [])
  }
}
