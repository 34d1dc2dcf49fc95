// `diff`: the events between two points in time, and how they changed revenue.
import AppStore
import Base
import Ledger
import Projections
import ReportDocuments
import Revenue

let diffCommand = Command(
  "diff", summary: "Show what changed between two points in time",
  details: [
    "Compares the projections at two points in time; `--since june.csv.manifest.json` shows what changed "
      + "since that report. Prints the events in between, how they changed revenue by month, country and "
      + "currency, and each journal line that was added, removed or changed, with the events that changed it. An "
      + "upload counts from its verification on. CSV contains only the lines.",
    "`--from-day` and `--to-day` choose lines by their own day: a refund has the day on which it happened. "
      + "With `--in`, each side is converted with the rates known then, and the lines that differ by their rates "
      + "alone are counted.",
  ],
  options: [
    Option(
      "since", value: .init("POINT"), isRequired: true,
      help: "the earlier POINT"),
    Option("until", value: .init("POINT"), help: "the later POINT (default: the end of the log)"),
    .month,
    Option(
      "from-day", value: .init("DAY"),
      help: "the first day of the lines to compare"),
    Option("to-day", value: .init("DAY"), help: "the last day of the lines to compare"),
    .zone, .reportingCurrency, .ratesMaxAge,
    Option(
      "amounts", value: .init("FORM", allowed: ReportAmounts.names, standard: "minor"),
      help: "how a table shows amounts: in minor units or `exact`; CSV and JSON have all digits"),
    Option(
      "environment", value: .init("NAME", standard: EnvironmentName.production.description),
      help: "the environment to compare"),
    Option(
      "format", value: .init("FORMAT", allowed: DiffOptions.Format.names), help: "the output format"
    ),
    Option(
      "output", short: "o", value: .init("FILE"),
      help: "write to FILE"),
    .json, .noPager,
  ],
  misnomers: [
    "from": "is --since for a point in time, --from-day for the first day of the lines",
    "to": "is --until for a point in time, --to-day for the last day of the lines",
    "as-of": "is --until",
  ],
  examples: [
    Example(
      "ledgerctl diff --since 2026-04-05 --month 2026-03 --in EUR",
      "Show what changed in March since it was closed on 5 April, in euros")
  ],
  isReadOnly: true
) { invocation, context in
  try diff(DiffOptions(invocation), invocation, context)
}

/// The options of `diff`.
struct DiffOptions: Sendable {
  enum Format: String, CaseIterable, Sendable {
    case table, csv, json
  }

  let since: PointInTime
  /// Nil is the log's end.
  let until: PointInTime?
  let lines: ComparedLines
  let format: Format
  /// Of a table.
  let amounts: ReportAmounts
  /// Nil is standard output.
  let outputPath: String?

  init(_ invocation: Invocation) throws(UsageError) {
    guard let since = try invocation.moment("since") else {
      throw UsageError("--since", "is missing")
    }
    self.since = since
    until = try invocation.moment("until")
    lines = try ComparedLines(invocation)
    outputPath = invocation.outputPath
    format = try Self.format(invocation, outputPath)
    amounts = invocation.value("amounts").flatMap(ReportAmounts.init) ?? .minor
    if invocation.has("amounts"), format != .table {
      throw UsageError("--amounts", "can be used with tables, not with \(format.rawValue)")
    }
  }

  private static func format(
    _ invocation: Invocation, _ outputPath: String?
  ) throws(UsageError) -> Format {
    if let name = invocation.value("format") {
      let format = Format(rawValue: name) ?? .table
      if invocation.has("json"), format != .json {
        throw UsageError("--json", "conflicts with --format \(name)")
      }
      return format
    }
    if invocation.has("json") { return .json }
    guard let outputPath else { return .table }
    let name = outputPath.lowercased()
    let endings: [(String, Format)] = [(".csv", .csv), (".json", .json), (".txt", .table)]
    guard let known = endings.first(where: { name.hasSuffix($0.0) })?.1 else {
      throw invocation.wrong(
        "output", outputPath, "the name does not imply a format; give --format")
    }
    return known
  }
}

extension ComparedLines {
  /// Those that the options of `diff` ask for.
  fileprivate init(_ invocation: Invocation) throws(UsageError) {
    self.init()
    let name = invocation.value("environment") ?? EnvironmentName.production.description
    if name.lowercased() == "all" || name.contains(",") {
      throw UsageError("--environment", "must be one environment")
    }
    environment = EnvironmentName.meant(by: name)
    zone = try invocation.timeZone()
    fromDay = try invocation.day("from-day")
    toDay = try invocation.day("to-day")
    if let month = try invocation.month("from-day", "to-day") {
      (fromDay, toDay) = (month.first, month.last)
    }
    if let fromDay, let toDay, toDay < fromDay {
      throw invocation.wrong("to-day", toDay.description, "comes before --from-day \(fromDay)")
    }
    currency = try invocation.reportingCurrency()
    ratesAgeMaxDays = try invocation.ratesAgeMaxDays()
  }

  /// The options that are not the default, with which the same lines are compared again; empty if all are.
  var words: String {
    var words: [String] = []
    func add(_ option: String, _ value: String?) {
      if let value { words.append("--\(option) \(value)") }
    }
    let isProduction = environment == EnvironmentName.production.description
    add("environment", isProduction ? nil : environment)
    add("timezone", zone.name == TimeZoneTable.utc.name ? nil : zone.name)
    add("from-day", fromDay?.description)
    add("to-day", toDay?.description)
    add("in", currency?.description)
    add("rates-max-age", currency == nil ? nil : ratesAgeMaxDays.map(String.init))
    return words.joined(separator: " ")
  }

  var record: Record {
    [
      "environment": environment, "timezone": zone.name, "from_day": fromDay?.description,
      "to_day": toDay?.description, "in": currency?.description,
      "rates_max_age": currency == nil ? nil : ratesAgeMaxDays,
    ]
  }
}

private func diff(
  _ options: DiffOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  if invocation.has("rates-max-age"), options.lines.currency == nil {
    let days = options.lines.ratesAgeMaxDays ?? 0
    context.log("diff: --rates-max-age \(days): has no effect without --in")
  }
  let ledger = try OpenLedger(invocation, context)
  let first = try ledger.size(at: options.since, "since")
  let last: Int
  if let until = options.until {
    last = try ledger.size(at: until, "until")
  } else {
    if let damage = ledger.reader.damage { throw damage }
    last = ledger.reader.head.size
  }
  guard first <= last else {
    throw UsageError("--until", "comes before --since")
  }
  let difference = try BooksDifference(ledger, first..<last, options.lines, context)
  for warning in difference.warnings { context.log("diff: \(warning)") }
  try withDestination(options.outputPath, context) { output in
    switch options.format {
    case .csv:
      let writer = CSVReportWriter { bytes in
        try context.interruption.check()
        try output.write(bytes)
      }
      try difference.journal.write(to: writer)
    case .json: try output.writeJSON(difference.record)
    case .table:
      var sheet = TextSections(context, to: output)
      try difference.write(to: &sheet, options.amounts)
    }
  }
  return .done
}
