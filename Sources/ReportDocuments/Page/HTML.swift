// Writes HTML. Names are constants of the program, and every text is escaped: nothing from data can become markup.

/// HTML under construction, as UTF-8.
package struct HTML {
  package private(set) var bytes: [UInt8] = []

  /// Elements that begin a line, so that a page can be read and compared as text.
  private static let blocks: Set<String> = [
    "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section", "h1",
    "h2", "h3", "p", "div", "figure", "table", "caption", "thead", "tbody", "tfoot", "tr", "dl",
    "ul", "ol", "li", "details", "svg", "article",
  ]

  package init() {
    bytes.reserveCapacity(1 << 16)
    write("<!DOCTYPE html>")
  }

  /// Writes an element and what `body` writes inside it.
  mutating func element<Failure: Error>(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:],
    _ body: (inout HTML) throws(Failure) -> Void
  ) throws(Failure) {
    begin(name, attributes)
    try body(&self)
    write("</")
    write(name)
    write(">")
  }

  /// Writes an element that holds a text.
  package mutating func element(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:],
    text: String
  ) {
    element(name, attributes) { $0.text(text) }
  }

  /// Writes an element that cannot hold anything.
  mutating func void(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:]
  ) {
    begin(name, attributes)
  }

  /// Writes a text. Control characters and marks that change the reading direction become visible.
  mutating func text(_ text: String) {
    for scalar in text.unicodeScalars { append(scalar) }
  }

  /// Writes an identifier, such as a product's, which may be long: lines may break at its points and underscores.
  mutating func identifier(_ text: String) {
    for scalar in text.unicodeScalars {
      append(scalar)
      if [".", "_", "-", "/"].contains(scalar) { void("wbr") }
    }
  }

  /// Writes a constant of the program that holds no markup, such as a style sheet, as it is.
  mutating func raw(_ text: StaticString) {
    write(text)
  }

  private mutating func begin(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String>
  ) {
    if Self.blocks.contains(name.description) { write("\n") }
    write("<")
    write(name)
    for (name, value) in attributes {
      write(" ")
      write(name)
      write("=\"")
      text(value)
      write("\"")
    }
    write(">")
  }

  private mutating func append(_ scalar: Unicode.Scalar) {
    switch scalar {
    case "&": write("&amp;")
    case "<": write("&lt;")
    case ">": write("&gt;")
    case "\"": write("&quot;")
    case "'": write("&#39;")
    case "\n": write("\\n")
    case "\r": write("\\r")
    case "\t": write("\\t")
    case _ where Self.isHidden(scalar):
      bytes.append(contentsOf: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".utf8)
    default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }
  }

  private mutating func write(_ text: StaticString) {
    bytes.append(
      contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Whether a scalar controls how others are shown, or shows nothing itself. The joiners shape emoji and scripts.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value < 0x7F { return scalar.value < 0x20 }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: return true
    case .format: return scalar.value != 0x200C && scalar.value != 0x200D
    default: return false
    }
  }
}
