// A bounded reader for the property lists of transaction receipts.

/// Why bytes are not a property list of this form. Offsets are in bytes from the start of the list.
package struct PropertyListError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong.
  package enum Kind: Equatable, Sendable {
    /// The bytes end inside the list.
    case truncated
    /// A character that the grammar does not allow here.
    case unexpectedCharacter
    /// The same key twice.
    case duplicateKey
    /// More entries than `PropertyList.maximumEntryCount`.
    case tooManyEntries
    /// A backslash before anything other than a quotation mark or a backslash.
    case invalidEscape
    /// A string that is not UTF-8.
    case notUTF8
    /// Something other than white space after the list.
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
      case .tooManyEntries: "more than \(PropertyList.maximumEntryCount) entries"
      case .invalidEscape: "invalid escape"
      case .notUTF8: "string is not UTF-8"
      case .trailingBytes: "bytes after the end"
      }
    return "offset \(offsetBytes): \(cause)"
  }
}

/// The entries of a property list as the App Store writes it: one dictionary of quoted strings,
/// `{ "key" = "value"; … }`, with white space between the tokens.
package struct PropertyList {
  /// Receipts have about 25 entries.
  package static let maximumEntryCount = 512

  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  /// Reads the list, which must fill `bytes`.
  package static func texts(
    in bytes: UnsafeRawBufferPointer
  ) throws(PropertyListError) -> [String: String] {
    var list = PropertyList(bytes: bytes)
    return try list.read()
  }

  private init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  private mutating func read() throws(PropertyListError) -> [String: String] {
    var texts: [String: String] = [:]
    try expect(UInt8(ascii: "{"))
    while try peek() != UInt8(ascii: "}") {
      let keyOffset = offset
      let key = try readText()
      guard texts[key] == nil else { throw fault(.duplicateKey, keyOffset) }
      guard texts.count < Self.maximumEntryCount else { throw fault(.tooManyEntries, keyOffset) }
      try expect(UInt8(ascii: "="))
      texts[key] = try readText()
      try expect(UInt8(ascii: ";"))
    }
    offset += 1
    skipWhiteSpace()
    guard offset == bytes.count else { throw fault(.trailingBytes, offset) }
    return texts
  }

  private mutating func readText() throws(PropertyListError) -> String {
    try expect(UInt8(ascii: "\""))
    let start = offset
    var utf8: [UInt8] = []
    while offset < bytes.count, bytes[offset] != UInt8(ascii: "\"") {
      if bytes[offset] == UInt8(ascii: "\\") {
        offset += 1
        guard offset < bytes.count else { break }
        guard bytes[offset] == UInt8(ascii: "\"") || bytes[offset] == UInt8(ascii: "\\") else {
          throw fault(.invalidEscape, offset)
        }
      }
      utf8.append(bytes[offset])
      offset += 1
    }
    guard offset < bytes.count else { throw fault(.truncated, offset) }
    offset += 1
    guard let text = String(validating: utf8, as: UTF8.self) else { throw fault(.notUTF8, start) }
    return text
  }

  private mutating func expect(_ byte: UInt8) throws(PropertyListError) {
    guard try peek() == byte else { throw fault(.unexpectedCharacter, offset) }
    offset += 1
  }

  /// The next byte that is not white space.
  private mutating func peek() throws(PropertyListError) -> UInt8 {
    skipWhiteSpace()
    guard offset < bytes.count else { throw fault(.truncated, offset) }
    return bytes[offset]
  }

  private mutating func skipWhiteSpace() {
    while offset < bytes.count, bytes[offset] == 0x20 || (0x09...0x0D).contains(bytes[offset]) {
      offset += 1
    }
  }

  private func fault(_ kind: PropertyListError.Kind, _ offset: Int) -> PropertyListError {
    PropertyListError(kind: kind, offsetBytes: offset)
  }
}
