// A string inside a JSON text: the raw bytes between the quotes, unescaped on demand.

/// The bytes between a JSON string's quotes. Valid as long as the text that contains them.
public struct JSONString {
  /// The bytes as written, escapes included.
  public let raw: JSONBytes
  /// Whether `raw` contains a backslash. If not, `raw` is the string itself.
  public let hasEscapes: Bool

  /// Creates a string from raw bytes.
  @inlinable
  public init(raw: JSONBytes, hasEscapes: Bool) {
    self.raw = raw
    self.hasEscapes = hasEscapes
  }

  /// Compares with a literal. A string with escapes is unescaped first.
  @inlinable @inline(__always)
  public static func == (left: JSONString, right: StaticString) -> Bool {
    if left.hasEscapes { return left.equalsUnescaped(right) }
    guard left.raw.count == right.utf8CodeUnitCount else { return false }
    guard let start = left.raw.baseAddress else { return true }
    return Scan.equals(start, right.utf8Start, left.raw.count)
  }

  @usableFromInline
  func equalsUnescaped(_ literal: StaticString) -> Bool {
    bytes.elementsEqual(
      UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
  }

  /// The string's UTF-8 bytes, unescaped.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    append(to: &result)
    return result
  }

  /// The string, unescaped.
  public var string: String {
    hasEscapes ? String(decoding: bytes, as: UTF8.self) : String(decoding: raw, as: UTF8.self)
  }

  /// Appends the unescaped bytes. A lone surrogate, which validated text cannot contain, becomes U+FFFD.
  public func append(to result: inout [UInt8]) {
    guard hasEscapes else {
      result.append(contentsOf: raw)
      return
    }
    result.reserveCapacity(result.count + raw.count)
    var index = 0
    while index < raw.count {
      let byte = raw[index]
      index += 1
      guard byte == 0x5C, index < raw.count else {
        result.append(byte)
        continue
      }
      let escape = raw[index]
      index += 1
      switch escape {
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "u"): appendUnicode(&index, to: &result)
      default: result.append(escape)
      }
    }
  }

  private func appendUnicode(_ index: inout Int, to result: inout [UInt8]) {
    var scalar = hex(at: index) ?? 0xFFFD
    index = min(index + 4, raw.count)
    if (0xD800...0xDBFF).contains(scalar), index + 6 <= raw.count, raw[index] == 0x5C,
      raw[index + 1] == UInt8(ascii: "u"), let low = hex(at: index + 2),
      (0xDC00...0xDFFF).contains(low)
    {
      scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
      index += 6
    }
    let character = Unicode.Scalar(scalar) ?? "\u{FFFD}"
    result.append(contentsOf: Array(String(character).utf8))
  }

  private func hex(at index: Int) -> UInt32? {
    guard index + 4 <= raw.count else { return nil }
    var value: UInt32 = 0
    for place in index..<index + 4 {
      guard let digit = Scan.hexValue(raw[place]) else { return nil }
      value = value << 4 | digit
    }
    return value
  }
}
