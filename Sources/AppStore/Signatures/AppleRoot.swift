// The fingerprints of the root certificates that receipts and signed objects are trusted by.
package import Base

extension SHA256Digest {
  /// The fingerprint of the Apple Inc. Root certificate, which signs every receipt's intermediate.
  package static let appleRoot = SHA256Digest(
    0xB0B1_730E_CBC7_FF45, 0x0514_2C49_F129_5E6E, 0xDA6B_CAED_7E2C_68C5, 0xBE91_B5A1_1001_F024)

  /// The fingerprint of Apple Root CA - G3, which signs every signed object's intermediate, and no receipt's.
  package static let appleRootG3 = SHA256Digest(
    0x6334_3ABF_B89A_6A03, 0xEBB5_7E9B_3F5F_A7BE, 0x7C4F_5C75_6F30_17B3, 0xA8C4_88C3_653E_9179)
}
