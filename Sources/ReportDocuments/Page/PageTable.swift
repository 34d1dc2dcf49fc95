// A table on a page: a caption, headings with a scope, rows, and a last row of sums.
import Revenue

/// A table.
struct PageTable {
  enum Alignment { case text, number, share, bar }

  struct Column {
    let title: String
    let alignment: Alignment

    static func text(_ title: String) -> Column { Column(title: title, alignment: .text) }
    static func number(_ title: String) -> Column { Column(title: title, alignment: .number) }
    /// A share, which narrow screens leave out.
    static let share = Column(title: "Share", alignment: .share)
    /// A bar, whose heading only screen readers need not hear.
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
    /// A word, and below it what it means.
    case explained(CodeWords)
    case count(Int128)
    case signedCount(Int128)
    case amount(Int128, Currency)
    case signedAmount(Int128, Currency)
    /// Rounded, so not found in other reports.
    case percent(String)
    /// A part of the column beside it.
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
  /// The row of sums; nil for none.
  var sums: [Cell]?
  /// Whether the caption is shown, not only read.
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
          for row in rows { write(row, widths, to: &html) }
        }
        if let sums { html.element("tfoot") { write(sums, widths, to: &$0) } }
      }
    }
  }

  private static func heading(_ column: Column, to html: inout HTML) {
    switch column.alignment {
    case .text: html.element("th", ["scope": "col"], text: column.title)
    case .number: html.element("th", ["scope": "col", "class": "n"], text: column.title)
    case .share: html.element("th", ["scope": "col", "class": "n share"], text: column.title)
    case .bar: html.element("td", ["class": "bar-cell"]) { _ in }
    }
  }

  /// - Parameter widths: the room for small decimals in each column.
  private func write(_ row: [Cell], _ widths: [Int], to html: inout HTML) {
    precondition(row.count == columns.count, "a row has other cells than its table has columns")
    html.element("tr") { html in
      for (index, cell) in row.enumerated() {
        Self.write(cell, isFirst: index == 0, widths[index], to: &html)
      }
    }
  }

  private static func write(
    _ cell: Cell, isFirst: Bool, _ fineWidth: Int, to html: inout HTML
  ) {
    let name: StaticString = isFirst ? "th" : "td"
    func element(_ style: String, _ body: (inout HTML) -> Void) {
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
