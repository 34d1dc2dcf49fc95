// `report`: a page about the revenue of some days, for people.
import AppStore
import Base
import Ledger
import Projections
import ReportDocuments
import Revenue

let reportCommand = Command(
  "report", summary: "Write a page about revenue, for people to read",
  details: [
    "Writes one HTML file: key figures and their change, revenue over time, by app, country and product, "
      + "returns, subscriptions, a fiscal month from gross to bank, exceptions in words, and the commands that "
      + "give the same figures. "
      + "docs/reports.md describes it. Every figure is that of `export` with the same filters.",
    "Without days, the page is about the newest month with an entry, or else about the month of the last "
      + "event. `--from` requires `--to`.",
  ],
  options: [
    .month, .firstDay, .lastDay, .reportingCurrency, .ratesMaxAge, .zone, .refundDate,
    .environments,
  ] + Option.filters.filter { $0.name != "user" } + [
    Option(
      "amounts",
      value: .init(
        "FORM", allowed: ReportAmounts.names, standard: ReportAmounts.minor.rawValue),
      help: "`minor` rounds to the currency's minor unit, `exact` shows all digits"),
    .asOf,
    Option(
      "since", value: .init("POINT"),
      help: "also show what changed since this POINT in months that had ended by then"),
    Option(
      "output", short: "o", value: .init("FILE"), isRequired: true,
      help: "write to FILE"),
  ],
  examples: [
    Example(
      "ledgerctl report --month 2026-06 --in EUR --since 1200 -o june.html",
      "A page about June, in euros, and what changed in earlier months since position 1200")
  ],
  isReadOnly: true
) { invocation, context in
  try report(PageOptions(invocation), invocation, context)
}

private func report(
  _ options: PageOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let base = options.request
  let ledger = try OpenLedger(invocation, context)
  let database = try ledger.projections(asOf: options.asOf)
  let older = try options.since.map { point in
    let size = try ledger.size(at: point, "since")
    guard size <= (try Report.head(of: database).size) else {
      throw UsageError("--since", "comes after the state of the page")
    }
    return try ledger.projector().books(at: size)
  }
  let basis = try PageBasis(ledger.directory.identity, database, zone: base.zone)
  var period = options.period
  if period == nil { period = try ReportPage.newestMonth(base, from: database) }
  // A ledger without events is about the month in which it was created.
  let days =
    try period
    ?? PagePeriod(
      monthAtMs: Report.lastEventAtMs(of: database) ?? basis.ledger.createdAtMs, in: base.zone)
  try context.interruption.check()
  let made = try ReportPage(PageRequest(base, days), basis, from: database, since: older)
  try withDestination(invocation.outputPath, context) { try $0.write(made.bytes) }
  for name in made.summary.unknownEnvironments {
    context.log("report: --environment \(ShownArgument.text(name)): no data for this environment")
  }
  for text in made.summary.unknownTexts { context.log("report: \(text)") }
  for text in made.summary.warnings(base) { context.log("report: \(text)") }
  if let text = made.summary.trustText { context.log("report: \(text)") }
  if made.isEmpty {
    let newest = try ReportPage.newestMonth(base, from: database)
      .map { "; the newest entry is of \($0.monthText): --month \($0.monthText)" }
    context.log("report: there is no entry \(days.phrase)\(newest ?? "")")
  }
  if let path = invocation.outputPath {
    context.diagnostics.writeLine(
      visible(
        "Wrote a page about \(days.title) to \(path), "
          + ReportFooter.stand(size: made.size)))
  }
  return .done
}

/// The options of `report`.
private struct PageOptions {
  /// Nil is the newest month that has an entry.
  let period: PagePeriod?
  let asOf: PointInTime?
  let since: PointInTime?
  /// Without days.
  let request: ReportRequest

  init(_ invocation: Invocation) throws(UsageError) {
    var request = try invocation.reportRequest(.revenue)
    period = try Self.period(invocation, from: request.from, to: request.to)
    (request.from, request.to) = (nil, nil)
    if !invocation.has(ReportOption.amounts.name) { request.amounts = .minor }
    self.request = request
    asOf = try invocation.asOf()
    since = try invocation.moment("since")
    try Self.checkName(invocation)
    if since != nil, request.environments?.count != 1 {
      throw UsageError("--since", "requires one environment", command: invocation.command.name)
    }
  }

  /// A name that promises another format is a mistake: no program would open the file.
  private static func checkName(_ invocation: Invocation) throws(UsageError) {
    guard let path = invocation.outputPath, let name = path.split(separator: "/").last else {
      return
    }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count > 1, let ending = parts.last?.lowercased(), !["html", "htm"].contains(ending)
    else { return }
    throw invocation.wrong("output", path, "a page is HTML; the name must end in .html")
  }

  private static func period(
    _ invocation: Invocation, from: CivilDate?, to: CivilDate?
  ) throws(UsageError) -> PagePeriod? {
    let command = invocation.command.name
    if let month = try invocation.month() { return month }
    if from == nil, to == nil { return nil }
    guard let from else { throw UsageError("--to", "requires --from", command: command) }
    guard let to else { throw UsageError("--from", "requires --to", command: command) }
    guard let period = PagePeriod(from: from, to: to) else {
      throw invocation.wrong(
        "to", to.description, "is more than \(PagePeriod.daysMax) days after --from \(from)")
    }
    return period
  }
}

extension PageBasis {
  /// What a page says about the ledger and the program.
  fileprivate init(
    _ identity: LedgerIdentity, _ database: Database, zone: TimeZoneTable
  ) throws {
    let projections = ProjectionSet.ofProgram.versions.map { "\($0.name) \($0.version)" }
    var versions = [
      ("Version of the revenue report", "\(ReportKind.revenue.version)"),
      ("Versions of the projections", projections.joined(separator: ", ")),
    ]
    if zone.name != TimeZoneTable.utc.name {
      versions.append(("Time zone data", TimeZoneTable.dataVersion() ?? "unknown"))
    }
    self.init(
      ledger: identity,
      foreignTrust: try Manifest.Trust.all(in: database).flatMap { trust in
        trust.names.map { "\($0) (from position \(trust.position))" }
      }, versions: versions)
  }
}
