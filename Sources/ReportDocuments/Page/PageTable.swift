// A table on a page (a caption, headings with a scope, rows, and a last row of sums), and the writer of HTML.
import Revenue

/// A table.
struct PageTable {
  enum Alignment { case text, number, share, bar }

  struct Column {
    let title: String
    let alignment: Alignment
    /// Whether narrow screens leave it out, so that the first column and the money stay.
    var isWide = false

    static func text(_ title: String) -> Column { Column(title: title, alignment: .text) }
    static func number(_ title: String) -> Column { Column(title: title, alignment: .number) }
    /// A number that narrow screens leave out.
    static func wide(_ title: String) -> Column {
      Column(title: title, alignment: .number, isWide: true)
    }
    /// The currencies of amounts; narrow screens leave out a column with only one.
    static func currency(of count: Int) -> Column {
      Column(title: "Currency", alignment: .text, isWide: count < 2)
    }
    /// A share, which narrow screens leave out.
    static let share = Column(title: "Share", alignment: .share)
    /// A bar; only screen readers need its heading.
    static let bar = Column(title: "", alignment: .bar)
  }

  enum Cell {
    case empty
    case text(String)
    /// A day or another period, on one line.
    case period(String)
    /// A text from data, which may be long and without spaces.
    case identifier(String)
    /// A code, and its name in words.
    case named(String, String?)
    /// A word, and its meaning below it.
    case explained(CodeWords)
    case count(Int128)
    case signedCount(Int128)
    case amount(Int128, Currency)
    case signedAmount(Int128, Currency)
    /// Rounded, so it is not in other reports.
    case percent(String)
    /// A share of the previous column.
    case share(String?)
    case bar(RowBar)

    /// The amount in it, with its currency.
    var money: (micros: Int128, currency: Currency)? {
      switch self {
      case .amount(let micros, let currency), .signedAmount(let micros, let currency):
        (micros, currency)
      default: nil
      }
    }
  }

  let caption: String
  /// Unique on the page.
  let id: String
  let columns: [Column]
  var rows: [[Cell]] = []
  /// The indexes of rows that sum others.
  var sumRows: Set<Int> = []
  /// The row of sums; nil for none.
  var sums: [Cell]?
  /// Whether the caption is visible, not only for screen readers.
  var showsCaption = true

  func write(to html: inout HTML) {
    let widths = columns.indices.map { index in
      HTML.fineWidth((rows + [sums ?? []]).compactMap { $0.isEmpty ? nil : $0[index].money })
    }
    html.element(
      "div",
      [
        "class": "scroll", "role": "region", "tabindex": "0", "aria-labelledby": "\(id)-caption",
      ]
    ) { html in
      html.element("table", ["id": id]) { html in
        html.element(
          "caption",
          ["id": "\(id)-caption", "class": showsCaption ? "shown" : "unseen"], text: caption)
        html.element("thead") { html in
          html.element("tr") { html in
            for column in columns { Self.heading(column, to: &html) }
          }
        }
        html.element("tbody") { html in
          for (index, row) in rows.enumerated() {
            write(row, widths, isSum: sumRows.contains(index), to: &html)
          }
        }
        if let sums { html.element("tfoot") { write(sums, widths, to: &$0) } }
      }
    }
  }

  private static func heading(_ column: Column, to html: inout HTML) {
    switch column.alignment {
    case .text:
      html.element(
        "th", ["scope": "col", "class": column.isWide ? "t wide" : "t"], text: column.title)
    case .number:
      html.element(
        "th", ["scope": "col", "class": column.isWide ? "n wide" : "n"], text: column.title)
    case .share: html.element("th", ["scope": "col", "class": "n share"], text: column.title)
    case .bar: html.element("td", ["class": "bar-cell"]) { _ in }
    }
  }

  /// - Parameter widths: the room for small decimals in each column.
  private func write(
    _ row: [Cell], _ widths: [Int], isSum: Bool = false, to html: inout HTML
  ) {
    precondition(row.count == columns.count, "a row has other cells than its table has columns")
    html.element("tr", isSum ? ["class": "sum"] : [:]) { html in
      for (index, cell) in row.enumerated() {
        Self.write(cell, columns[index], isFirst: index == 0, widths[index], to: &html)
      }
    }
  }

  private static func write(
    _ cell: Cell, _ column: Column, isFirst: Bool, _ fineWidth: Int, to html: inout HTML
  ) {
    let name: StaticString = isFirst ? "th" : "td"
    func element(_ style: String, _ body: (inout HTML) -> Void) {
      let style = column.isWide ? style + " wide" : style
      if isFirst {
        html.element(name, ["scope": "row", "class": style], body)
      } else {
        html.element(name, ["class": style], body)
      }
    }
    switch cell {
    case .empty: element("none") { _ in }
    case .text(let text): element("t") { $0.text(text) }
    case .period(let text): element("day") { $0.text(text) }
    case .identifier(let text): element("id") { $0.identifier(text) }
    case .named(let code, let name):
      element("t") { html in
        html.element("span", ["class": "code"], text: code)
        if let name { html.text(" \(name)") }
      }
    case .explained(let words):
      element("t") { html in
        html.text(words.title)
        if !words.meaning.isEmpty {
          html.element("span", ["class": "meaning"], text: words.meaning)
        }
      }
    case .count(let value): element(value < 0 ? "n minus" : "n") { $0.count(value) }
    case .signedCount(let value): element("n") { $0.signedCount(value) }
    case .amount(let value, let currency):
      element(value < 0 ? "n minus" : "n") { $0.amount(value, currency, fineWidth: fineWidth) }
    case .signedAmount(let value, let currency):
      element(value < 0 ? "n minus" : "n") {
        $0.signedAmount(value, currency, fineWidth: fineWidth)
      }
    case .percent(let text): element("n soft") { $0.text(text) }
    case .share(let text): element("n soft share") { $0.text(text ?? "") }
    case .bar(let bar): element("bar-cell") { bar.write(to: &$0) }
    }
  }
}

// MARK: - HTML

/// HTML under construction, as UTF-8. Names are constants of the program, and every text is escaped: no data can become
/// markup.
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

  /// Writes an element that contains a text.
  package mutating func element(
    _ name: StaticString, _ attributes: KeyValuePairs<StaticString, String> = [:],
    text: String
  ) {
    element(name, attributes) { $0.text(text) }
  }

  /// Writes an element that has no content.
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

  /// Writes a constant of the program without markup, such as a style sheet, unchanged.
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

  /// Whether a scalar changes how others are shown, or is invisible itself. The joiners shape emoji and scripts.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value < 0x7F { return scalar.value < 0x20 }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: return true
    case .format: return scalar.value != 0x200C && scalar.value != 0x200D
    default: return false
    }
  }
}
