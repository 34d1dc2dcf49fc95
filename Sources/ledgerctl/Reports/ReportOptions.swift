// The options of reports on command lines, and the request that they make.
import AppStore
import Base
import Projections
import ReportDocuments
import Revenue

extension Invocation {
  /// More names in one list would be a file's content.
  private static let namesMax = 1000

  /// The report of a kind that the options ask for. The command has checked that the report accepts them.
  func reportRequest(_ kind: ReportKind) throws(UsageError) -> ReportRequest {
    var request = ReportRequest(kind)
    request.zone = try timeZone()
    request.reportingCurrency = try reportingCurrency()
    request.ratesAgeMaxDays = try ratesAgeMaxDays()
    request.from = try day("from")
    request.to = try day("to")
    if !kind.isOfSettlement, let month = try month() {
      (request.from, request.to) = (month.first, month.last)
    }
    if let from = request.from, let to = request.to, to < from {
      throw wrong("to", to.description, "comes before --from \(from)")
    }
    request.momentMs = try reportMomentMs(in: request.zone)
    request.accounts = try accounts()
    var apart: Set<ReportOption> = [
      .timezone, .reportingCurrency, .ratesMaxAge, .from, .to, .at, .accounts,
    ]
    if !kind.isOfSettlement { apart.insert(.month) }
    for option in ReportOption.allCases where has(option.name) && !apart.contains(option) {
      let text = value(option.name) ?? ""
      let problem = wrong(option.name, text, option.problem)
      guard isPlain(option, text), let value = option.value(of: text, for: kind) else {
        throw problem
      }
      do throws(ProjectionError) { try request.set(option, to: value) } catch { throw problem }
    }
    if Set(request.layout.columns).count < request.layout.columns.count {
      throw wrong("columns", value("columns") ?? "", "names a column twice")
    }
    if request.layout.csv.decimal == request.layout.csv.delimiter {
      throw UsageError(
        "--csv-decimal", "must differ from --csv-delimiter", command: command.name)
    }
    return request
  }

  /// The month of `--month`, which stands for the first and the last day.
  func month(_ first: String = "from", _ last: String = "to") throws(UsageError) -> PagePeriod? {
    guard command.options.contains(where: { $0.name == "month" }) else { return nil }
    let month = try value(
      "month", "is not a month, as in 2026-06", read: PagePeriod.init(parsingMonth:))
    if month != nil, has(first) || has(last) {
      throw UsageError(
        "--month", "conflicts with --\(first) and --\(last)", command: command.name)
    }
    return month
  }

  /// Whether a text can be a value of an option, besides what the report itself checks.
  private func isPlain(_ option: ReportOption, _ text: String) -> Bool {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    switch option {
    case .app, .product, .columns, .month:
      return !parts.contains("") && parts.count <= Self.namesMax
    case .country:
      return parts.count <= Self.namesMax
        && parts.allSatisfy { code in
          code.utf8.count == 2 && code.utf8.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
        }
    case .environment: return visible(text) == text
    default: return true
    }
  }

  /// The moment of `--at`: a time, or the start of a day.
  private func reportMomentMs(in zone: TimeZoneTable) throws(UsageError) -> Int64? {
    try value("at", "is not an RFC 3339 time or a day") { text in
      if let day = try? CivilDate(parsing: text) { return zone.startMs(ofDay: day.dayNumber) }
      return try? Timestamp.parse(text, cutsDecimals: true)
    }
  }

  /// The zone of `--timezone`, which must exist on this system; UTC if the option is not given.
  func timeZone() throws(UsageError) -> TimeZoneTable {
    let name = try value("timezone", "is not the name of a time zone") { text in
      let isPlain = text.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) || "_-+/".utf8.contains($0)
      }
      return isPlain && text.utf8.count <= 64 && text.first != "/" ? text : nil
    }
    guard let name else { return .utc }
    do throws(TimeZoneError) { return try TimeZoneTable(name) } catch {
      throw UsageError("--timezone \(ShownArgument.text(name))", "\(error)")
    }
  }

  /// The currency of `--in`; nil if the option is not given.
  func reportingCurrency() throws(UsageError) -> Currency? {
    let code = try value("in", "is not a currency code of three letters") { text in
      let isCode =
        text.utf8.count == 3 && text.utf8.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
      return isCode ? text.uppercased() : nil
    }
    guard let code else { return nil }
    guard let currency = Currency.parse(code) else {
      throw UsageError("--in \(ShownArgument.text(code))", "is not an ISO 4217 currency")
    }
    return currency
  }

  /// The accounts of the file of `--accounts`; the usual ones if the option is not given.
  private func accounts() throws(UsageError) -> EntryAccounts {
    guard has(ReportOption.accounts.name), let path = value(ReportOption.accounts.name) else {
      return EntryAccounts()
    }
    let name = "--accounts \(ShownArgument.text(path))"
    let bytes: [UInt8]
    do throws(Failure) { bytes = try readSmallFile(path) } catch {
      throw UsageError(name, error.cause)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw UsageError(name, "is not UTF-8")
    }
    do throws(EntryAccountsError) { return try EntryAccounts(parsing: text) } catch {
      throw UsageError(name, error.description)
    }
  }

  /// The days of `--rates-max-age`, or its default.
  func ratesAgeMaxDays() throws(UsageError) -> Int {
    try value("rates-max-age", "is not a number of days") { text in
      positionValue(text).flatMap { $0 <= ReportRequest.ratesAgeMaxDaysLimit ? $0 : nil }
    } ?? ReportRequest.ratesAgeMaxDaysStandard
  }
}

extension ReportOption {
  /// What is wrong with a text that is not a value of the option.
  fileprivate var problem: String {
    switch self {
    case .environment: "is not a list of environments"
    case .country: "is not a list of two-letter country codes"
    case .sort: "is not a column, COLUMN:asc or COLUMN:desc"
    case .top: "is not a number from 1"
    case .month: "is not a fiscal month, as in FY2026-P01, or a list of them"
    case .paidOn: "is not a list of fiscal months and days, as in FY2026-P01=2025-12-04"
    case .csvDelimiter: "is not a comma, a semicolon, a vertical bar or 'tab'"
    default: "is not a list of names, separated by commas"
    }
  }
}

extension Option {
  static let zone = Option(
    "timezone", value: .init("ZONE", standard: "UTC"),
    help: "the time zone of days, as in `Europe/Berlin`")
  static let refundDate = Option(
    "refunds", value: .init("DATE", allowed: RefundDate.names, standard: "event-date"),
    help: "the date on which returns and reversals count")
  static let month = Option(
    "month", value: .init("MONTH"), help: "the days of a month, as in `2026-06`")
  static let firstDay = Option(
    "from", value: .init("DAY"), help: "the first day, as in `2026-03-14`")
  static let lastDay = Option("to", value: .init("DAY"), help: "the last day")
  static let environments = Option(
    "environment", value: .init("LIST", standard: EnvironmentName.production.description),
    help: "environments, separated by commas, or `all`")
  static let reportingCurrency = Option(
    "in", value: .init("CURRENCY"),
    help:
      "convert to this currency with declared rates; a line without a rate keeps its own, with a "
      + "warning")
  static let ratesMaxAge = Option(
    "rates-max-age",
    value: .init("DAYS", standard: String(ReportRequest.ratesAgeMaxDaysStandard)),
    help: "how many days before a line's day its rate may be")

  /// What narrows rows down.
  static let filters: [Option] = [
    Option("app", value: .init("LIST"), help: "only these apps, by bundle identifier or id"),
    Option(
      "product", value: .init("LIST"),
      help: "only these products: ids, or prefixes followed by `*`"),
    Option("country", value: .init("LIST"), help: "only these countries; `ZZ` is unknown"),
    Option("user", value: .init("ID", isSecret: true), help: "only this user"),
    Option(
      "kind", value: .init("LIST", allowed: SaleKind.allCases.map { "\($0.word)" }, isList: true),
      help: "only these kinds of sales"),
  ]

  /// How rows are sorted, rounded and laid out.
  static let presentation: [Option] = [
    Option(
      "sort", value: .init("COLUMN", suggestions: ReportKind.columnNames),
      help:
        "sort by a column, numbers and times descending, texts ascending, or as `COLUMN:asc`, "
        + "`COLUMN:desc`"),
    Option("top", value: .init("N"), help: "show the first N rows; totals stay those of all"),
    Option(
      "amounts", value: .init("FORM", allowed: ReportAmounts.names),
      help:
        "`minor` rounds to the currency's minor unit, as tables, Excel files and pages do by default; `exact` "
        + "shows all digits, as CSV and JSON do"),
    Option(
      "columns", value: .init("LIST", suggestions: ReportKind.columnNames),
      help: "show these columns, in this order"),
    Option("total", help: "add rows with the totals (csv, table, xlsx)"),
  ]

  /// How CSV is written.
  static let csv: [Option] = [
    Option(
      "csv-delimiter", value: .init("CHARACTER", standard: ","),
      help: "what separates cells: a comma, `;`, `|` or `tab`"),
    Option(
      "csv-decimal", value: .init("SIGN", allowed: [".", ","], standard: "."),
      help: "the decimal sign"),
    Option(
      "csv-dates",
      value: .init("FORM", allowed: ReportLayout.CSV.Dates.names, standard: "rfc3339"),
      help: "`spreadsheet` writes times as spreadsheets read them, in the zone of `--timezone`"),
  ]
}

extension ReportKind {
  /// The columns of all reports, each once.
  fileprivate static var columnNames: [String] {
    var names: [String] = []
    for kind in allCases {
      var request = ReportRequest(kind)
      request.dimensions = ReportDimension.allCases
      for isByMonth in kind.hasMoment ? [false, true] : [false] {
        request.isByMonth = isByMonth
        for column in request.columns where !names.contains(column.name) {
          names.append(column.name)
        }
      }
    }
    return names
  }
}
