// A receipt as clients send it: base64 that a form or a line-breaking encoder may have touched.
package import Base

/// Mends the two harmless ways in which base64 is damaged on its way, and no other.
package enum ReceiptText {
  /// The text with CR, LF and TAB removed and a space put back to `+` (form decoding made it one);
  /// nil where the text is already so.
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

  /// The same for an array; an undamaged one is returned without a copy.
  package static func normalize(_ text: [UInt8]) -> [UInt8] {
    text.withUnsafeBytes { normalized($0) } ?? text
  }

  /// Normalizes and decodes: from what a client sent to the receipt file's bytes.
  package static func decode(_ text: UnsafeRawBufferPointer) throws(Base64Error) -> [UInt8] {
    if let mended = normalized(text) { return try Base64.decode(mended) }
    return try Base64.decode(text)
  }

  private static func isDamage(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
      || byte == UInt8(ascii: "\t")
  }
}
