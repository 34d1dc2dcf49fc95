// Price lists so large that they need several appends.
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
}
