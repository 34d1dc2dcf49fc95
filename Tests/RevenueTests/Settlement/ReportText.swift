// Texts of Apple's reports for tests, and what reading them gives.
import Foundation
import Revenue
import TestSupport
import Testing

/// A report that was read, with the texts of its symbols.
struct ReadReport {
  let report: AppleReport
  let symbols: StringInterner

  init(_ text: [UInt8]) throws(AppleReportError) {
    let symbols = StringInterner(TextArena())
    self.symbols = symbols
    report = try withText(text) { (text) throws(AppleReportError) in
      try AppleReport(parsing: text, symbols: symbols)
    }
  }

  init(_ text: String) throws(AppleReportError) { try self.init(Array(text.utf8)) }

  /// Each row on a line, so that a failure shows what differs.
  var rows: [String] {
    report.rows.map { row in
      let texts = [row.product, row.country, row.currency, row.shareCurrency]
        .map { symbols.string($0) }
      let day = row.transactionDay == AppleReport.Row.noDay ? "-" : "\(row.transactionDay)"
      return "\(row.number) \(row.isReturn ? "R" : "S") \(texts.joined(separator: " ")) "
        + "\(row.isInApp ? "in-app" : "app") \(row.units) × \(row.priceMicros), "
        + "\(row.unitShareMicros) \(row.shareMicros) \(day)"
    }
  }

  /// Each row of an overview on a line.
  var paymentRows: [String] {
    report.lists.flatMap(\.rows).map { row in
      let amounts = [row.inputTax, row.adjustments, row.withholdingTax].map { "\($0)" }
      return "\(row.number) \(row.region) \(symbols.string(row.currency)): \(row.unitsSold) units, "
        + "\(row.balance) + \(row.earned) (\(row.preTaxSubtotal)) + "
        + "\(amounts.joined(separator: " + ")) = \(row.owed) at \(row.exchangeRate ?? "-"): "
        + "\(row.proceeds.map { "\($0)" } ?? "-") \(symbols.string(row.bankCurrency))"
    }
  }

  /// Each exception with its name and detail.
  var exceptions: [String] {
    report.exceptions.map { finding in
      switch finding {
      case .signDisagrees(let row), .shareDisagrees(let row), .settledOutside(let row):
        "\(finding.name) \(row)"
      case .totalsUnread: finding.name
      case .currencyUnknown(let code): "\(finding.name) \(symbols.string(code))"
      case .owedDisagrees(let currency, let difference):
        "\(finding.name) \(symbols.string(currency)) \(difference)"
      }
    }
  }

  /// All that was read: equal for equal reports.
  var all: [String] {
    ["\(report.kind) \(report.month?.name ?? "-")"] + rows + exceptions + paymentRows + lists
  }

  /// Each list of an overview: its rows' number, payment and payee.
  var lists: [String] {
    report.lists.map { list in
      let payment = list.payment.map { "\($0.micros) \(symbols.string($0.currency))" }
      return "\(list.rows.count), \(payment ?? "-"), \(list.payee ?? "-")"
    }
  }

  /// Why a text is refused; empty if it is read.
  static func refusal(_ text: String) -> String { refusal(Array(text.utf8)) }

  static func refusal(_ text: [UInt8]) -> String {
    do throws(AppleReportError) {
      _ = try ReadReport(text)
      return ""
    } catch { return error.description }
  }
}

/// Makes reports of few columns.
enum ReportText {
  /// The shared reports next to the repository; nil in a clone without them.
  static let folder: URL? = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let folder = package.appendingPathComponent("../shared/fixtures/apple-reports")
      .standardizedFileURL
    return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
  }()

  static func published(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: #require(folder).appendingPathComponent(name)))
  }

  static let names = [
    "Start Date", "End Date", "Vendor Identifier", "Quantity", "Partner Share",
    "Extended Partner Share", "Partner Share Currency", "Sales or Return",
    "Product Type Identifier", "Country Of Sale", "Customer Price", "Customer Currency",
  ]
  static let cells = [
    "08/31/2014", "09/27/2014", "pro", "2", "1.30", "2.60", "CHF", "S", "IA1", "CH", "2.00", "CHF",
  ]
  static let header = line(names)

  static func line(_ cells: [String]) -> String { cells.joined(separator: "\t") + "\n" }

  /// The usual row with other cells, by their columns' names.
  static func row(_ changes: [String: String] = [:]) -> String {
    line(zip(names, cells).map { changes[$0] ?? $1 })
  }

  /// A financial report.
  static func financial(
    _ rows: [[String: String]] = [[:]], totals: String? = nil
  ) -> String {
    header + rows.map { row($0) }.joined() + (totals ?? "Total_Rows\t\(rows.count)\n")
  }

  // MARK: Detailed reports

  static let detailedNames =
    ["Transaction Date", "Settlement Date"] + names.dropFirst(3) + ["SKU"]
  static let detailedCells =
    ["09/01/2014", "09/03/2014"] + cells.dropFirst(3) + ["pro"]
  static let head = "iTunes Connect\nStart Date\t08/31/2014\nEnd Date\t09/27/2014\n"
  static let listHeader =
    "Country Of Sale\tPartner Share Currency\tQuantity\tExtended Partner Share\n"

  static func detailedRow(_ changes: [String: String] = [:]) -> String {
    line(zip(detailedNames, detailedCells).map { changes[$0] ?? $1 })
  }

  static func detailed(
    head: String = head, _ rows: [[String: String]] = [[:]],
    totals: String = listHeader + "CH\tCHF\t2\t2.60\n"
  ) -> String {
    head + line(detailedNames) + rows.map { detailedRow($0) }.joined() + totals
  }

  // MARK: Overviews

  static let title = "\"iTunes Connect - Payments and Financial Reports\t(September, 2014)\",,\n"
  static let overviewHeader =
    "Region (Currency),Units Sold,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,Withholding Tax,"
    + "Total Owed,Exchange Rate,Proceeds,Bank Account Currency\n"
  static let overviewRow = "Japan (JPY),2,179,179,0,0,-37,142,0.00817,1.16,EUR\n"

  static func overview(
    title: String = title, header: String = overviewHeader, _ rows: String = overviewRow,
    behind: String = ",,\n,,\"1.16\" EUR\n"
  ) -> String {
    title + ",,,\n" + header + rows + behind
  }
}
