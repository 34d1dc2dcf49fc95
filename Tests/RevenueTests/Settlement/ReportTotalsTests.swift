// A report's own totals and its list by country: settlement rule S4.
import Revenue
import TestSupport
import Testing

@Suite struct ReportTotalsTests {
  private static let back = [
    "Sales or Return": "R", "Quantity": "-1", "Extended Partner Share": "-1.30",
  ]
  private static let euros = [
    "Country Of Sale": "DE", "Partner Share Currency": "EUR", "Extended Partner Share": "1.30",
    "Quantity": "1",
  ]
  private static let list = ReportText.listHeader

  @Test(
    arguments: [
      ("Total_Rows\t2", ""), ("Total_Rows:2", ""), ("Total_Rows: 2", ""), (" Total_Rows\t2", ""),
      ("Total_Rows\t2\tx", ""), ("Total_Rows\t2.0", ""), ("Total_Amount\t1.30", ""),
      ("Total_Amount:1.3\n\nTotal_Units\t1", ""), ("Total_Rows\t2\nTotal_Units\t2", ""),
      ("Total_Amount\t1.300000\nTotal_Rows\t2\nTotal_Rows\t2", ""),
      ("Total_Rows\t3", "line 4: Total_Rows is 3, but the file has 2"),
      ("Total_Rows\t-2", "line 4: Total_Rows is -2, but the file has 2"),
      ("Total_Rows\t", "line 4: Total_Rows is empty"),
      ("Total_Rows:", "line 4: Total_Rows is empty"),
      ("Total_Rows\ttwo", "line 4: Total_Rows is \"two\", not a whole number"),
      (
        "Total_Rows\t2\nTotal_Amount\t1.31",
        "line 5: Total_Amount is 1.31, but the rows add up to 1.30"
      ),
      ("Total_Amount\t-1.3", "line 4: Total_Amount is -1.30, but the rows add up to 1.30"),
      ("Total_Amount\t1,30", "line 4: Total_Amount is \"1,30\", not an amount"),
      (
        "Total_Rows\t2\nTotal_Units\t3",
        "line 5: Total_Units is 3, but the rows add up to 1 (2 without returns)"
      ),
      (
        "",
        "has neither Total_Rows nor Total_Amount nor a list by country behind its rows: it is cut"
      ),
      (
        "Total_Units\t1",
        "has neither Total_Rows nor Total_Amount nor a list by country behind its rows: it is cut"
      ),
      ("Total_Rows", "line 4: Total_Rows is empty"),
      ("Total\t1.30 CHF", "line 4: Quantity is empty"),
      ("total_rows\t2", "line 4: Quantity is empty"),
      ("Total_Rows\t2\nCopyright", "line 5: a row after the totals"),
    ] as [(String, String)])
  func aTotalThatStandsHolds(_ totals: String, _ expected: String) {
    let text = ReportText.financial([[:], Self.back], totals: totals)
    expectEqual(ReadReport.refusal(text), expected, "\(totals)")
  }

  @Test(
    arguments: [
      ("Total_Rows\t2\n" + list + "CH\tCHF\t2\t2.60\nDE\tEUR\t1\t1.30\n", []),
      (list + "\nde\teur\t1\t1.3\nCH\tCHF\t2.0\t2.6\t\n\nTotal_Rows\t2\n", []),
      (
        "country of sale\tQuantity\tNote\t"
          + "EXTENDED PARTNER SHARE\tPartner Share Currency\nDE\t1\t\t1.30\tEUR\n"
          + "CH\t2\tx\t2.60\tCHF\n", []
      ),
      // Several share currencies: their sum means nothing.
      ("Total_Rows\t2\nTotal_Amount\t99.99", []), ("Total_Amount\tnone", []),
      ("Total_Rows\t2\nCountry Of Sale\tQuantity\nCH\t99\n", ["totals_unread"]),
      ("Country Of Sale\n\nanything\n", ["totals_unread"]),
      (list + "CH\tCHF\t2\t2.60\nTotal\t\t3\nDE\tEUR\t1\t1.30\nend\n", ["totals_unread"]),
      (list + "CH\tCHF\t2\t2.60\nDE\tEUR\t1\t1.30\n" + list, ["totals_unread"]),
    ] as [(String, [String])])
  func theListIsCheckedAsFarAsItCanBeRead(_ totals: String, _ exceptions: [String]) throws {
    let read = try ReadReport(ReportText.financial([[:], Self.euros], totals: totals))
    expectEqual(read.exceptions, exceptions)
    expectEqual(read.report.rowLines, 1..<3)
  }

  @Test(
    arguments: [
      (
        list + "CH\tCHF\t2\t2.60\n",
        "the list by country has no DE EUR, but the rows have"
      ),
      (list, "the list by country has no CH CHF, but the rows have"),
      (
        list + "CH\tCHF\t2\t2.60\nCH\tCHF\t2\t2.60\n",
        "line 6: the list by country has CH CHF twice"
      ),
      (list + "CH\tEUR\t2\t2.60\n", "line 5: the list by country has CH EUR, but no row has"),
      (list + "FR\tEUR\t0\t0\n", "line 5: the list by country has FR EUR, but no row has"),
      (
        list + "CH\tCHF\t3\t2.60\n",
        "line 5: Quantity of CH CHF is 3, but the rows add up to 2"
      ),
      (
        list + "CH\tCHF\t2\t2.61\n",
        "line 5: Extended Partner Share of CH CHF is 2.61, but the rows add up to 2.60"
      ),
      (list + "CH\tCHF\tx\t2.60\n", "line 5: Quantity is \"x\", not a whole number"),
      (list + "CH\tCHF\t2\n", "line 5: Extended Partner Share is empty"),
      // A line that is unread leaves what it may have said missing.
      (
        list + "CH\tCHF\t2\t2.60\nDE\tEU\t1\t1.30\n",
        "the list by country has no DE EUR, but the rows have"
      ),
      ("Total_Rows\t2\n" + ReportText.row(), "line 5: a row after the totals"),
      (list + ReportText.row(), "line 5: a row after the totals"),
      ("Country Of Sale\n" + ReportText.row(), "line 5: a row after the totals"),
    ] as [(String, String)])
  func aListThatDisagreesIsRefused(_ totals: String, _ expected: String) {
    let text = ReportText.financial([[:], Self.euros], totals: totals)
    expectEqual(ReadReport.refusal(text), expected)
  }

  @Test(arguments: [("2", true), ("1", true), ("3", false), ("-1", false)])
  func unitsOfTheListMayBePurchasesOrNet(_ units: String, _ isGood: Bool) {
    let text = ReportText.financial(
      [[:], Self.back], totals: Self.list + "CH\tCHF\t\(units)\t1.30\n")
    expectEqual(ReadReport.refusal(text).isEmpty, isGood)
  }

  @Test(
    arguments: [
      ("Total_Rows\t1\n", "has no list by country behind its rows: it is cut"),
      ("", "has no list by country behind its rows: it is cut"),
      ("Country Of Sale\tQuantity\n", ""),
      (list + "CH\tCHF\t2\t2.60\n", ""),
      (list + "CH\tCHF\t2\t2.60\nTotal_Rows\t2", "line 8: Total_Rows is 2, but the file has 1"),
    ] as [(String, String)])
  func aDetailedReportNeedsTheList(_ totals: String, _ expected: String) {
    expectEqual(ReadReport.refusal(ReportText.detailed(totals: totals)), expected)
  }

  @Test func aReportWithoutRowsIsRefused() {
    for text in [
      ReportText.header, ReportText.financial([]), ReportText.financial([], totals: Self.list),
      ReportText.detailed([], totals: Self.list),
    ] {
      expectEqual(ReadReport.refusal(text), "has no row: it is cut")
    }
  }

  /// Sums far beyond 64 bits of micros.
  @Test func sumsOfTheLargestAmountsAreExact() throws {
    let large = "999,999,999,999.999999"
    let rows = Array(
      repeating: ["Quantity": "999999999999", "Extended Partner Share": large], count: 20)
    let text = ReportText.financial(rows, totals: "Total_Units\t0\n")
    expectEqual(
      ReadReport.refusal(text),
      "line 22: Total_Units is 0, but the rows add up to 19999999999980")
    expectEqual(
      ReadReport.refusal(ReportText.financial(rows, totals: "Total_Amount\t0\n")),
      "line 22: Total_Amount is 0.00, but the rows add up to 19999999999999.99998")
  }

  @Test(arguments: [
    ReportText.financial(
      [[:], back, euros],
      totals: "Total_Rows\t3\n" + list
        + "CH\tCHF\t1\t1.30\nDE\tEUR\t1\t1.30\n"),
    ReportText.detailed([[:], back, euros], totals: list + "DE\tEUR\t1\t1.30\nCH\tCHF\t1\t1.30\n"),
  ])
  func cutAnywhereAReportIsRefusedOrHasAllRows(_ text: String) throws {
    let whole = try ReadReport(text)
    for count in 0..<text.utf8.count {
      guard let read = try? ReadReport(Array(text.utf8.prefix(count))) else { continue }
      expectEqual(read.rows, whole.rows, "\(count) bytes")
      expectEqual(read.report.month, whole.report.month, "\(count) bytes")
    }
  }

  /// Rows at random, with totals that are right, then with one that is not.
  @Test func totalsAtRandomHoldUnlessTheyAreChanged() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    for _ in 0..<200 {
      var sums: [String: (units: Int, cents: Int)] = [:]
      var all = (units: 0, cents: 0)
      let rows = (0...random.below(8)).map { _ in
        let country = random.pick(["DE", "FR", "IT"])
        let (units, share) = (random.below(2000) - 500, random.below(1000))
        let sum = sums[country] ?? (0, 0)
        sums[country] = (sum.units + units, sum.cents + units * share)
        all = (all.units + units, all.cents + units * share)
        return [
          "Country Of Sale": country, "Quantity": "\(units)", "Partner Share": Self.text(share),
          "Extended Partner Share": Self.text(units * share),
          "Sales or Return": "\(units < 0 ? "R" : "S")",
        ]
      }
      func totals(_ offset: Int) -> String {
        let lines = sums.map { "\($0)\tCHF\t\($1.units)\t\(Self.text($1.cents + offset))\n" }
        return "Total_Amount\t\(Self.text(all.cents))\nTotal_Units\t\(all.units)\n" + Self.list
          + lines.joined()
      }
      let read = try ReadReport(ReportText.financial(rows, totals: totals(0)))
      expectEqual(read.exceptions, [], "seed \(random.seed)")
      #expect(
        !ReadReport.refusal(ReportText.financial(rows, totals: totals(1))).isEmpty,
        "seed \(random.seed)")
    }
  }

  private static func text(_ cents: Int) -> String {
    let cent = String(cents.magnitude % 100)
    return (cents < 0 ? "-" : "") + "\(cents.magnitude / 100)." + (cent.count < 2 ? "0" : "") + cent
  }
}
