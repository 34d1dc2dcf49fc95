// What is a report, which columns it needs, and its month: settlement rules S2 and S5.
import Revenue
import TestSupport
import Testing

@Suite struct ReportKindTests {
  private static let none =
    "is not one of the reports that can be read: give a detailed or financial report, or the payment overview; "
    + "transaction tax reports and those of Sales and Trends state no share"

  @Test(
    arguments: [
      (ReportText.financial(), .financial, 1..<2), (ReportText.detailed(), .detailed, 4..<5),
      (ReportText.overview(), .overview, 2..<6),
      // The header of an overview tells it where the title is in another language.
      (ReportText.overview(title: "Zahlungen\n"), .overview, 2..<6),
      (ReportText.overview(title: ""), .overview, 1..<5),
      ("\n \t \n" + ReportText.financial(), .financial, 3..<4),
      (
        String(repeating: "\nnote", count: 16) + "\n" + ReportText.detailed(), .detailed, 21..<22
      ),
    ] as [(String, AppleReport.Kind, Range<Int>)])
  func theContentTellsTheKind(
    _ text: String, _ kind: AppleReport.Kind, _ lines: Range<Int>
  ) throws {
    let report = try ReadReport(text).report
    expectEqual(report.kind, kind)
    expectEqual(report.month?.name, text.hasPrefix("Z") || text.hasPrefix(",") ? nil : "FY2014-P12")
    expectEqual(report.rowLines, lines)
  }

  @Test(arguments: [
    "", "\n\n", "hello", "Total_Rows\t0\n", "Region,Units\n",
    "Provider\tProvider Country\tSKU\tDeveloper\tTitle\tVersion\nAPPLE\tUS\tpro\n",
    "Transaction Date\tTax Type\tAmount\n", ReportText.row() + "Total_Rows\t1\n",
    "note\n" + ReportText.financial(),
    String(repeating: "note\n", count: 20) + ReportText.detailed(),
    String(repeating: "note\n", count: 20) + ReportText.overviewHeader + ReportText.overviewRow,
    "\"Payments and Financial Reports",
  ])
  func anythingElseIsRefused(_ text: String) {
    expectEqual(ReadReport.refusal(text), Self.none)
  }

  // MARK: Columns

  @Test(arguments: ReportText.names)
  func aMissingColumnIsNamed(_ name: String) {
    let refusal = ReadReport.refusal(
      ReportText.financial().replacing(name + "\t", with: "Other\t")
        .replacing("\t" + name + "\n", with: "\tOther\n"))
    switch name {
    case "Start Date", "End Date", "Extended Partner Share": expectEqual(refusal, Self.none)
    case "Vendor Identifier":
      expectEqual(refusal, "line 1: the header has no Vendor Identifier (or SKU)")
    case "Sales or Return":
      expectEqual(refusal, "line 1: the header has no Sales or Return (or Sale or Return)")
    case "Partner Share":
      // The name stands in another's, too.
      #expect(refusal.hasPrefix("line 1: the column \"other\"") || refusal == Self.none)
    default: expectEqual(refusal, "line 1: the header has no \(name)")
    }
  }

  @Test func severalMissingColumnsAreNamedTogether() {
    let text = ReportText.financial().replacing("Quantity", with: "A")
      .replacing("Customer Price", with: "B")
    expectEqual(ReadReport.refusal(text), "line 1: the header has no Quantity, Customer Price")
  }

  @Test func columnsAreFoundByNameInAnyOrderAndCase() throws {
    let names = ["note"] + ReportText.names.reversed().map { $0.uppercased() } + ["", "Region"]
    let cells = ["x"] + ReportText.cells.reversed() + ["y", "EU"]
    let text =
      ReportText.line(names).replacing("SALES OR", with: "sale or")
      .replacing("VENDOR IDENTIFIER", with: "sku") + ReportText.line(cells) + "Total_Rows:1"
    try expectEqual(ReadReport(text).rows, ReadReport(ReportText.financial()).rows)
  }

  @Test(
    arguments: [
      ("Quantity\t", "quantity"), ("\tEND DATE\t", "end date"), ("A\t a ", "a"),
    ] as [(String, String)])
  func aNameThatStandsTwiceIsRefused(_ more: String, _ name: String) {
    let text = more.trimmingPrefix("\t") + "\t" + ReportText.financial()
    expectEqual(ReadReport.refusal(text), "line 1: the column \"\(name)\" stands twice")
  }

  @Test(
    arguments: [
      ("\t\t \n", ""), ("\tx\n", "line 2: a cell stands beyond the header's columns"),
      ("\t\tx\n", "line 2: a cell stands beyond the header's columns"),
    ] as [(String, String)])
  func onlyEmptyCellsMayStandBeyondTheHeader(_ end: String, _ expected: String) {
    let row = ReportText.row().dropLast() + end
    for header in [ReportText.header, String(ReportText.header.dropLast()) + "\t\t\n"] {
      expectEqual(ReadReport.refusal(header + row + "Total_Rows\t1"), expected)
    }
  }

  @Test func cellsMissingAtALinesEndAreEmpty() throws {
    let names = ReportText.names + ["Promo Code", "Region"]
    let text = ReportText.line(names) + ReportText.row() + "Total_Rows\t1"
    try expectEqual(ReadReport(text).report.rows.count, 1)
    let cut = ReportText.header + "08/31/2014\t09/27/2014\tpro\t2\n"
    expectEqual(ReadReport.refusal(cut), "line 2: Partner Share is empty")
  }

  @Test func linesWithoutCellsAreSkippedAndRowsKeepTheirNumbers() throws {
    let text =
      "\n" + ReportText.header + " \t\n" + ReportText.row() + "\n\t\t\n" + ReportText.row()
      + "\n\nTotal_Rows\t2\n\n"
    let read = try ReadReport(text)
    expectEqual(read.report.rows.map(\.number), [1, 2])
    expectEqual(read.report.rowLines, 3..<7)
    let short = try ReadReport(ReportText.financial([[:], [:]]))
    expectEqual(read.all, short.all)
  }

  // MARK: The month

  @Test(
    arguments: [
      ("09/28/2025", "11/01/2025", "FY2026-P01"), ("11/27/2022", "12/31/2022", "FY2023-P03"),
      ("09/30/2006", "10/28/2006", nil), ("10/01/2006", "11/04/2006", "FY2007-P01"),
      ("09/27/2099", "10/31/2099", nil), ("09/01/2014", "09/30/2014", nil),
      ("08/31/2014", "09/26/2014", nil), ("09/27/2014", "08/31/2014", nil),
      ("08/31/2014", "10/25/2014", nil), ("01/01/9999", "12/31/9999", nil),
    ] as [(String, String, String?)])
  func theDaysOfTheRowsAreThoseOfAFiscalMonth(
    _ start: String, _ end: String, _ expected: String?
  ) {
    let text = ReportText.financial([["Start Date": start, "End Date": end]])
    expectEqual((try? ReadReport(text))?.report.month?.name, expected)
    if expected == nil {
      #expect(ReadReport.refusal(text).hasPrefix("line 2: no fiscal month: "))
    }
    let head = "Start Date\t\(start)\nEnd Date\t\(end)\n"
    expectEqual((try? ReadReport(ReportText.detailed(head: head)))?.report.month?.name, expected)
  }

  @Test func rowsOfTwoMonthsAreRefused() {
    let text = ReportText.financial([
      [:], ["Start Date": "08/03/2014", "End Date": "08/30/2014"],
    ])
    expectEqual(
      ReadReport.refusal(text),
      "line 3: mixed months: 2014-08-03 to 2014-08-30, but before 2014-08-31 to 2014-09-27")
  }

  @Test(
    arguments: [
      ("", "no Start Date stands before the header"),
      ("Start Date\t08/31/2014\n", "no End Date stands before the header"),
      ("End Date\t09/27/2014\n", "no Start Date stands before the header"),
      ("Start Date\t08/31/2014\nEnd Date\n", "line 2: End Date is empty"),
      ("End Date\t09/27/2014\n\nStart Date\t08/31/2014\nEnd Date\t09/27/2014\n", ""),
      (
        "Start Date\t08/31/2014\nEnd Date\t09/27/2014\nEnd Date\t09/28/2014\n",
        "line 3: mixed months: 2014-08-31 to 2014-09-28, but before 2014-08-31 to 2014-09-27"
      ),
    ] as [(String, String)])
  func aDetailedReportStatesItsDaysBeforeTheHeader(_ head: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.detailed(head: head)), expected)
  }
}
