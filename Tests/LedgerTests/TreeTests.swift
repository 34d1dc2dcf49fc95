// SHA-256 and the Merkle tree against published vectors and the recursive definition.
import Base
import Ledger
import TestSupport
import Testing

@Suite("SHA-256 and the tree")
struct TreeTests {
  private static let leaves: [[UInt8]] = [
    [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], [0x40, 0x41, 0x42, 0x43],
    Array(0x50...0x57), Array(0x60...0x6F),
  ]

  @Test(
    "Roots of RFC 6962's vectors",
    arguments: [
      (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
      (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
      (6, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
      (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
      (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ])
  func roots(_ size: Int, _ root: String) {
    var frontier = Frontier()
    let hasher = SHA256()
    for leaf in TreeTests.leaves[..<size] {
      leaf.withUnsafeBytes { frontier.append(leafRecord: $0, hasher) }
    }
    expectEqual(frontier.size, size)
    expectEqual(frontier.root.hex, root)
  }

  @Test("Leaf and node hashes of the vectors")
  func leafAndNode() {
    let leaf = Array("L123456".utf8).withUnsafeBytes { TreeHash.leaf($0, SHA256()) }
    expectEqual(leaf.hex, "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56")
    // The vector's children are texts of four bytes, so they are hashed without the tree's own
    // function.
    let node = hash([1] + Array("N123".utf8) + Array("N456".utf8))
    expectEqual(node.hex, "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb")
    let (left, right) = (hash([1]), hash([2]))
    expectEqual(TreeHash.node(left, right, SHA256()), hash([1] + left.bytes + right.bytes))
  }

  @Test("Every size up to 70 has the root of the recursive definition, and survives encoding")
  func naive() throws {
    var frontier = Frontier()
    let hasher = SHA256()
    var leaves: [SHA256Digest] = []
    for size in 0...70 {
      expectEqual(frontier.root, naiveRoot(leaves), "size \(size)")
      let bytes = frontier.bytes
      expectEqual(bytes.count, Frontier.byteCount(size: size))
      expectEqual(bytes.withUnsafeBytes { Frontier(size: size, bytes: $0) }, frontier)
      #expect((bytes + [0]).withUnsafeBytes { Frontier(size: size, bytes: $0) } == nil)
      let leaf = hash([UInt8(size)])
      leaves.append(leaf)
      frontier.append(leafHash: leaf, hasher)
    }
  }

  @Test("A digest parses its own hexadecimal and nothing else")
  func hexadecimal() {
    func parsed(_ text: String) -> SHA256Digest? {
      Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
    }
    let digest = hash([1, 2, 3])
    expectEqual(parsed(digest.hex), digest)
    #expect(parsed(digest.hex.uppercased()) == nil)
    #expect(parsed(String(digest.hex.dropLast())) == nil)
    #expect(parsed(String(digest.hex.dropLast()) + "g") == nil)
  }
}
