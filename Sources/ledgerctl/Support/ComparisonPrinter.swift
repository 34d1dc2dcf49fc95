// Prints what a rebuild would change, as text and as JSON.
import JSON
import Projections
import Revenue

/// Prints a comparison of projections.
struct ComparisonPrinter {
  private let comparison: ProjectionComparison
  private let context: Context

  init(_ comparison: ProjectionComparison, _ context: Context) {
    self.comparison = comparison
    self.context = context
  }

  // MARK: Text

  func write() throws {
    let events = counted(comparison.position, "event")
    if comparison.isEmpty {
      return try context.output.writeLine(
        "The projections equal a rebuild, at \(events).")
    }
    try context.output.writeLine("The projections differ from a rebuild, at \(events).")
    if !comparison.isOfThisLog {
      try context.output.writeLine("The projections in use belong to another history than the log.")
    }
    let versions = comparison.versions.filter { !$0.isCurrent }
    if !versions.isEmpty {
      let list = versions.map { "\($0.name) \(versionText($0))" }.joined(separator: ", ")
      try context.output.writeLine("Versions that differ: \(visible(list))")
    }
    if !comparison.definitions.isEmpty {
      let list = comparison.definitions.joined(separator: ", ")
      try context.output.writeLine("Definitions that differ: \(visible(list))")
    }
    try context.output.writeLine()
    var sheet = Sheet(context)
    try sheet.table("Tables", overview(comparison.tables))
    try sheet.table("Views", overview(comparison.views))
    try sheet.table("Rows", rows(comparison.tables + comparison.views))
    guard let revenue = comparison.revenue else { return }
    try sheet.table("Revenue of production", figures(revenue))
    try sheet.table("Sales behind this revenue", sales(revenue))
  }

  private func overview(_ differences: [TableDifference]) -> TextTable {
    var table = TextTable([
      .init("name"), .init("rows", isNumber: true), .init("rows after", isNumber: true),
      .init("added", isNumber: true), .init("removed", isNumber: true),
      .init("changed", isNumber: true), .init("columns"),
    ])
    for difference in differences where !difference.isEmpty {
      table.append([
        difference.name, difference.rowsBefore.map { "\($0)" } ?? "none",
        difference.rowsAfter.map { "\($0)" } ?? "none", "\(difference.added)",
        "\(difference.removed)", "\(difference.changed)", columns(difference),
      ])
    }
    return table
  }

  /// `+new -old price (3)`: columns that only one side has, and the number of rows in which others differ.
  private func columns(_ difference: TableDifference) -> String {
    let changed = difference.changedColumns.sorted { $0.key < $1.key }.map {
      "\($0.key) (\($0.value))"
    }
    return
      (difference.addedColumns.map { "+\($0)" } + difference.removedColumns.map { "-\($0)" }
      + changed).joined(separator: " ")
  }

  private func rows(_ differences: [TableDifference]) -> TextTable {
    var table = TextTable([
      .init("name"), .init("row"), .init("change"), .init("columns"),
    ])
    for difference in differences {
      for row in difference.rows {
        table.append([
          difference.name, row.key.map { "\($0.column) \($0.value)" }.joined(separator: ", "),
          row.change.rawValue, row.columns.map(text).joined(separator: ", "),
        ])
      }
    }
    return table
  }

  /// `quantity 1 → 2`.
  private func text(_ column: TableDifference.Column) -> String {
    if column.before == nil, column.after == nil { return column.name }
    func value(_ number: Int64?) -> String { number.map { "\($0)" } ?? "none" }
    return "\(column.name) \(value(column.before)) → \(value(column.after))"
  }

  private func figures(_ revenue: RevenueDifference) -> TextTable {
    var table = TextTable([
      .init("month"), .init("country"), .init("currency"), .init("units", isNumber: true),
      .init("units after", isNumber: true), .init("net", isNumber: true),
      .init("net after", isNumber: true), .init("difference", isNumber: true),
      .init("sales", isNumber: true),
    ])
    for row in revenue.rows {
      let place = row.place
      table.append([
        place.month, place.countryCode, place.currency ?? "", "\(row.before.netUnits)",
        "\(row.after.netUnits)", amount(row.before.netMicros, place),
        amount(row.after.netMicros, place),
        amount(row.after.netMicros - row.before.netMicros, place), "\(row.saleCount)",
      ])
    }
    return table
  }

  private func sales(_ revenue: RevenueDifference) -> TextTable {
    var table = TextTable([
      .init("month"), .init("country"), .init("currency"), .init("bundle"), .init("sale key"),
      .init("product"), .init("units", isNumber: true), .init("units after", isNumber: true),
      .init("net", isNumber: true), .init("net after", isNumber: true),
    ])
    for row in revenue.rows {
      for sale in row.sales {
        table.append([
          row.place.month, row.place.countryCode, row.place.currency ?? "", sale.bundleID,
          sale.saleKey, sale.productID, "\(sale.before.netUnits)", "\(sale.after.netUnits)",
          amount(sale.before.netMicros, row.place), amount(sale.after.netMicros, row.place),
        ])
      }
    }
    return table
  }

  /// Empty if there is no price.
  private func amount(_ micros: Int128, _ place: RevenueDifference.Place) -> String {
    guard let code = place.currency else { return "" }
    return Amount.text(micros: micros, currency: Currency.parse(code))
  }

  // MARK: JSON

  func writeJSON() throws {
    try context.output.writeObject { writer in
      writer.member("differs", !comparison.isEmpty)
      writer.member("position", comparison.position)
      writer.member("is_of_this_log", comparison.isOfThisLog)
      writer.array("versions", comparison.versions.filter { !$0.isCurrent }) {
        version, writer in
        writer.object { writer in
          writer.member("name", version.name)
          writer.member("version", version.stored)
          writer.member("current_version", version.current)
        }
      }
      writer.array("definitions", comparison.definitions) { name, writer in writer.string(name) }
      writer.array("tables", comparison.tables.filter { !$0.isEmpty }, write)
      writer.array("views", comparison.views.filter { !$0.isEmpty }, write)
      writer.array("revenue", comparison.revenue?.rows ?? [], write)
    }
  }

  private func write(_ difference: TableDifference, _ writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("name", difference.name)
      writer.member("rows_before", difference.rowsBefore)
      writer.member("rows_after", difference.rowsAfter)
      writer.member("added", difference.added)
      writer.member("removed", difference.removed)
      writer.member("changed", difference.changed)
      writer.array("added_columns", difference.addedColumns) { $1.string($0) }
      writer.array("removed_columns", difference.removedColumns) { $1.string($0) }
      writer.key("changed_columns")
      writer.object { writer in
        for (name, count) in difference.changedColumns.sorted(by: { $0.key < $1.key }) {
          writer.key(name)
          writer.integer(count)
        }
      }
      writer.array("rows", difference.rows) { row, writer in
        writer.object { writer in
          writer.member("change", row.change.rawValue)
          writer.key("key")
          writer.object { writer in
            for (column, value) in row.key {
              writer.key(column)
              writer.string(value)
            }
          }
          writer.array("columns", row.columns) { column, writer in
            writer.object { writer in
              writer.member("name", column.name)
              writer.member("before", column.before.map(Int.init))
              writer.member("after", column.after.map(Int.init))
            }
          }
        }
      }
    }
  }

  private func write(_ row: RevenueDifference.Row, _ writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("month", row.place.month)
      writer.member("country_code", row.place.countryCode)
      writer.member("currency", row.place.currency)
      write(row.before, row.after, row.place, &writer)
      writer.member("sale_count", row.saleCount)
      writer.array("sales", row.sales) { sale, writer in
        writer.object { writer in
          writer.member("bundle_id", sale.bundleID)
          writer.member("sale_key", sale.saleKey)
          writer.member("product_id", sale.productID)
          write(sale.before, sale.after, row.place, &writer)
        }
      }
    }
  }

  private func write(
    _ before: RevenueDifference.Figures, _ after: RevenueDifference.Figures,
    _ place: RevenueDifference.Place, _ writer: inout JSONWriter
  ) {
    let isPriced = place.currency != nil
    writer.member("units_before", before.netUnits)
    writer.member("units_after", after.netUnits)
    writer.member("net_before", isPriced ? amount(before.netMicros, place) : nil)
    writer.member("net_after", isPriced ? amount(after.netMicros, place) : nil)
  }
}
