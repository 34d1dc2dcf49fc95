// Prints what a rebuild would change, as text and as JSON.
import Projections
import Revenue

/// Prints a comparison of projections.
struct ComparisonPrinter {
  let comparison: ProjectionComparison

  // MARK: Text

  func write(to sheet: inout TextSections) throws {
    let events = counted(comparison.position, "event")
    if comparison.isEmpty {
      return try sheet.line("The projections equal a rebuild, at \(events).")
    }
    try sheet.line("The projections differ from a rebuild, at \(events).")
    if !comparison.isOfThisLog {
      try sheet.line("The projections in use belong to another history than the log.")
    }
    let versions = comparison.versions.filter { !$0.isCurrent }
    if !versions.isEmpty {
      let list = versions.map { "\($0.name) \(versionText($0))" }.joined(separator: ", ")
      try sheet.line("Versions that differ: \(visible(list))")
    }
    if !comparison.definitions.isEmpty {
      let list = comparison.definitions.joined(separator: ", ")
      try sheet.line("Definitions that differ: \(visible(list))")
    }
    try sheet.gap()
    try sheet.table("Tables", overview(comparison.tables))
    try sheet.table("Views", overview(comparison.views))
    try sheet.table("Rows", rows(comparison.tables + comparison.views))
    guard let revenue = comparison.revenue else { return }
    let columns: [TextTable.Column] = [
      "month", "country", "currency", .number("units"), .number("units after"), .number("net"),
      .number("net after"), .number("difference"), .number("sales"),
    ]
    try sheet.table("Revenue of production", revenue.table(columns))
    try sheet.table("Sales behind this revenue", sales(revenue))
  }

  private func overview(_ differences: [TableDifference]) -> TextTable {
    var table = TextTable([
      "name", .number("rows"), .number("rows after"), .number("added"), .number("removed"),
      .number("changed"), "columns",
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
    var table = TextTable(["name", "row", "change", "columns"])
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

  private func sales(_ revenue: RevenueDifference) -> TextTable {
    var table = TextTable([
      "month", "country", "currency", "bundle", "sale key", "product", .number("units"),
      .number("units after"), .number("net"), .number("net after"),
    ])
    for row in revenue.rows {
      for sale in row.sales {
        table.append([
          row.place.month, row.place.countryCode, row.place.currency ?? "", sale.bundleID,
          sale.saleKey, sale.productID, "\(sale.before.netUnits)", "\(sale.after.netUnits)",
          row.place.amountText(sale.before.netMicros) ?? "",
          row.place.amountText(sale.after.netMicros) ?? "",
        ])
      }
    }
    return table
  }

  // MARK: JSON

  var record: Record {
    let versions = comparison.versions.filter { !$0.isCurrent }.map {
      ["name": $0.name, "version": $0.stored, "current_version": $0.current] as Record
    }
    return [
      "differs": !comparison.isEmpty, "position": comparison.position,
      "is_of_this_log": comparison.isOfThisLog, "versions": versions,
      "definitions": comparison.definitions,
      "tables": comparison.tables.filter { !$0.isEmpty }.map(record),
      "views": comparison.views.filter { !$0.isEmpty }.map(record),
      "revenue": (comparison.revenue?.rows ?? []).map(record),
    ]
  }

  private func record(_ difference: TableDifference) -> Record {
    let changed = difference.changedColumns.sorted { $0.key < $1.key }
    return [
      "name": difference.name, "rows_before": difference.rowsBefore,
      "rows_after": difference.rowsAfter, "added": difference.added,
      "removed": difference.removed, "changed": difference.changed,
      "added_columns": difference.addedColumns, "removed_columns": difference.removedColumns,
      "changed_columns": Record(changed.map { ($0.key, $0.value) }),
      "rows": difference.rows.map { row in
        [
          "change": row.change.rawValue, "key": Record(row.key.map { ($0.column, $0.value) }),
          "columns": row.columns.map {
            ["name": $0.name, "before": $0.before, "after": $0.after] as Record
          },
        ] as Record
      },
    ]
  }

  private func record(_ row: RevenueDifference.Row) -> Record {
    let place = row.place
    let sales = row.sales.map { sale in
      ["bundle_id": sale.bundleID, "sale_key": sale.saleKey, "product_id": sale.productID]
        + place.record(sale.before, sale.after)
    }
    return [
      "month": place.month, "country_code": place.countryCode, "currency": place.currency,
    ] + place.record(row.before, row.after) + ["sale_count": row.saleCount, "sales": sales]
  }
}

extension RevenueDifference {
  /// A row for each place. The change is that of the figures shown.
  func table(_ columns: [TextTable.Column], _ amounts: ReportAmounts = .exact) -> TextTable {
    var table = TextTable(columns)
    for row in rows {
      let (place, old, new) = (row.place, row.before, row.after)
      let currency = place.currency.flatMap(Currency.parse)
      let (before, after) = (
        amounts.shown(old.netMicros, currency), amounts.shown(new.netMicros, currency)
      )
      let amounts = [before, after, after - before]
      table.append(
        [
          place.month, place.countryCode, place.currency ?? "", "\(old.netUnits)",
          "\(new.netUnits)",
        ] + amounts.map { place.amountText($0) ?? "" } + ["\(row.saleCount)"])
    }
    return table
  }
}

extension RevenueDifference.Place {
  /// An amount in the place's currency; nil if there is none, and so no price (rule R9).
  func amountText(_ micros: Int128) -> String? {
    currency.map { Amount.text(micros: micros, currency: Currency.parse($0)) }
  }

  /// The figures of both states here.
  func record(
    _ before: RevenueDifference.Figures, _ after: RevenueDifference.Figures
  ) -> Record {
    [
      "units_before": before.netUnits, "units_after": after.netUnits,
      "net_before": amountText(before.netMicros), "net_after": amountText(after.netMicros),
    ]
  }
}
