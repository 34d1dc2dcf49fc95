// The accounts of entries: their usual names, those of a mapping file, and which names other programs read (S15).
import Base

/// An account of entries. Raw values are the names in mapping files.
package enum EntryAccount: String, CaseIterable, Sendable {
  case receivable, bank, sales, refunds, apps, unseen, differences, kept, unsettled, withheld
  case inputTax = "input_tax"
  case adjustments, conversion

  /// What it is called unless a mapping says otherwise.
  package var standard: String {
    switch self {
    case .receivable: "Assets:Apple:Receivable"
    case .bank: "Assets:Bank"
    case .sales: "Income:Apple:Sales"
    case .refunds: "Income:Apple:Refunds"
    case .apps: "Income:Apple:Apps"
    case .unseen: "Income:Apple:Unseen"
    case .differences: "Income:Apple:Differences"
    case .kept: "Expenses:Apple:Kept"
    case .unsettled: "Expenses:Apple:Unsettled"
    case .withheld: "Expenses:Tax:Withheld"
    case .inputTax: "Liabilities:Tax:Input"
    case .adjustments: "Income:Apple:Adjustments"
    case .conversion: "Equity:Conversion"
    }
  }
}

/// Why a mapping is refused.
package struct EntryAccountsError: Error, Equatable, Sendable, CustomStringConvertible {
  /// From 1; 0 if no line is at fault.
  package let line: Int
  package let message: String

  package var description: String { line > 0 ? "line \(line): \(message)" : message }
}

/// What each account is called.
package struct EntryAccounts: Sendable {
  private var names: [EntryAccount: String] = [:]

  package init() {}

  /// Reads a mapping file: lines of `name = account`. A `#` begins a comment.
  package init(parsing text: String) throws(EntryAccountsError) {
    let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let content = Self.trimmed(line.prefix { $0 != "#" })
      if content.isEmpty { continue }
      do throws(EntryAccountsError) { try replace(content) } catch {
        throw EntryAccountsError(line: index + 1, message: error.message)
      }
    }
  }

  /// Replaces what an account is called: `name = account`. Each can be replaced once.
  package mutating func replace(_ text: String) throws(EntryAccountsError) {
    func refusal(_ message: String) -> EntryAccountsError {
      EntryAccountsError(line: 0, message: message)
    }
    let scalars = text.unicodeScalars
    guard let sign = scalars.firstIndex(of: "=") else {
      throw refusal("is not a name, '=' and an account")
    }
    let word = Self.trimmed(scalars[..<sign])
    let name = Self.trimmed(scalars[scalars.index(after: sign)...])
    guard let account = EntryAccount(rawValue: word) else {
      let words = EntryAccount.allCases.map(\.rawValue).joined(separator: ", ")
      throw refusal("'\(PrintableText.shortened(word))' is not one of \(words)")
    }
    if names[account] != nil { throw refusal("'\(word)' is named twice") }
    if name.isEmpty { throw refusal("'\(word)' has no account") }
    if name.unicodeScalars.contains(where: \.isControl) {
      throw refusal("the account of '\(word)' has a control character")
    }
    names[account] = name
  }

  private static func trimmed(_ text: Substring.UnicodeScalarView) -> String {
    func isSpace(_ scalar: Unicode.Scalar) -> Bool { " \t\r".unicodeScalars.contains(scalar) }
    guard let first = text.firstIndex(where: { !isSpace($0) }),
      let last = text.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return String(text[first...last])
  }

  package subscript(account: EntryAccount) -> String { names[account] ?? account.standard }

  /// `name=account` of all that have another name than usual.
  package var texts: [String] {
    EntryAccount.allCases.filter { self[$0] != $0.standard }.map { "\($0.rawValue)=\(self[$0])" }
  }

  /// The first account that programs for a format would not read; nil if they read all.
  package func unreadable(in format: EntryFormat) -> String? {
    EntryAccount.allCases.map { self[$0] }.first { !format.reads($0) }
  }
}

extension Unicode.Scalar {
  fileprivate var isControl: Bool {
    [.control, .lineSeparator, .paragraphSeparator].contains(properties.generalCategory)
  }
}

/// The plain-text formats of entries.
package enum EntryFormat: String, Sendable {
  case hledger, beancount

  /// Whether its programs read a name as that of an account.
  func reads(_ account: String) -> Bool {
    let parts = account.unicodeScalars.split(separator: ":", omittingEmptySubsequences: false)
    if parts.contains(where: \.isEmpty) { return false }
    switch self {
    case .hledger:
      // Two spaces end a name, and all white space is one; a bracket, `*` or `!` in front of it means something else.
      let hasOtherSpace = account.unicodeScalars.contains {
        $0.properties.isWhitespace && $0 != " "
      }
      return !hasOtherSpace && !account.contains("  ") && !account.contains(";")
        && !"([*!".unicodeScalars.contains(account.unicodeScalars.first ?? "*")
    case .beancount:
      return parts.count > 1 && Self.roots.contains(String(parts[0]))
        && parts.dropFirst().allSatisfy(Self.isPart)
    }
  }

  /// The first parts of Beancount's accounts.
  private static let roots = ["Assets", "Liabilities", "Equity", "Income", "Expenses"]

  /// Beancount: a capital letter or a digit, then letters, digits and hyphens.
  private static func isPart(_ part: Substring.UnicodeScalarView) -> Bool {
    let first = part.first?.properties.generalCategory
    return (first == .uppercaseLetter || first == .decimalNumber)
      && part.allSatisfy { scalar in
        let category = scalar.properties.generalCategory
        return scalar == "-" || category.isLetter
          || category == .decimalNumber
      }
  }
}

extension Unicode.GeneralCategory {
  fileprivate var isLetter: Bool {
    [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter]
      .contains(self)
  }
}
