// One JSON object with a line for each member: for small files that people read too.

/// Collects the members of an object. Their names need no escape.
package struct JSONLines {
  private var lines: [String] = []

  package init() {}

  /// Adds a member whose value `body` writes.
  package mutating func add(_ name: String, _ body: (inout JSONWriter) -> Void) {
    var writer = JSONWriter()
    body(&writer)
    lines.append("\"\(name)\":" + String(decoding: writer.bytes, as: UTF8.self))
  }

  /// The object, which ends with a line feed.
  package var bytes: [UInt8] { Array("{\n\(lines.joined(separator: ",\n"))\n}\n".utf8) }
}
