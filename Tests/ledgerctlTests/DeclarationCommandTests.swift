// Price lists and reports of Apple's so large that they need several appends.
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite(.bounded) struct DeclarationCommandTests {
  @Test func nextRunDeclaresTheRestOfAnInterruptedOne() throws {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      """
      ledgerctl init shop --origin example.com/shop
      echo product_id,country_code,currency,price,effective_from >prices.csv
      long=$(printf %0240d 0 | tr 0 p)
      seq 6000 | sed "s/.*/$long.&,DE,EUR,9.99,2026-01-01/" >>prices.csv
      """)
    try #require(made.exitCode == 0)
    let declaration = try PriceListFile.read(path: sandbox.path + "/prices.csv", stop: StopFlag())
    let eventCount = declaration.drafts.count
    try #require(eventCount > 3)
    let writer = try LedgerWriter.open(LedgerDirectory.open(path: sandbox.path + "/shop"))
    _ = try writer.append(Array(declaration.drafts[..<2]))
    try writer.close()
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop
      ledgerctl prices import prices.csv; ledgerctl prices import prices.csv
      ledgerctl replay | grep -o '"product_id":"p*[.][0-9]*"' | grep -o '[0-9]*' | uniq | wc -l
      ledgerctl prices import prices.csv --again --json
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(
      outcome.output,
      """
      Declared 6000 prices at positions 2 to \(eventCount - 1); an interrupted run had appended \
      the first of them from position 0 on
      Nothing declared: the same file was declared at position 0 (--again declares it again)
      6000
      {"entries":6000,"zero_prices":0,"first_position":\(eventCount),"is_known":false}

      """)
  }

  @Test(
    "an import of a report that was killed between parts counts for nothing until the next finishes it"
  )
  func reportOfSeveralParts() throws {
    let sandbox = try Sandbox()
    let report = AppleReportText(
      region: "ZZ", days: ("09/28/2025", "11/01/2025"),
      (1...90_000).map { "com.example.a.product.of.some.length.\($0) S 1 1.00 EUR DE 2.00 EUR" })
    try report.text.write(
      toFile: sandbox.path + "/85_1025_ZZ.txt", atomically: false, encoding: .utf8)
    let made = try sandbox.run("ledgerctl init shop --origin example.com/shop")
    try #require(made.exitCode == 0)
    let file = try CheckedSettlementFile(
      path: sandbox.path + "/85_1025_ZZ.txt", CheckedSettlementFile.Options(), stop: StopFlag())
    try #require(file.partCount == 2)
    let writer = try LedgerWriter.open(LedgerDirectory.open(path: sandbox.path + "/shop"))
    _ = try writer.append([file.draft(part: 1)])
    try writer.close()
    let outcome = try sandbox.run(
      """
      export LEDGER_DIR=shop
      ledgerctl settlement list --json | grep -o '"state":"[a-z]*"'
      ledgerctl export reconcile --format csv 2>/dev/null | wc -l
      ledgerctl settlement import 85_1025_ZZ.txt; ledgerctl settlement import 85_1025_ZZ.txt
      ledgerctl export reconcile --format csv 2>/dev/null | wc -l
      ledgerctl replay | grep -o '"part":[0-9],"parts":[0-9]'
      """)
    expectEqual(outcome.diagnostics, "")
    expectEqual(
      outcome.output,
      """
      "state":"unfinished"
      1
      85_1025_ZZ.txt: financial report of FY2026-P01 ZZ, 90000 rows, at position 1
      85_1025_ZZ.txt: financial report of FY2026-P01 ZZ, 90000 rows, is declared already, at position 1
      90001
      "part":1,"parts":2
      "part":2,"parts":2

      """)
  }
}
