// The fast JSON reader: one pass over bytes that are validated or written by this program; its errors; a line writer.

/// The kinds of JSON values.
@frozen
public enum JSONKind: Sendable {
  case object, array, string, number, boolean, null
}

/// A cursor over one JSON text. It never reads outside its bytes, whatever they contain, but it accepts some
/// texts that `JSONValidator` rejects. The bytes must outlive the cursor and everything it returns.
/// Public because `package` functions do not inline across modules: this makes a rebuild a quarter faster.
@frozen
public struct JSONCursor {
  @usableFromInline let start: UnsafePointer<UInt8>
  @usableFromInline let end: Int
  /// The cursor's position, in bytes from the start of the text.
  public var offset: Int

  /// Creates a cursor at the start of the text.
  @inlinable
  public init(_ bytes: JSONBytes) {
    if let base = bytes.baseAddress {
      start = base.assumingMemoryBound(to: UInt8.self)
      end = bytes.count
    } else {
      start = Self.nothing
      end = 0
    }
    offset = 0
  }

  @usableFromInline
  nonisolated(unsafe) static let nothing = UnsafePointer(
    UnsafeMutablePointer<UInt8>.allocate(capacity: 1))

  @inlinable @inline(__always)
  mutating func skipSpace() {
    while offset < end, start[offset] <= 0x20 { offset &+= 1 }
  }

  @inlinable @inline(__always)
  func fault(_ cause: JSONError.Cause) -> JSONError {
    JSONError(offset < end ? cause : .unexpectedEnd, at: offset)
  }

  /// The kind of the next value.
  @inlinable @inline(__always)
  public mutating func kind() throws(JSONError) -> JSONKind {
    skipSpace()
    guard offset < end else { throw fault(.unexpectedEnd) }
    switch start[offset] {
    case 0x22: return .string
    case 0x7B: return .object
    case 0x5B: return .array
    case 0x74, 0x66: return .boolean
    case 0x6E: return .null
    case 0x2D, 0x30...0x39: return .number
    default: throw fault(.unexpectedByte)
    }
  }

  // MARK: Containers

  /// Enters an object.
  @inlinable @inline(__always)
  public mutating func beginObject() throws(JSONError) { try enter(0x7B) }

  /// Enters an array.
  @inlinable @inline(__always)
  public mutating func beginArray() throws(JSONError) { try enter(0x5B) }

  @inlinable @inline(__always)
  mutating func enter(_ bracket: UInt8) throws(JSONError) {
    skipSpace()
    guard offset < end, start[offset] == bracket else { throw fault(.wrongKind) }
    offset &+= 1
  }

  /// The next key of the current object. At the object's end, leaves it and returns nil. After each key, the
  /// caller must read or skip its value.
  @inlinable @inline(__always)
  public mutating func nextKey() throws(JSONError) -> JSONString? {
    skipSpace()
    if offset < end, start[offset] == 0x2C {
      offset &+= 1
      skipSpace()
    }
    guard offset < end else { throw fault(.unexpectedEnd) }
    if start[offset] == 0x7D {
      offset &+= 1
      return nil
    }
    let key = try readString()
    skipSpace()
    guard offset < end, start[offset] == 0x3A else { throw fault(.unexpectedByte) }
    offset &+= 1
    return key
  }

  /// Whether the current array has another element. If not, the cursor has left the array.
  @inlinable @inline(__always)
  public mutating func nextElement() throws(JSONError) -> Bool {
    skipSpace()
    if offset < end, start[offset] == 0x2C {
      offset &+= 1
      skipSpace()
    }
    guard offset < end else { throw fault(.unexpectedEnd) }
    if start[offset] == 0x5D {
      offset &+= 1
      return false
    }
    return true
  }

  // MARK: Values

  /// Reads a string.
  @inlinable @inline(__always)
  public mutating func readString() throws(JSONError) -> JSONString {
    skipSpace()
    guard offset < end, start[offset] == 0x22 else { throw fault(.wrongKind) }
    let first = offset &+ 1
    var quote = Scan.quoteOrBackslash(start, from: first, to: end)
    var hasEscapes = false
    while quote < end, start[quote] == 0x5C {
      hasEscapes = true
      quote = Scan.quoteOrBackslash(start, from: min(quote &+ 2, end), to: end)
    }
    guard quote < end else {
      offset = end
      throw fault(.unexpectedEnd)
    }
    offset = quote &+ 1
    return JSONString(
      raw: JSONBytes(start: start + first, count: quote &- first), hasEscapes: hasEscapes)
  }

  /// Reads a number's token as written.
  @inlinable
  public mutating func readNumber() throws(JSONError) -> JSONBytes {
    guard try kind() == .number else { throw fault(.wrongKind) }
    let first = offset
    while offset < end, isNumberByte(start[offset]) { offset &+= 1 }
    return JSONBytes(start: start + first, count: offset &- first)
  }

  @inlinable @inline(__always)
  func isNumberByte(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || byte == 0x2E || byte == 0x2D || byte == 0x2B
      || byte | 0x20 == 0x65
  }

  /// Reads an integer that fits in 64 bits; any other number throws `wrongKind`.
  @inlinable
  public mutating func readInteger() throws(JSONError) -> Int64 {
    let token = try readNumber()
    guard let value = JSONNumber.integer(token) else {
      throw JSONError(.wrongKind, at: offset - token.count)
    }
    return value
  }

  /// Reads `true` or `false`.
  @inlinable
  public mutating func readBoolean() throws(JSONError) -> Bool {
    guard try kind() == .boolean else { throw fault(.wrongKind) }
    let value = start[offset] == 0x74
    try skipWord(value ? 4 : 5)
    return value
  }

  /// Consumes a `null` if it is the next value; returns whether it was.
  @inlinable
  public mutating func consumeNull() throws(JSONError) -> Bool {
    guard try kind() == .null else { return false }
    try skipWord(4)
    return true
  }

  @inlinable
  mutating func skipWord(_ count: Int) throws(JSONError) {
    guard offset + count <= end else { throw JSONError(.unexpectedEnd, at: end) }
    offset += count
  }

  /// Reads a value of any kind as the bytes that represent it.
  @inlinable @inline(__always)
  public mutating func readRaw() throws(JSONError) -> JSONBytes {
    skipSpace()
    let first = offset
    try skipValue()
    return JSONBytes(start: start + first, count: offset &- first)
  }

  /// Returns the value of the outermost object's last member without inspecting it: everything up to the
  /// text's last byte, which must end that object. Any extra bytes are detected when the value is read.
  @inlinable
  public mutating func readRest() throws(JSONError) -> JSONBytes {
    skipSpace()
    guard offset < end, start[end &- 1] == 0x7D else { throw fault(.unexpectedEnd) }
    let first = offset
    offset = end
    return JSONBytes(start: start + first, count: end &- 1 &- first)
  }

  /// The bytes passed since an earlier offset.
  @inlinable @inline(__always)
  public func passed(since earlier: Int) -> JSONBytes {
    JSONBytes(start: start + earlier, count: offset &- earlier)
  }

  /// Skips one value of any kind.
  @inlinable
  public mutating func skipValue() throws(JSONError) {
    switch try kind() {
    case .string: _ = try readString()
    case .number: _ = try readNumber()
    case .boolean: _ = try readBoolean()
    case .null: try skipWord(4)
    case .object, .array: try skipContainer()
    }
  }

  @inlinable
  mutating func skipContainer() throws(JSONError) {
    var depth = 0
    while offset < end {
      switch start[offset] {
      case 0x22: _ = try readString()
      case 0x7B, 0x5B:
        depth &+= 1
        offset &+= 1
      case 0x7D, 0x5D:
        depth &-= 1
        offset &+= 1
        if depth == 0 { return }
      default: offset &+= 1
      }
    }
    throw fault(.unexpectedEnd)
  }

  /// Throws unless only white space is left.
  @inlinable
  public mutating func expectEnd() throws(JSONError) {
    skipSpace()
    if offset < end { throw JSONError(.trailingBytes, at: offset) }
  }
}

/// Reads numbers from their tokens, without binary floating point.
@frozen
public enum JSONNumber {
  /// The value of an integer's token (digits, optionally preceded by `-`) that fits in 64 bits; otherwise
  /// nil.
  @inlinable
  public static func integer(_ token: JSONBytes) -> Int64? {
    var index = 0
    let isNegative = token.first == 0x2D
    if isNegative { index = 1 }
    guard index < token.count else { return nil }
    var value: Int64 = 0
    while index < token.count {
      let byte = token[index]
      guard (0x30...0x39).contains(byte) else { return nil }
      let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowToo) = scaled.subtractingReportingOverflow(Int64(byte &- 0x30))
      if overflow || overflowToo { return nil }
      value = sum
      index += 1
    }
    if isNegative { return value }
    return value == .min ? nil : -value
  }
}

// MARK: - Errors

/// An error in a JSON text. It gives an offset and a cause, never the text itself, which may contain secrets.
@frozen
public struct JSONError: ReportableError, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  @frozen
  public enum Cause: String, Sendable {
    case unexpectedEnd = "unexpected end"
    case unexpectedByte = "unexpected byte"
    case invalidNumber = "invalid number"
    case invalidEscape = "invalid escape sequence"
    case loneSurrogate = "unpaired surrogate"
    case controlCharacter = "unescaped control character in a string"
    case invalidUTF8 = "invalid UTF-8"
    case tooDeep = "nested too deeply"
    case duplicateKey = "duplicate key"
    case trailingBytes = "unexpected bytes after the end"
    case wrongKind = "a value of the wrong type"
  }

  /// What is wrong.
  public let cause: Cause
  /// Position of the error, in bytes from the start of the text.
  public let offsetBytes: Int

  /// Creates an error at an offset.
  @inlinable
  public init(_ cause: Cause, at offsetBytes: Int) {
    self.cause = cause
    self.offsetBytes = offsetBytes
  }

  /// Cause and offset, for display.
  public var description: String { "\(cause.rawValue) at byte \(offsetBytes)" }
}

// MARK: - Objects with one member per line

/// Writes one JSON object with one member per line, for small files that people also read. Member names must not need
/// escaping.
package struct JSONLines {
  private var lines: [String] = []

  package init() {}

  /// Adds a member whose value `body` writes.
  package mutating func add(_ name: String, _ body: (inout JSONWriter) -> Void) {
    var writer = JSONWriter()
    body(&writer)
    lines.append("\"\(name)\":" + String(decoding: writer.bytes, as: UTF8.self))
  }

  /// The object's bytes, ending with a line feed.
  package var bytes: [UInt8] { Array("{\n\(lines.joined(separator: ",\n"))\n}\n".utf8) }
}
