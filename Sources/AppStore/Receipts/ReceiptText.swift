// A receipt as clients send it: base64 that a form or a line-breaking encoder may have altered.
package import Base

/// Repairs the two harmless ways in which base64 is altered in transit, and no others.
package enum ReceiptText {
  /// The text without CR, LF and TAB, and with each space turned back into `+` (form decoding had replaced
  /// it); nil if the text needs no change.
  package static func normalized(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let first = text.firstIndex(where: { $0 <= UInt8(ascii: " ") && isDamage($0) }) else {
      return nil
    }
    return [UInt8](unsafeUninitializedCapacity: text.count) { output, count in
      for offset in 0..<text.count {
        var byte = text[offset]
        if offset >= first, isDamage(byte) {
          guard byte == UInt8(ascii: " ") else { continue }
          byte = UInt8(ascii: "+")
        }
        output.initializeElement(at: count, to: byte)
        count += 1
      }
    }
  }

  /// The same for an array. An unaltered array is returned without a copy.
  package static func normalize(_ text: [UInt8]) -> [UInt8] {
    text.withUnsafeBytes { normalized($0) } ?? text
  }

  /// Normalizes and decodes what a client sent into the bytes of the receipt file.
  package static func decode(_ text: UnsafeRawBufferPointer) throws(Base64Error) -> [UInt8] {
    if let mended = normalized(text) { return try Base64.decode(mended) }
    return try Base64.decode(text)
  }

  private static func isDamage(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
      || byte == UInt8(ascii: "\t")
  }
}
