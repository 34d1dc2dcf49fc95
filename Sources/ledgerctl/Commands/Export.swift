// `export`: the reports.
import Base
import Ledger
import Projections
import Revenue

let exportCommand = Command(
  "export", summary: "Write a report",
  details: [
    "Brings the projections up to date, then writes one report: `revenue` by what you ask for, the `journal` "
      + "whose lines it sums up, the `sales` those lines belong to, the `exceptions` that were met, `receipts`, "
      + "or `users`.",
    "Amounts are exact and stand beside their currency; currencies are never added together unless `--in` asks "
      + "for it. Without `--format` the name given to `--output` decides: `.csv`, `.json`, `.ndjson` or "
      + "`.jsonl`, `.txt`; without both it is a table.",
    "In a CSV a text that a spreadsheet would run gets a `'` before it: the user `+4930` is written `'+4930`. It is "
      + "put before texts that begin with `=`, `+`, `-`, `@`, their full-width forms, TAB, CR, LF or NUL, never before "
      + "numbers. To undo it, remove one `'` where one of these follows; docs/revenue.md shows how. JSON has all "
      + "texts unchanged.",
    "Where the report goes to FILE, what a table shows below its rows is written to standard error: totals, "
      + "exceptions and rates, with the filters. `--in` converts each line by the rates of its day or of the "
      + "`--rates-max-age` days before; a line without one keeps its own currency, which is said too.",
    "With `--manifest` a second file says which events the report rests on, with what filters it was made, and "
      + "its SHA-256; where the ledger has a signing key it holds a checkpoint. `ledgerctl audit report` makes "
      + "the report again from the log and compares.",
    "A revenue report is operational gross at customer prices as clients reported them, not settlement.",
  ],
  positionals: [
    Positional("REPORT", allowed: ExportOptions.Report.names, help: "the report")
  ],
  options: exportCommandOptions,
  examples: [
    Example(
      "ledgerctl export revenue --by period,country --from 2026-01-01 -o revenue.csv",
      "Revenue of each month and country since New Year"),
    Example(
      "ledgerctl export revenue --by product --in EUR", "Revenue of each product, in euros"),
    Example(
      "ledgerctl export journal --from 2026-03-01 --to 2026-03-31 --timezone Europe/Berlin",
      "The lines that March is made of, as Berlin counts days"),
    Example(
      "ledgerctl export revenue --from 2026-03-01 --to 2026-03-31 --as-of 2026-04-05",
      "March, as it was known when it was closed on the fifth of April"),
    Example(
      "ledgerctl export exceptions --from 2026-03-01 --to 2026-03-31",
      "What a reader of March must know beside its figures"),
    Example(
      "ledgerctl export revenue --manifest -o revenue.csv",
      "A report that an auditor can hold against the log"),
  ],
  isReadOnly: true
) { invocation, context in
  try export(ExportOptions(invocation), invocation, context)
}

private let exportCommandOptions: [Option] = [
  Option(
    "by",
    value: .init(
      "LIST", allowed: ExportOptions.Dimension.names, isList: true, standard: "country"),
    help: "what revenue is split by, in this order"),
  Option(
    "period",
    value: .init("PERIOD", allowed: ExportOptions.Period.names, standard: "month"),
    help: "how long a period of `--by period` is"),
  Option(
    "timezone", value: .init("ZONE", standard: "UTC"),
    help: "the zone in which days begin, as in `Europe/Berlin`"),
  Option(
    "refunds",
    value: .init("DATE", allowed: ExportOptions.Refunds.names, standard: "event-date"),
    help: "the date on which returns and reversals count"),
  .asOf,
  Option("from", value: .init("DAY"), help: "the first day, as in `2026-03-14`"),
  Option("to", value: .init("DAY"), help: "the last day"),
  Option(
    "environment", value: .init("LIST", standard: "Production"),
    help: "environments, separated by commas, or `all`"),
  Option("include-pending", help: "sales too that the App Store has not confirmed yet"),
  Option("in", value: .init("CURRENCY"), help: "convert by declared rates, as in `EUR`"),
  Option(
    "rates-max-age",
    value: .init("DAYS", standard: String(ReportRequest.ratesAgeMaxDaysStandard)),
    help: "how many days older than a line a rate may be that converts it"),
  Option(
    "format", value: .init("FORMAT", allowed: ExportOptions.Format.names),
    help: "how it is written"),
  Option(
    "output", short: "o", value: .init("FILE"),
    help: "write to FILE, which is replaced when all is written; `-` is standard output"),
  Option(
    "manifest",
    help: "write FILE`.manifest.json` too, which binds the report to the events it rests on"),
]

private func export(
  _ options: ExportOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let request = try options.request()
  if invocation.has("period"), !options.dimensions.contains(.period) {
    context.diagnostics.writeLine(
      "ledgerctl: export: --period \(options.period.rawValue): changes nothing without --by period")
  }
  if invocation.has("rates-max-age"), options.reportingCurrency == nil {
    context.diagnostics.writeLine(
      "ledgerctl: export: --rates-max-age \(options.ratesAgeMaxDays): changes nothing without --in")
  }
  let ledger = try OpenLedger(invocation, context)
  let database = try ledger.projections(asOf: options.asOf)
  let output = ReportOutput(request, options.format, ledger.directory.identity)
  var manifest: Manifest?
  var report: WrittenReport?
  try withDestination(options.outputPath, context) { destination in
    let written = try output.write(from: database, to: destination, context)
    for name in written.summary.unknownEnvironments {
      context.diagnostics.writeLine(
        "ledgerctl: export: --environment \(ShownArgument.text(name)): nothing in the ledger is of it"
      )
    }
    if let text = written.summary.unconvertedText(request) {
      context.diagnostics.writeLine("ledgerctl: export: \(text)")
    }
    if let text = written.summary.trustText {
      context.diagnostics.writeLine("ledgerctl: export: \(text)")
    }
    report = written
    if let path = options.manifestedPath {
      // Signed before the report comes into being: where that is refused there is none.
      manifest = try Manifest(output, written, path: path, ledger, database)
    }
  }
  if let manifest, let path = options.manifestedPath {
    try withDestination(path + Manifest.suffix, context) { try $0.write(manifest.bytes) }
  }
  if request.kind == .exceptions, options.asOf == nil {
    // A fraud in the list may be a customer who paid: the list alone does not say what to do.
    for sentence in try AppQueries(database).undeclaredProducts().sentences {
      context.diagnostics.writeLine("ledgerctl: export: not declared: \(visible(sentence))")
    }
  }
  if let report, let path = options.outputPath {
    let footer = ReportFooter(request.kind, report.summary)
    let lines = footer.fileLines(
      report, request, asOf: invocation.value("as-of"), path: path)
    for line in lines { context.diagnostics.writeLine(visible(line)) }
  }
  return .done
}

extension ExportOptions {
  /// The request that the options make, once zone and currency are known to exist.
  fileprivate func request() throws -> ReportRequest {
    var request = ReportRequest(ReportKind(rawValue: report.rawValue) ?? .revenue)
    request.dimensions = dimensions.compactMap { ReportDimension(rawValue: $0.rawValue) }
    request.granularity = Revenue.Period.Granularity(rawValue: period.rawValue) ?? .month
    request.refunds = RefundDate(rawValue: refunds.rawValue) ?? .eventDate
    request.from = from
    request.to = to
    request.includesPending = includesPending
    switch environments {
    case .all: request.environments = nil
    case .named(let names): request.environments = names
    }
    do throws(TimeZoneError) { request.zone = try TimeZoneTable(timeZone) } catch {
      throw UsageError("--timezone \(ShownArgument.text(timeZone))", "\(error)", command: "export")
    }
    if let reportingCurrency {
      guard let currency = Currency.parse(reportingCurrency) else {
        throw UsageError(
          "--in \(ShownArgument.text(reportingCurrency))", "is no currency of ISO 4217",
          command: "export")
      }
      request.reportingCurrency = currency
    }
    request.ratesAgeMaxDays = ratesAgeMaxDays
    return request
  }
}
