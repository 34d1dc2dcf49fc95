// An event's line as indented JSON with long strings cut.
package import JSON

/// Indents one JSON text that this program wrote. Numbers and escapes stay as written.
package struct ReadableEvent {
  /// Strings up to this length are shown in full: ids, digests and dates are shorter.
  private static let stringLimitBytes = 128
  private static let shownByteCount = 32
  package private(set) var lines: [String] = []
  private var line = ""

  /// An event's line, indented; unchanged if it is not JSON.
  static func lines(of line: [UInt8]) -> [String] {
    (try? ReadableEvent(line).lines) ?? [String(decoding: line, as: UTF8.self)]
  }

  package init(_ bytes: [UInt8]) throws(JSONError) {
    let result: Result<Void, JSONError> = bytes.withUnsafeBytes { raw in
      var cursor = JSONCursor(raw)
      do throws(JSONError) { return .success(try value(&cursor, depth: 0)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    lines.append(line)
  }

  private mutating func value(_ cursor: inout JSONCursor, depth: Int) throws(JSONError) {
    switch try cursor.kind() {
    case .object:
      try cursor.beginObject()
      var isEmpty = true
      line += "{"
      while let key = try cursor.nextKey() {
        breakLine(depth + 1, isFirst: isEmpty)
        isEmpty = false
        line += "\"\(String(decoding: key.raw, as: UTF8.self))\": "
        try value(&cursor, depth: depth + 1)
      }
      if !isEmpty { breakLine(depth) }
      line += "}"
    case .array:
      try cursor.beginArray()
      var isEmpty = true
      line += "["
      while try cursor.nextElement() {
        breakLine(depth + 1, isFirst: isEmpty)
        isEmpty = false
        try value(&cursor, depth: depth + 1)
      }
      if !isEmpty { breakLine(depth) }
      line += "]"
    case .string: line += Self.shown(try cursor.readString().raw)
    default: line += String(decoding: try cursor.readRaw(), as: UTF8.self)
    }
  }

  private mutating func breakLine(_ depth: Int, isFirst: Bool = true) {
    if !isFirst { line += "," }
    lines.append(line)
    line = String(repeating: "  ", count: depth)
  }

  private static func shown(_ raw: JSONBytes) -> String {
    guard raw.count > stringLimitBytes else {
      return "\"\(String(decoding: raw, as: UTF8.self))\""
    }
    // Do not cut inside a character or an escape. Base64, as nearly all long strings are, has neither.
    var end = shownByteCount
    while end > 0, raw[end] & 0xC0 == 0x80 { end -= 1 }
    let start = String(decoding: raw[..<end], as: UTF8.self)
    return "\"\(start)…\" (\(raw.count) bytes)"
  }
}
