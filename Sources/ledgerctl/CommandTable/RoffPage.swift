// Text in roff, with the macros of man(7), which groff and mandoc read alike.

/// A page that is being written.
struct RoffPage {
  private(set) var text: String

  /// - Parameters:
  ///   - title: the page's name, without its section, which is 1.
  ///   - date: a day as in `2026-11-23`.
  ///   - source: the program and its version.
  init(title: String, date: String, source: String) {
    text = #".\" This page is written by 'ledgerctl help --man'."# + "\n"
    line(
      ".TH \(escaped(title.uppercased(), isCode: true)) 1 \(date) \"\(escaped(source))\" \"Receipt Ledger\""
    )
    // A word is not divided: it may be one to type.
    line(".nh")
    line(".ad l")
  }

  /// A line of roff, as it is.
  mutating func line(_ line: String) { text += line + "\n" }

  mutating func section(_ heading: String) {
    line(".SH " + (heading.contains(" ") ? "\"\(heading)\"" : heading))
  }

  mutating func paragraph() { line(".PP") }

  /// A paragraph with the marks of the reference: what is between backquotes becomes bold.
  mutating func prose(_ paragraph: String) { textLine(marked(paragraph)) }

  /// Lines as they are typed.
  mutating func code(_ lines: String) {
    line(".PP")
    line(".nf")
    line(".RS 4")
    for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
      textLine(escaped(String(line), isCode: true))
    }
    line(".RE")
    line(".fi")
  }

  /// Pieces of a usage line, of which the first `words` are typed as they are.
  mutating func synopsis(_ pieces: [String], words: Int) {
    textLine(bold(pieces.prefix(words).joined(separator: " ")))
    for piece in pieces.dropFirst(words) { textLine(styled(piece)) }
  }

  mutating func item(code: String, _ description: String) {
    line(".TP")
    textLine(bold(code))
    prose(description)
  }

  mutating func item(variable: String, _ description: String) {
    line(".TP")
    textLine(italic(variable))
    prose(description)
  }

  /// An option: its names, and what stands for its value.
  mutating func item(names: [String], variable: String?, _ description: String) {
    line(".TP")
    textLine(
      names.map(bold).joined(separator: ", ") + (variable.map { " " + italic($0) } ?? ""))
    prose(description)
  }

  /// Another page of section 1, and what it is about.
  mutating func item(reference: String, _ description: String) {
    line(".TP")
    textLine(bold(reference) + "(1)")
    prose(description)
  }

  /// Names of other pages of section 1, and where the documents are.
  mutating func references(_ names: [String]) {
    for (index, name) in names.enumerated() {
      line(".BR \(escaped(name, isCode: true)) (1)" + (index == names.count - 1 ? "" : ","))
    }
    if !names.isEmpty { paragraph() }
    prose(
      "The documents that pages name, like `docs/operations.md`, are installed in `/usr/share/doc/receipt-ledger`."
    )
  }

  /// `[--by LIST]`: names bold, variables italic.
  private func styled(_ piece: String) -> String {
    var text = piece
    var (start, end) = ("", "")
    if text.hasPrefix("[") { (start, text) = ("[", String(text.dropFirst())) }
    if text.hasSuffix("]") { (end, text) = ("]", String(text.dropLast())) }
    if text.hasSuffix("…") { (end, text) = (escaped("…") + end, String(text.dropLast())) }
    let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
    let styled = parts.map { $0.hasPrefix("-") ? bold($0) : italic($0) }
    return start + styled.joined(separator: " ") + end
  }

  private func bold(_ text: String) -> String { "\\fB\(escaped(text, isCode: true))\\fP" }
  private func italic(_ text: String) -> String { "\\fI\(escaped(text, isCode: true))\\fP" }

  /// A line of text: one that begins as a request does is told from it.
  private mutating func textLine(_ text: String) {
    line(text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text)
  }

  private func marked(_ text: String) -> String {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
    return parts.enumerated().map { index, part in
      index.isMultiple(of: 2) ? escaped(part) : part.isEmpty ? "" : bold(part)
    }.joined()
  }

  /// - Parameter isCode: whether the text is to be typed, so that its quotes and hyphens must stay what they are.
  func escaped(_ text: String, isCode: Bool = false) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\e"
      case "-" where isCode: result += "\\-"
      case "'" where isCode: result += "\\(aq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      case "\"": result += "\\(dq"
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
      }
    }
    return result
  }
}
