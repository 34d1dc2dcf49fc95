// Proofs as files, and the arithmetic behind them.
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let proof = FuzzTarget(
    name: "proof", inputByteCountMax: 3072,
    words: [
      "c2sp.org/tlog-proof@v1\n", "receipt-ledger/consistency-proof@v1\n", "extra ", "index ",
      "old ", "\n\n", "\n\n\u{2014} ", "receipts.example/fuzz\n",
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    ],
    seeds: {
      let tree = SampleTree.shared
      var seeds: [[UInt8]] = []
      for (index, size) in [(0, 1), (0, 13), (6, 7), (12, 13), (5, 8)] {
        seeds.append([0] + (try tree.inclusion(of: index, in: size)).bytes)
        seeds.append([2, UInt8(index), UInt8(size)])
      }
      for (from, to) in [(0, 13), (7, 13), (8, 8), (8, 13), (2, 7)] {
        seeds.append([1] + (try tree.consistency(from: from, to: to)).bytes)
        seeds.append([3, UInt8(from), UInt8(to), 0x12])
      }
      return seeds
    },
    check: { input in
      guard let (form, rest) = split(input) else { return }
      do {
        switch form & 3 {
        case 0: try ProofCheck.inclusion(Array(rest))
        case 1: try ProofCheck.consistency(Array(rest))
        case 2: try ProofCheck.inclusionOfTree(Array(rest))
        default: try ProofCheck.consistencyOfTree(Array(rest))
        }
      } catch let error as ProofError {
        require(!error.cause.isEmpty, "refusals have causes")
      } catch { require(false, "a sample proof cannot be made: \(error)") }
    })
}

private enum ProofCheck {
  private static var tree: SampleTree { SampleTree.shared }

  static func inclusion(_ bytes: [UInt8]) throws {
    let proof = try InclusionProof(bytes)
    require(proof.bytes == bytes, "a proof is written as it was read")
    let head = try proof.verify([tree.key.verifierKey])
    // Only what is in the tree can be proven, and only in one way.
    require(proof.index < head.size, "an event lies in its tree")
    require(proof.leafRecord == tree.records[proof.index], "only an event of the tree is proven")
    require(
      proof.hashes == (try tree.inclusion(of: proof.index, in: head.size)).hashes,
      "there is one proof for each event")
  }

  static func consistency(_ bytes: [UInt8]) throws {
    let proof = try ConsistencyProof(bytes)
    require(proof.bytes == bytes, "a proof is written as it was read")
    let heads = try proof.verify([tree.key.verifierKey])
    require(heads.old.size <= heads.new.size, "the old tree is the beginning of the new one")
    require(
      proof.hashes == (try tree.consistency(from: heads.old.size, to: heads.new.size)).hashes,
      "there is one proof for each pair of heads")
  }

  /// Index, size, and what is done to the right proof: the verdict is that of the proof made here.
  static func inclusionOfTree(_ bytes: [UInt8]) throws {
    guard bytes.count >= 2 else { return }
    let (index, size) = (Int(bytes[0]), Int(bytes[1]))
    guard size <= tree.leafCount else {
      let digest = tree.leafHash(at: 0)
      let hashes = [SHA256Digest](repeating: digest, count: bytes.count)
      _ = TreeProof.verifyInclusion(of: digest, at: index, size: size << 40, root: digest, hashes)
      return
    }
    let right = index < size ? try tree.inclusion(of: index, in: size).hashes : []
    let bent = bend(right, bytes.dropFirst(2))
    let holds = TreeProof.verifyInclusion(
      of: tree.leafHash(at: index % tree.leafCount), at: index, size: size,
      root: tree.frontier(at: size).root, bent)
    require(holds == (index < size && bent == right), "a proof holds if and only if it is the one")
  }

  static func consistencyOfTree(_ bytes: [UInt8]) throws {
    guard bytes.count >= 2 else { return }
    let (from, to) = (Int(bytes[0]), Int(bytes[1]))
    guard from <= tree.leafCount, to <= tree.leafCount else {
      let digest = tree.leafHash(at: 0)
      let hashes = [SHA256Digest](repeating: digest, count: bytes.count)
      _ = TreeProof.verifyConsistency(
        from: from << 40, root: digest, to: to << 41, root: digest, hashes)
      return
    }
    let right = from <= to ? try TreeProof.consistency(from: from, to: to, tree) : []
    let bent = bend(right, bytes.dropFirst(2))
    let holds = TreeProof.verifyConsistency(
      from: from, root: tree.frontier(at: from).root, to: to, root: tree.frontier(at: to).root,
      bent)
    require(holds == (from <= to && bent == right), "a proof holds if and only if it is the one")
  }

  /// Hashes removed, doubled, replaced or added, a byte for each.
  private static func bend(_ hashes: [SHA256Digest], _ steps: ArraySlice<UInt8>) -> [SHA256Digest] {
    var result = hashes
    for step in steps.prefix(8) {
      let place = Int(step >> 2)
      switch step & 3 {
      case 0 where place < result.count: result.remove(at: place)
      case 1 where place < result.count: result.insert(result[place], at: place)
      case 2 where place < result.count: result[place] = tree.leafHash(at: place % tree.leafCount)
      case 3: result.append(tree.leafHash(at: place % tree.leafCount))
      default: break
      }
    }
    return result
  }
}
