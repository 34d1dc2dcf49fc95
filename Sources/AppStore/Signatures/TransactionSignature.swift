// The signature blob of a transaction receipt: version, RSA signature, certificate.

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
