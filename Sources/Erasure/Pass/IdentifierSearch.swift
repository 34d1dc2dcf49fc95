// Searches the log for identifiers as text, where an erasure can't know that data is about a user.
import Base
import CLinux
package import Ledger

/// Finds events that contain one of several texts: literally, in JSON escapes, in either case of a UUID, and inside
/// base64. Thread-safe.
package final class IdentifierSearch: Sendable {
  /// Shorter texts occur everywhere by chance.
  private static let needleByteCountMin = 6
  /// How many positions are reported.
  private static let positionCountMax = 20

  private let needles: [[UInt8]]
  /// Shorter texts. They are compared with whole values of users and metadata.
  private let words: Set<[UInt8]>
  private let found = Monitor<(count: Int, positions: [Position])>((0, []))

  package init(_ identifiers: [[UInt8]]) {
    let isLong = { (text: [UInt8]) in text.count >= Self.needleByteCountMin }
    var needles: Set<[UInt8]> = []
    for identifier in identifiers where isLong(identifier) {
      needles.insert(identifier)
      let text = String(decoding: identifier, as: UTF8.self)
      guard UUID16(text) != nil else { continue }
      needles.insert(Array(text.lowercased().utf8))
      needles.insert(Array(text.uppercased().utf8))
    }
    self.needles = Array(needles)
    words = Set(identifiers.filter { !isLong($0) && !$0.isEmpty })
  }

  /// Whether an identifier is searched for in users and metadata alone.
  package var isPartial: Bool { !words.isEmpty }

  /// How many events were found, and the first of them.
  package var result: (count: Int, positions: [Position]) {
    found.withLock { ($0.count, $0.positions.sorted()) }
  }

  /// Searches whole lines.
  /// - Parameter excluded: positions that do not count.
  func scan(
    _ lines: UnsafeRawBufferPointer, first: Position, excluding excluded: Set<Position> = []
  ) {
    // Nearly every block contains none of them.
    let mayHold = EncodedText.holds(lines, needles)
    if !mayHold, words.isEmpty { return }
    var positions: [Position] = []
    var position = first
    var rest = EventLines(lines)
    while let line = rest.next() {
      if !excluded.contains(position),
        mayHold && EncodedText.holds(line, needles) || !words.isEmpty && holdsWord(line)
      {
        positions.append(position)
      }
      position += 1
    }
    if positions.isEmpty { return }
    found.withLock { found in
      found.count += positions.count
      found.positions = Array((found.positions + positions).sorted().prefix(Self.positionCountMax))
    }
  }

  /// Searches all events before a position.
  package func run(
    _ reader: LogReader, before end: Position, excluding excluded: Set<Position> = [],
    isCancelled: () -> Bool
  ) throws {
    try Self.run([self], reader, before: end, excluding: excluded, isCancelled: isCancelled)
  }

  /// Runs several searches in one pass over the log.
  static func run(
    _ searches: [IdentifierSearch], _ reader: LogReader, before end: Position,
    excluding excluded: Set<Position> = [], isCancelled: () -> Bool
  ) throws {
    let searches = searches.filter { !$0.needles.isEmpty || !$0.words.isEmpty }
    guard let any = searches.first, end > 0 else { return }
    func scan(_ bytes: UnsafeRawBufferPointer, first: Position) {
      for search in searches { search.scan(bytes, first: first, excluding: excluded) }
    }
    try reader.read(
      from: 0, to: end,
      prepare: { bytes, first, _ in
        for search in searches { search.scan(bytes, first: first, excluding: excluded) }
        return any
      }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      if chunk.prepared == nil { scan(chunk.bytes, first: chunk.firstPosition) }
      return true
    }
  }

  static func contains(_ bytes: UnsafeRawBufferPointer, _ needle: [UInt8]) -> Bool {
    guard let base = bytes.baseAddress, !needle.isEmpty else { return false }
    return clinux_find(base, bytes.count, needle, needle.count) != nil
  }

  // MARK: Short identifiers

  /// Whether an upload's user, or a value or key of its metadata, is one of the words.
  private func holdsWord(_ line: UnsafeRawBufferPointer) -> Bool {
    guard let event = EventLine(line), let type = EventType(event.type),
      type == .receiptUploaded || type == .transactionsReceived
    else { return false }
    var cursor = JSONCursor(event.data)
    return (try? holdsWord(ofUpload: &cursor)) ?? false
  }

  private func holdsWord(ofUpload cursor: inout JSONCursor) throws(JSONError) -> Bool {
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "user_identifier" || key == "metadata" {
        if try holdsWord(in: &cursor) { return true }
      } else {
        try cursor.skipValue()
      }
    }
    return false
  }

  private func holdsWord(in cursor: inout JSONCursor) throws(JSONError) -> Bool {
    switch try cursor.kind() {
    case .string: return words.contains(try cursor.readString().bytes)
    case .number: return words.contains(Array(try cursor.readNumber()))
    case .object:
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if words.contains(key.bytes) { return true }
        if try holdsWord(in: &cursor) { return true }
      }
    case .array:
      try cursor.beginArray()
      while try cursor.nextElement() { if try holdsWord(in: &cursor) { return true } }
    case .boolean, .null: try cursor.skipValue()
    }
    return false
  }
}

/// Text inside JSON and base64.
package enum EncodedText {
  /// How many levels of base64 are decoded: a notification's objects are encoded, and so is their content.
  private static let depthMax = 2
  /// Shorter runs of letters can't contain an identifier.
  private static let runLengthMin = 8
  private static let noDigit: UInt8 = 0xFF

  /// The values of the letters of base64 and base64url.
  private static let digits: [UInt8] = {
    var digits = [UInt8](repeating: noDigit, count: 256)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    for (value, letter) in letters.enumerated() { digits[Int(letter)] = UInt8(value) }
    digits[Int(UInt8(ascii: "-"))] = 62
    digits[Int(UInt8(ascii: "_"))] = 63
    return digits
  }()

  /// Whether bytes contain one of several texts, literally or encoded.
  static func holds(
    _ bytes: UnsafeRawBufferPointer, _ needles: [[UInt8]], depth: Int = 0
  ) -> Bool {
    if needles.isEmpty { return false }
    if needles.contains(where: { IdentifierSearch.contains(bytes, $0) }) { return true }
    if IdentifierSearch.contains(bytes, [UInt8(ascii: "\\")]) {
      let plain = JSONString(raw: bytes, hasEscapes: true).bytes
      return plain.withUnsafeBytes { plain in
        needles.contains(where: { IdentifierSearch.contains(plain, $0) })
          || holdsInside(plain, needles, depth)
      }
    }
    return holdsInside(bytes, needles, depth)
  }

  private static func holdsInside(
    _ bytes: UnsafeRawBufferPointer, _ needles: [[UInt8]], _ depth: Int
  ) -> Bool {
    if depth == depthMax { return false }
    let decoded = decodedRuns(of: bytes)
    if decoded.isEmpty { return false }
    return decoded.withUnsafeBytes { holds($0, needles, depth: depth + 1) }
  }

  /// The decoded content of every run of base64 letters, a line each.
  package static func decodedRuns(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    digits.withUnsafeBufferPointer { digits in
      // A run adds a line feed, and decodes at least eight letters to six bytes.
      [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
        var index = 0
        while index < bytes.count {
          guard digits[Int(bytes[index])] != noDigit else {
            index += 1
            continue
          }
          let start = index
          while index < bytes.count, digits[Int(bytes[index])] != noDigit { index += 1 }
          guard index - start >= runLengthMin else { continue }
          var next = start
          var group: UInt32 = 0
          while next + 4 <= index {
            group = 0
            for offset in 0..<4 { group = group << 6 | UInt32(digits[Int(bytes[next + offset])]) }
            buffer[count] = UInt8(truncatingIfNeeded: group >> 16)
            buffer[count + 1] = UInt8(truncatingIfNeeded: group >> 8)
            buffer[count + 2] = UInt8(truncatingIfNeeded: group)
            count += 3
            next += 4
          }
          // Two or three letters at the end hold one or two bytes.
          let rest = index - next
          if rest >= 2 {
            group = 0
            for offset in 0..<rest {
              group = group << 6 | UInt32(digits[Int(bytes[next + offset])])
            }
            group <<= 6 * UInt32(4 - rest)
            buffer[count] = UInt8(truncatingIfNeeded: group >> 16)
            if rest == 3 { buffer[count + 1] = UInt8(truncatingIfNeeded: group >> 8) }
            count += rest - 1
          }
          buffer[count] = 0x0A
          count += 1
        }
      }
    }
  }
}
