// Inclusion and consistency proofs: the published vectors, every pair of small sizes, altered proofs.
import Base
import Ledger
import TestSupport
import Testing

/// A tree of leaves in memory.
private final class LeafList: TreeSource, Sendable {
  let hashes: [SHA256Digest]

  init(_ records: [[UInt8]]) { hashes = records.map { hash([0] + $0) } }

  var leafCount: Int { hashes.count }

  func frontier(at size: Int) -> Frontier {
    var frontier = Frontier()
    let hasher = SHA256()
    for hash in hashes[..<size] { frontier.append(leafHash: hash, hasher) }
    return frontier
  }

  func leafHash(at index: Int) -> SHA256Digest { hashes[index] }

  func root(_ size: Int) -> SHA256Digest { naiveRoot(Array(hashes[..<size])) }
}

/// PATH by its recursive definition.
private func naivePath(_ index: Int, _ leaves: [SHA256Digest]) -> [SHA256Digest] {
  if leaves.count == 1 { return [] }
  var split = 1
  while split * 2 < leaves.count { split *= 2 }
  let (left, right) = (Array(leaves[..<split]), Array(leaves[split...]))
  return index < split
    ? naivePath(index, left) + [naiveRoot(right)]
    : naivePath(index - split, right) + [naiveRoot(left)]
}

/// SUB by its recursive definition.
private func naiveSub(_ size: Int, _ leaves: [SHA256Digest], _ isKnown: Bool) -> [SHA256Digest] {
  if size == leaves.count { return isKnown ? [] : [naiveRoot(leaves)] }
  var split = 1
  while split * 2 < leaves.count { split *= 2 }
  let (left, right) = (Array(leaves[..<split]), Array(leaves[split...]))
  return size <= split
    ? naiveSub(size, left, isKnown) + [naiveRoot(right)]
    : naiveSub(size - split, right, false) + [naiveRoot(left)]
}

@Suite("Proofs of the tree")
struct TreeProofTests {
  private static let vectors = LeafList([
    [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], [0x40, 0x41, 0x42, 0x43], Array(0x50...0x57),
    Array(0x60...0x6F),
  ])
  private static let many = LeafList((0..<70).map { [UInt8($0), 7] })
  private static let pathOf5In8 = [
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  ]

  @Test("The published path and consistency proof are reproduced")
  func published() throws {
    let tree = TreeProofTests.vectors
    let path = try TreeProof.inclusion(of: 5, in: 8, tree)
    expectEqual(path.map(\.hex), TreeProofTests.pathOf5In8)
    let proof = try TreeProof.consistency(from: 6, to: 8, tree)
    expectEqual(
      proof.map(\.hex),
      ["0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"]
        + TreeProofTests.pathOf5In8[1...])
    #expect(
      TreeProof.verifyInclusion(
        of: tree.hashes[5], at: 5, size: 8, root: tree.root(8), path))
    #expect(
      TreeProof.verifyConsistency(
        from: 6, root: tree.root(6), to: 8, root: tree.root(8), proof))
  }

  @Test("Every leaf of every size up to 70: the path is that of the definition, and verifies")
  func everyPath() throws {
    let tree = TreeProofTests.many
    for size in 1...70 {
      let root = tree.root(size)
      for index in 0..<size {
        let path = try TreeProof.inclusion(of: index, in: size, tree)
        expectEqual(path, naivePath(index, Array(tree.hashes[..<size])), "\(index) of \(size)")
        #expect(
          TreeProof.verifyInclusion(
            of: tree.hashes[index], at: index, size: size, root: root, path))
      }
    }
  }

  @Test("Every pair of sizes up to 40: the proof is that of the definition, and verifies")
  func everyPair() throws {
    let tree = TreeProofTests.many
    for new in 1...40 {
      for old in 1...new {
        let proof = try TreeProof.consistency(from: old, to: new, tree)
        let expected = naiveSub(old, Array(tree.hashes[..<new]), true)
        expectEqual(proof, expected, "\(old) in \(new)")
        #expect(
          TreeProof.verifyConsistency(
            from: old, root: tree.root(old), to: new, root: tree.root(new), proof))
      }
    }
  }

  @Test("A path that was changed in any way is refused")
  func alteredPaths() throws {
    let tree = TreeProofTests.many
    var random = SeededRandom(seed: 11)
    for _ in 0..<400 {
      let size = Int.random(in: 2...70, using: &random)
      let index = Int.random(in: 0..<size, using: &random)
      let path = try TreeProof.inclusion(of: index, in: size, tree)
      let root = tree.root(size)
      func isAccepted(
        _ leaf: SHA256Digest, at index: Int, size: Int, _ root: SHA256Digest, _ path: [SHA256Digest]
      ) -> Bool {
        TreeProof.verifyInclusion(of: leaf, at: index, size: size, root: root, path)
      }
      let leaf = tree.hashes[index]
      var changed = path
      changed[Int.random(in: 0..<path.count, using: &random)] = hash([9])
      #expect(!isAccepted(leaf, at: index, size: size, root, changed))
      #expect(!isAccepted(leaf, at: index, size: size, root, path + [hash([9])]))
      #expect(!isAccepted(leaf, at: index, size: size, root, Array(path.dropLast())))
      #expect(!isAccepted(hash([9]), at: index, size: size, root, path))
      #expect(!isAccepted(leaf, at: index, size: size, hash([9]), path))
      #expect(!isAccepted(leaf, at: (index + 1) % size, size: size, root, path))
      #expect(!isAccepted(leaf, at: size, size: size, root, path))
      #expect(!isAccepted(leaf, at: -1, size: size, root, path))
    }
  }

  @Test("A consistency proof that was changed in any way is refused")
  func alteredConsistency() throws {
    let tree = TreeProofTests.many
    var random = SeededRandom(seed: 12)
    for _ in 0..<400 {
      let new = Int.random(in: 2...70, using: &random)
      let old = Int.random(in: 1..<new, using: &random)
      let proof = try TreeProof.consistency(from: old, to: new, tree)
      let (oldRoot, newRoot) = (tree.root(old), tree.root(new))
      func isAccepted(
        _ old: Int, _ oldRoot: SHA256Digest, _ newRoot: SHA256Digest, _ proof: [SHA256Digest]
      ) -> Bool {
        TreeProof.verifyConsistency(from: old, root: oldRoot, to: new, root: newRoot, proof)
      }
      #expect(isAccepted(old, oldRoot, newRoot, proof))
      var changed = proof
      changed[Int.random(in: 0..<proof.count, using: &random)] = hash([9])
      #expect(!isAccepted(old, oldRoot, newRoot, changed))
      #expect(!isAccepted(old, oldRoot, newRoot, proof + [hash([9])]))
      #expect(!isAccepted(old, oldRoot, newRoot, Array(proof.dropLast())))
      #expect(!isAccepted(old, hash([9]), newRoot, proof))
      #expect(!isAccepted(old, oldRoot, hash([9]), proof))
      #expect(!isAccepted(old, oldRoot, newRoot, []))
      #expect(!isAccepted(new + 1, oldRoot, newRoot, proof))
    }
  }

  @Test("An empty tree, and a tree with itself, need no hashes")
  func degenerate() throws {
    let tree = TreeProofTests.many
    let (empty, root) = (hash([]), tree.root(9))
    try expectEqual(TreeProof.consistency(from: 0, to: 9, tree), [])
    #expect(TreeProof.verifyConsistency(from: 0, root: empty, to: 9, root: root, []))
    #expect(!TreeProof.verifyConsistency(from: 0, root: root, to: 9, root: root, []))
    #expect(TreeProof.verifyConsistency(from: 9, root: root, to: 9, root: root, []))
    #expect(!TreeProof.verifyConsistency(from: 9, root: root, to: 9, root: empty, []))
    #expect(!TreeProof.verifyConsistency(from: 9, root: root, to: 9, root: root, [root]))
    #expect(throws: LedgerError.self) { try TreeProof.inclusion(of: 9, in: 9, tree) }
    #expect(throws: LedgerError.self) { try TreeProof.inclusion(of: 0, in: 71, tree) }
    #expect(throws: LedgerError.self) { try TreeProof.consistency(from: 3, to: 2, tree) }
  }

  @Test("Proofs from a log of segments, blocks and a tail verify for every event and size")
  func fromALog() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(45)
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append((45..<53).map { fixture.draft($0) })
    try writer.close()
    let leaves = try fixture.lines().map(leafHash)
    let reader = try LogReader(fixture.directory)
    #expect(fixture.segmentNames.count > 3 && !fixture.tailNames.isEmpty)
    for index in 0..<53 {
      let path = try TreeProof.inclusion(of: index, in: 53, reader)
      expectEqual(path, naivePath(index, leaves), "position \(index)")
    }
    for old in 1...53 {
      let proof = try TreeProof.consistency(from: old, to: 53, reader)
      expectEqual(proof, naiveSub(old, leaves, true), "size \(old)")
    }
  }
}
