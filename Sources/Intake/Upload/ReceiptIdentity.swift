// A receipt's identity: its digest, and its id within an app family.
package import Base

/// A receipt's identity. It is the same if the same receipt is uploaded again to the same app family.
package struct ReceiptIdentity: Equatable, Sendable {
  /// SHA-256 of the decoded receipt file.
  package let sha256: SHA256Digest
  /// UUID version 5: the namespace is the app family's id, the name is the 32 bytes of the digest.
  package let receiptID: UUID16

  package init(sha256: SHA256Digest, appFamily: UUID16) {
    self.sha256 = sha256
    receiptID = sha256.withUnsafeBytes { UUID16.named($0, in: appFamily) }
  }
}
