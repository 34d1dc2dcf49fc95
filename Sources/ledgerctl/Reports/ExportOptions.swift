// The options of `export`, and which reports accept them.
import Base
import Intake
import Projections
import Revenue

/// The options of `export`.
struct ExportOptions: Sendable {
  enum Format: String, CaseIterable, Sendable {
    case csv, json, ndjson, table, xlsx
    /// Of entries alone.
    case hledger, beancount

    /// The names of those that any rows have.
    static let namesOfRows = allCases.filter { $0.entries == nil }.map(\.rawValue)

    /// The format of entries; nil if it is one of any rows.
    var entries: EntryFormat? { EntryFormat(rawValue: rawValue) }
  }

  let request: ReportRequest
  let format: Format
  /// Nil is standard output.
  let outputPath: String?
  /// The point in time of `--as-of`; nil is now.
  let asOf: PointInTime?
  /// Whether a manifest is wanted; then there is an output path.
  let hasManifest: Bool

  /// Whether times are written in the time zone of the report.
  var showsLocalTimes: Bool { format == .xlsx || request.layout.csv.dates == .spreadsheet }

  /// The report's file, if a manifest is to be written.
  var manifestedPath: String? { hasManifest ? outputPath : nil }

  init(_ invocation: Invocation) throws(UsageError) {
    guard let name = invocation.positionals.first else {
      throw UsageError("REPORT", "is missing: \(alternatives(ReportKind.names))")
    }
    let kind = ReportKind(rawValue: name) ?? .revenue
    for option in ReportOption.allCases where invocation.has(option.name) {
      // In most reports a month stands for its first and last day.
      let reports =
        option == .month ? option.reports.union(ReportOption.from.reports) : option.reports
      if reports.contains(kind) { continue }
      let names = ReportKind.allCases.filter(reports.contains).map(\.rawValue)
      throw UsageError(
        "--\(option.name)", "can be used with \(alternatives(names)), not with \(name)")
    }
    try Self.checkDimensions(kind, invocation)
    outputPath = invocation.outputPath
    format = try Self.format(invocation, outputPath, ofEntries: kind == .entries)
    var request = try invocation.reportRequest(kind)
    // People read minor units; programs read all digits.
    if !invocation.has("amounts"), format == .table || format == .xlsx,
      ReportOption.amounts.reports.contains(kind)
    {
      request.amounts = .minor
    }
    if kind.hasMoment, !request.isByMonth, request.reportingCurrency != nil {
      throw UsageError("--in", "can be used with \(name) only with --by \(ReportRequest.byMonth)")
    }
    self.request = request
    asOf = try invocation.asOf()
    try Self.refuseForeignLayout(format, invocation)
    try Self.checkColumns(of: request)
    try Self.checkEntries(format, request, invocation)
    if format == .xlsx, outputPath == nil {
      throw UsageError("--format xlsx", "requires --output FILE")
    }
    hasManifest = invocation.has("manifest")
    if hasManifest, outputPath == nil {
      throw UsageError("--manifest", "requires --output FILE; the manifest is written next to it")
    }
  }

  /// Formats of entries have no columns, and limits to what an account may be called.
  private static func checkEntries(
    _ format: Format, _ request: ReportRequest, _ invocation: Invocation
  ) throws(UsageError) {
    guard let form = format.entries else { return }
    if request.kind != .entries {
      throw UsageError(
        "--format \(format.rawValue)",
        "can be used with \(ReportKind.entries.rawValue), not with \(request.kind.rawValue)")
    }
    for option in ["check", "columns"] where invocation.has(option) {
      throw UsageError("--\(option)", "cannot be used with \(format.rawValue)")
    }
    if let account = request.accounts.unreadable(in: form) {
      throw UsageError(
        "--accounts \(ShownArgument.text(invocation.value("accounts") ?? ""))",
        "\(format.rawValue) does not read '\(ShownArgument.text(account))' as an account")
    }
  }

  /// Checks that the report has the columns that it is sorted by and shows.
  private static func checkColumns(of request: ReportRequest) throws(UsageError) {
    let names = request.columns.map(\.name)
    if let column = request.sort?.column, !names.contains(column) {
      throw UsageError(
        "--sort \(ShownArgument.text(column))",
        "is not a column of this report: \(alternatives(names))\(hint(for: column, among: names))")
    }
    for name in request.layout.columns where !names.contains(name) {
      throw UsageError(
        "--columns \(ShownArgument.text(name))",
        "is not a column of this report: \(alternatives(names))\(hint(for: name, among: names))")
    }
    // The first cell of a row of totals says so.
    guard request.layout.hasTotal, let first = request.layout.columns.first else { return }
    if request.columns.contains(where: { $0.name == first && $0.isOfTotals }) {
      throw UsageError(
        "--columns \(ShownArgument.text(first))", "cannot come first with --total: it has a total")
    }
  }

  /// The layout of CSV is for CSV; rows of totals are for formats that have no other place for them.
  private static func refuseForeignLayout(
    _ format: Format, _ invocation: Invocation
  ) throws(UsageError) {
    for option in Option.csv.map(\.name) where invocation.has(option) && format != .csv {
      throw UsageError("--\(option)", "can be used with CSV, not with \(format.rawValue)")
    }
    if invocation.has("total"), format == .json || format == .ndjson {
      throw UsageError(
        "--total",
        "can be used with csv, table and xlsx; a JSON report has a member with its totals")
    }
  }

  /// `month` is for subscriptions, which are split by nothing else; payments are split by groups of their own.
  private static func checkDimensions(
    _ report: ReportKind, _ invocation: Invocation
  ) throws(UsageError) {
    guard invocation.has("by") else { return }
    let names = invocation.list("by")
    if report.hasMoment {
      guard names == [ReportRequest.byMonth] else {
        throw UsageError(
          "--by", "of \(report.rawValue) can only be \(ReportRequest.byMonth)")
      }
      return
    }
    let allowed = report == .payout ? PayoutGroup.names : ReportDimension.names
    guard let name = names.first(where: { !allowed.contains($0) }) else { return }
    if report == .payout {
      throw UsageError("--by", "of \(report.rawValue) can only be \(alternatives(allowed))")
    }
    let owner: ReportKind = name == ReportRequest.byMonth ? .subscriptions : .payout
    throw UsageError(
      "--by \(name)", "can be used with \(owner.rawValue), not with \(report.rawValue)")
  }

  /// The format of `--format`, or the one that the name of the output implies.
  static func format(
    _ invocation: Invocation, _ outputPath: String?, ofEntries: Bool = false
  ) throws(UsageError) -> Format {
    if let name = invocation.value("format") { return Format(rawValue: name) ?? .table }
    guard let outputPath else { return .table }
    let name = outputPath.lowercased()
    var endings: [(String, Format)] = [
      (".csv", .csv), (".json", .json), (".ndjson", .ndjson), (".jsonl", .ndjson), (".txt", .table),
      (".xlsx", .xlsx),
    ]
    if ofEntries { endings += [(".journal", .hledger), (".beancount", .beancount)] }
    guard let format = endings.first(where: { name.hasSuffix($0.0) })?.1 else {
      throw invocation.wrong(
        "output", outputPath, "the name does not imply a format; give --format")
    }
    return format
  }
}

extension CaseIterable where Self: RawRepresentable<String> {
  /// The names of all cases, as options take them.
  static var names: [String] { allCases.map(\.rawValue) }
}
