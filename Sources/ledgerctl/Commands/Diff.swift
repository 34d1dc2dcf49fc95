// `diff`: the events between two points in time, and how they changed revenue.
import AppStore
import Base
import Ledger
import Projections
import Revenue

let diffCommand = Command(
  "diff", summary: "Show what changed between two points in time",
  details: [
    "Compares the projections as of `--from` and as of `--to`, which is the end of the log by default; both "
      + "take the same values as `--as-of`. Shows the events in between, and how they changed revenue by month "
      + "(UTC), country and currency, with the journal lines that were added, removed or changed, and the events "
      + "that changed each of them. An upload counts from its verification on, which is listed too: the upload "
      + "itself may be earlier.",
    "A changed line belongs to an earlier sale about which more became known, such as a price or a country. "
      + "CSV contains only the lines.",
  ],
  options: [
    Option(
      "from", value: .init("POINT"), isRequired: true,
      help: "the earlier point in time: a position, a day (UTC) or an RFC 3339 time"),
    Option("to", value: .init("POINT"), help: "the later point in time"),
    Option(
      "environment", value: .init("NAME", standard: EnvironmentName.production.description),
      help: "the environment to compare"),
    Option(
      "format", value: .init("FORMAT", allowed: DiffOptions.Format.names), help: "the output format"
    ),
    Option(
      "output", short: "o", value: .init("FILE"),
      help: "write to FILE, which is replaced after everything is written"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl diff --from 2026-04-05", "Show what changed since March was closed on 5 April"
    ),
    Example(
      "ledgerctl diff --from 1200 --to 1300 --format csv",
      "List the lines that these events changed"),
  ],
  isReadOnly: true
) { invocation, context in
  try diff(DiffOptions(invocation), invocation, context)
}

/// The options of `diff`.
struct DiffOptions: Equatable, Sendable {
  enum Format: String, CaseIterable, Sendable {
    case table, csv, json
  }

  let from: PointInTime
  /// Nil is the log's end.
  let to: PointInTime?
  /// As the App Store writes it.
  let environment: String
  let format: Format
  /// Nil is standard output.
  let outputPath: String?

  init(_ invocation: Invocation) throws(UsageError) {
    guard let from = try invocation.moment("from") else {
      throw UsageError("--from", "is missing")
    }
    self.from = from
    to = try invocation.moment("to")
    let name = invocation.value("environment") ?? EnvironmentName.production.description
    if name.lowercased() == "all" || name.contains(",") {
      throw UsageError("--environment", "must be one environment")
    }
    environment = EnvironmentName.meant(by: name)
    outputPath = invocation.outputPath
    if let name = invocation.value("format") {
      format = Format(rawValue: name) ?? .table
      if invocation.has("json"), format != .json {
        throw UsageError("--json", "conflicts with --format \(name)")
      }
    } else if invocation.has("json") {
      format = .json
    } else if let outputPath {
      let name = outputPath.lowercased()
      let endings: [(String, Format)] = [(".csv", .csv), (".json", .json), (".txt", .table)]
      guard let known = endings.first(where: { name.hasSuffix($0.0) })?.1 else {
        throw invocation.wrong(
          "output", outputPath, "the name does not imply a format; give --format")
      }
      format = known
    } else {
      format = .table
    }
  }
}

private func diff(
  _ options: DiffOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let first = try ledger.size(at: options.from, "from")
  let last: Int
  if let to = options.to {
    last = try ledger.size(at: to, "to")
  } else {
    if let damage = ledger.reader.damage { throw damage }
    last = ledger.reader.head.size
  }
  guard first <= last else {
    throw UsageError("--to", "comes before --from")
  }
  let difference = try BooksDifference(ledger, first..<last, options.environment, context)
  if !difference.isOfKnownEnvironment {
    context.say(
      "diff: --environment \(ShownArgument.text(options.environment)): no data for this environment"
    )
  }
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
      var sheet = Sheet(context, to: output)
      try difference.write(to: &sheet)
    }
  }
  return .done
}

/// The differences between two sizes of the log.
private struct BooksDifference {
  private struct Side {
    let size: Int
    let root: String
  }

  private let before: Side
  private let after: Side
  private let eventCounts: [(type: String, count: Int)]
  private let revenue: RevenueDifference
  /// Whether the environment is one of the App Store's or named by an event.
  let isOfKnownEnvironment: Bool
  let journal: JournalDifference

  init(
    _ ledger: OpenLedger, _ range: Range<Position>, _ environment: String, _ context: Context
  ) throws {
    let projector = try ledger.projector()
    let older = try projector.books(at: range.lowerBound)
    let newer = try projector.books(at: range.upperBound, from: older)
    let heads = (try Report.head(of: older), try Report.head(of: newer))
    before = Side(size: heads.0.size, root: heads.0.root.base64)
    after = Side(size: heads.1.size, root: heads.1.root.base64)
    isOfKnownEnvironment = try Report.knows(environment: environment, newer)
    eventCounts = try Self.counts(ledger.reader, range, context)
    let isCancelled = { context.interruption.isRequested }
    // Its sales are those whose lines are listed.
    revenue = try RevenueDifference(
      from: older, to: newer, environment: environment, saleLimit: 0, isCancelled: isCancelled)
    journal = try JournalDifference(
      from: older, to: newer, environment: environment, isCancelled: isCancelled)
  }

  private static func counts(
    _ reader: LogReader, _ range: Range<Position>, _ context: Context
  ) throws -> [(type: String, count: Int)] {
    if range.isEmpty { return [] }
    var counts: [String: Int] = [:]
    try reader.read(from: range.lowerBound, to: range.upperBound) { chunk in
      try context.interruption.check()
      try chunk.forEachEvent { event in
        counts[String(decoding: event.type, as: UTF8.self), default: 0] += 1
      }
      return true
    }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: Text

  func write(to sheet: inout Sheet) throws {
    try sheet.line("from  \(counted(before.size, "event")), root \(before.root)")
    try sheet.line("to    \(counted(after.size, "event")), root \(after.root)")
    if before.size == after.size { return try sheet.line("There are no events in between.") }
    try sheet.table(
      "Events, positions \(before.size) to \(after.size - 1)",
      TextTable(
        ["type", .number("events")], eventCounts.map { ["type": $0.type, "events": $0.count] }))
    if revenue.isEmpty, journal.entries.isEmpty {
      try sheet.line()
      return try sheet.line(
        isOfKnownEnvironment
          ? "Revenue did not change." : "There is no revenue for this environment.")
    }
    try sheet.table("Revenue", revenueTable)
    try sheet.table("Journal lines", lineTable)
    try sheet.line()
    try sheet.line(reportNote)
  }

  private var revenueTable: TextTable {
    var table = TextTable([
      "period", "country_code", "currency", .number("units before"), .number("units after"),
      .number("net before"), .number("net after"), .number("change"), .number("sales"),
    ])
    for row in revenue.rows {
      let (old, new) = (row.before, row.after)
      table.append([
        row.place.month, row.place.countryCode, row.place.currency ?? "", "\(old.netUnits)",
        "\(new.netUnits)", amount(old.netMicros, row.place), amount(new.netMicros, row.place),
        amount(new.netMicros - old.netMicros, row.place), "\(row.saleCount)",
      ])
    }
    return table
  }

  private func amount(_ micros: Int128, _ place: RevenueDifference.Place) -> String {
    place.amountText(micros) ?? ""
  }

  private var lineTable: TextTable {
    var table = TextTable([
      "change", "date", "line", "sale_key", "product_id", "before", "after", "events",
    ])
    for entry in journal.entries {
      guard let line = entry.after ?? entry.before else { continue }
      table.append([
        entry.change.rawValue, timeText(line.dateMs), line.type, line.saleKey, line.productID,
        entry.before.map(text) ?? "", entry.after.map(text) ?? "",
        entry.events.map { "\($0)" }.joined(separator: " "),
      ])
    }
    return table
  }

  /// `DE 9.98 EUR`.
  private func text(_ line: JournalDifference.Line) -> String {
    let amount = line.amountMicros.map { Amount.text(micros: Int128($0), currency: line.currency) }
    let price = amount.map { "\($0) \(line.currency?.description ?? "")" } ?? "unpriced"
    let isFree = line.currency == nil && line.amountMicros == 0
    return "\(line.countryCode) \(isFree ? line.kind : price)"
  }

  // MARK: JSON

  var record: Record {
    [
      "from": ["events": before.size, "root": before.root] as Record,
      "to": ["events": after.size, "root": after.root] as Record,
      "events": eventCounts.map { ["type": $0.type, "count": $0.count] as Record },
      "revenue": revenue.rows.map(record),
      "lines": journal.entries.map { entry in
        [
          "change": entry.change.rawValue, "before": entry.before.map(record),
          "after": entry.after.map(record), "position": entry.position, "events": entry.events,
        ] as Record
      },
    ]
  }

  private func record(_ row: RevenueDifference.Row) -> Record {
    let (place, old, new) = (row.place, row.before, row.after)
    return [
      "period": place.month, "country_code": place.countryCode, "currency": place.currency,
      "units_before": old.netUnits, "units_after": new.netUnits,
      "net_before": place.amountText(old.netMicros), "net_after": place.amountText(new.netMicros),
      "net_change": place.amountText(new.netMicros - old.netMicros), "sales": row.saleCount,
    ]
  }

  private func record(_ line: JournalDifference.Line) -> Record {
    let amount = line.amountMicros.map { Amount.text(micros: Int128($0), currency: line.currency) }
    return [
      "date": timeText(line.dateMs), "line": line.type, "bundle_id": line.bundleID,
      "sale_key": line.saleKey, "product_id": line.productID, "kind": line.kind,
      "country_code": line.countryCode, "quantity": line.quantity,
      "currency": line.currency?.description, "amount": amount,
    ]
  }
}
