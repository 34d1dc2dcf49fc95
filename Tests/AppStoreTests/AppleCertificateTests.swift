// Apple's certificates that come with the program: each matches its fingerprint, and leads to the pinned root.

import Base
import TestSupport
import Testing

import AppStore

@Suite("Apple's shipped certificates")
struct AppleCertificateTests {
  @Test(
    "each matches its fingerprint, is made for receipts, and is signed by the pinned root"
  )
  func proven() throws {
    let root = try #require(AppleCertificates.shippedRoot.certificate)
    expectEqual(root.fingerprint, .appleRoot)
    for shipped in AppleCertificates.shippedIntermediates {
      let certificate = try #require(shipped.certificate)
      #expect(CertificateChain.leads(from: certificate, over: nil, to: root))
      #expect(
        certificate.bears(.iTunesStoreIntermediate)
          != certificate.bears(.developerRelationsIntermediate))
    }
    expectEqual(AppleCertificates.intermediates.count, 4)
    expectEqual(AppleCertificates.root.fingerprint, .appleRoot)
  }

  @Test("a text with another fingerprint is not accepted as the certificate")
  func altered() {
    let shipped = AppleCertificates.iTunesStore
    let other = ShippedCertificate(
      fingerprint: AppleCertificates.developerRelationsG5.fingerprint, text: shipped.text)
    #expect(other.certificate == nil)
    let cut = ShippedCertificate(
      fingerprint: shipped.fingerprint, text: String(shipped.text.dropLast(4)))
    #expect(cut.certificate == nil)
  }
}
