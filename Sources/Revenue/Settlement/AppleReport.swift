// One of Apple's reports: what the parser of its text gives (settlement rules S2 to S6).

/// One of Apple's reports, read and checked as settlement rules S2 to S6 say.
package struct AppleReport: Sendable {
  package enum Kind: String, CaseIterable, Sendable { case detailed, financial, overview }

  package let kind: Kind
  /// Nil only for an overview whose first line names no month.
  package let month: FiscalMonth?
  /// The rows of a detailed or financial report, in order.
  package let rows: [Row]
  /// The lists of an overview, in order.
  package let lists: [PaymentList]
  /// In the order of the file.
  package let exceptions: [Finding]
  /// The lines of the rows, from 0: the totals begin at its upper bound. Of an overview: from the first header to the
  /// last line.
  package let rowLines: Range<Int>

  /// Reads a report from text in UTF-8 whose lines end with LF.
  package init(
    parsing text: UnsafeRawBufferPointer, symbols: StringInterner
  ) throws(AppleReportError) {
    let codes = CodeReader(symbols)
    if let header = TabHeader.find(in: text) {
      var parser = try RowParser(header, codes)
      self = try parser.parse(text)
    } else if try PaymentOverview.isOverview(text) {
      var parser = PaymentOverview(codes)
      self = try parser.parse(text)
    } else {
      throw AppleReportError(
        "is not one of the reports that can be read: give a detailed or financial report, or the payment "
          + "overview; transaction tax reports and those of Sales and Trends state no share")
    }
  }

  init(
    _ kind: Kind, _ month: FiscalMonth?, rows: [Row] = [], lists: [PaymentList] = [],
    exceptions: [Finding], rowLines: Range<Int>
  ) {
    (self.kind, self.month, self.rows, self.lists) = (kind, month, rows, lists)
    (self.exceptions, self.rowLines) = (exceptions, rowLines)
  }
}

/// Why a report is refused.
package struct AppleReportError: Error, Equatable, Sendable, CustomStringConvertible {
  /// From 1; 0 means the whole file.
  package let line: Int
  package let message: String

  package init(line: Int = 0, _ message: String) { (self.line, self.message) = (line, message) }

  package var description: String { line > 0 ? "line \(line): \(message)" : message }
}

// MARK: - Rows

extension AppleReport {
  /// A row of a detailed or financial report. Files have hundreds of thousands: 64 bytes each.
  package struct Row: Equatable, Sendable {
    /// Among the file's rows, from 1.
    package var number: Int32
    /// The Transaction Date, in days since 1970-01-01; `noDay` in a financial report.
    package var transactionDay: Int32
    package var product: Symbol
    /// Two capital letters.
    package var country: Symbol
    /// The customer's currency: three capital letters, as the share's.
    package var currency: Symbol
    package var shareCurrency: Symbol
    package var isReturn: Bool
    /// Whether the Product Type Identifier begins with `IA` or `FI`.
    package var isInApp: Bool
    /// At least 0.
    package var priceMicros: Int64
    /// As they stand: a return's are usually negative.
    package var units: Int64
    /// At least 0.
    package var unitShareMicros: Int64
    /// The Extended Partner Share, as it stands.
    package var shareMicros: Int64

    /// The transaction day of a row that states none.
    package static let noDay = Int32.min
  }

  /// An exception: something in the file that is read and reported.
  package enum Finding: Equatable, Sendable {
    case signDisagrees(row: Int32)
    case shareDisagrees(row: Int32)
    case settledOutside(row: Int32)
    case totalsUnread
    /// Once for each code.
    case currencyUnknown(Symbol)
    /// Total Owed less the sum of what it is made of.
    case owedDisagrees(currency: Symbol, differenceMicros: Int64)

    /// As reports call it.
    package var name: String {
      switch self {
      case .signDisagrees: "sign_disagrees"
      case .shareDisagrees: "share_disagrees"
      case .settledOutside: "settled_outside"
      case .totalsUnread: "totals_unread"
      case .currencyUnknown: "currency_unknown"
      case .owedDisagrees: "owed_disagrees"
      }
    }
  }
}

// MARK: - Overviews

extension AppleReport {
  /// A list of an overview: paid at once, or carried forward.
  package struct PaymentList: Equatable, Sendable {
    package var rows: [PaymentRow] = []
    /// Nil if the list is carried forward.
    package var payment: Payment?
    package var payee: String?
  }

  package struct Payment: Equatable, Sendable {
    package var micros: Int64
    package var currency: Symbol
  }

  /// A row of an overview. Amounts are in micros of `currency`, the proceeds in micros of `bankCurrency`.
  package struct PaymentRow: Equatable, Sendable {
    /// Among all rows of the file, from 1.
    package var number: Int
    /// The first cell, as it stands.
    package var region: String
    package var currency: Symbol
    package var unitsSold: Int64
    package var balance: Int64
    package var earned: Int64
    package var preTaxSubtotal: Int64
    package var inputTax: Int64
    package var adjustments: Int64
    package var withholdingTax: Int64
    package var owed: Int64
    /// As it stands, without a plus and commas.
    package var exchangeRate: String?
    package var proceeds: Int64?
    /// `Symbol.none` where the cell is empty, which needs proceeds to be empty, too.
    package var bankCurrency: Symbol
  }
}
