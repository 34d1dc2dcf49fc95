// `calendar`: Apple's fiscal months, and when they are paid.
import Base
import ReportDocuments
import Revenue

let calendarCommand = Command(
  "calendar", summary: "Show Apple's fiscal months and when they are paid",
  details: [
    "Apple reports and pays by fiscal months of four or five weeks, which `export revenue --period "
      + "fiscal-month` uses too. Payments are expected 33 days after a month's end, and at the latest after 45."
  ],
  positionals: [
    Positional(
      "YEAR", arity: .optional, help: "a fiscal year, from 2007 to 2099 (default: this one)")
  ],
  options: [.json],
  examples: [
    Example("ledgerctl calendar 2026", "Show the months from October 2025 to September 2026")
  ],
  usesLedger: false
) { invocation, context in
  var year = FiscalMonth.year(
    containing: Int(floorDivide(Timestamp.now(), Timestamp.dayMs)))
  if let text = invocation.positionals.first {
    guard let given = positionValue(text), FiscalMonth.years.contains(given) else {
      throw UsageError(
        "YEAR \(ShownArgument.text(text))",
        "is not a year from \(FiscalMonth.years.lowerBound) to \(FiscalMonth.years.upperBound)")
    }
    year = given
  }
  let records = FiscalMonth.months(ofYear: year).map(\.record)
  let columns: [TextTable.Column] = [
    "fiscal_month", "name", "start", "end", .number("weeks"), "expected_payment", "latest_payment",
  ]
  try context.print(invocation, list: records) { try $0.table(TextTable(columns, records)) }
  return .done
}

extension FiscalMonth {
  fileprivate var record: Record {
    func text(_ day: Int) -> String { CivilDate(dayNumber: day).description }
    return [
      "fiscal_month": Period(.fiscalMonth, ordinal: ordinal).description,
      "name": PagePeriod.monthTitle(namesakeOrdinal), "start": text(firstDay),
      "end": text(lastDay), "weeks": weekCount,
      "expected_payment": text(expectedPaymentDay), "latest_payment": text(latestPaymentDay),
    ]
  }
}
