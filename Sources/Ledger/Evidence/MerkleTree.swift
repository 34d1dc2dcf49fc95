// The Merkle tree of RFC 6962, kept as the roots of its perfect subtrees.
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
