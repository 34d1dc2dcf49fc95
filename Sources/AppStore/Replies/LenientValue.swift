// Reads the App Store's values leniently: the same field may be a string, an integer or a boolean.
package import Base

/// A scalar in a reply. Strings are unescaped; the bytes live as long as the reply's bytes and its
/// `TextKeeper`.
package enum LenientValue {
  case missing
  case string(JSONBytes)
  /// A number's token as written.
  case number(JSONBytes)
  case boolean(Bool)
  /// An array or object as written.
  case container(JSONBytes)

  /// A non-empty string, or the digits of an integer; otherwise nil.
  package var id: JSONBytes? {
    switch self {
    case .string(let text): text.isEmpty ? nil : text
    case .number(let token): token.allSatisfy(Self.isIntegerByte) ? token : nil
    default: nil
    }
  }

  /// An integer, or a string of digits, that fits in 64 bits; otherwise nil.
  package var integer: Int64? {
    switch self {
    case .string(let text): text.first == UInt8(ascii: "-") ? nil : JSONNumber.integer(text)
    case .number(let token): JSONNumber.integer(token)
    default: nil
    }
  }

  /// True for `true`, `"true"`, `1` and `"1"`.
  package var flag: Bool {
    switch self {
    case .boolean(let value): value
    case .string(let text):
      text.elementsEqual("true".utf8) || text.elementsEqual(CollectionOfOne(UInt8(ascii: "1")))
    case .number(let token): token.elementsEqual(CollectionOfOne(UInt8(ascii: "1")))
    default: false
    }
  }

  /// The flag; nil if there is no value.
  package var flagIfPresent: Bool? {
    if case .missing = self { return nil }
    return flag
  }

  /// True or false if the value is a boolean, 0 or 1, or a string with one of these; otherwise nil.
  package var spokenFlag: Bool? {
    switch text.lowercased() {
    case "true", "1": true
    case "false", "0": false
    default: nil
    }
  }

  /// The value as text for display.
  package var text: String {
    switch self {
    case .missing: ""
    case .string(let bytes), .number(let bytes), .container(let bytes):
      String(decoding: bytes, as: UTF8.self)
    case .boolean(let value): value ? "true" : "false"
    }
  }

  private static func isIntegerByte(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
  }
}

/// Keeps unescaped strings in memory while the reply is in use.
package final class TextKeeper {
  private var kept: [UnsafeMutableRawBufferPointer] = []

  package init() {}

  deinit { removeAll() }

  /// Frees all strings; every buffer handed out becomes invalid.
  package func removeAll() {
    for buffer in kept { buffer.deallocate() }
    kept.removeAll(keepingCapacity: true)
  }

  /// The string's unescaped bytes; without escapes, the bytes in the text itself.
  @inline(__always)
  package func bytes(of string: JSONString) -> JSONBytes {
    string.hasEscapes ? keep(string.bytes) : string.raw
  }

  /// Keeps bytes that are not part of the text.
  package func keep(_ bytes: [UInt8]) -> JSONBytes {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(bytes.count, 1), alignment: 1)
    buffer.copyBytes(from: bytes)
    kept.append(buffer)
    return JSONBytes(rebasing: buffer[0..<bytes.count])
  }

  /// Reads the value at the cursor.
  @inline(__always)
  package func read(_ cursor: inout JSONCursor) throws(JSONError) -> LenientValue {
    switch try cursor.kind() {
    case .string: return .string(bytes(of: try cursor.readString()))
    case .number: return .number(try cursor.readNumber())
    case .boolean: return .boolean(try cursor.readBoolean())
    case .null:
      _ = try cursor.consumeNull()
      return .missing
    case .object, .array: return .container(try cursor.readRaw())
    }
  }
}
