// The signature of ES256: two numbers of 32 bytes, and the DER that libcrypto reads.

/// An ECDSA signature on P-256 as JWS has it (RFC 7518 §3.4): R, then S, 32 bytes each, big-endian.
enum ES256Signature {
  private static let numberSizeBytes = 32
  /// SEQUENCE of two INTEGERs: each has a header of two bytes and perhaps a zero in front.
  private static let maximumDERSizeBytes = 2 + 2 * (2 + 1 + numberSizeBytes)

  /// The order of P-256's group (SP 800-186 §3.2.1.3).
  private static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  /// Gives the signature in DER to a closure. Throws unless both numbers are at least 1 and below the order.
  static func withDER<Result>(
    of signature: [UInt8],
    _ body: (UnsafeRawBufferPointer) throws(SignedObjectFault) -> Result
  ) throws(SignedObjectFault) -> Result {
    guard signature.count == 2 * numberSizeBytes else { throw .malformedSignature }
    let numbers = [signature[..<numberSizeBytes], signature[numberSizeBytes...]]
    var der: [UInt8] = [DERIdentifier.sequence, 0]
    der.reserveCapacity(maximumDERSizeBytes)
    for number in numbers {
      guard number.contains(where: { $0 != 0 }), number.lexicographicallyPrecedes(order) else {
        throw .malformedSignature
      }
      append(number, to: &der)
    }
    der[1] = UInt8(der.count - 2)
    return try der.withBytes { (bytes) throws(SignedObjectFault) in try body(bytes) }
  }

  /// Appends an INTEGER: the shortest form that is not negative.
  private static func append(_ number: ArraySlice<UInt8>, to der: inout [UInt8]) {
    let digits = number.drop { $0 == 0 }
    let needsZero = digits.first.map { $0 >= 0x80 } ?? true
    der.append(DERIdentifier.integer)
    der.append(UInt8(digits.count + (needsZero ? 1 : 0)))
    if needsZero { der.append(0) }
    der.append(contentsOf: digits)
  }
}
