// Options that filter, sort, round and lay out the rows of a report.
import AppStore
import Projections
import Revenue

/// What the options of one command line ask for.
struct ReportRefinements: Equatable, Sendable {
  var filter = ReportFilter()
  var sort: ReportSort?
  var top: Int?
  var amounts = ReportAmounts.exact
  var layout = ReportLayout()

  /// More names in one list would be a file's content.
  private static let listMax = 1000

  init(_ invocation: Invocation) throws(UsageError) {
    filter.apps = try Self.list("app", invocation)
    filter.products = try Self.list("product", invocation)?.map(ReportFilter.ProductPattern.init)
    filter.countries = try Self.countries(invocation)
    if let user = invocation.value("user") {
      if user.isEmpty { throw UsageError("--user", "is empty", command: invocation.command.name) }
      filter.user = user
    }
    if invocation.has("kind") { filter.kinds = invocation.list("kind").compactMap(SaleKind.init) }
    sort = try invocation.value("sort", "is not a column, COLUMN:asc or COLUMN:desc") {
      ReportSort($0)
    }
    top = try invocation.value("top", "is not a number from 1") {
      positionValue($0).flatMap { $0 > 0 ? $0 : nil }
    }
    amounts = invocation.value("amounts").flatMap(ReportAmounts.init) ?? .exact
    layout.columns = try Self.list("columns", invocation) ?? []
    if Set(layout.columns).count < layout.columns.count {
      throw invocation.wrong("columns", invocation.value("columns") ?? "", "names a column twice")
    }
    layout.hasTotal = invocation.has("total")
    layout.csv = try Self.csv(invocation)
  }

  private static func list(
    _ option: String, _ invocation: Invocation
  ) throws(UsageError) -> [String]? {
    guard let text = invocation.value(option) else { return nil }
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard !parts.contains(""), parts.count <= listMax else {
      throw invocation.wrong(option, text, "is not a list of names, separated by commas")
    }
    return parts
  }

  /// Other texts are refused as they were given: in capitals, a token would not be recognized as a secret.
  private static func countries(_ invocation: Invocation) throws(UsageError) -> [String]? {
    guard let codes = try list("country", invocation) else { return nil }
    for code in codes {
      let isCode =
        code.utf8.count == 2 && code.utf8.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
      if !isCode {
        throw invocation.wrong(
          "country", invocation.value("country") ?? "", "is not a list of two-letter country codes")
      }
    }
    return codes.map { $0.uppercased() }
  }

  /// The form of CSV that the options ask for.
  static func csv(_ invocation: Invocation) throws(UsageError) -> ReportLayout.CSV {
    var csv = ReportLayout.CSV()
    if let byte = try invocation.value(
      "csv-delimiter", "is not a comma, a semicolon, a vertical bar or 'tab'", read: delimiter)
    {
      csv.delimiter = byte
    }
    if let sign = invocation.value("csv-decimal")?.utf8.first { csv.decimal = sign }
    if csv.decimal == csv.delimiter {
      throw UsageError(
        "--csv-decimal", "must differ from --csv-delimiter", command: invocation.command.name)
    }
    if let dates = invocation.value("csv-dates").flatMap(ReportLayout.CSV.Dates.init) {
      csv.dates = dates
    }
    return csv
  }

  private static func delimiter(_ text: String) -> UInt8? {
    if text == "tab" { return 0x09 }
    guard let byte = text.utf8.first, text.utf8.count == 1 else { return nil }
    return ReportLayout.CSV.delimiters.contains(byte) ? byte : nil
  }

  /// Sets what a request needs.
  func apply(to request: inout ReportRequest) {
    request.filter = filter
    request.sort = sort
    request.top = top
    request.amounts = amounts
    request.layout = layout
  }
}

extension Option {
  static let zone = Option(
    "timezone", value: .init("ZONE", standard: "UTC"),
    help: "the time zone of days, as in `Europe/Berlin`")
  static let refundDate = Option(
    "refunds", value: .init("DATE", allowed: RefundDate.names, standard: "event-date"),
    help: "the date on which returns and reversals count")
  static let firstDay = Option(
    "from", value: .init("DAY"), help: "the first day, as in `2026-03-14`")
  static let lastDay = Option("to", value: .init("DAY"), help: "the last day")
  static let environments = Option(
    "environment", value: .init("LIST", standard: EnvironmentName.production.description),
    help: "environments, separated by commas, or `all`")
  static let reportingCurrency = Option(
    "in", value: .init("CURRENCY"),
    help: "convert to this currency with declared rates, as in `EUR`")
  static let ratesMaxAge = Option(
    "rates-max-age",
    value: .init("DAYS", standard: String(ReportRequest.ratesAgeMaxDaysStandard)),
    help: "how many days before a line's date its rate may be")

  /// What narrows rows down.
  static let filters: [Option] = [
    Option("app", value: .init("LIST"), help: "only these apps, by bundle identifier or id"),
    Option(
      "product", value: .init("LIST"),
      help: "only these products: ids, or prefixes with `*` at their end"),
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
      help: "sort by a column: numbers and times fall, text rises; `COLUMN:asc`, `COLUMN:desc`"),
    Option("top", value: .init("N"), help: "show the first N rows; totals stay those of all"),
    Option(
      "amounts", value: .init("FORM", allowed: ReportAmounts.names, standard: "exact"),
      help: "`minor` rounds to the currency's minor unit, so that rows add up to the rounded total"),
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
