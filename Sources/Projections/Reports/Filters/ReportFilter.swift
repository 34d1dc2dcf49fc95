// What narrows a report down, and how its rows are sorted, rounded and laid out.
package import Base
package import Revenue

/// The apps, products, countries, user and kinds of sale that a report shows.
package struct ReportFilter: Equatable, Sendable {
  /// A product id, or the prefix of product ids.
  package struct ProductPattern: Equatable, Sendable {
    package let text: String
    package let isPrefix: Bool

    /// - Parameter pattern: a product id, or a prefix with `*` at its end.
    package init(_ pattern: String) {
      isPrefix = pattern.hasSuffix("*")
      text = isPrefix ? String(pattern.dropLast()) : pattern
    }

    /// As given on the command line.
    package var pattern: String { isPrefix ? text + "*" : text }
  }

  /// Bundle identifiers, or ids of registered apps; nil is all.
  package var apps: [String]?
  package var products: [ProductPattern]?
  /// Country codes, `ZZ` for an unknown one; nil is all.
  package var countries: [String]?
  /// One user identifier; nil is all.
  package var user: String?
  package var kinds: [SaleKind]?

  package init() {}

  /// Whether everything is shown.
  package var isEmpty: Bool { self == ReportFilter() }
}

/// What a report's rows are sorted by.
package struct ReportSort: Equatable, Sendable {
  package var column: String
  /// Nil: numbers, amounts and times fall, all else rises.
  package var isDescending: Bool?

  package init(column: String, isDescending: Bool? = nil) {
    self.column = column
    self.isDescending = isDescending
  }
}

/// How amounts are shown.
package enum ReportAmounts: String, CaseIterable, Sendable {
  /// To the micro.
  case exact
  /// Rounded to the currency's minor unit, so that rows add up to the rounded total.
  case minor
}

/// How a report's rows are laid out. None of this changes a figure.
package struct ReportLayout: Equatable, Sendable {
  /// How CSV is written.
  package struct CSV: Equatable, Sendable {
    package enum Dates: String, CaseIterable, Sendable {
      /// RFC 3339 in UTC, with milliseconds.
      case rfc3339
      /// As spreadsheets read them, in the report's time zone.
      case spreadsheet
    }

    /// One ASCII character.
    package var delimiter = UInt8(ascii: ",")
    /// `.` or `,`; differs from the delimiter.
    package var decimal = UInt8(ascii: ".")
    package var dates = Dates.rfc3339

    package init() {}
  }

  /// The columns shown, in this order; empty is all.
  package var columns: [String] = []
  /// Whether rows with the totals follow the rows.
  package var hasTotal = false
  package var csv = CSV()
  /// The version of the form of text tables, for the manifests that name it.
  package var tableVersion = Self.currentTableVersion
  /// 1 has all columns; since 2 those that are empty or zero throughout are left out.
  package static let currentTableVersion = 2

  package init() {}
}

// MARK: - A report's filters as JSON: written to reports and manifests, read from manifests

extension ReportRequest {
  /// What `--by` splits subscriptions by.
  package static let byMonth = "month"

  /// Writes the filters that affect this kind of report.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    if kind == .revenue {
      writer.key("by")
      writer.beginArray()
      for dimension in dimensions { writer.string(dimension.rawValue) }
      writer.endArray()
      writer.key("period")
      writer.string(granularity.rawValue)
    }
    if kind.hasRefundDate {
      writer.key("refunds")
      writer.string(refunds.rawValue)
    }
    if kind.hasDays {
      writer.key("timezone")
      writer.string(zone.name)
      for (key, day) in [("from", from), ("to", to)] {
        writer.key(key)
        if let day { writer.string(day.description) } else { writer.null() }
      }
    }
    if kind.hasMoment {
      writer.key("by")
      if isByMonth { writer.string(Self.byMonth) } else { writer.null() }
      writer.key("at")
      if let momentMs { writer.string(Timestamp.text(ms: momentMs)) } else { writer.null() }
      writer.key("timezone")
      writer.string(zone.name)
    }
    writer.key("environment")
    if let environments {
      writer.beginArray()
      for name in environments { writer.string(name) }
      writer.endArray()
    } else {
      writer.string("all")
    }
    writer.key("include_pending")
    writer.boolean(includesPending)
    if let reportingCurrency {
      writer.key("in")
      writer.string(reportingCurrency.description)
      if let ratesAgeMaxDays {
        writer.key("rates_max_age")
        writer.integer(ratesAgeMaxDays)
      }
    }
    writeRefinements(to: &writer)
    writer.endObject()
  }
}

extension ReportRequest {
  /// Reads the filters that `write(to:)` has written for this kind of report.
  ///
  /// Throws `usage` if a member is missing or invalid, or if the system does not know the time zone.
  package init(_ kind: ReportKind, filters: JSONValue) throws(ProjectionError) {
    self.init(kind)
    func fault(_ name: String) -> ProjectionError {
      .usage("the filter '\(name)' is missing or invalid")
    }
    func word<Value: RawRepresentable<String>>(
      _ name: String, _ type: Value.Type
    ) throws(ProjectionError) -> Value {
      guard let value = filters[name]?.stringValue.flatMap(Value.init(rawValue:))
      else { throw fault(name) }
      return value
    }
    if kind == .revenue {
      guard let names = filters["by"]?.arrayValue else { throw fault("by") }
      dimensions = names.compactMap { $0.stringValue.flatMap(ReportDimension.init(rawValue:)) }
      guard dimensions.count == names.count, Set(dimensions).count == names.count
      else { throw fault("by") }
      granularity = try word("period", Period.Granularity.self)
    }
    // Version 1 of the exceptions report had no day filters.
    let isOfAllDays = kind == .exceptions && filters["timezone"] == nil
    if kind.hasRefundDate, !isOfAllDays { refunds = try word("refunds", RefundDate.self) }
    if kind.hasDays, !isOfAllDays {
      zone = try Self.zone(filters["timezone"], fault("timezone"))
      from = try Self.day(filters["from"], fault("from"))
      to = try Self.day(filters["to"], fault("to"))
    }
    if kind.hasMoment { try readMoment(filters, fault) }
    switch filters["environment"] {
    case .string("all"): environments = nil
    case .array(let names):
      environments = names.compactMap(\.stringValue)
      if environments?.count != names.count { throw fault("environment") }
    default: throw fault("environment")
    }
    guard case .boolean(let pending) = filters["include_pending"]
    else { throw fault("include_pending") }
    includesPending = pending
    if let code = filters["in"] {
      guard let currency = code.stringValue.flatMap(Currency.parse) else { throw fault("in") }
      reportingCurrency = currency
    }
    ratesAgeMaxDays = try Self.ageMaxDays(filters["rates_max_age"], fault("rates_max_age"))
    try readRefinements(filters, fault)
  }

  private mutating func readMoment(
    _ filters: JSONValue, _ fault: (String) -> ProjectionError
  ) throws(ProjectionError) {
    switch filters["by"] {
    case .null: isByMonth = false
    case .string(Self.byMonth): isByMonth = true
    default: throw fault("by")
    }
    switch filters["at"] {
    case .null: momentMs = nil
    case .string(let text):
      guard let moment = try? Timestamp.parse(text) else { throw fault("at") }
      momentMs = moment
    default: throw fault("at")
    }
    zone = try Self.zone(filters["timezone"], fault("timezone"))
  }

  static func zone(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> TimeZoneTable {
    guard let name = value?.stringValue else { throw fault }
    do throws(TimeZoneError) { return try TimeZoneTable(name) } catch { throw .usage("\(error)") }
  }

  /// Reads the age limit for rates. Manifests from before the limit existed lack this member.
  private static func ageMaxDays(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> Int? {
    guard let value else { return nil }
    guard let days = value.integerValue.map(Int.init), (0...ratesAgeMaxDaysLimit).contains(days)
    else { throw fault }
    return days
  }

  private static func day(
    _ value: JSONValue?, _ fault: ProjectionError
  ) throws(ProjectionError) -> CivilDate? {
    switch value {
    case .null: return nil
    case .string(let text):
      guard let day = try? CivilDate(parsing: text) else { throw fault }
      return day
    default: throw fault
    }
  }
}

// MARK: - Filters, order and layout of a report as JSON: written to reports and manifests where they are not the default

extension ReportRequest {
  /// Writes the members that differ from their defaults, so that earlier reports stay byte for byte the same.
  func writeRefinements(to writer: inout JSONWriter) {
    func list(_ key: String, _ values: [String]?) {
      guard let values, !values.isEmpty else { return }
      writer.key(key)
      writer.beginArray()
      for value in values { writer.string(value) }
      writer.endArray()
    }
    func text(_ key: String, _ value: String?) {
      guard let value else { return }
      writer.key(key)
      writer.string(value)
    }
    // Other reports always name it: their days depend on it.
    if !kind.hasDays, !kind.hasMoment, zone.name != "UTC" { text("timezone", zone.name) }
    list("app", filter.apps)
    list("product", filter.products?.map(\.pattern))
    list("country", filter.countries)
    text("user", filter.user)
    list("kind", filter.kinds?.map { "\($0.word)" })
    text("sort", sort?.text)
    if let top {
      writer.key("top")
      writer.integer(top)
    }
    if amounts != .exact { text("amounts", amounts.rawValue) }
    list("columns", layout.columns)
    if layout.hasTotal {
      writer.key("total")
      writer.boolean(true)
    }
    let standard = ReportLayout.CSV()
    let csv = layout.csv
    if csv.delimiter != standard.delimiter {
      text("csv_delimiter", String(UnicodeScalar(csv.delimiter)))
    }
    if csv.decimal != standard.decimal { text("csv_decimal", String(UnicodeScalar(csv.decimal))) }
    if csv.dates != standard.dates { text("csv_dates", csv.dates.rawValue) }
  }

  /// Reads what `writeRefinements(to:)` has written.
  mutating func readRefinements(
    _ filters: JSONValue, _ fault: (String) -> ProjectionError
  ) throws(ProjectionError) {
    func list(_ key: String) throws(ProjectionError) -> [String]? {
      guard let value = filters[key] else { return nil }
      guard let texts = value.arrayValue?.compactMap(\.stringValue), !texts.isEmpty,
        texts.count == value.arrayValue?.count
      else { throw fault(key) }
      return texts
    }
    func text(_ key: String) throws(ProjectionError) -> String? {
      guard let value = filters[key] else { return nil }
      guard let text = value.stringValue, !text.isEmpty else { throw fault(key) }
      return text
    }
    func byte(_ key: String, _ allowed: [UInt8]) throws(ProjectionError) -> UInt8? {
      guard let text = try text(key) else { return nil }
      guard let byte = text.utf8.first, text.utf8.count == 1, allowed.contains(byte)
      else { throw fault(key) }
      return byte
    }
    if !kind.hasDays, !kind.hasMoment, filters["timezone"] != nil {
      zone = try Self.zone(filters["timezone"], fault("timezone"))
    }
    filter.apps = try list("app")
    filter.products = try list("product")?.map(ReportFilter.ProductPattern.init)
    filter.countries = try list("country")
    filter.user = try text("user")
    if let words = try list("kind") {
      filter.kinds = words.compactMap(SaleKind.init(word:))
      if filter.kinds?.count != words.count { throw fault("kind") }
    }
    if let order = try text("sort") {
      guard let order = ReportSort(order) else { throw fault("sort") }
      sort = order
    }
    if let value = filters["top"] {
      guard let count = value.integerValue, count > 0 else { throw fault("top") }
      top = Int(count)
    }
    if let word = try text("amounts") {
      guard let amounts = ReportAmounts(rawValue: word) else { throw fault("amounts") }
      self.amounts = amounts
    }
    layout.columns = try list("columns") ?? []
    if let total = filters["total"] {
      guard case .boolean(let hasTotal) = total else { throw fault("total") }
      layout.hasTotal = hasTotal
    }
    if let byte = try byte("csv_delimiter", ReportLayout.CSV.delimiters) {
      layout.csv.delimiter = byte
    }
    if let byte = try byte("csv_decimal", ReportLayout.CSV.decimals) { layout.csv.decimal = byte }
    guard layout.csv.delimiter != layout.csv.decimal else { throw fault("csv_decimal") }
    if let word = try text("csv_dates") {
      guard let dates = ReportLayout.CSV.Dates(rawValue: word) else { throw fault("csv_dates") }
      layout.csv.dates = dates
    }
  }
}

extension ReportSort {
  /// `net`, `net:asc` or `net:desc`; nil for an empty column or another order.
  package init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard let column = parts.first, !column.isEmpty, parts.count <= 2 else { return nil }
    self.init(column: column)
    guard parts.count == 2 else { return }
    switch parts[1] {
    case "asc": isDescending = false
    case "desc": isDescending = true
    default: return nil
    }
  }

  /// As given on the command line.
  package var text: String { isDescending.map { column + ($0 ? ":desc" : ":asc") } ?? column }
}

extension ReportLayout.CSV {
  /// The delimiters that CSV may have.
  package static let delimiters: [UInt8] = [0x2C, 0x3B, 0x09, 0x7C]
  /// The decimal signs that CSV may have.
  package static let decimals: [UInt8] = [0x2E, 0x2C]
}

extension SaleKind {
  /// The kind that the journal writes as `word`.
  package init?(word: String) {
    guard let kind = Self.allCases.first(where: { "\($0.word)" == word }) else { return nil }
    self = kind
  }
}
