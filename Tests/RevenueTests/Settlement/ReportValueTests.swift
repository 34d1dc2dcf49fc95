// Numbers, dates and codes in the cells of reports: settlement rule S3, by what a row makes of them.
import Foundation
import Revenue
import TestSupport
import Testing

@Suite struct ReportValueTests {
  /// The row of a report with one other cell; nil if it is refused.
  private static func row(_ column: String, _ cell: String) -> AppleReport.Row? {
    try? ReadReport(ReportText.financial([[column: cell]])).report.rows.first
  }

  @Test(
    arguments: [
      ("2", 2), ("+2", 2), ("-2", -2), ("-0", 0), ("007", 7), ("2.0", 2), ("2.000000000", 2),
      ("1,234", 1234), ("-12,345,678", -12_345_678), ("999999999999", 999_999_999_999),
      ("999,999,999,999.0", 999_999_999_999), (" 2 ", 2),
      ("", nil), ("+", nil), ("--2", nil), ("2.", nil), (".0", nil), ("2.5", nil), ("2e1", nil),
      ("1234,567", nil), ("0,123", nil), ("1,23", nil), ("1,2345", nil), (",123", nil),
      ("1,,234", nil), ("1,234,", nil), ("1234567890123", nil), ("0000000000001", nil),
      ("(2)", nil), ("2 0", nil), ("２", nil), ("1.234.567", nil), ("1.0,0", nil),
    ] as [(String, Int64?)])
  func aWholeNumberHasOneForm(_ cell: String, _ expected: Int64?) {
    expectEqual(Self.row("Quantity", cell)?.units, expected, "\(cell)")
  }

  @Test(
    arguments: [
      ("2", 2_000_000), ("2.6", 2_600_000), ("-2.60", -2_600_000), ("+0.000001", 1),
      ("-0.00", 0), ("1,234.5", 1_234_500_000), ("00.5", 500_000),
      ("999999999999.999999", 999_999_999_999_999_999),
      ("-999,999,999,999.999999", -999_999_999_999_999_999),
      ("", nil), ("2.", nil), (".5", nil), ("2.1234567", nil), ("2.5.5", nil), ("1e3", nil),
      ("1000000000000", nil), ("2,60", nil), ("1.234,50", nil), ("(2.60)", nil), ("€2", nil),
      ("2.60 CHF", nil), ("2.6-", nil), ("1 234.50", nil), ("1,234,5.0", nil), ("-", nil),
    ] as [(String, Int64?)])
  func anAmountHasOneForm(_ cell: String, _ expected: Int64?) {
    expectEqual(Self.row("Extended Partner Share", cell)?.shareMicros, expected, "\(cell)")
  }

  /// The forms of rule S3, as it writes them.
  @Test func aCellAtRandomIsAnAmountOnlyIfItHasTheForm() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    let form = try Regex("[+-]?([0-9]+|[1-9][0-9]{0,2}(,[0-9]{3})+)([.][0-9]{1,6})?")
    let pieces = ["+", "-", "0", "1", "23", "456", ",789", ",012", ".", ".5", "000", ",", " ", "e"]
    for _ in 0..<500 {
      let cell = (0...random.below(6)).map { _ in random.pick(pieces) }.joined()
      let text = cell.trimmingCharacters(in: .whitespaces)
      let wholeDigits = text.prefix { $0 != "." }.count { $0.isNumber }
      let isAmount = try form.wholeMatch(in: text) != nil && wholeDigits <= 12
      let micros = Self.row("Extended Partner Share", cell)?.shareMicros
      let plain = text.filter { $0 != "," && $0 != "+" }
      let expected = isAmount ? Decimal(string: plain).map { $0 * 1_000_000 } : nil
      expectEqual(micros.map { Decimal($0) }, expected, "\(cell), seed \(random.seed)")
    }
  }

  @Test func aPriceAndAUnitShareAreMagnitudes() {
    expectEqual(Self.row("Customer Price", "-1.99")?.priceMicros, 1_990_000)
    expectEqual(Self.row("Partner Share", "-1.30")?.unitShareMicros, 1_300_000)
  }

  @Test(
    arguments: [
      ("CH", "CH"), ("ch", "CH"), ("xq", "XQ"), ("C", nil), ("CHE", nil), ("C1", nil), ("", nil),
      ("C\u{130}", nil),
    ] as [(String, String?)])
  func aCountryIsTwoLettersInEitherCase(_ cell: String, _ expected: String?) {
    let read = try? ReadReport(ReportText.financial([["Country Of Sale": cell]]))
    expectEqual(read.map { $0.symbols.string($0.report.rows[0].country) }, expected)
  }

  @Test(
    arguments: [
      ("CHF", "CHF", []), ("eur", "EUR", []), ("abc", "ABC", ["currency_unknown ABC"]),
      ("XAU", "XAU", ["currency_unknown XAU"]), ("EU", nil, []), ("EURO", nil, []),
      ("E R", nil, []), ("", nil, []),
    ] as [(String, String?, [String])])
  func aCurrencyIsThreeLettersAndOneOutsideTheTableIsAnException(
    _ cell: String, _ expected: String?, _ exceptions: [String]
  ) {
    let read = try? ReadReport(
      ReportText.financial([["Customer Currency": cell], ["Customer Currency": cell]]))
    expectEqual(read.map { $0.symbols.string($0.report.rows[0].currency) }, expected)
    expectEqual(read?.exceptions ?? [], exceptions)
  }

  @Test(
    arguments: [("S", false), ("R", true), ("s", nil), ("Sale", nil), ("", nil), ("SR", nil)]
      as [(String, Bool?)])
  func aReturnFlagIsOneOfTwoLetters(_ cell: String, _ expected: Bool?) {
    expectEqual(Self.row("Sales or Return", cell)?.isReturn, expected)
  }

  @Test(
    arguments: [
      ("IA1", true), ("IAY", true), ("FI1", true), ("IA", true), ("F1", false), ("1F", false),
      ("1", false), ("ia1", false), ("I", false),
    ] as [(String, Bool)])
  func aTypeTellsInAppPurchases(_ cell: String, _ expected: Bool) {
    expectEqual(Self.row("Product Type Identifier", cell)?.isInApp, expected)
  }

  @Test(
    arguments: [
      ("09/01/2014", 16_314), ("02/29/2024", 19_782), ("12/31/9999", 2_932_896),
      ("02/29/2023", nil), ("9/1/2014", nil), ("2014-09-01", nil), ("13/01/2014", nil),
      ("00/01/2014", nil), ("09/31/2014", nil), ("09/01/14", nil), ("09/01/0000", nil),
      ("09-01-2014", nil), ("", nil),
    ] as [(String, Int32?)])
  func aDayExistsAndHasOneForm(_ cell: String, _ expected: Int32?) {
    let read = try? ReadReport(ReportText.detailed([["Transaction Date": cell]]))
    expectEqual(read?.report.rows.first?.transactionDay, expected)
  }

  @Test(
    arguments: [
      ("Quantity", "", "line 2: Quantity is empty"),
      ("Quantity", "1.5", "line 2: Quantity is \"1.5\", not a whole number"),
      ("Customer Price", "1,99", "line 2: Customer Price is \"1,99\", not an amount"),
      ("Vendor Identifier", " ", "line 2: Vendor Identifier is empty"),
      ("Product Type Identifier", "", "line 2: Product Type Identifier is empty"),
      ("Country Of Sale", "CHE", "line 2: Country Of Sale is \"CHE\", not two letters"),
      ("Customer Currency", "", "line 2: Customer Currency is empty"),
      ("Sales or Return", "X", "line 2: Sales or Return is \"X\", not S or R"),
      ("Start Date", "", "line 2: Start Date is empty"),
      ("End Date", "9/27/2014", "line 2: End Date is \"9/27/2014\", not a day as MM/DD/YYYY"),
    ] as [(String, String, String)])
  func aRequiredCellThatCannotBeReadIsNamed(_ column: String, _ cell: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.financial([[column: cell]])), expected)
  }

  @Test(
    arguments: [
      (["Quantity": "-2", "Extended Partner Share": "-2.60"], ["sign_disagrees 1"]),
      (["Sales or Return": "R"], ["sign_disagrees 1"]),
      (
        ["Sales or Return": "R", "Quantity": "-2", "Extended Partner Share": "-2.60"], []
      ),
      (["Quantity": "0", "Extended Partner Share": "0"], []),
      (["Sales or Return": "R", "Quantity": "0", "Extended Partner Share": "0"], []),
      (["Extended Partner Share": "2.61"], ["share_disagrees 1"]),
      (["Partner Share": "-1.30"], []),
      (
        ["Quantity": "999999999999", "Partner Share": "999999999999.999999"],
        ["share_disagrees 1"]
      ),
      (
        // The product's lower 64 bits are the share.
        ["Quantity": "137438953472", "Partner Share": "134217.728", "Extended Partner Share": "0"],
        ["share_disagrees 1"]
      ),
      (
        ["Sales or Return": "R", "Extended Partner Share": "2.5"],
        ["sign_disagrees 1", "share_disagrees 1"]
      ),
    ] as [([String: String], [String])])
  func figuresThatDisagreeAreExceptionsAndCount(
    _ changes: [String: String], _ expected: [String]
  ) throws {
    let read = try ReadReport(ReportText.financial([changes]))
    expectEqual(read.exceptions, expected)
    expectEqual(read.report.rows.count, 1)
  }

  @Test(
    arguments: [
      ("08/31/2014", []), ("09/27/2014", []), ("08/30/2014", ["settled_outside 1"]),
      ("09/28/2014", ["settled_outside 1"]),
    ] as [(String, [String])])
  func aSettlementOutsideTheMonthIsAnException(_ day: String, _ expected: [String]) throws {
    let read = try ReadReport(ReportText.detailed([["Settlement Date": day]]))
    expectEqual(read.exceptions, expected)
  }
}
