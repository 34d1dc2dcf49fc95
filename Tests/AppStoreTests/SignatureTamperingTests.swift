// Any change to a signed unified receipt is refused without a crash.

import AppStore
import AppStoreAuthority
import TestSupport
import Testing

@Suite("Tampering with unified receipts")
struct SignatureTamperingTests {
  let authority: TestAuthority
  let verifier: ReceiptVerifier
  let file: [UInt8]

  init() throws {
    authority = try TestAuthority.shared.get()
    verifier = try authority.verifier()
    file = try UnifiedReceiptPlan().signed(by: authority)
    let verdict = verifier.verify(file, receipt: try ReceiptFile.decode(file))
    try #require(verdict == .valid)
  }

  /// Nil if the file does not decode.
  func verdict(_ altered: [UInt8]) -> SignatureVerdict? {
    guard let receipt = try? ReceiptFile.decode(altered) else { return nil }
    return verifier.verify(altered, receipt: receipt)
  }

  func isRefused(_ altered: [UInt8]) -> Bool {
    switch verdict(altered) {
    case nil, .invalid: true
    case .valid, .timeOnly, .undecided: false
    }
  }

  @Test("a flipped bit in any byte of the file is refused")
  func flippedBits() {
    var random = SeededRandom()
    for offset in file.indices {
      var altered = file
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      if !isRefused(altered) { Issue.record("offset \(offset), seed \(random.seed)") }
    }
  }

  @Test("every bit of the content matters, and every bit of the signature")
  func everyBitOfContentAndSignature() throws {
    let plan = UnifiedReceiptPlan(environment: nil, purchases: [])
    let content = plan.content
    let signature = try authority.signer.key.sign(content, .sha256)
    func framed(_ content: [UInt8], _ signature: [UInt8]) -> [UInt8] {
      plan.frame(
        content: content, certificates: authority.chain, signer: authority.signer,
        signature: signature)
    }
    expectEqual(verdict(framed(content, signature)), .valid)
    for bit in 0..<content.count * 8 {
      var altered = content
      altered[bit / 8] ^= 1 << UInt8(bit % 8)
      if !isRefused(framed(altered, signature)) { Issue.record("content bit \(bit)") }
    }
    for bit in 0..<signature.count * 8 {
      var altered = signature
      altered[bit / 8] ^= 1 << UInt8(bit % 8)
      expectEqual(
        verdict(framed(content, altered)), .invalid(.wrongSignature), "signature bit \(bit)")
    }
  }

  @Test("a file cut at any length does not decode", arguments: [false, true])
  func truncated(isIndefinite: Bool) throws {
    let whole = try UnifiedReceiptPlan(isIndefinite: isIndefinite).signed(by: authority)
    for count in whole.indices {
      #expect(throws: ReceiptError.self, "cut at \(count)") {
        try ReceiptFile.decode(Array(whole.prefix(count)))
      }
    }
  }

  @Test(
    "bytes after the end are refused", arguments: [[0], [0, 0], Array("\n".utf8)] as [[UInt8]])
  func trailing(bytes: [UInt8]) throws {
    let longer = try UnifiedReceiptPlan(trailing: bytes).signed(by: authority)
    #expect(throws: ReceiptError.self) { try ReceiptFile.decode(longer) }
  }

  @Test("random damage of every kind is refused, and nothing crashes")
  func randomDamage() {
    var random = SeededRandom()
    for round in 0..<2_000 {
      var altered = file
      let place = Int.random(in: altered.indices, using: &random)
      let count = min(Int.random(in: 1...64, using: &random), altered.count - place)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: altered.replaceSubrange(place..<place + count, with: random.bytes(count: count))
      case 1: altered.removeSubrange(place..<place + count)
      case 2: altered.insert(contentsOf: random.bytes(count: count), at: place)
      default: altered.insert(contentsOf: altered[place..<place + count], at: place)
      }
      if altered == file { continue }
      #expect(isRefused(altered), "round \(round), seed \(random.seed)")
    }
  }

  @Test("damaged certificates are never cached as a known signer")
  func damageBeforeFirstUse() throws {
    var random = SeededRandom()
    let fresh = try authority.verifier()
    let receipt = try ReceiptFile.decode(file)
    let certificates = authority.chain.flatMap { $0 }
    let start = try #require(
      file.indices.first { file[$0...].starts(with: certificates) })
    for _ in 0..<100 {
      var altered = file
      let offset = Int.random(in: start..<start + certificates.count, using: &random)
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      for _ in 0..<2 {
        let verdict = fresh.verify(altered, receipt: receipt)
        guard case .invalid = verdict else {
          Issue.record("offset \(offset), seed \(random.seed): \(verdict)")
          continue
        }
      }
    }
    expectEqual(fresh.verify(file, receipt: receipt), .valid)
  }

  @Test("swapped content between two signed receipts is refused")
  func swappedSignatures() throws {
    let first = UnifiedReceiptPlan()
    let second = UnifiedReceiptPlan(purchases: [UnifiedReceiptPlan.purchase(product: "gems")])
    let swapped = first.frame(
      content: first.content, certificates: authority.chain, signer: authority.signer,
      signature: try authority.signer.key.sign(second.content, .sha256))
    expectEqual(verdict(swapped), .invalid(.wrongSignature))
  }
}
