// A bounded reader for property lists in the NeXT (OpenStep) text form.
import Base

/// Why bytes are not a property list. Offsets are in bytes from the start of the list.
package struct PropertyListError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong.
  package enum Kind: Equatable, Sendable {
    /// The bytes end inside the list.
    case truncated
    /// A character that the grammar does not allow here.
    case unexpectedCharacter
    /// The same key twice in the outermost dictionary.
    case duplicateKey
    /// Nested deeper than `PropertyList.maximumDepth`.
    case tooDeep
    /// More entries than `PropertyList.maximumEntryCount`.
    case tooManyEntries
    /// A backslash that does not start an escape for an ASCII or Unicode character.
    case invalidEscape
    /// A string that is not UTF-8.
    case notUTF8
    /// Something other than white space and comments after the list.
    case trailingBytes
  }

  package var kind: Kind
  package var offsetBytes: Int

  package init(kind: Kind, offsetBytes: Int) {
    self.kind = kind
    self.offsetBytes = offsetBytes
  }

  package var description: String {
    let cause =
      switch kind {
      case .truncated: "truncated"
      case .unexpectedCharacter: "unexpected character"
      case .duplicateKey: "duplicate key"
      case .tooDeep: "nested deeper than \(PropertyList.maximumDepth) levels"
      case .tooManyEntries: "more than \(PropertyList.maximumEntryCount) entries"
      case .invalidEscape: "invalid escape"
      case .notUTF8: "string is not UTF-8"
      case .trailingBytes: "bytes after the end"
      }
    return "offset \(offsetBytes): \(cause)"
  }
}

/// The text entries of a property list's outermost dictionary. The grammar of entries that hold a dictionary,
/// an array or data is checked, but those entries are not kept.
package struct PropertyList {
  /// The most dictionaries and arrays that may be open at once.
  package static let maximumDepth = 32
  /// Receipts have about 25 entries.
  package static let maximumEntryCount = 512

  private var texts: [String: String] = [:]
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  /// Reads the list, which must fill `bytes`.
  package static func texts(
    in bytes: UnsafeRawBufferPointer
  ) throws(PropertyListError) -> [String: String] {
    var list = PropertyList(bytes: bytes)
    try list.readOutermostDictionary()
    return list.texts
  }

  private init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  private mutating func readOutermostDictionary() throws(PropertyListError) {
    try expect(UInt8(ascii: "{"))
    var keys: Set<String> = []
    while try peek() != UInt8(ascii: "}") {
      let keyOffset = offset
      let key = try readText()
      guard keys.insert(key).inserted else { throw fault(.duplicateKey, keyOffset) }
      guard keys.count <= Self.maximumEntryCount else { throw fault(.tooManyEntries, keyOffset) }
      try expect(UInt8(ascii: "="))
      switch try peek() {
      case UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "<"): try skipValue()
      default: texts[key] = try readText()
      }
      try expect(UInt8(ascii: ";"))
    }
    offset += 1
    try skipBlanks()
    guard offset == bytes.count else { throw fault(.trailingBytes, offset) }
  }

  /// What the next token inside a nested value may be.
  private enum Expectation {
    case key, equals, value, semicolon, element, comma
  }

  /// Skips a nested value, with an explicit stack instead of recursion.
  private mutating func skipValue() throws(PropertyListError) {
    var open: [UInt8] = []
    var expectation = Expectation.value
    repeat {
      let byte = try peek()
      switch (expectation, byte) {
      case (.value, UInt8(ascii: "{")), (.element, UInt8(ascii: "{")):
        try push(byte, on: &open)
        expectation = .key
        continue
      case (.value, UInt8(ascii: "(")), (.element, UInt8(ascii: "(")):
        try push(byte, on: &open)
        expectation = .element
        continue
      case (.key, UInt8(ascii: "}")), (.element, UInt8(ascii: ")")), (.comma, UInt8(ascii: ")")):
        offset += 1
        open.removeLast()
      case (.key, _):
        _ = try readText()
        expectation = .equals
        continue
      case (.equals, _):
        try expect(UInt8(ascii: "="))
        expectation = .value
        continue
      case (.semicolon, _):
        try expect(UInt8(ascii: ";"))
        expectation = .key
        continue
      case (.comma, _):
        try expect(UInt8(ascii: ","))
        expectation = .element
        continue
      case (.value, UInt8(ascii: "<")), (.element, UInt8(ascii: "<")):
        try skipData()
      case (.value, _), (.element, _):
        _ = try readText()
      }
      // A value has just ended; its container determines what may follow.
      expectation = open.last == UInt8(ascii: "{") ? .semicolon : .comma
    } while !open.isEmpty
  }

  private mutating func push(
    _ byte: UInt8, on open: inout [UInt8]
  ) throws(PropertyListError) {
    // The outermost dictionary counts as a level.
    guard open.count + 1 < Self.maximumDepth else { throw fault(.tooDeep, offset) }
    open.append(byte)
    offset += 1
  }

  /// Skips `<0fbd 77>`: pairs of hexadecimal digits, separated by white space.
  private mutating func skipData() throws(PropertyListError) {
    offset += 1
    var digitCount = 0
    while true {
      let byte = try peek()
      if byte == UInt8(ascii: ">") { break }
      guard Hex.value(anyCase: byte) != nil else { throw fault(.unexpectedCharacter, offset) }
      digitCount += 1
      offset += 1
    }
    guard digitCount % 2 == 0 else { throw fault(.unexpectedCharacter, offset) }
    offset += 1
  }

  // MARK: Strings

  private mutating func readText() throws(PropertyListError) -> String {
    let first = try peek()
    if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
      return try readQuoted(closedBy: first)
    }
    let start = offset
    while offset < bytes.count, Self.isUnquoted(bytes[offset]) { offset += 1 }
    guard offset > start else { throw fault(.unexpectedCharacter, start) }
    // A word that ends with the input may have been cut off.
    guard offset < bytes.count else { throw fault(.truncated, offset) }
    return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<offset]), as: UTF8.self)
  }

  private mutating func readQuoted(closedBy quote: UInt8) throws(PropertyListError) -> String {
    let start = offset + 1
    var end = start
    while end < bytes.count, bytes[end] != quote, bytes[end] != UInt8(ascii: "\\") { end += 1 }
    guard end < bytes.count else { throw fault(.truncated, bytes.count) }
    if bytes[end] == quote {
      offset = end + 1
      return try text(bytes[start..<end], at: start)
    }
    var unescaped = [UInt8](bytes[start..<end])
    offset = end
    while true {
      guard offset < bytes.count else { throw fault(.truncated, bytes.count) }
      let byte = bytes[offset]
      offset += 1
      if byte == quote { break }
      if byte == UInt8(ascii: "\\") {
        try readEscape(into: &unescaped)
      } else {
        unescaped.append(byte)
      }
    }
    return try text(unescaped, at: start)
  }

  private func text(
    _ utf8: some Collection<UInt8>, at start: Int
  ) throws(PropertyListError) -> String {
    guard let text = String(validating: utf8, as: UTF8.self) else { throw fault(.notUTF8, start) }
    return text
  }

  /// Reads the escape after a backslash.
  private mutating func readEscape(into unescaped: inout [UInt8]) throws(PropertyListError) {
    guard offset < bytes.count else { throw fault(.truncated, bytes.count) }
    let byte = bytes[offset]
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      // Up to three octal digits; above 0177, the meaning depends on an obsolete encoding.
      var value = 0
      var digitCount = 0
      while digitCount < 3, offset < bytes.count,
        (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(bytes[offset])
      {
        value = value * 8 + Int(bytes[offset] - UInt8(ascii: "0"))
        digitCount += 1
        offset += 1
      }
      guard value < 0x80 else { throw fault(.invalidEscape, offset) }
      unescaped.append(UInt8(value))
    case UInt8(ascii: "U"):
      offset += 1
      try readUnicodeEscape(into: &unescaped)
    default:
      guard let meaning = Self.escapeMeaning(byte) else { throw fault(.invalidEscape, offset) }
      unescaped.append(meaning)
      offset += 1
    }
  }

  private mutating func readUnicodeEscape(into unescaped: inout [UInt8]) throws(PropertyListError) {
    let start = offset
    var scalar = try readCodeUnit()
    if (0xD800...0xDBFF).contains(scalar) {
      guard bytes.count - offset >= 2, bytes[offset] == UInt8(ascii: "\\"),
        bytes[offset + 1] == UInt8(ascii: "U")
      else { throw fault(.invalidEscape, start) }
      offset += 2
      let low = try readCodeUnit()
      guard (0xDC00...0xDFFF).contains(low) else { throw fault(.invalidEscape, start) }
      scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(scalar) else { throw fault(.invalidEscape, start) }
    unescaped.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
  }

  /// Reads four hexadecimal digits.
  private mutating func readCodeUnit() throws(PropertyListError) -> UInt32 {
    guard bytes.count - offset >= 4 else { throw fault(.truncated, bytes.count) }
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Hex.value(anyCase: bytes[offset]) else {
        throw fault(.invalidEscape, offset)
      }
      value = value << 4 | UInt32(digit)
      offset += 1
    }
    return value
  }

  // MARK: Characters

  private mutating func expect(_ byte: UInt8) throws(PropertyListError) {
    guard try peek() == byte else { throw fault(.unexpectedCharacter, offset) }
    offset += 1
  }

  /// The next byte that is neither white space nor part of a comment.
  private mutating func peek() throws(PropertyListError) -> UInt8 {
    try skipBlanks()
    guard offset < bytes.count else { throw fault(.truncated, offset) }
    return bytes[offset]
  }

  private mutating func skipBlanks() throws(PropertyListError) {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x09...0x0D, 0x20: offset += 1
      case UInt8(ascii: "/"):
        guard offset + 1 < bytes.count else { throw fault(.truncated, bytes.count) }
        if bytes[offset + 1] == UInt8(ascii: "/") {
          while offset < bytes.count, bytes[offset] != 0x0A, bytes[offset] != 0x0D { offset += 1 }
        } else if bytes[offset + 1] == UInt8(ascii: "*") {
          try skipBlockComment()
        } else {
          return
        }
      default: return
      }
    }
  }

  private mutating func skipBlockComment() throws(PropertyListError) {
    offset += 2
    while offset + 1 < bytes.count {
      if bytes[offset] == UInt8(ascii: "*"), bytes[offset + 1] == UInt8(ascii: "/") {
        offset += 2
        return
      }
      offset += 1
    }
    throw fault(.truncated, bytes.count)
  }

  private static func isUnquoted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"),
      UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "."), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  private static func escapeMeaning(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "a"): 0x07
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "t"): 0x09
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "v"): 0x0B
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"), 0x0A: byte
    default: nil
    }
  }

  private func fault(_ kind: PropertyListError.Kind, _ offset: Int) -> PropertyListError {
    PropertyListError(kind: kind, offsetBytes: offset)
  }
}
