// The Merkle tree of RFC 6962: kept as the roots of its perfect subtrees, and its proofs.
package import Base

/// Hashes of leaves and nodes as in RFC 6962, section 2.1.
package enum TreeHash {
  /// The root of a tree without leaves: SHA-256 of nothing.
  package static func empty(_ hasher: SHA256) -> SHA256Digest {
    hasher.hash(UnsafeRawBufferPointer(start: nil, count: 0))
  }

  /// SHA-256 of a zero byte and the record.
  package static func leaf(_ record: UnsafeRawBufferPointer, _ hasher: SHA256) -> SHA256Digest {
    withUnsafeBytes(of: UInt8(0)) { hasher.update($0) }
    return hasher.hash(record)
  }

  /// SHA-256 of a one byte and both children.
  package static func node(_ left: SHA256Digest, _ right: SHA256Digest, _ hasher: SHA256)
    -> SHA256Digest
  {
    withUnsafeTemporaryAllocation(byteCount: 65, alignment: 1) { bytes in
      bytes[0] = 1
      left.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: bytes[1..<33]).copyMemory(from: $0)
      }
      right.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: bytes[33..<65]).copyMemory(from: $0)
      }
      return hasher.hash(UnsafeRawBufferPointer(bytes))
    }
  }
}

/// A tree of any size, represented by the roots of its perfect subtrees, from the largest (left) to the smallest:
/// enough to append leaves and to compute the root.
package struct Frontier: Sendable, Hashable {
  /// The number of leaves.
  package private(set) var size: Int
  /// One root for each set bit of `size`, the highest first.
  package private(set) var roots: [SHA256Digest]

  /// The tree without leaves.
  package init() {
    size = 0
    roots = []
  }

  /// Reads the roots of a tree of this size; nil if their number does not match the size.
  package init?(size: Int, bytes: UnsafeRawBufferPointer) {
    guard size >= 0, bytes.count == Frontier.byteCount(size: size) else { return nil }
    self.size = size
    roots = []
    roots.reserveCapacity(size.nonzeroBitCount)
    for start in stride(from: 0, to: bytes.count, by: SHA256Digest.byteCount) {
      let root = UnsafeRawBufferPointer(rebasing: bytes[start..<start + SHA256Digest.byteCount])
      guard let digest = SHA256Digest(root) else { return nil }
      roots.append(digest)
    }
  }

  /// The size in bytes of the roots of a tree of this size.
  package static func byteCount(size: Int) -> Int { size.nonzeroBitCount * SHA256Digest.byteCount }

  /// The concatenated roots; reading them back requires the size.
  package var bytes: [UInt8] { roots.flatMap(\.bytes) }

  /// Appends a leaf, given its hash.
  package mutating func append(leafHash: SHA256Digest, _ hasher: SHA256) {
    var root = leafHash
    var rest = size
    while rest & 1 == 1 {
      root = TreeHash.node(roots.removeLast(), root, hasher)
      rest >>= 1
    }
    roots.append(root)
    size += 1
  }

  /// Appends a leaf, given its record.
  package mutating func append(leafRecord: UnsafeRawBufferPointer, _ hasher: SHA256) {
    append(leafHash: TreeHash.leaf(leafRecord, hasher), hasher)
  }

  /// The root of the whole tree.
  package func root(_ hasher: SHA256) -> SHA256Digest {
    guard var root = roots.last else { return TreeHash.empty(hasher) }
    for left in roots.dropLast().reversed() { root = TreeHash.node(left, root, hasher) }
    return root
  }

  /// The root of the whole tree; for one-off use.
  package var root: SHA256Digest { root(SHA256()) }
}

// MARK: - Proofs

/// A tree from which proofs are created.
package protocol TreeSource: AnyObject {
  /// The number of leaves.
  var leafCount: Int { get }
  /// The tree of the first `size` leaves.
  func frontier(at size: Int) throws(LedgerError) -> Frontier
  /// The hash of one leaf.
  func leafHash(at index: Int) throws(LedgerError) -> SHA256Digest
}

/// Inclusion and consistency proofs of RFC 6962, created from a tree and verified without it: lists of hashes that
/// connect a leaf, or an earlier tree, to a root.
package enum TreeProof {
  /// The most hashes that a proof can have.
  package static let hashCountMax = 63

  // MARK: Creating

  /// `PATH(index, D[size])`: the hashes from the leaf up to the root.
  package static func inclusion(
    of index: Int, in size: Int, _ tree: some TreeSource
  ) throws(LedgerError) -> [SHA256Digest] {
    guard 0 <= index, index < size, size <= tree.leafCount else {
      throw LedgerError(
        .invalidInput, operation: "prove", object: "position \(index)",
        cause: "a tree of \(size) events does not contain it")
    }
    let hasher = SHA256()
    var ranges: [Range<Int>] = []
    var (start, end) = (0, size)
    while end - start > 1 {
      let middle = start + split(end - start)
      if index < middle {
        ranges.append(middle..<end)
        end = middle
      } else {
        ranges.append(start..<middle)
        start = middle
      }
    }
    return try roots(ranges.reversed(), tree, hasher)
  }

  /// `PROOF(from, D[to])`: the hashes of which both trees consist. Empty if either tree is empty.
  package static func consistency(
    from: Int, to: Int, _ tree: some TreeSource
  ) throws(LedgerError) -> [SHA256Digest] {
    guard 0 <= from, from <= to, to <= tree.leafCount else {
      throw LedgerError(
        .invalidInput, operation: "prove", object: "consistency of \(from) and \(to) events",
        cause: "the log holds \(tree.leafCount)")
    }
    if from == 0 || from == to { return [] }
    var ranges: [Range<Int>] = []
    var (start, end) = (0, to)
    while from != end {
      let middle = start + split(end - start)
      if from <= middle {
        ranges.append(middle..<end)
        end = middle
      } else {
        ranges.append(start..<middle)
        start = middle
      }
    }
    // The verifier already knows the old tree.
    if start > 0 { ranges.append(start..<end) }
    return try roots(ranges.reversed(), tree, SHA256())
  }

  /// The largest power of two smaller than a size of at least 2.
  private static func split(_ size: Int) -> Int {
    1 << (Int.bitWidth - 1 - (size - 1).leadingZeroBitCount)
  }

  private static func roots(
    _ ranges: [Range<Int>], _ tree: some TreeSource, _ hasher: SHA256
  ) throws(LedgerError) -> [SHA256Digest] {
    var result: [SHA256Digest] = []
    for range in ranges { result.append(try root(range, tree, hasher)) }
    return result
  }

  /// The root of a subtree: a range of a proof, aligned to the power of two that contains it.
  private static func root(
    _ range: Range<Int>, _ tree: some TreeSource, _ hasher: SHA256
  ) throws(LedgerError) -> SHA256Digest {
    let count = range.count
    if count == 1 { return try tree.leafHash(at: range.lowerBound) }
    var roots: [SHA256Digest]
    if range.upperBound & count == 0, count.nonzeroBitCount == 1 {
      // No frontier contains the root of a right child, but the last frontier before its end contains all its parts.
      let before = try tree.frontier(at: range.upperBound - 1)
      roots = before.roots.suffix((count - 1).nonzeroBitCount)
      roots.append(try tree.leafHash(at: range.upperBound - 1))
    } else {
      roots = try tree.frontier(at: range.upperBound).roots.suffix(count.nonzeroBitCount)
    }
    guard var root = roots.popLast() else { return TreeHash.empty(hasher) }
    while let left = roots.popLast() { root = TreeHash.node(left, root, hasher) }
    return root
  }

  // MARK: Verifying

  /// Whether a leaf is at an index of the tree with this size and root.
  package static func verifyInclusion(
    of leafHash: SHA256Digest, at index: Int, size: Int, root: SHA256Digest, _ proof: [SHA256Digest]
  ) -> Bool {
    guard 0 <= index, index < size else { return false }
    let hasher = SHA256()
    var (node, last) = (index, size - 1)
    var result = leafHash
    for hash in proof {
      if last == 0 { return false }
      if node & 1 == 1 || node == last {
        result = TreeHash.node(hash, result, hasher)
        while node & 1 == 0, node != 0 { (node, last) = (node >> 1, last >> 1) }
      } else {
        result = TreeHash.node(result, hash, hasher)
      }
      (node, last) = (node >> 1, last >> 1)
    }
    return last == 0 && result == root
  }

  /// Whether a tree is a prefix of a larger one. The empty tree is a prefix of every tree.
  package static func verifyConsistency(
    from: Int, root oldRoot: SHA256Digest, to: Int, root newRoot: SHA256Digest,
    _ proof: [SHA256Digest]
  ) -> Bool {
    let hasher = SHA256()
    guard 0 <= from, from <= to else { return false }
    if from == to { return proof.isEmpty && oldRoot == newRoot }
    if from == 0 { return proof.isEmpty && oldRoot == TreeHash.empty(hasher) }
    var rest = proof[...]
    if from.nonzeroBitCount == 1 { rest = ([oldRoot] + proof)[...] }
    guard !proof.isEmpty, let first = rest.popFirst() else { return false }
    var (node, last) = (from - 1, to - 1)
    while node & 1 == 1 { (node, last) = (node >> 1, last >> 1) }
    var (old, new) = (first, first)
    for hash in rest {
      if last == 0 { return false }
      if node & 1 == 1 || node == last {
        old = TreeHash.node(hash, old, hasher)
        new = TreeHash.node(hash, new, hasher)
        while node & 1 == 0, node != 0 { (node, last) = (node >> 1, last >> 1) }
      } else {
        new = TreeHash.node(new, hash, hasher)
      }
      (node, last) = (node >> 1, last >> 1)
    }
    return last == 0 && old == oldRoot && new == newRoot
  }
}

extension LogReader: TreeSource {
  package var leafCount: Int { head.size }

  /// The hash of an event's leaf.
  package func leafHash(at index: Int) throws(LedgerError) -> SHA256Digest {
    let line = try event(at: index)
    let hash = line.withUnsafeBytes { EventLine($0)?.leafHash(SHA256()) }
    guard let hash else {
      throw LedgerError(
        .init(verdict: .tampered, file: Format.logDirectoryName, position: index),
        operation: "read event", cause: "the line is not this event")
    }
    return hash
  }
}
