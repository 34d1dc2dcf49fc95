// The PKCS#7 envelope of a unified receipt (RFC 2315 §9), read without libcrypto.

/// The locations of the parts of a SignedData with one signer and no signed attributes.
struct SignedData {
  /// The signed content.
  let content: DEROctets
  /// The embedded certificates, one after the other. Untrusted.
  let certificates: Range<Int>
  /// The signer's issuer and serial number, one after the other, as in its certificate.
  let signerName: Range<Int>
  let digest: DigestAlgorithm
  let signature: Range<Int>

  /// Reads only the content, for decoding.
  static func content(of bytes: UnsafeRawBufferPointer) throws(ReceiptError) -> DEROctets {
    let opening: Opening?
    do { opening = try Opening(bytes) } catch { throw .envelope(error) }
    guard let opening else { throw .notSignedData }
    return opening.content
  }

  /// Reads the whole envelope; nil if it has anything that Apple's envelopes never have. Nothing signs the
  /// envelope itself, so an unusual one has been modified.
  init?(_ bytes: UnsafeRawBufferPointer) throws(DERError) {
    guard let opening = try Opening(bytes), opening.version == 1 else { return nil }
    var rest = opening.rest
    content = opening.content
    certificates = try rest.next(DERIdentifier.context0).content
    var signers = try rest.enter(DERIdentifier.set)
    try rest.finish()

    var signer = try signers.enter(DERIdentifier.sequence)
    try signers.finish()
    guard try signer.nextInteger() == 1 else { return nil }
    signerName = try signer.next(DERIdentifier.sequence).content
    let digestContent = try signer.next(DERIdentifier.sequence).content
    guard let digest = DigestAlgorithm(algorithm: bytes[digestContent]),
      bytes[opening.digest].elementsEqual(bytes[digestContent])
    else { return nil }
    self.digest = digest
    // Signed attributes would be here; the identifier would then not be a SEQUENCE's.
    let algorithm = try signer.next(DERIdentifier.sequence).content
    guard digest.isSigned(by: bytes[algorithm]) else { return nil }
    signature = try signer.next(DERIdentifier.octetString).content
    try signer.finish()
  }

  /// The envelope up to its content.
  private struct Opening {
    let version: Int64
    /// The only digest algorithm, as AlgorithmIdentifier contents.
    let digest: Range<Int>
    let content: DEROctets
    /// The elements after the content.
    let rest: DERReader

    /// Nil if the bytes are valid ASN.1 but PKCS#7 of another type.
    init?(_ bytes: UnsafeRawBufferPointer) throws(DERError) {
      var file = DERReader(bytes)
      var contentInfo = try file.enter(DERIdentifier.sequence)
      try file.finish()
      let type = try contentInfo.next(DERIdentifier.objectIdentifier).content
      guard bytes[type].elementsEqual(ObjectIdentifier.signedData) else { return nil }
      var wrapper = try contentInfo.enter(DERIdentifier.context0)
      try contentInfo.finish()
      var signedData = try wrapper.enter(DERIdentifier.sequence)
      try wrapper.finish()

      version = try signedData.nextInteger()
      var digests = try signedData.enter(DERIdentifier.set)
      digest = try digests.next(DERIdentifier.sequence).content
      try digests.finish()
      var encapsulated = try signedData.enter(DERIdentifier.sequence)
      let contentType = try encapsulated.next(DERIdentifier.objectIdentifier).content
      guard bytes[contentType].elementsEqual(ObjectIdentifier.data) else { return nil }
      var contentWrapper = try encapsulated.enter(DERIdentifier.context0)
      try encapsulated.finish()
      content = try contentWrapper.nextOctets()
      try contentWrapper.finish()
      rest = signedData
    }
  }
}

/// The contents of the OBJECT IDENTIFIERs in a receipt's envelope.
enum ObjectIdentifier {
  /// 1.2.840.113549.1.7.1
  static let data: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01]
  /// 1.2.840.113549.1.7.2
  static let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
}
