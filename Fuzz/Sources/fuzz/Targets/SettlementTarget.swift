// Apple's financial reports: files as they come, plain or compressed, and their text as it is kept.
@testable import Base
@testable import Intake
@testable import Revenue

extension FuzzTarget {
  static let settlement = FuzzTarget(
    name: "settlement", inputByteCountMax: 4096,
    words: [
      "Start Date\t", "End Date\t", "Extended Partner Share", "Transaction Date\tSettlement Date",
      "Total_Rows\t", "Total_Amount:", "Total_Units\t", "Country Of Sale\t",
      "Payments and Financial Reports", "(September, 2014)", "Region (Currency),", "\"1.16\" EUR",
      "08/31/2014\t09/27/2014", "(USD)", "999,999,999,999.999999", "\r\n", "\"\"", "\u{feff}",
      "\u{1f}\u{8b}",
    ],
    seeds: {
      let names =
        "SKU\tQuantity\tPartner Share\tExtended Partner Share\tPartner Share Currency\t"
        + "Sale or Return\tProduct Type Identifier\tCountry Of Sale\tCustomer Price\t"
        + "Customer Currency\n"
      let row = "pro\t-1\t1.30\t-1.30\tCHF\tR\tIA1\tCH\t-2.00\tCHF\n"
      let list = "Country Of Sale\tPartner Share Currency\tQuantity\tExtended Partner Share\n"
      let texts = [
        "Start Date\tEnd Date\t" + names + "08/31/2014\t09/27/2014\t" + row
          + "\nTotal_Rows\t1\nTotal_Amount:-1.3\nTotal_Units\t0\n" + list + "CH\tCHF\t-1\t-1.30\n",
        "Report\r\nStart Date\t08/31/2014\r\nEnd Date\t09/27/2014\r\n"
          + "Transaction Date\tSettlement Date\t" + names + "09/01/2014\t09/03/2014\t" + row + list
          + "CH\tCHF\t-1\t-1.30\n",
        "\"iTunes Connect - Payments and Financial Reports\t(September, 2014)\",,\n,\n"
          + "Region (Currency),Units Sold,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,"
          + "Withholding Tax,Total Owed,Exchange Rate,Proceeds,Bank Account Currency\n"
          + "Japan (JPY),2,179,179,0,0,-37,142,0.00817,\"1.16\",EUR\n,\n,\"1.16\" EUR,Paid to A\n",
      ]
      let utf16 = texts[2].utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
      return texts.map { Array($0.utf8) } + [[0xFE, 0xFF] + utf16]
    },
    check: { input in
      do throws(DeclarationError) {
        let text = try SettlementText(bytes: Array(input))
        require(String(validating: text.text, as: UTF8.self) != nil, "a text is UTF-8")
        require(!text.text.contains { $0 == 0 || $0 == 0x0D }, "lines end with LF")
        let symbols = StringInterner(TextArena())
        SettlementCheck.report(try text.report(symbols: symbols), text, symbols)
      } catch { require(!error.description.isEmpty, "refusals have causes") }
    })
}

private enum SettlementCheck {
  static func report(_ report: AppleReport, _ text: SettlementText, _ symbols: StringInterner) {
    let lines = text.text.split(separator: 0x0A, omittingEmptySubsequences: false)
    require(report.rowLines.upperBound <= lines.count, "rows stand on lines of the file")
    if report.kind == .overview {
      return require(report.lists.contains { !$0.rows.isEmpty }, "an overview has rows")
    }
    require(report.month != nil, "rows are of a month")
    for (index, row) in report.rows.enumerated() {
      require(Int(row.number) == index + 1, "rows are numbered")
      require(row.priceMicros >= 0 && row.unitShareMicros >= 0, "prices are not negative")
    }
    // An event keeps no empty lines.
    var kept = text
    kept.text = Array(lines.filter { !$0.isEmpty }.joined(separator: [0x0A]))
    do throws(DeclarationError) {
      let again = try kept.report(symbols: symbols)
      require(again.rows == report.rows, "rows are those of the lines that are kept")
      require(again.exceptions == report.exceptions, "exceptions are those of the lines")
    } catch { require(false, "the lines that are kept are a report: \(error)") }
  }
}
