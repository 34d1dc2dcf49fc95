// `export`: the reports.
import AppStore
import Base
import Ledger
import Projections
import Revenue

let exportCommand = Command(
  "export", summary: "Write a report",
  details: [
    "Writes one report, which docs/reports.md explains: `revenue` is split as you ask, the `journal` has the "
      + "lines that it sums, `sales` what these lines belong to. `reconcile` ties them to what Apple's reports say it "
      + "sold; `proceeds` and `payout` have what these say of shares and payments; `entries` are postings for "
      + "double-entry accounts. Revenue is operational gross at customer prices as clients reported them, not "
      + "settlement. Different currencies are never added up unless `--in` converts them.",
    "Without `--format`, FILE's name decides: `.csv`, `.json`, `.ndjson` or `.jsonl`, `.txt`, `.xlsx`, and of "
      + "`entries` `.journal` (hledger and Ledger) and `.beancount`; "
      + "without either, the format is a table. An Excel file has times in the zone of `--timezone`. In CSV, a "
      + "text that a spreadsheet would execute gets a `'` in front; docs/revenue.md says which, and how to undo "
      + "it. If the report goes to FILE, a line about it and warnings are printed on standard error.",
    "`subscriptions` have their status at `--at`, by default at the last event. With `--by month` they are "
      + "counted by month, up to that moment.",
  ],
  positionals: [
    Positional(
      "REPORT", arity: .optional, allowed: ReportKind.names,
      help: "the report; required without `--sqlite`")
  ],
  options: exportCommandOptions,
  misnomers: [
    "from-day": "is --from", "to-day": "is --to",
    "since": "is --as-of for a point in time, --from for the first day; 'diff' compares two points",
    "until": "is --as-of for a point in time, --to for the last day; 'diff' compares two points",
    "package": "is --manifest, whose file names each column with its type and meaning",
  ],
  examples: [
    Example(
      "ledgerctl export revenue --by period,country --from 2026-01-01 --in EUR -o revenue.csv",
      "Revenue by month and country since 1 January, in euros"),
    Example(
      "ledgerctl export revenue --from 2026-03-01 --to 2026-03-31 --as-of 2026-04-05 --manifest -o march.csv",
      "Revenue of March as known on 5 April, for an auditor to check"),
  ],
  isReadOnly: true
) { invocation, context in
  if let options = try CopyOptions(invocation) {
    return try exportCopy(options, invocation, context)
  }
  return try export(ExportOptions(invocation), invocation, context)
}

private let exportCommandOptions: [Option] =
  exportQuestionOptions + Option.filters
  + Option.presentation + exportOutputOptions + Option.csv + Option.copies + [.noPager]

/// Which figures a report has.
private let exportQuestionOptions: [Option] = [
  Option(
    "by",
    value: .init(
      "LIST",
      allowed: ReportDimension.names + [ReportRequest.byMonth, PayoutGroup.seller.rawValue],
      isList: true, standard: "country"),
    help:
      "what revenue is split by, in this order; `month` counts subscriptions; `seller`, `country` and `product` "
      + "split each payment of `payout`"),
  Option(
    "period",
    value: .init("PERIOD", allowed: Revenue.Period.Granularity.names, standard: "month"),
    help: "the length of the periods of `--by period`"),
  .zone, .refundDate, .asOf,
  Option(
    "at", value: .init("MOMENT"),
    help: "the moment at which subscriptions are judged: an RFC 3339 time, or the start of a day"
  ),
  Option(
    "month", value: .init("MONTH"),
    help:
      "the days of a month, as in `2026-06`; of `reconcile`, `proceeds` and `payout` fiscal months, as in `FY2026-P06`"
  ),
  .firstDay, .lastDay, .environments,
  Option(
    "with-settlement",
    help:
      "add to `journal` and `sales` the month and proceeds that Apple's reports state of a line; empty where they do "
      + "not tell it apart"),
  Option("include-pending", help: "include sales that the App Store has not confirmed yet"),
  .reportingCurrency, .ratesMaxAge,
  Option(
    "class",
    value: .init("LIST", allowed: SettlementClass.allCases.map { "\($0.word)" }, isList: true),
    help: "only these classes of `reconcile`"),
  Option(
    "basis",
    value: .init("BASIS", allowed: EntryBasis.names, standard: EntryBasis.ledger.rawValue),
    help: "what `entries` rest on: the receipts, corrected by Apple's reports, or these alone"),
  Option(
    "paid-on", value: .init("LIST"),
    help: "the days of payments in `entries`, as in `FY2026-P01=2025-12-04`"),
  Option(
    "accounts", value: .init("FILE"),
    help: "what accounts are called in `entries`: lines of `name = account`"),
  Option(
    "check",
    help: "instead of `entries` the receivable's balance, as posted and as what is open and owed"),
]

/// Where a report goes, and in which form.
private let exportOutputOptions: [Option] = [
  Option(
    "format", value: .init("FORMAT", allowed: ExportOptions.Format.names),
    help: "the output format"),
  Option(
    "output", short: "o", value: .init("FILE"),
    help: "write to FILE"),
  Option(
    "manifest",
    help:
      "also write FILE`.manifest.json`, with which `audit report` checks the report against the log"
  ),
]

private func export(
  _ options: ExportOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let request = options.request
  if invocation.has("period"), !request.dimensions.contains(.period) {
    context.log(
      "export: --period \(request.granularity.rawValue): has no effect without --by period")
  }
  if invocation.has("timezone"), !options.showsLocalTimes {
    let isAtDay = (try? CivilDate(parsing: invocation.value("at") ?? "")) != nil
    if request.kind.hasMoment, !request.isByMonth, !isAtDay {
      context.log("export: --timezone: has no effect without --by month or a day for --at")
    } else if !request.kind.hasMoment, !request.kind.hasDays, request.kind != .entries {
      context.log(
        "export: --timezone: has no effect except in Excel files and with --csv-dates spreadsheet")
    }
  }
  if let days = invocation.value("rates-max-age"), invocation.has("rates-max-age"),
    request.reportingCurrency == nil
  {
    context.log("export: --rates-max-age \(days): has no effect without --in")
  }
  let ledger = try OpenLedger(invocation, context)
  let database = try ledger.projections(asOf: options.asOf)
  let output = ReportOutput(request, options.format, ledger.directory.identity)
  var manifest: Manifest?
  var report: WrittenReport?
  try withDestination(options.outputPath, context) { destination in
    let written = try output.write(from: database, to: destination, context)
    for name in written.summary.unknownEnvironments {
      context.log("export: --environment \(ShownArgument.text(name)): no data for this environment")
    }
    let summary = written.summary
    for text in summary.unknownTexts { context.log("export: \(text)") }
    // A file's line says how many rows it has; no exceptions are good news.
    if options.outputPath == nil, request.kind != .exceptions, summary.rowCount == 0,
      summary.unknownTexts.isEmpty, written.size > 0
    {
      context.log("export: no rows match the filters")
    }
    for text in summary.remarks { context.log("export: \(text)") }
    if request.top != nil, summary.sortsSeveralCurrencies(request) {
      context.log(
        "export: --top: amounts of different currencies are not compared; --in converts them")
    }
    for text in summary.warnings(request, isTable: options.format == .table) {
      context.log("export: \(text)")
    }
    if let text = summary.trustText { context.log("export: \(text)") }
    report = written
    if let path = options.manifestedPath {
      // Signed before the report is put in place, so that there is no report if signing fails.
      manifest = try Manifest(output, written, path: path, ledger, database)
    }
  }
  if let manifest, let path = options.manifestedPath {
    try withDestination(path + Manifest.suffix, context) { try $0.write(manifest.bytes) }
  }
  if request.kind == .exceptions, options.asOf == nil {
    // A fraud in the list may be a paying customer: show the command that declares the product.
    for sentence in try AppQueries(database).undeclaredProducts().sentences {
      context.log("export: not declared: \(visible(sentence))")
    }
  }
  if let report, let path = options.outputPath {
    let line = ReportFooter(request, report.summary).fileLine(size: report.size, path: path)
    context.diagnostics.writeLine(visible(line))
  }
  return .done
}
