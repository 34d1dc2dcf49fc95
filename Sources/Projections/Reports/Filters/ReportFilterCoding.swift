// Filters, order and layout of a report as JSON: written to reports and manifests where they are not the default.
import Base
import JSON
import Revenue

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
