// A signed object with any byte changed, and objects of many signers from many threads.

import AppStore
import AppStoreAuthority
import Base
import TestSupport
import Testing

@Suite("Altered signed objects")
struct SignedObjectTamperingTests {
  @Test("with any byte changed it is not valid")
  func everyByte() throws {
    let authority = try SignedObjectAuthority.shared.get()
    let good = try authority.sign(payload: SignedSample.transaction())
    let verifier = authority.verifier
    let valid = SignedObjectVerdict.valid(root: authority.root.fingerprint)
    expectEqual(SignedSample.verdict(good, verifier), valid)
    var accepted: [Int] = []
    for place in good.indices {
      var altered = good
      altered[place] ^= 0x01
      if case .invalid = SignedSample.verdict(altered, verifier) { continue }
      accepted.append(place)
    }
    #expect(accepted.isEmpty)
    expectEqual(SignedSample.verdict(good, verifier), valid)
  }

  @Test("more signers than the cache holds are all judged correctly")
  func manySigners() throws {
    let authority = try SignedObjectAuthority.shared.get()
    let verifier = authority.verifier
    let plan = SignedObjectAuthority.Plan().leaf
    for serial in 0..<Int64(SignedObjectVerifier.knownSignerLimit + 8) {
      var leaf = plan
      leaf.serial = serial
      let other = SignedObjectAuthority(
        root: authority.root, intermediate: authority.intermediate,
        leaf: try leaf.issue(authority.leaf.key, by: authority.intermediate))
      let text = try other.sign(payload: SignedSample.transaction())
      expectEqual(SignedSample.verdict(text, verifier), .valid(root: authority.root.fingerprint))
    }
  }

  @Test("many threads get the same verdicts from one verifier")
  func threads() async throws {
    let authority = try SignedObjectAuthority.shared.get()
    let verifier = authority.verifier
    let good = try authority.sign(payload: SignedSample.transaction())
    var altered = SignedSample.parts(good)
    altered[2] = Base64.encode([UInt8](repeating: 1, count: 64), .url)
    let bad = SignedSample.joined(altered)
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<8 {
        group.addTask {
          (0..<50).allSatisfy { _ in
            SignedSample.verdict(good, verifier) == .valid(root: authority.root.fingerprint)
              && SignedSample.verdict(bad, verifier) == .invalid(.wrongSignature)
          }
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }
}
