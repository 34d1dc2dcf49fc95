// What the XML of S3's answers says: lists and errors.

/// A page of a list of objects.
package struct S3ListDocument: Equatable {
  /// Keys as the store has them, with the prefix.
  package internal(set) var entries: [ObjectEntry] = []
  package internal(set) var isTruncated = false

  /// More than these are not asked for.
  static let entryCountMax = 1_000
  private static let keyByteCountMax = 1_024

  /// Reads `<ListBucketResult>`; nil for a document of another name.
  package init?(_ bytes: [UInt8]) throws(XMLFault) {
    var reader = XMLReader(bytes)
    guard try reader.next() == .start("ListBucketResult") else { return nil }
    var hasTruncation = false
    try S3Element.readChildren(&reader) { (name, reader) throws(XMLFault) in
      switch name {
      case "Contents":
        guard entries.count < Self.entryCountMax else {
          throw XMLFault(cause: "it has more than \(Self.entryCountMax) objects")
        }
        entries.append(try Self.entry(&reader))
      case "IsTruncated":
        let text = try S3Element.text(&reader, byteCountMax: 16)
        guard !hasTruncation, text == "true" || text == "false" else {
          throw XMLFault(cause: "IsTruncated is malformed")
        }
        hasTruncation = true
        isTruncated = text == "true"
      default: try S3Element.skip(&reader)
      }
    }
    guard try reader.next() == nil else { throw XMLFault(cause: "something follows its end") }
    guard hasTruncation else { throw XMLFault(cause: "IsTruncated is missing") }
  }

  private static func entry(_ reader: inout XMLReader) throws(XMLFault) -> ObjectEntry {
    var key: String?
    var byteCount: Int?
    try S3Element.readChildren(&reader) { (name, reader) throws(XMLFault) in
      switch name {
      case "Key":
        guard key == nil else { throw XMLFault(cause: "an object has two keys") }
        key = try S3Element.text(&reader, byteCountMax: keyByteCountMax)
      case "Size":
        let text = try S3Element.text(&reader, byteCountMax: 19)
        guard byteCount == nil, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
          let number = Int(text)
        else { throw XMLFault(cause: "an object's size is malformed") }
        byteCount = number
      default: try S3Element.skip(&reader)
      }
    }
    guard let key, !key.isEmpty, let byteCount else {
      throw XMLFault(cause: "an object has no key or no size")
    }
    return ObjectEntry(key: key, byteCount: byteCount)
  }
}

/// An error as a store says it.
package struct S3ErrorDocument: Equatable {
  /// Such as `NoSuchKey`: letters, digits and dots.
  package private(set) var code: String?
  /// If it looks like a region.
  package private(set) var region: String?

  /// Reads `<Error>`; nil for anything else.
  package init?(_ bytes: [UInt8]) {
    do throws(XMLFault) {
      var reader = XMLReader(bytes)
      guard try reader.next() == .start("Error") else { return nil }
      try S3Element.readChildren(&reader) { (name, reader) throws(XMLFault) in
        switch name {
        case "Code":
          let text = try S3Element.text(&reader, byteCountMax: 1_024)
          if code == nil, Self.isCode(text) { code = text }
        case "Region":
          let text = try S3Element.text(&reader, byteCountMax: 1_024)
          if region == nil, S3Endpoint.isRegion(text) { region = text }
        default: try S3Element.skip(&reader)
        }
      }
    } catch { return nil }
  }

  /// What may be shown.
  private static func isCode(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x2E
      }
  }
}

/// The content of an element whose start was read.
private enum S3Element {
  /// Calls `body` after the start of each element in this one; it reads up to that element's end.
  static func readChildren(
    _ reader: inout XMLReader, _ body: (String, inout XMLReader) throws(XMLFault) -> Void
  ) throws(XMLFault) {
    while true {
      switch try reader.next() {
      case .start(let name): try body(name, &reader)
      case .text(let bytes):
        guard bytes.allSatisfy({ $0 <= 0x20 }) else {
          throw XMLFault(cause: "there is text between elements")
        }
      case .end: return
      case nil: throw XMLFault(cause: "it is cut off")
      }
    }
  }

  /// The text of an element without elements in it.
  static func text(
    _ reader: inout XMLReader, byteCountMax: Int
  ) throws(XMLFault) -> String {
    var bytes: [UInt8] = []
    while true {
      switch try reader.next() {
      case .text(let more):
        bytes += more
        if bytes.count > byteCountMax { throw XMLFault(cause: "a text is too long") }
      case .end:
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw XMLFault(cause: "a text is not UTF-8")
        }
        return text
      case .start: throw XMLFault(cause: "there is an element where text belongs")
      case nil: throw XMLFault(cause: "it is cut off")
      }
    }
  }

  static func skip(_ reader: inout XMLReader) throws(XMLFault) {
    var depth = 1
    while depth > 0 {
      switch try reader.next() {
      case .start: depth += 1
      case .end: depth -= 1
      case .text: break
      case nil: throw XMLFault(cause: "it is cut off")
      }
    }
  }
}

// MARK: - Reads XML, as far as answers of S3 have it: elements and their text

/// Why a text is not such XML.
package struct XMLFault: Error, Equatable {
  /// Starts with a lower-case letter; shows nothing of the text.
  package let cause: String

  package init(cause: String) { self.cause = cause }
}

/// Reads elements and text one after the other. Strict: it takes no document type, no CDATA, no entities but XML's own
/// five and numbers, and nothing that is not well-formed; of attributes it reads only where they end.
package struct XMLReader {
  package enum Event: Equatable {
    case start(String)
    case text([UInt8])
    case end
  }

  package static let depthMax = 16
  private static let nameByteCountMax = 128

  private let bytes: [UInt8]
  private var offset = 0
  private var open: [String] = []
  private var hasRoot = false
  /// The last start was `<name/>`.
  private var endsAtOnce = false

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if starts(with: "\u{FEFF}") { offset = 3 }
  }

  /// The next event; nil at the end of the document.
  package mutating func next() throws(XMLFault) -> Event? {
    if endsAtOnce {
      endsAtOnce = false
      open.removeLast()
      return .end
    }
    while true {
      if open.isEmpty {
        skipBlanks()
        if offset == bytes.count {
          if hasRoot { return nil }
          throw XMLFault(cause: "it is empty")
        }
      }
      guard offset < bytes.count else { throw XMLFault(cause: "it is cut off") }
      if bytes[offset] != UInt8(ascii: "<") {
        if open.isEmpty { throw XMLFault(cause: "there is text outside of the element") }
        return .text(try text())
      }
      if starts(with: "<?") {
        if !open.isEmpty { throw XMLFault(cause: "it has an instruction") }
        try skip(past: "?>")
      } else if starts(with: "<!--") {
        offset += 4
        try skip(past: "-->")
      } else if starts(with: "<!") {
        throw XMLFault(cause: "it has a declaration")
      } else if starts(with: "</") {
        return try end()
      } else {
        return try start()
      }
    }
  }

  private func starts(with text: String) -> Bool {
    bytes[offset...].starts(with: text.utf8)
  }

  private mutating func skipBlanks() {
    while offset < bytes.count, Self.isBlank(bytes[offset]) { offset += 1 }
  }

  private mutating func skip(past text: String) throws(XMLFault) {
    while offset < bytes.count {
      if starts(with: text) {
        offset += text.utf8.count
        return
      }
      offset += 1
    }
    throw XMLFault(cause: "it is cut off")
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  private mutating func start() throws(XMLFault) -> Event {
    offset += 1
    if open.isEmpty, hasRoot { throw XMLFault(cause: "it has two elements at its top") }
    guard open.count < Self.depthMax else { throw XMLFault(cause: "it is nested too deeply") }
    let name = try name()
    hasRoot = true
    open.append(name)
    while true {
      let before = offset
      skipBlanks()
      guard offset < bytes.count else { throw XMLFault(cause: "it is cut off") }
      if bytes[offset] == UInt8(ascii: ">") {
        offset += 1
        return .start(name)
      }
      if starts(with: "/>") {
        offset += 2
        endsAtOnce = true
        return .start(name)
      }
      guard offset > before else { throw XMLFault(cause: "a tag is malformed") }
      try skipAttribute()
    }
  }

  private mutating func skipAttribute() throws(XMLFault) {
    _ = try name()
    skipBlanks()
    guard starts(with: "=") else { throw XMLFault(cause: "an attribute is malformed") }
    offset += 1
    skipBlanks()
    guard offset < bytes.count else { throw XMLFault(cause: "it is cut off") }
    let quote = bytes[offset]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw XMLFault(cause: "an attribute is malformed")
    }
    guard let close = bytes[(offset + 1)...].firstIndex(of: quote) else {
      throw XMLFault(cause: "it is cut off")
    }
    if bytes[offset..<close].contains(UInt8(ascii: "<")) {
      throw XMLFault(cause: "an attribute is malformed")
    }
    offset = close + 1
  }

  private mutating func end() throws(XMLFault) -> Event {
    offset += 2
    let name = try name()
    skipBlanks()
    guard starts(with: ">"), open.last == name else {
      throw XMLFault(cause: "a tag is malformed")
    }
    offset += 1
    open.removeLast()
    return .end
  }

  private mutating func name() throws(XMLFault) -> String {
    let start = offset
    while offset < bytes.count, Self.isNameByte(bytes[offset]) { offset += 1 }
    guard (1...Self.nameByteCountMax).contains(offset - start) else {
      throw XMLFault(cause: "a name is malformed")
    }
    return String(decoding: bytes[start..<offset], as: UTF8.self)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
    default: false
    }
  }

  /// The text up to the next tag.
  private mutating func text() throws(XMLFault) -> [UInt8] {
    var result: [UInt8] = []
    while offset < bytes.count, bytes[offset] != UInt8(ascii: "<") {
      if bytes[offset] == UInt8(ascii: "&") {
        result += try entity()
      } else {
        result.append(bytes[offset])
        offset += 1
      }
    }
    return result
  }

  private mutating func entity() throws(XMLFault) -> [UInt8] {
    // `&#x10FFFF;` is the longest.
    let window = bytes[offset..<min(offset + 10, bytes.count)]
    guard let close = window.firstIndex(of: UInt8(ascii: ";")) else {
      throw XMLFault(cause: "it has an unknown entity")
    }
    let name = String(decoding: bytes[(offset + 1)..<close], as: UTF8.self)
    offset = close + 1
    switch name {
    case "lt": return [UInt8(ascii: "<")]
    case "gt": return [UInt8(ascii: ">")]
    case "amp": return [UInt8(ascii: "&")]
    case "quot": return [UInt8(ascii: "\"")]
    case "apos": return [UInt8(ascii: "'")]
    default:
      guard name.hasPrefix("#"), let scalar = Self.scalar(name.dropFirst()) else {
        throw XMLFault(cause: "it has an unknown entity")
      }
      return Array(String(Character(scalar)).utf8)
    }
  }

  private static func scalar(_ digits: Substring) -> Unicode.Scalar? {
    let isHex = digits.hasPrefix("x")
    let digits = isHex ? digits.dropFirst() : digits
    // `UInt32` would take a sign.
    guard digits.first?.isHexDigit == true, let value = UInt32(digits, radix: isHex ? 16 : 10)
    else { return nil }
    return Unicode.Scalar(value)
  }
}
