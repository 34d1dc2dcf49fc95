// The options of `export`, and which reports accept them.
import AppStore
import Base
import Intake
import Projections
import Revenue

/// The options of `export`.
struct ExportOptions: Equatable, Sendable {
  enum Format: String, CaseIterable, Sendable {
    case csv, json, ndjson, table, xlsx
  }

  enum Environments: Equatable, Sendable {
    case all
    /// As the App Store writes them, in the order given.
    case named([String])
  }

  /// The value of `--at`.
  enum Moment: Equatable, Sendable {
    /// Epoch milliseconds.
    case instant(Int64)
    /// The start of a day, in the time zone of the report.
    case day(CivilDate)
  }

  let report: ReportKind
  /// Nil is the time of the last event; only for subscriptions.
  let moment: Moment?
  /// Whether subscriptions are counted by month.
  let isByMonth: Bool
  /// In the order given; only for revenue.
  let dimensions: [ReportDimension]
  let period: Period.Granularity
  /// The name of a zone; loading it shows whether it exists.
  let timeZone: String
  let refunds: RefundDate
  /// The first and the last day, both included.
  let from: CivilDate?
  let to: CivilDate?
  let environments: Environments
  let includesPending: Bool
  /// Three capital letters; the table of currencies shows whether it exists.
  let reportingCurrency: String?
  /// How many days before a line's date its rate may be.
  let ratesAgeMaxDays: Int
  let format: Format
  /// Nil is standard output.
  let outputPath: String?
  /// The point in time of `--as-of`; nil is now.
  let asOf: PointInTime?
  /// Whether a manifest is wanted; then there is an output path.
  let hasManifest: Bool
  /// Filters, order, rounding and layout.
  let refinements: ReportRefinements

  /// Whether the moment depends on the time zone.
  var isAtDay: Bool {
    if case .day = moment { true } else { false }
  }

  /// Whether times are written in the time zone of the report.
  var showsLocalTimes: Bool {
    format == .xlsx || refinements.layout.csv.dates == .spreadsheet
  }

  /// The report's file, if a manifest is to be written.
  var manifestedPath: String? { hasManifest ? outputPath : nil }

  init(_ invocation: Invocation) throws(UsageError) {
    guard let name = invocation.positionals.first else {
      throw UsageError("REPORT", "is missing: \(alternatives(ReportKind.names))")
    }
    let report = ReportKind(rawValue: name) ?? .revenue
    self.report = report
    try Self.refuseForeignOptions(report, invocation)
    dimensions = invocation.list("by").compactMap { ReportDimension(rawValue: $0) }
    isByMonth = invocation.has("by") && report.hasMoment
    try Self.checkDimensions(report, invocation)
    moment = try invocation.value(
      "at", "is not an RFC 3339 time or a day", read: Self.moment)
    period = invocation.value("period").flatMap { Period.Granularity(rawValue: $0) } ?? .month
    timeZone =
      try invocation.value("timezone", "is not the name of a time zone", read: Self.zoneName)
      ?? "UTC"
    refunds = invocation.value("refunds").flatMap { RefundDate(rawValue: $0) } ?? .eventDate
    from = try invocation.day("from")
    to = try invocation.day("to")
    if let from, let to, to < from {
      throw invocation.wrong("to", to.description, "comes before --from \(from)")
    }
    environments =
      try invocation.value("environment", "is not a list of environments", read: Self.environments)
      ?? .named([EnvironmentName.production.description])
    includesPending = invocation.has("include-pending")
    reportingCurrency = try invocation.value(
      "in", "is not a currency code of three letters", read: Self.currencyCode)
    ratesAgeMaxDays =
      try invocation.value("rates-max-age", "is not a number of days", read: Self.dayCount)
      ?? ReportRequest.ratesAgeMaxDaysStandard
    outputPath = invocation.outputPath
    format = try Self.format(invocation, outputPath)
    asOf = try invocation.asOf()
    refinements = try ReportRefinements(invocation)
    try Self.refuseForeignLayout(format, invocation)
    try Self.checkSort(refinements.sort, of: report, dimensions)
    if format == .xlsx, outputPath == nil {
      throw UsageError("--format xlsx", "requires --output FILE")
    }
    hasManifest = invocation.has("manifest")
    if hasManifest, outputPath == nil {
      throw UsageError("--manifest", "requires --output FILE; the manifest is written next to it")
    }
  }

  /// The reports that accept an option, for options that not all reports accept.
  private static let reports: [(option: String, reports: Set<ReportKind>)] = [
    ("by", [.revenue, .subscriptions]),
    ("at", [.subscriptions]),
    ("period", [.revenue]),
    ("refunds", [.revenue, .journal, .exceptions]),
    ("from", [.revenue, .journal, .sales, .exceptions]),
    ("to", [.revenue, .journal, .sales, .exceptions]),
    ("include-pending", [.revenue, .journal, .sales, .exceptions, .users]),
    ("in", [.revenue, .journal, .exceptions, .users]),
    ("rates-max-age", [.revenue, .journal, .exceptions, .users]),
    ("app", [.revenue, .journal, .sales, .exceptions]),
    ("product", [.revenue, .journal, .sales, .exceptions]),
    ("country", [.revenue, .journal, .sales, .exceptions]),
    ("user", [.revenue, .journal, .sales, .exceptions]),
    ("kind", [.revenue, .journal, .sales, .exceptions]),
    ("sort", [.revenue, .journal, .sales, .exceptions, .users]),
    ("top", [.revenue, .journal, .sales, .exceptions, .users]),
    ("amounts", [.revenue, .journal, .users]),
    ("total", [.revenue, .journal]),
  ]

  private static func checkSort(
    _ sort: ReportSort?, of report: ReportKind, _ dimensions: [ReportDimension]
  ) throws(UsageError) {
    guard let sort else { return }
    var request = ReportRequest(report)
    request.dimensions = dimensions
    let names = request.columns.map(\.name)
    if names.contains(sort.column) { return }
    throw UsageError(
      "--sort \(ShownArgument.text(sort.column))",
      "is not a column of this report: \(alternatives(names))\(hint(for: sort.column, among: names))"
    )
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

  private static func refuseForeignOptions(
    _ report: ReportKind, _ invocation: Invocation
  ) throws(UsageError) {
    for (option, reports) in reports where invocation.has(option) && !reports.contains(report) {
      let names = ReportKind.allCases.filter(reports.contains).map(\.rawValue)
      throw UsageError(
        "--\(option)", "can be used with \(alternatives(names)), not with \(report.rawValue)")
    }
  }

  /// `month` is for subscriptions, which are split by nothing else.
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
    } else if names.contains(ReportRequest.byMonth) {
      throw UsageError(
        "--by \(ReportRequest.byMonth)",
        "can be used with \(ReportKind.subscriptions.rawValue), not with \(report.rawValue)")
    }
  }

  private static func moment(_ text: String) -> Moment? {
    if let day = try? CivilDate(parsing: text) { return .day(day) }
    return (try? Timestamp.parse(text, cutsDecimals: true)).map { .instant($0) }
  }

  static func zoneName(_ text: String) -> String? {
    let isPlain = text.utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20)
        || [UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "/")].contains($0)
    }
    return isPlain && text.utf8.count <= 64 && text.first != "/" ? text : nil
  }

  /// Names as in the App Store's replies; `production` and `sandbox` are accepted in any case.
  static func environments(_ text: String) -> Environments? {
    if text == "all" { return .all }
    var names: [String] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      if ["", "all"].contains(part.lowercased()) { return nil }
      let name = EnvironmentName.meant(by: String(part))
      guard !names.contains(name), visible(name) == name else { return nil }
      names.append(name)
    }
    return .named(names)
  }

  static func dayCount(_ text: String) -> Int? {
    positionValue(text).flatMap { $0 <= ReportRequest.ratesAgeMaxDaysLimit ? $0 : nil }
  }

  static func currencyCode(_ text: String) -> String? {
    let isCode = text.utf8.count == 3 && text.utf8.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
    return isCode ? text.uppercased() : nil
  }

  /// The format of `--format`, or the one that the name of the output implies.
  static func format(
    _ invocation: Invocation, _ outputPath: String?
  ) throws(UsageError) -> Format {
    if let name = invocation.value("format") { return Format(rawValue: name) ?? .table }
    guard let outputPath else { return .table }
    let name = outputPath.lowercased()
    let endings: [(String, Format)] = [
      (".csv", .csv), (".json", .json), (".ndjson", .ndjson), (".jsonl", .ndjson), (".txt", .table),
      (".xlsx", .xlsx),
    ]
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

// MARK: - Values that several commands on reports take: a zone, a currency, an age of rates

extension Invocation {
  /// The zone of `--timezone`, which must exist on this system; UTC if the option is not given.
  func timeZone() throws(UsageError) -> TimeZoneTable {
    let name = try value(
      "timezone", "is not the name of a time zone", read: ExportOptions.zoneName)
    guard let name else { return .utc }
    do throws(TimeZoneError) { return try TimeZoneTable(name) } catch {
      throw UsageError("--timezone \(ShownArgument.text(name))", "\(error)")
    }
  }

  /// The currency of `--in`; nil if the option is not given.
  func reportingCurrency() throws(UsageError) -> Currency? {
    let code = try value(
      "in", "is not a currency code of three letters", read: ExportOptions.currencyCode)
    guard let code else { return nil }
    guard let currency = Currency.parse(code) else {
      throw UsageError("--in \(ShownArgument.text(code))", "is not an ISO 4217 currency")
    }
    return currency
  }

  /// The days of `--rates-max-age`, or its default.
  func ratesAgeMaxDays() throws(UsageError) -> Int {
    try value("rates-max-age", "is not a number of days", read: ExportOptions.dayCount)
      ?? ReportRequest.ratesAgeMaxDaysStandard
  }
}
