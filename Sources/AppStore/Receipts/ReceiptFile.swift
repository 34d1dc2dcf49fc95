// The entry point for receipt files: detects the style from the content and decodes it.

/// Receipt files of both styles.
package enum ReceiptFile {
  /// More purchases than any real receipt has; limits what a small hostile file can claim.
  package static let maximumPurchaseCount = 65_536

  /// Decodes a receipt file (the bytes after base64). `ReceiptVerifier` decides whether it is genuine.
  package static func decode(_ bytes: UnsafeRawBufferPointer) throws(ReceiptError) -> Receipt {
    switch try style(of: bytes) {
    case .unified: try UnifiedReceipt.decode(bytes)
    case .transaction: try TransactionReceipt(bytes).decode()
    }
  }

  /// Decodes a receipt file in an array.
  package static func decode(_ bytes: [UInt8]) throws(ReceiptError) -> Receipt {
    try bytes.withUnsafeBufferPointer { buffer throws(ReceiptError) in
      try decode(UnsafeRawBufferPointer(buffer))
    }
  }

  /// The style, detected from the first bytes.
  package static func style(
    of bytes: UnsafeRawBufferPointer
  ) throws(ReceiptError) -> ReceiptStyle {
    guard let first = bytes.first else { throw .empty }
    if first == DERIdentifier.sequence { return .unified }
    let visible = bytes.first { $0 != 0x20 && !(0x09...0x0D).contains($0) }
    guard visible == UInt8(ascii: "{") else { throw .unknownStyle }
    return .transaction
  }
}
