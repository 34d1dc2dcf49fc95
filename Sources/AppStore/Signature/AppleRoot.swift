// The fingerprint of the root certificate that receipts are trusted by.
package import Base

extension SHA256Digest {
  /// The fingerprint of the Apple Inc. Root certificate, which signs every receipt's intermediate.
  package static let appleRoot = SHA256Digest(
    0xB0B1_730E_CBC7_FF45, 0x0514_2C49_F129_5E6E, 0xDA6B_CAED_7E2C_68C5, 0xBE91_B5A1_1001_F024)
}
