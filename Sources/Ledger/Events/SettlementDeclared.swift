// settlement.declared: a report of Apple's about what it sold and paid, or a part of one.
package import Base

/// A file of Apple's, or a part of a large one, as an operator imported it (settlement rule S5).
package struct SettlementDeclared: Equatable, Sendable {
  package enum Kind: String, CaseIterable, Sendable { case detailed, financial, overview }

  /// Lines of the file as UTF-8, each ended by LF.
  package struct Lines: Equatable, Sendable {
    /// Up to the line with the names of columns, and with it; of an overview, the lines before the first such line.
    package var head: [UInt8] = []
    /// Of an overview all lines that follow.
    package var rows: [UInt8] = []
    /// The totals below the rows.
    package var totals: [UInt8] = []

    package init() {}
  }

  /// The name of the file.
  package var source: String
  /// SHA-256 of the file, unpacked, in hex.
  package var sourceSHA256Hex: String
  package var kind: Kind
  /// A month of Apple's fiscal calendar, as in `FY2026-P01`.
  package var month: String
  /// Two letters, `Z1` or `ZZ`; nil for an overview.
  package var region: String?
  /// From 1 to `partCount`. The file counts from its last part on.
  package var part: Int
  package var partCount: Int
  package var lines: Lines

  package init(
    source: String, sourceSHA256Hex: String, kind: Kind, month: String, region: String?,
    part: Int = 1, partCount: Int = 1, lines: Lines
  ) {
    self.source = source
    self.sourceSHA256Hex = sourceSHA256Hex
    self.kind = kind
    self.month = month
    self.region = region
    (self.part, self.partCount, self.lines) = (part, partCount, lines)
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.reserve(lines.rows.count + lines.rows.count / 4)
    writer.beginObject()
    writer.member("source", source)
    writer.member("source_sha256", sourceSHA256Hex)
    writer.member("kind", kind.rawValue)
    writer.member("month", month)
    writer.member("region", ifPresent: region)
    writer.member("part", part)
    writer.member("parts", partCount)
    Self.write("head", lines.head, to: &writer)
    Self.write("rows", lines.rows, to: &writer)
    Self.write("totals", lines.totals, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private static func write(_ name: StaticString, _ lines: [UInt8], to writer: inout JSONWriter) {
    writer.key(name)
    writer.beginArray()
    lines.withUnsafeBytes { lines in
      var start = 0
      while start < lines.count {
        let end = lines[start...].firstIndex(of: 0x0A) ?? lines.count
        writer.string(JSONBytes(rebasing: lines[start..<end]))
        start = end + 1
      }
    }
    writer.endArray()
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  /// - Parameter readsLines: whether lines are read and checked; they are most of the data.
  package init(data: JSONBytes, readsLines: Bool = true) throws(EventError) {
    let type = EventType.settlementDeclared
    // Lines are most of the data: they are copied once, not made into a value each.
    var lines = Lines()
    var isWhole = true
    var others = JSONWriter()
    do throws(JSONError) {
      var cursor = JSONCursor(data)
      others.beginObject()
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if !readsLines, key == "head" || key == "rows" || key == "totals" {
          try cursor.skipValue()
        } else if key == "head" {
          try Self.read(&cursor, into: &lines.head, &isWhole)
        } else if key == "rows" {
          lines.rows.reserveCapacity(data.count)
          try Self.read(&cursor, into: &lines.rows, &isWhole)
        } else if key == "totals" {
          try Self.read(&cursor, into: &lines.totals, &isWhole)
        } else {
          others.key(key.string)
          others.raw(try cursor.readRaw())
        }
      }
      try cursor.expectEnd()
      others.endObject()
    } catch { throw .malformed(type, error) }
    let members = try others.bytes.withUnsafeBufferPointer { (bytes) throws(EventError) in
      try EventMembers(type, JSONBytes(bytes))
    }
    source = try members.string("source")
    sourceSHA256Hex = try members.digest("source_sha256").hex
    guard let kind = Kind(rawValue: try members.string("kind")) else {
      throw members.fault("kind")
    }
    self.kind = kind
    month = try members.string("month")
    region = try members.optionalString("region")
    if (region == nil) != (kind == .overview) { throw members.fault("region") }
    part = try members.count("part")
    partCount = try members.count("parts")
    guard (1...max(partCount, 1)).contains(part) else { throw members.fault("part") }
    guard isWhole else { throw members.fault("rows") }
    self.lines = lines
  }

  /// Reads an array of strings.
  /// - Parameter isWhole: becomes false if one of them is more than a line.
  private static func read(
    _ cursor: inout JSONCursor, into lines: inout [UInt8], _ isWhole: inout Bool
  ) throws(JSONError) {
    try cursor.beginArray()
    while try cursor.nextElement() {
      let start = lines.count
      try cursor.readString().append(to: &lines)
      if lines[start...].contains(0x0A) { isWhole = false }
      lines.append(0x0A)
    }
  }
}
