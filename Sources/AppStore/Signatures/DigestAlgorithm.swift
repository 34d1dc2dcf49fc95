// The two digests that receipts are signed with, and their algorithm identifiers.

internal import CCrypto

/// SHA-1 in receipts before 2023, SHA-256 since.
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
