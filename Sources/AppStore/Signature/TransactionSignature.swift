// The signature blob of a transaction receipt: version, RSA signature, certificate.

/// Where the parts of the blob lie: a version byte, the signature (128 or 256 bytes), the
/// certificate's length (32 bits, big-endian) and the certificate, which ends the blob.
struct TransactionSignature {
  let version: Version
  let signature: Range<Int>
  let certificate: Range<Int>

  /// The two versions; each names the intermediate and the signer that Apple uses with it.
  enum Version: UInt8 {
    case iTunesStore = 2
    case receiptSigning = 3

    var intermediatePurpose: CertificatePurpose {
      switch self {
      case .iTunesStore: .iTunesStoreIntermediate
      case .receiptSigning: .developerRelationsIntermediate
      }
    }

    var signerPurpose: CertificatePurpose {
      switch self {
      case .iTunesStore: .iTunesStorePurchaseSigning
      case .receiptSigning: .receiptSigning
      }
    }
  }

  /// Nil where the blob is built otherwise.
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
