// The PKCS#7 envelope of a unified receipt (RFC 2315 §9) and a transaction receipt's signature, read without libcrypto.
import CCrypto

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

// MARK: - Digest algorithms

/// The two digests that receipts are signed with: SHA-1 before 2023, SHA-256 since.
enum DigestAlgorithm {
  case sha1
  case sha256

  /// The digest that an AlgorithmIdentifier's contents name, with parameters NULL or absent.
  init?(algorithm: Slice<UnsafeRawBufferPointer>) {
    if Self.names(algorithm, Self.sha1Identifier) {
      self = .sha1
    } else if Self.names(algorithm, Self.sha256Identifier) {
      self = .sha256
    } else {
      return nil
    }
  }

  /// Whether a signature algorithm's contents name RSA, alone or with this digest.
  func isSigned(by algorithm: Slice<UnsafeRawBufferPointer>) -> Bool {
    let withDigest =
      switch self {
      case .sha1: Self.sha1WithRSAIdentifier
      case .sha256: Self.sha256WithRSAIdentifier
      }
    return Self.names(algorithm, Self.rsaIdentifier) || Self.names(algorithm, withDigest)
  }

  /// libcrypto's object, which is never freed.
  var messageDigest: OpaquePointer? {
    switch self {
    case .sha1: Self.fetchedSHA1
    case .sha256: Self.fetchedSHA256
    }
  }

  // Fetched once; otherwise libcrypto would fetch it for each digest.
  nonisolated(unsafe) private static let fetchedSHA1: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA1", nil) ?? EVP_sha1()
  nonisolated(unsafe) private static let fetchedSHA256: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256()

  private static func names(
    _ algorithm: Slice<UnsafeRawBufferPointer>, _ identifier: [UInt8]
  ) -> Bool {
    guard algorithm.starts(with: identifier) else { return false }
    let parameters = algorithm.dropFirst(identifier.count)
    return parameters.isEmpty || parameters.elementsEqual([DERIdentifier.null, 0])
  }

  // Each is a complete element: tag 6, length and the arcs.
  private static let sha1Identifier: [UInt8] = [0x06, 0x05, 0x2B, 0x0E, 0x03, 0x02, 0x1A]
  private static let sha256Identifier: [UInt8] = [
    0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01,
  ]
  private static let rsaIdentifier: [UInt8] = [
    0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
  ]
  private static let sha1WithRSAIdentifier: [UInt8] = [
    0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x05,
  ]
  private static let sha256WithRSAIdentifier: [UInt8] = [
    0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B,
  ]
}

// MARK: - Signature of a transaction receipt

/// The locations of the blob's parts: a version byte, the signature (128 or 256 bytes), the certificate's
/// length (32 bits, big-endian), and the certificate, which ends the blob.
struct TransactionSignature {
  let version: Version
  let signature: Range<Int>
  let certificate: Range<Int>

  /// The versions. Each determines the intermediate, the signer and the digest that Apple uses with it.
  enum Version: UInt8 {
    case iTunesStore = 2
    case receiptSigning = 3
    case receiptSigningSHA256 = 4

    var intermediatePurpose: CertificatePurpose {
      switch self {
      case .iTunesStore: .iTunesStoreIntermediate
      case .receiptSigning, .receiptSigningSHA256: .developerRelationsIntermediate
      }
    }

    var signerPurpose: CertificatePurpose {
      switch self {
      case .iTunesStore: .iTunesStorePurchaseSigning
      case .receiptSigning, .receiptSigningSHA256: .receiptSigning
      }
    }

    var digest: DigestAlgorithm {
      switch self {
      case .iTunesStore, .receiptSigning: .sha1
      case .receiptSigningSHA256: .sha256
      }
    }
  }

  /// A signature and a certificate never fit into fewer bytes.
  private static let minimumSizeBytes = 128

  /// Whether the blob starts with a version byte that this program does not know. Its other bytes cannot be
  /// checked, except that a very short blob is not a signature.
  static func hasUnknownVersion(_ blob: [UInt8]) -> Bool {
    guard let first = blob.first, blob.count >= minimumSizeBytes else { return false }
    return Version(rawValue: first) == nil
  }

  /// Nil if the blob has another structure.
  init?(_ blob: [UInt8]) {
    guard let first = blob.first, let version = Version(rawValue: first) else { return nil }
    self.version = version
    for signatureSizeBytes in [128, 256] {
      let lengthStart = 1 + signatureSizeBytes
      let certificateStart = lengthStart + 4
      guard blob.count > certificateStart else { return nil }
      let length = blob[lengthStart..<certificateStart].reduce(0) { $0 << 8 | Int($1) }
      if length == blob.count - certificateStart {
        signature = 1..<lengthStart
        certificate = certificateStart..<blob.count
        return
      }
    }
    return nil
  }
}
