// Writes one JSON object with one member per line, for small files that people also read.

/// Collects the members of an object. Member names must not need escaping.
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
