// The payment overview: columns, lists, payments and months (settlement rule S6).
import Revenue
import TestSupport
import Testing

@Suite struct PaymentOverviewTests {
  private static let header = ReportText.overviewHeader
  private static let row = ReportText.overviewRow
  private static let read =
    "1 Japan (JPY) JPY: 2 units, 0 + 179000000 (179000000) + 0 + 0 + -37000000 = 142000000 "
    + "at 0.00817: 1160000 EUR"

  // MARK: Columns

  @Test(arguments: [
    ReportText.overview(),
    ReportText.overview(header: header.replacing("Region (", with: "Country or Region (")),
    ReportText.overview(header: header.uppercased()),
    ReportText.overview(header: header.replacing(",", with: " , ")),
    ReportText.overview(header: header.replacing("\n", with: ",,\n")),
    ReportText.overview(
      header: header.replacing("Earned", with: "Balance,Earned"),
      row.replacing(",179,179", with: ",,179,179")),
    ReportText.overview(
      header: header.replacing("Units Sold,Earned", with: "Earned,Note,Units Sold"),
      row.replacing(",2,179,", with: ",179,anything,2,")),
    // Localised: 11 names, or 12 with Balance, in the usual order.
    ReportText.overview(header: "Zone (Währung),a,b,c,d,e,f,g,h,i,j\n"),
    ReportText.overview(
      header: "Pays 1 (devise),a,b,c,d,e,f,g,h,i,j,k,,\n",
      row.replacing(",179,179", with: ",,179,179")),
  ])
  func columnsAreFoundByNameOrPlace(_ text: String) throws {
    let read = try ReadReport(text)
    expectEqual(read.paymentRows, [Self.read])
    expectEqual(read.lists, ["1, 1160000 EUR, -"])
    expectEqual(read.exceptions, [])
  }

  @Test(
    arguments: [
      (
        "Exchange Rate,",
        "the header has no Exchange Rate: an estimate of a month that is not closed"
      ),
      ("Proceeds,", "the header has no Proceeds: an estimate of a month that is not closed"),
      ("Earned,", "the header has no Earned"), ("Total Owed,", "the header has no Total Owed"),
      (",Bank Account Currency", "the header has no Bank Account Currency"),
    ] as [(String, String)])
  func aHeaderWithoutAColumnThatIsNeededIsRefused(_ name: String, _ expected: String) {
    let text = ReportText.overview(header: Self.header.replacing(name, with: ""))
    expectEqual(ReadReport.refusal(text), "line 3: " + expected)
  }

  @Test(
    arguments: [
      (
        header.replacing("Units Sold", with: "earned"), "line 3: the column \"earned\" stands twice"
      ),
      ("Zone (W),a,b,c,d,e,f,g,h,i\n", "has no row: it is cut"),
      ("Zone (W),a,b,c,d,e,f,g,h,i,j,k,l\n", "has no row: it is cut"),
      ("Zone (W),a,b,c,d,e,f,g,h,i,j2\n", "has no row: it is cut"),
      ("Zone,a,b,c,d,e,f,g,h,i,j\n", "has no row: it is cut"),
    ] as [(String, String)])
  func whatIsNoHeaderHasNoRows(_ header: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.overview(header: header)), expected)
  }

  // MARK: Rows

  @Test(
    arguments: [
      ("Japan (jpy),,,,,,,,,,\n", "1 Japan (jpy) JPY: 0 units, 0 + 0 (0) + 0 + 0 + 0 = 0 at -: - "),
      (
        "\"Americas, \"\"all\"\" (USD)\",\"1,234\",\"1,234.50\",,,,,1234.5,\"+1,000.123456789012\",,EUR\n",
        "1 Americas, \"all\" (USD) USD: 1234 units, 0 + 1234500000 (0) + 0 + 0 + 0 = 1234500000 "
          + "at 1000.123456789012: - EUR"
      ),
      (
        " \"Japan (JPY)\" ,1\n",
        nil
      ),
      (
        "\"Japan\" (JPY) ,1\n",
        "1 Japan (JPY) JPY: 1 units, 0 + 0 (0) + 0 + 0 + 0 = 0 at -: - "
      ),
      (
        "\"Ja\npan (JPY)\",1\n",
        "1 Ja\npan (JPY) JPY: 1 units, 0 + 0 (0) + 0 + 0 + 0 = 0 at -: - "
      ),
    ] as [(String, String?)])
  func cellsAreThoseOfCSVAndEmptyAmountsAreZero(_ row: String, _ expected: String?) {
    let read = try? ReadReport(ReportText.overview(row, behind: ""))
    expectEqual(read?.paymentRows.first, expected)
  }

  @Test(
    arguments: [
      (
        "Japan,1\n",
        "line 4: the first cell is \"Japan\": no currency stands in brackets at its end"
      ),
      (
        "(JPY) Japan\n",
        "line 4: the first cell is \"(JPY) Japan\": no currency stands in brackets at its end"
      ),
      ("Japan (JPY),1.5\n", "line 4: Units Sold is \"1.5\", not a whole number"),
      ("Japan (JPY),1,x\n", "line 4: Earned is \"x\", not an amount"),
      ("Japan (JPY),,,,,,,,1e2\n", "line 4: Exchange Rate is \"1e2\", not a rate"),
      (
        "Japan (JPY),,,,,,,,0.0000000000001\n",
        "line 4: Exchange Rate is \"0.0000000000001\", not a rate"
      ),
      (
        "Japan (JPY),,,,,,,,,,EURO\n",
        "line 4: Bank Account Currency is \"EURO\", not three letters"
      ),
      ("Japan (JPY),,,,,,,,,1.16\n", "line 4: Bank Account Currency is empty, but Proceeds is not"),
      ("Japan (JPY),,,,,,,,,,,,x\n", "line 4: a cell stands beyond the header's columns"),
      ("\"Japan (JPY),1\n", "line 4: a quoted cell is not closed"),
      (String(repeating: "x", count: 70_000) + "\n", "line 4: a cell is longer than 64 KiB"),
      (String(repeating: ",", count: 1000) + "\n", "line 4: the line has more than 1000 cells"),
      ("", "has no row: it is cut"),
    ] as [(String, String)])
  func aRowThatCannotBeReadIsRefused(_ row: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.overview(row, behind: "")), expected)
  }

  @Test(
    arguments: [
      ("A (JPY),,10,,1,2,-3,10,,,\n", []),
      ("A (JPY),,10,99,0,0,0,10.01,,,\n", ["owed_disagrees JPY 10000"]),
      ("A (EUR),,10,,0,0,-1,,,,\n", ["owed_disagrees EUR -9000000"]),
      (
        "A (ABC),,,,,,,,,,\nB (ABC),,,,,,,,,,QQQ\n",
        ["currency_unknown ABC", "currency_unknown QQQ"]
      ),
      (
        "A (EUR),,999999999999.999999,,999999999999.999999,999999999999.999999,"
          + "999999999999.999999,-999999999999.999999,,,\n",
        ["owed_disagrees EUR -4999999999999999995"]
      ),
    ] as [(String, [String])])
  func owedThatDisagreesWithItsPartsIsAnException(_ rows: String, _ expected: [String]) throws {
    try expectEqual(ReadReport(ReportText.overview(rows, behind: "")).exceptions, expected)
  }

  @Test func balanceIsAPartOfWhatIsOwed() throws {
    let header = Self.header.replacing("Earned", with: "Balance,Earned")
    let text = ReportText.overview(header: header, "A (EUR),,5,10,,,,,15,,,EUR\n", behind: "")
    try expectEqual(ReadReport(text).exceptions, [])
  }

  // MARK: Lists

  @Test(
    arguments: [
      ("", ["1, -, -"]), (",\n,\n", ["1, -, -"]),
      (",,\"1.16\" EUR\n", ["1, 1160000 EUR, -"]),
      (",1.16 eur,Paid to A\n", ["1, 1160000 EUR, Paid to A"]),
      (",\"\"\"1.16\"\" EUR\",,\n,,Paid to A,B\n", ["1, 1160000 EUR, Paid to A"]),
      (",\n,Paid to A,\"1.16  EUR\",\n", ["1, 1160000 EUR, -"]),
      (",1.16 EUR,1.16 EUR\n", ["1, 1160000 EUR, 1.16 EUR"]),
      // Neither is a payment.
      (",1.16EUR\n", ["1, -, -"]), (",EUR 1.16\n", ["1, -, -"]), (",\"1,16 EUR\"\n", ["1, -, -"]),
      // The second list is carried forward.
      (
        ",\n,1.16 EUR\n,Paid to A\n,\nBelow the threshold\n" + header
          + "B (USD),,1,,,,,1,,,EUR\nC (USD),,1,,,,,1,,,EUR\n,\n",
        ["1, 1160000 EUR, Paid to A", "2, -, -"]
      ),
      // Lists follow one another without an empty line, or are empty.
      (
        header + row + header + ",1.16 EUR\n".replacing("1.16", with: "0"),
        ["1, -, -", "1, -, -", "0, 0 EUR, -"]
      ),
      // Rows without proceeds are not paid.
      (
        ",1.16 EUR\n" + header + "B (USD),,1,,,,,1,,,EUR\n" + row + ",1.16 EUR\n",
        ["1, 1160000 EUR, -", "2, 1160000 EUR, -"]
      ),
    ] as [(String, [String])])
  func aListIsPaidOrCarriedForward(_ behind: String, _ expected: [String]) throws {
    let read = try ReadReport(ReportText.overview(behind: behind))
    expectEqual(read.lists, expected)
    expectEqual(
      read.report.lists.flatMap(\.rows).map(\.number),
      Array(1...read.report.lists.reduce(0) { $0 + $1.rows.count }))
  }

  @Test(
    arguments: [
      (",1.17 EUR\n", "line 5: the payment is 1.17, but the proceeds add up to 1.16"),
      (
        ",\n,1.16 USD\n",
        "line 6: the payment is in USD, but the proceeds of row 1 are in EUR"
      ),
      (
        header + "B (USD),,1,,,,,1,,,EUR\n,1 EUR\n",
        "line 7: the payment is 1.00, but the proceeds add up to 0.00"
      ),
    ] as [(String, String)])
  func aPaymentThatIsNotThatOfItsRowsIsRefused(_ behind: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.overview(behind: behind)), expected)
  }

  // MARK: The month

  @Test(
    arguments: [
      ("(September, 2014)", "FY2014-P12"), ("(October, 2014)", "FY2015-P01"),
      ("((October,2025)", "FY2026-P01"), ("(x) ( December , 2022 )", "FY2023-P03"),
      ("(January, 2099)", "FY2099-P04"), ("(October, 2099)", nil), ("(September, 2006)", nil),
      ("(October, 2006)", "FY2007-P01"), ("(septembre, 2014)", nil), ("(September 2014)", nil),
      ("(September, 14)", nil), ("(September, 2014", nil), ("September, 2014", nil),
      ("(September, +014)", nil), ("", nil),
    ] as [(String, String?)])
  func theTitleNamesTheMonth(_ name: String, _ expected: String?) throws {
    let title = "\"Payments and Financial Reports \(name)\"\n"
    try expectEqual(ReadReport(ReportText.overview(title: title)).report.month?.name, expected)
    // Without quotes the comma parts two cells.
    let plain = title.filter { $0 != "\"" }
    try expectEqual(ReadReport(ReportText.overview(title: plain)).report.month?.name, expected)
  }

  @Test func aFileOfTooManyRowsIsRefused() {
    let rows = String(repeating: "(EUR)\n", count: 65_537)
    expectEqual(
      ReadReport.refusal(ReportText.overview(rows)),
      "line 65540: the overview has more than 65536 rows")
  }
}
