// Revenue by country and by product: the largest, with bars, and the rest summed.
import Projections
import Revenue

extension PageWriter {
  func places(_ html: inout HTML) {
    if figures.places.rows.isEmpty {
      return html.element("p", ["class": "soft"], text: "There is nothing to show.")
    }
    let isSingle = figures.currencies.filter { figures.places.totals[$0] != nil }.count == 1
    html.element("div", ["class": isSingle ? "panels" : "single"]) { html in
      html.element("div") { html in
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

  private typealias Name = (String) -> PageTable.Cell

  /// A table for each currency.
  private func split(
    _ dimension: ReportDimension, _ heading: String, _ plural: String, _ html: inout HTML,
    _ name: @escaping Name
  ) {
    let currencies = figures.currencies.filter { figures.places.totals[$0] != nil }
    let free = figures.places.sums(by: dimension, nil)
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

  /// Sorted by net, the highest first; equal ones in the report's order.
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
    let rows = ranked(figures.places.sums(by: dimension, currency), by: \.net)
    let rest = rows.dropFirst(Self.namesMax)
    let total = figures.total(currency)
    let scale = PageScale(around: rows.prefix(Self.namesMax).map(\.sums.net))
    // Shares of a sum that negative parts have made smaller would mislead.
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

  /// What has no currency: sales without a price, trials, family sharing.
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
