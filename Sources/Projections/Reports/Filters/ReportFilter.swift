// What narrows a report down, and how its rows are sorted, rounded and laid out.
package import Revenue

/// The apps, products, countries, user and kinds of sale that a report shows.
package struct ReportFilter: Equatable, Sendable {
  /// A product id, or the prefix of product ids.
  package struct ProductPattern: Equatable, Sendable {
    package let text: String
    package let isPrefix: Bool

    /// - Parameter pattern: a product id, or a prefix with `*` at its end.
    package init(_ pattern: String) {
      isPrefix = pattern.hasSuffix("*")
      text = isPrefix ? String(pattern.dropLast()) : pattern
    }

    /// As given on the command line.
    package var pattern: String { isPrefix ? text + "*" : text }
  }

  /// Bundle identifiers, or ids of registered apps; nil is all.
  package var apps: [String]?
  package var products: [ProductPattern]?
  /// Country codes, `ZZ` for an unknown one; nil is all.
  package var countries: [String]?
  /// One user identifier; nil is all.
  package var user: String?
  package var kinds: [SaleKind]?
  /// Months of Apple's fiscal calendar, and classes, of a reconciliation.
  package var months: [String]?
  package var classes: [SettlementClass]?

  package init() {}

  /// Whether everything is shown.
  package var isEmpty: Bool { self == ReportFilter() }
}

/// What a report's rows are sorted by.
package struct ReportSort: Equatable, Sendable {
  package var column: String
  /// Nil: numbers, amounts and times fall, all else rises.
  package var isDescending: Bool?

  package init(column: String, isDescending: Bool? = nil) {
    self.column = column
    self.isDescending = isDescending
  }
}

/// How amounts are shown.
package enum ReportAmounts: String, CaseIterable, Sendable {
  /// To the micro.
  case exact
  /// Rounded to the currency's minor unit, so that rows add up to the rounded total.
  case minor
}

/// How a report's rows are laid out. None of this changes a figure.
package struct ReportLayout: Equatable, Sendable {
  /// How CSV is written.
  package struct CSV: Equatable, Sendable {
    package enum Dates: String, CaseIterable, Sendable {
      /// RFC 3339 in UTC, with milliseconds.
      case rfc3339
      /// As spreadsheets read them, in the report's time zone.
      case spreadsheet
    }

    /// One ASCII character.
    package var delimiter = UInt8(ascii: ",")
    /// `.` or `,`; differs from the delimiter.
    package var decimal = UInt8(ascii: ".")
    package var dates = Dates.rfc3339

    package init() {}
  }

  /// The columns shown, in this order; empty is all.
  package var columns: [String] = []
  /// Whether rows with the totals follow the rows.
  package var hasTotal = false
  package var csv = CSV()
  /// The version of the form of text tables, for the manifests that name it.
  package var tableVersion = Self.currentTableVersion
  /// 1 has all columns; since 2 those that are empty or zero throughout are left out; since 3 totals of many currencies
  /// are a line, and rounding is mentioned only where it changed a figure.
  package static let currentTableVersion = 3
  /// The version of the form of Excel files, likewise.
  package var spreadsheetForm = Self.currentSpreadsheetForm
  /// Form 1 packed the same cells differently; up to form 2 exact texts stood beside rounded amounts too, and sheets were
  /// not made for paper.
  package static let currentSpreadsheetForm = 3

  package init() {}
}

extension ReportSort {
  /// `net`, `net:asc` or `net:desc`; nil for an empty column or another order.
  package init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard let column = parts.first, !column.isEmpty, parts.count <= 2 else { return nil }
    self.init(column: column)
    guard parts.count == 2 else { return }
    switch parts[1] {
    case "asc": isDescending = false
    case "desc": isDescending = true
    default: return nil
    }
  }

  /// As given on the command line.
  package var text: String { isDescending.map { column + ($0 ? ":desc" : ":asc") } ?? column }
}

extension ReportLayout.CSV {
  /// The delimiters that CSV may have.
  package static let delimiters: [UInt8] = [0x2C, 0x3B, 0x09, 0x7C]
  /// The decimal signs that CSV may have.
  package static let decimals: [UInt8] = [0x2E, 0x2C]
}

extension SaleKind {
  /// The kind that the journal writes as `word`.
  package init?(word: String) {
    guard let kind = Self.allCases.first(where: { "\($0.word)" == word }) else { return nil }
    self = kind
  }
}
