// A bounded reader for ASN.1: DER, and BER with indefinite lengths and constructed strings.

/// Why this reader cannot read bytes as ASN.1.
package struct DERError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong.
  package enum Kind: Equatable, Sendable {
    /// An element, its header or its end marker extends beyond the end of its container.
    case truncated
    /// A length of more than 2^31 - 1 bytes.
    case lengthTooLarge
    /// An indefinite length on a primitive element.
    case indefinitePrimitive
    /// An end-of-contents marker outside an indefinite length.
    case unexpectedEndOfContents
    /// A tag number above 30; receipts have none.
    case unsupportedTag
    /// Nested deeper than `DERReader.maximumDepth`.
    case tooDeep
    /// More elements of indefinite length than `DERReader.maximumIndefiniteCount`.
    case tooManyIndefinite
    /// An element that the format does not allow here.
    case unexpectedElement(identifier: UInt8)
    /// Bytes after the last element of the format.
    case trailingBytes
    /// An INTEGER that is empty or needs more than 64 bits.
    case integerOutOfRange
  }

  package var kind: Kind
  /// Start of the element, in bytes from the start of the input.
  package var offsetBytes: Int

  package init(kind: Kind, offsetBytes: Int) {
    self.kind = kind
    self.offsetBytes = offsetBytes
  }

  package var description: String {
    let cause =
      switch kind {
      case .truncated: "truncated"
      case .lengthTooLarge: "length too large"
      case .indefinitePrimitive: "indefinite length on a primitive element"
      case .unexpectedEndOfContents: "unexpected end-of-contents marker"
      case .unsupportedTag: "tag number above 30"
      case .tooDeep: "nested deeper than \(DERReader.maximumDepth) levels"
      case .tooManyIndefinite:
        "more than \(DERReader.maximumIndefiniteCount) elements of indefinite length"
      case .unexpectedElement(let identifier):
        "unexpected element with identifier 0x" + String(identifier, radix: 16)
      case .trailingBytes: "bytes after the end"
      case .integerOutOfRange: "integer is empty or needs more than 64 bits"
      }
    return "ASN.1 at offset \(offsetBytes): \(cause)"
  }
}

/// Identifier octets of the elements in receipts.
package enum DERIdentifier {
  package static let integer: UInt8 = 0x02
  package static let octetString: UInt8 = 0x04
  package static let constructedOctetString: UInt8 = 0x24
  package static let null: UInt8 = 0x05
  package static let objectIdentifier: UInt8 = 0x06
  package static let utf8String: UInt8 = 0x0C
  package static let printableString: UInt8 = 0x13
  package static let ia5String: UInt8 = 0x16
  package static let sequence: UInt8 = 0x30
  package static let set: UInt8 = 0x31
  package static let context0: UInt8 = 0xA0
}

/// One element: its identifier octet and its location, in bytes from the start of the buffer.
package struct DERElement: Sendable {
  package var identifier: UInt8
  /// The whole element, including header and end marker.
  package var range: Range<Int>
  /// Only the contents.
  package var content: Range<Int>
}

/// The bytes of an OCTET STRING: a slice of the buffer, or the joined pieces of a constructed one.
package enum DEROctets: Sendable {
  case slice(Range<Int>)
  case joined([UInt8])

  /// Calls `body` with the bytes; `buffer` must be the one that the string was read from.
  @inline(__always)
  package func withBytes<Result, Failure: Error>(
    of buffer: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    switch self {
    case .slice(let range):
      return try body(UnsafeRawBufferPointer(rebasing: buffer[range]))
    case .joined(let bytes):
      return try bytes.withUnsafeBufferPointer { joined throws(Failure) in
        try body(UnsafeRawBufferPointer(joined))
      }
    }
  }
}

/// The ends of the indefinite-length elements that have been read. Finding an end means walking over
/// everything before it; without this cache, each level of nesting would walk over the same bytes again.
private final class IndefiniteEnds {
  /// The offset of the end marker, keyed by the offset of the content's first byte.
  var ends: [Int: Int] = [:]
  /// The number of headers read to find ends.
  var scannedHeaderCount = 0
}

/// Reads sibling elements in order. It never recurses and never reads beyond its end.
package struct DERReader {
  /// The most levels that may be open at once.
  package static let maximumDepth = 32
  /// The most indefinite-length elements in one input. Receipts have about a dozen.
  package static let maximumIndefiniteCount = 16_384

  package let bytes: UnsafeRawBufferPointer
  package private(set) var offset: Int
  private let end: Int
  private let depth: Int
  /// Shared by all readers of one input; nil until the first indefinite length.
  private var indefinite: IndefiniteEnds?

  /// Creates a reader of all of `bytes`, which must outlive it.
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.init(bytes, 0..<bytes.count, depth: 0, nil)
  }

  private init(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, depth: Int, _ indefinite: IndefiniteEnds?
  ) {
    self.bytes = bytes
    self.offset = range.lowerBound
    self.end = range.upperBound
    self.depth = depth
    self.indefinite = indefinite
  }

  /// The number of headers that all readers of one input have read to find the ends of indefinite lengths.
  package var scannedHeaderCount: Int { indefinite?.scannedHeaderCount ?? 0 }

  package var isAtEnd: Bool { offset == end }

  /// The identifier octet of the next element; nil at the end.
  package var nextIdentifier: UInt8? { isAtEnd ? nil : bytes[offset] }

  /// Reads the next element, whatever its type.
  package mutating func next() throws(DERError) -> DERElement {
    let start = offset
    let header = try readHeader(at: start)
    guard header.identifier != 0 else { throw fault(.unexpectedEndOfContents, start) }
    let contentEnd: Int
    if let length = header.length {
      contentEnd = header.contentStart + length
      offset = contentEnd
    } else {
      contentEnd = try endOfContents(from: header.contentStart)
      offset = contentEnd + 2
    }
    return DERElement(
      identifier: header.identifier, range: start..<offset,
      content: header.contentStart..<contentEnd)
  }

  /// Reads the next element, which must have this identifier.
  package mutating func next(_ identifier: UInt8) throws(DERError) -> DERElement {
    let start = offset
    guard let found = nextIdentifier else { throw fault(.truncated, start) }
    guard found == identifier else {
      throw fault(.unexpectedElement(identifier: found), start)
    }
    return try next()
  }

  /// Returns a reader of a constructed element's contents.
  package func inside(_ element: DERElement) throws(DERError) -> DERReader {
    guard depth < Self.maximumDepth else { throw fault(.tooDeep, element.range.lowerBound) }
    return DERReader(bytes, element.content, depth: depth + 1, indefinite)
  }

  /// Reads the next element, which must have this identifier, and returns a reader of its contents.
  package mutating func enter(_ identifier: UInt8) throws(DERError) -> DERReader {
    // Two steps: `inside` needs what `next` has recorded about indefinite lengths.
    let element = try next(identifier)
    return try inside(element)
  }

  /// Throws unless all bytes have been read.
  package func finish() throws(DERError) {
    guard isAtEnd else { throw fault(.trailingBytes, offset) }
  }

  /// Reads an INTEGER of at most 64 bits.
  package mutating func nextInteger() throws(DERError) -> Int64 {
    let element = try next(DERIdentifier.integer)
    guard (1...8).contains(element.content.count) else {
      throw fault(.integerOutOfRange, element.range.lowerBound)
    }
    var value: Int64 = bytes[element.content.lowerBound] & 0x80 == 0 ? 0 : -1
    for offset in element.content { value = value << 8 | Int64(bytes[offset]) }
    return value
  }

  /// Reads an OCTET STRING, primitive or constructed.
  package mutating func nextOctets() throws(DERError) -> DEROctets {
    guard nextIdentifier == DERIdentifier.constructedOctetString else {
      return .slice(try next(DERIdentifier.octetString).content)
    }
    var joined: [UInt8] = []
    var open = [try enter(DERIdentifier.constructedOctetString)]
    while var innermost = open.popLast() {
      if innermost.isAtEnd { continue }
      if innermost.nextIdentifier == DERIdentifier.constructedOctetString {
        let nested = try innermost.enter(DERIdentifier.constructedOctetString)
        open.append(innermost)
        open.append(nested)
      } else {
        let piece = try innermost.next(DERIdentifier.octetString)
        joined.append(contentsOf: bytes[piece.content])
        open.append(innermost)
      }
    }
    return .joined(joined)
  }

  private struct Header {
    var identifier: UInt8
    var contentStart: Int
    /// Nil means an indefinite length.
    var length: Int?
  }

  private func readHeader(at start: Int) throws(DERError) -> Header {
    guard end - start >= 2 else { throw fault(.truncated, start) }
    let identifier = bytes[start]
    guard identifier & 0x1F != 0x1F else { throw fault(.unsupportedTag, start) }
    let lengthOctet = bytes[start + 1]
    var contentStart = start + 2
    guard lengthOctet != 0x80 else {
      guard identifier & 0x20 != 0 else { throw fault(.indefinitePrimitive, start) }
      return Header(identifier: identifier, contentStart: contentStart, length: nil)
    }
    var length = Int(lengthOctet)
    if lengthOctet & 0x80 != 0 {
      let octetCount = Int(lengthOctet & 0x7F)
      guard end - contentStart >= octetCount else { throw fault(.truncated, start) }
      length = 0
      for offset in contentStart..<contentStart + octetCount {
        guard length <= Int(Int32.max) >> 8 else { throw fault(.lengthTooLarge, start) }
        length = length << 8 | Int(bytes[offset])
      }
      contentStart += octetCount
    }
    guard length <= end - contentStart else { throw fault(.truncated, start) }
    return Header(identifier: identifier, contentStart: contentStart, length: length)
  }

  /// The offset of the end-of-contents marker that closes the indefinite length whose content begins at
  /// `start`.
  private mutating func endOfContents(from start: Int) throws(DERError) -> Int {
    let known = indefinite ?? IndefiniteEnds()
    indefinite = known
    if let end = known.ends[start] { return end }
    return try Self.findEnds(from: start, known, self)
  }

  /// Walks to the marker that closes the indefinite length whose content begins at `start`, and records the
  /// ends of all indefinite lengths nested in it. Skips elements of definite length.
  private static func findEnds(
    from start: Int, _ known: IndefiniteEnds, _ reader: DERReader
  ) throws(DERError) -> Int {
    var position = start
    var open = [start]
    while true {
      let header = try reader.readHeader(at: position)
      known.scannedHeaderCount += 1
      if header.identifier == 0 {
        guard header.length == 0 else { throw reader.fault(.unexpectedEndOfContents, position) }
        known.ends[open.removeLast()] = position
        if open.isEmpty { return position }
        position = header.contentStart
      } else if let length = header.length {
        position = header.contentStart + length
      } else {
        open.append(header.contentStart)
        guard reader.depth + open.count <= maximumDepth else {
          throw reader.fault(.tooDeep, position)
        }
        guard known.ends.count + open.count <= maximumIndefiniteCount else {
          throw reader.fault(.tooManyIndefinite, position)
        }
        position = header.contentStart
      }
    }
  }

  private func fault(_ kind: DERError.Kind, _ offset: Int) -> DERError {
    DERError(kind: kind, offsetBytes: offset)
  }
}
