// Revenue over time: the steps of the page's days, and the months that lead up to them.
import Base
import Projections
import Revenue

extension PageWriter {
  func time(_ html: inout HTML) {
    html.element("div", ["class": figures.currencies.count > 1 ? "apart" : "pair"]) { html in
      html.element("div") { html in
        stepCharts(&html)
        stepTable(&html)
      }
      html.element("div") { html in
        monthCharts(&html)
        monthTable(&html)
      }
    }
  }

  /// `day`, `week`, `month` or `year`.
  private var step: String { period.granularity.rawValue }

  // MARK: Steps

  private func stepCharts(_ html: inout HTML) {
    let charted = chartedCurrencies(in: figures.steps)
    html.element("div", ["class": charted.count > 1 ? "panels" : "single"]) { html in
      for currency in charted {
        let sums = Dictionary(
          uniqueKeysWithValues: figures.steps.sums(by: .period, currency).map {
            ($0.label, $0.sums)
          })
        let bars = period.steps.map { step in
          let net = sums[step.description]?.net ?? 0
          return BarChart.Bar(
            axisLabel: PagePeriod.axisLabel(step), title: "\(step): \(text(net, currency))",
            value: net, isMarked: false)
        }
        chart(
          BarChart(
            title: "Net by \(step), \(currency)",
            description: description(bars, currency, "\(step)s"), id: "steps-\(currency)",
            bars: bars), style: "of-steps", &html)
      }
    }
    if charted.isEmpty {
      html.element(
        "p", ["class": "soft"], text: "There is no priced sale or return \(period.phrase).")
    }
    moreCurrencies(charted, in: figures.steps, &html)
  }

  private func stepTable(_ html: inout HTML) {
    if figures.steps.rows.isEmpty { return }
    details("By \(step), as a table", &html) { html in
      revenueTable(
        figures.steps, "Revenue by \(step) and currency; \(step)s without entries are left out",
        "by-step", step.prefix(1).uppercased() + step.dropFirst(), &html)
    }
  }

  // MARK: Months

  private func monthCharts(_ html: inout HTML) {
    let charted = chartedCurrencies(in: figures.months)
    html.element("div", ["class": charted.count > 1 ? "panels" : "single"]) { html in
      for currency in charted {
        let sums = Dictionary(
          uniqueKeysWithValues: figures.months.sums(by: .period, currency).map {
            ($0.label, $0.sums)
          })
        let months = period.year.firstMonth...period.lastMonth
        let bars = months.map { month in
          let step = Period(.month, ordinal: month)
          let net = sums[step.description]?.net ?? 0
          return BarChart.Bar(
            axisLabel: PagePeriod.axisLabel(step), title: "\(step): \(text(net, currency))",
            value: net, isMarked: month >= period.firstMonth)
        }
        chart(
          BarChart(
            title: "Net by month, \(currency)", description: description(bars, currency, "months"),
            id: "months-\(currency)", bars: bars), style: "of-months", &html)
      }
    }
    moreCurrencies(charted, in: figures.months, &html)
  }

  private func monthTable(_ html: inout HTML) {
    if figures.months.rows.isEmpty { return }
    details("By month, as a table", &html) { html in
      revenueTable(
        figures.months,
        "Revenue of \(PagePeriod.monthsShown) months by currency, until \(period.last); months "
          + "without entries are left out", "by-month", "Month", &html)
    }
  }

  // MARK: Parts

  /// The currencies with a chart: those of the page's days first, then by descending units.
  private func chartedCurrencies(in rows: PageRows) -> [Currency] {
    let known = rows.totals
    let others = known.keys.compactMap(\.self).filter { !figures.currencies.contains($0) }.sorted {
      let (one, other) = (known[$0]?.units ?? 0, known[$1]?.units ?? 0)
      return one != other ? one > other : $0 < $1
    }
    return Array(
      (figures.currencies + others).filter { known[$0] != nil }.prefix(Self.currenciesMax))
  }

  private func moreCurrencies(_ charted: [Currency], in rows: PageRows, _ html: inout HTML) {
    let more = rows.totals.keys.compactMap(\.self).count - charted.count
    guard more > 0 else { return }
    html.element(
      "p", ["class": "soft"],
      text: "\(more) more \(more == 1 ? "currency is" : "currencies are") in the table.")
  }

  private func chart(_ chart: BarChart, style: String, _ html: inout HTML) {
    html.element("figure", ["class": style]) { html in
      html.element("figcaption", text: chart.title)
      chart.write(to: &html)
    }
  }

  private func text(_ micros: Int128, _ currency: Currency) -> String {
    "\(Amount.shown(micros: micros, currency: currency)) \(currency)"
  }

  /// The content of a chart, for readers who cannot see it.
  private func description(_ bars: [BarChart.Bar], _ currency: Currency, _ steps: String) -> String
  {
    guard let high = bars.max(by: { $0.value < $1.value }),
      let low = bars.min(by: { $0.value < $1.value })
    else { return "No \(steps)." }
    return "\(bars.count) \(steps). Highest \(high.title); lowest \(low.title). The table below "
      + "has every figure."
  }

  /// All figures of a revenue report, by time and currency: money first, so that it is never scrolled away.
  private func revenueTable(
    _ rows: PageRows, _ caption: String, _ id: String, _ label: String, _ html: inout HTML
  ) {
    var table = PageTable(
      caption: caption, id: id,
      columns: [
        .text(label), .currency(of: rows.totals.keys.compactMap(\.self).count), .number("Net"),
        .number("Gross"), .number("Returns"), .wide("Reversals"), .wide("Units"),
        .wide("Returned units"), .wide("Reversed units"), .wide("Units without a price"),
        .wide("Trials"), .wide("Family sharing"),
      ], showsCaption: false)
    var currencies: [Currency?] = [nil]
    currencies += rows.totals.keys.compactMap(\.self).sorted().map(Optional.some)
    var lines: [(label: String, currency: Currency?, sums: PageSums)] = []
    for currency in currencies {
      lines += rows.sums(by: .period, currency).map { ($0.label, currency, $0.sums) }
    }
    // Labels of equal length sort by time; the currencies stay in order.
    let sorted = lines.enumerated().sorted {
      ($0.element.label, $0.offset) < ($1.element.label, $1.offset)
    }
    for (_, line) in sorted {
      func amount(_ micros: Int128) -> PageTable.Cell {
        line.currency.map { .amount(micros, $0) } ?? .empty
      }
      let sums = line.sums
      table.rows.append([
        .period(line.label), .text(line.currency?.description ?? "–"), amount(sums.net),
        amount(sums.gross), amount(sums.returns), amount(sums.reversals), .count(sums.units),
        .count(sums.returnedUnits), .count(sums.reversedUnits), .count(sums.unpricedUnits),
        .count(sums.trials), .count(sums.familyShared),
      ])
    }
    table.write(to: &html)
  }

  /// A collapsed part, which paper leaves out unless the reader has opened it.
  func details(_ summary: String, _ html: inout HTML, _ body: (inout HTML) -> Void) {
    html.element("details") { html in
      html.element("summary", text: summary)
      body(&html)
    }
  }
}
