// UUIDs and the identity of receipts.
import Intake
import Ledger
import Testing

@Suite struct UploadIdentityTests {
  @Test(arguments: [
    // The first is the example of RFC 9562, appendix A.4.
    (
      "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com",
      "2ed6657d-e927-568b-95e1-2665a8aea6a2"
    ),
    ("6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
  ])
  func aNamedUUIDFollowsFromItsName(_ namespace: String, _ name: String, _ expected: String) throws
  {
    let space = try #require(UUID16(namespace))
    let uuid = Array(name.utf8).withUnsafeBytes { UUID16.named($0, in: space) }
    #expect(uuid.description == expected)
  }

  @Test func aRandomUUIDHasVersionAndVariant() {
    var seen: Set<UUID16> = []
    for _ in 0..<100 {
      let uuid = UUID16.random()
      let text = Array(uuid.description)
      #expect(text[14] == "4")
      #expect("89ab".contains(text[19]))
      #expect(UUID16(uuid.description) == uuid)
      seen.insert(uuid)
    }
    #expect(seen.count == 100)
  }

  @Test(arguments: [
    "", "6ba7b810", "6ba7b8109dad11d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c80", "6ba7b810-9dad-11d1-80b4-00c04fd430cg",
    "6ba7b810-9dad-11d1-80b4+00c04fd430c8", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}",
  ])
  func whatIsNoUUIDIsNotRead(_ text: String) {
    #expect(UUID16(text) == nil)
  }

  @Test func aReceiptIsTheSameInItsFamilyAlone() throws {
    let one = try #require(UUID16("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))
    let digest = Array("receipt".utf8).withUnsafeBytes { SHA256.hash($0) }
    let identity = ReceiptIdentity(sha256: digest, appFamily: one)
    #expect(identity == ReceiptIdentity(sha256: digest, appFamily: one))
    #expect(identity.receiptID.description == "d108f6ed-1352-5eb4-9d2e-9178372a0195")
    #expect(identity.receiptID != ReceiptIdentity(sha256: digest, appFamily: .random()).receiptID)
  }
}
