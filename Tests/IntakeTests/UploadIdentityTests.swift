// The identity of receipts.
import Base
import Intake
import Ledger
import TestSupport
import Testing

@Suite struct UploadIdentityTests {
  @Test func aReceiptIsTheSameInItsFamilyAlone() throws {
    let one = try #require(UUID16("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))
    let digest = Array("receipt".utf8).withUnsafeBytes { SHA256.hash($0) }
    let identity = ReceiptIdentity(sha256: digest, appFamily: one)
    expectEqual(identity, ReceiptIdentity(sha256: digest, appFamily: one))
    expectEqual(identity.receiptID.description, "d108f6ed-1352-5eb4-9d2e-9178372a0195")
    #expect(identity.receiptID != ReceiptIdentity(sha256: digest, appFamily: .random()).receiptID)
  }
}
