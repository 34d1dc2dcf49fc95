// Refunds and their reversals by product and reason; and revenue by country and by product.
import Projections
import Revenue

extension PageWriter {
  func returns(_ html: inout HTML) {
    if figures.refunds.isEmpty {
      return html.element(
        "p", ["class": "soft"], text: "Nothing was refunded or taken back \(period.phrase).")
    }
    html.element(
      "p", ["class": "soft"],
      text: "A return takes back what a customer paid; a reversal cancels a return. "
        + (figures.request.report.refunds == .eventDate
          ? "Each counts on its own date, so ended months do not change."
          : "Each counts on the date of its sale."))
    reasons(&html)
    byProduct(&html)
  }

  /// The largest returns of each currency first; with more currencies than are charted, by units.
  private func byProduct(_ html: inout HTML) {
    var table = PageTable(
      caption: "Returns and reversals by product and reason", id: "refunds",
      columns: [
        .text("Product"), .text("Reason"),
        .currency(of: Set(figures.refunds.compactMap(\.currency)).count),
        .wide("Returned units"), .number("Returns"), .wide("Reversed units"),
        .number("Reversals"),
      ])
    let order = Dictionary(
      uniqueKeysWithValues: figures.currencies.enumerated().map { ($0.element, $0.offset) })
    func rank(_ row: RefundSums) -> (Int, Int128) {
      (row.currency.flatMap { order[$0] } ?? .max, -(row.returns + row.reversals))
    }
    let rows = figures.refunds.enumerated().sorted {
      let (one, other) = (rank($0.element), rank($1.element))
      return one != other ? one < other : $0.offset < $1.offset
    }.map(\.element)
    for row in rows.prefix(Self.refundsMax) {
      func amount(_ micros: Int128) -> PageTable.Cell {
        row.currency.map { .amount(micros, $0) } ?? .empty
      }
      table.rows.append([
        .identifier(row.productID), .text(reason(row)),
        .text(row.currency?.description ?? "–"), .count(row.returnedUnits), amount(row.returns),
        .count(row.reversedUnits), amount(row.reversals),
      ])
    }
    let rest = rows.dropFirst(Self.refundsMax)
    for currency in figures.currencies.map(Optional.some) + [nil] {
      let others = rest.filter { $0.currency == currency }
      if others.isEmpty { continue }
      var sums = PageSums()
      for row in others { sums.add(row) }
      func amount(_ micros: Int128) -> PageTable.Cell {
        currency.map { .amount(micros, $0) } ?? .empty
      }
      table.rows.append([
        .text("\(others.count) others"), .empty, .text(currency?.description ?? "–"),
        .count(sums.returnedUnits), amount(sums.returns), .count(sums.reversedUnits),
        amount(sums.reversals),
      ])
    }
    table.write(to: &html)
  }

  /// Further rows are summed.
  private static let refundsMax = 40

  private func reason(_ row: RefundSums) -> String {
    row.reason.isEmpty && row.returnedUnits == 0 && row.returns == 0
      ? "Taken back" : CodeWords.reason(row.reason)
  }

  /// Units by reason: the only sum that all currencies share.
  private func reasons(_ html: inout HTML) {
    var units: [String: Int128] = [:]
    for row in figures.refunds where row.returnedUnits != 0 {
      units[row.reason, default: 0] += row.returnedUnits
    }
    guard units.count > 1 else { return }
    let scale = PageScale(around: Array(units.values))
    var table = PageTable(
      caption: "Returned units by reason", id: "reasons",
      columns: [.text("Reason"), .bar, .number("Returned units")])
    for (reason, count) in units.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      table.rows.append([
        .text(CodeWords.reason(reason)), .bar(RowBar(scale: scale, value: count)), .count(count),
      ])
    }
    table.write(to: &html)
  }
}

// MARK: - Revenue by country and by product

extension PageWriter {
  func places(_ html: inout HTML) {
    if figures.places.rows.isEmpty {
      return html.element("p", ["class": "soft"], text: "There is nothing to show.")
    }
    if figures.counts.unpricedUnits > 0 {
      html.element(
        "p", ["class": "soft"],
        text: "Units without a known price are not in the tables of amounts.")
    }
    let isSingle = figures.currencies.filter { figures.places.totals[$0] != nil }.count == 1
    html.element("div", ["class": isSingle ? "panels" : "single"]) { html in
      html.element("div") { html in
        if figures.hasSeveralApps {
          if !isSingle { html.element("h3", text: "By app") }
          split(.app, "App", "apps", &html) { .identifier($0) }
        }
        if !isSingle { html.element("h3", text: "By country") }
        split(.country, "Country", "countries", &html) { code in
          .named(code, CountryNames.name(code))
        }
      }
      html.element("div") { html in
        if !isSingle { html.element("h3", text: "By product") }
        split(.product, "Product", "products", &html) { .identifier($0) }
      }
    }
  }

  /// The rows that have a dimension.
  private func rows(by dimension: ReportDimension) -> PageRows {
    dimension == .app ? figures.apps : figures.places
  }

  private typealias Name = (String) -> PageTable.Cell

  /// A table for each currency.
  private func split(
    _ dimension: ReportDimension, _ heading: String, _ plural: String, _ html: inout HTML,
    _ name: @escaping Name
  ) {
    let currencies = figures.currencies.filter { figures.places.totals[$0] != nil }
    let free = rows(by: dimension).sums(by: dimension, nil)
    let shown = currencies.prefix(Self.currenciesMax)
    html.element("div", ["class": currencies.count > 1 ? "panels" : "single"]) { html in
      for currency in shown { table(dimension, heading, plural, currency, name, &html) }
    }
    let more = currencies.dropFirst(Self.currenciesMax)
    if !more.isEmpty {
      details("\(more.count) more \(more.count == 1 ? "currency" : "currencies")", &html) { html in
        html.element("div", ["class": "panels"]) { html in
          for currency in more { table(dimension, heading, plural, currency, name, &html) }
        }
      }
    }
    unpaid(dimension, heading, plural, free, name, &html)
  }

  /// Sorted by net, highest first; equal ones in the report's order.
  private func ranked(
    _ rows: [(label: String, sums: PageSums)], by value: (PageSums) -> Int128
  ) -> [(label: String, sums: PageSums)] {
    rows.enumerated().sorted {
      let (one, other) = (value($0.element.sums), value($1.element.sums))
      return one != other ? one > other : $0.offset < $1.offset
    }.map(\.element)
  }

  private func table(
    _ dimension: ReportDimension, _ heading: String, _ plural: String, _ currency: Currency,
    _ name: Name, _ html: inout HTML
  ) {
    let rows = ranked(rows(by: dimension).sums(by: dimension, currency), by: \.net)
    let rest = rows.dropFirst(Self.namesMax)
    let total = figures.total(currency)
    let scale = PageScale(around: rows.prefix(Self.namesMax).map(\.sums.net))
    // Shares of a sum that negative parts have reduced would mislead.
    let hasShares = rows.allSatisfy { $0.sums.net >= 0 } && total.net > 0
    var table = PageTable(
      caption: "Net by \(heading.lowercased()), \(currency)", id: "\(plural)-\(currency)",
      columns: [.text(heading), .bar, .number("Net")] + (hasShares ? [.share] : [])
        + [.number("Units")])
    func cells(_ first: PageTable.Cell, _ sums: PageSums, hasBar: Bool) -> [PageTable.Cell] {
      let share = PageTable.Cell.share(PagePercent.text(sums.net, of: total.net))
      return [
        first, hasBar ? .bar(RowBar(scale: scale, value: sums.net)) : .empty,
        .amount(sums.net, currency),
      ] + (hasShares ? [share] : []) + [.count(sums.units)]
    }
    for row in rows.prefix(Self.namesMax) {
      table.rows.append(cells(name(row.label), row.sums, hasBar: true))
    }
    if !rest.isEmpty {
      let sums = rest.map(\.sums).reduce(PageSums(), +)
      table.rows.append(cells(.text(others(rest.count)), sums, hasBar: false))
    }
    if rows.count > 1 { table.sums = cells(.text("Total"), total, hasBar: false) }
    table.write(to: &html)
  }

  private func others(_ count: Int) -> String { count == 1 ? "1 other" : "\(count) others" }

  /// Sales without a currency: unpriced, trials, family sharing.
  private func unpaid(
    _ dimension: ReportDimension, _ heading: String, _ plural: String,
    _ rows: [(label: String, sums: PageSums)], _ name: Name, _ html: inout HTML
  ) {
    if rows.isEmpty { return }
    let ranked = ranked(rows) { $0.units + $0.trials + $0.familyShared }
    let rest = ranked.dropFirst(Self.namesMax)
    var table = PageTable(
      caption: "Without a currency, by \(heading.lowercased())", id: "\(plural)-free",
      columns: [
        .text(heading), .number("Units without a price"), .number("Trials"),
        .number("Family sharing"),
      ], showsCaption: false)
    func cells(_ first: PageTable.Cell, _ sums: PageSums) -> [PageTable.Cell] {
      [first, .count(sums.unpricedUnits), .count(sums.trials), .count(sums.familyShared)]
    }
    for row in ranked.prefix(Self.namesMax) { table.rows.append(cells(name(row.label), row.sums)) }
    if !rest.isEmpty {
      table.rows.append(
        cells(.text(others(rest.count)), rest.map(\.sums).reduce(PageSums(), +)))
    }
    if rows.count > 1 { table.sums = cells(.text("Total"), figures.total(nil)) }
    details(
      "Without a price, trials and family sharing, by \(heading.lowercased())", &html
    ) { table.write(to: &$0) }
  }
}
