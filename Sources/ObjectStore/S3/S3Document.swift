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
    guard try reader.next() == nil else { throw XMLFault(cause: "it goes on after its end") }
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
