// The key figures of a page and their change from the previous period; and changes in ended months.
import Base
import Projections
import Revenue

extension PageWriter {
  func keyFigures(_ html: inout HTML) {
    if figures.places.rows.isEmpty {
      html.element("p", ["class": "soft"], text: emptyText)
    }
    html.element(
      "p", ["class": "soft"],
      text: "Changes are against \(period.before.title). Net is gross, less returns, plus "
        + "reversals of returns.")
    if let main = figures.mainCurrency { amounts(main, &html) }
    counts(&html)
    currencyTable(&html)
  }

  private var emptyText: String {
    figures.head.size == 0
      ? "The ledger is empty." : "There is no sale, return or reversal \(period.phrase)."
  }

  private var earlier: [Currency?: PageSums] { figures.before.totals }

  /// Large figures in the page's main currency.
  private func amounts(_ currency: Currency, _ html: inout HTML) {
    let now = figures.total(currency)
    let before = earlier[currency] ?? PageSums()
    let units = (figures.counts.units, figures.before.totals.values.reduce(PageSums(), +).units)
    html.element("dl", ["class": "figures"]) { html in
      figure("Net", now.net, before.net, currency, &html)
      figure("Gross", now.gross, before.gross, currency, &html)
      figure("Returns", now.returns, before.returns, currency, &html)
      figure("Units", units.0, units.1, nil, &html)
    }
  }

  /// Counts, which can be summed across currencies.
  private func counts(_ html: inout HTML) {
    let now = figures.counts
    let before = earlier.values.reduce(PageSums(), +)
    html.element("dl", ["class": "figures small"]) { html in
      if let main = figures.mainCurrency {
        let reversals = (
          figures.total(main).reversals, (earlier[main] ?? PageSums()).reversals
        )
        figure("Reversals", reversals.0, reversals.1, main, &html)
      } else {
        figure("Units", now.units, before.units, nil, &html)
      }
      figure("Returned units", now.returnedUnits, before.returnedUnits, nil, &html)
      if figures.mainCurrency == nil {
        figure("Reversed units", now.reversedUnits, before.reversedUnits, nil, &html)
      }
      figure("Units without a price", now.unpricedUnits, before.unpricedUnits, nil, &html)
      figure("Trials", now.trials, before.trials, nil, &html)
      figure("Family sharing", now.familyShared, before.familyShared, nil, &html)
    }
  }

  /// One figure: a sum of money, or a count without a currency.
  private func figure(
    _ name: String, _ now: Int128, _ before: Int128, _ currency: Currency?, _ html: inout HTML
  ) {
    html.element("div") { html in
      html.element("dt", text: name)
      html.element("dd", ["class": now < 0 ? "value minus" : "value"]) { html in
        if let currency {
          html.amount(now, currency)
          html.element("span", ["class": "unit"], text: "\(currency)")
        } else {
          html.count(now)
        }
      }
      html.element("dd", ["class": "change"]) { html in
        change(now, before, currency, &html)
      }
    }
  }

  private func change(
    _ now: Int128, _ before: Int128, _ currency: Currency?, _ html: inout HTML
  ) {
    guard now != before else { return html.text(now == 0 ? "none before either" : "unchanged") }
    if let currency {
      html.signedAmount(now - before, currency)
    } else {
      html.signedCount(now - before)
    }
    let percent = before == 0 ? "new" : PagePercent.change(from: before, to: now)
    if let percent {
      html.text(" ")
      html.element("b", text: "(\(percent))")
    }
  }

  /// A row for each currency; if there is only one, the figures above are enough.
  private func currencyTable(_ html: inout HTML) {
    let all = figures.currencies
    guard all.count > 1 else { return }
    if let main = figures.request.report.reportingCurrency {
      html.element(
        "p",
        text: "Some entries have no exchange rate and keep their own currencies: they are not in "
          + "the sums in \(main).")
    }
    var table = PageTable(
      caption: "By currency; different currencies are never added up", id: "by-currency",
      columns: [
        .text("Currency"), .number("Net"), .number("Net before"), .number("Change"),
        .number("Change, %"), .number("Gross"), .number("Returns"), .number("Reversals"),
        .number("Units"), .number("Returned units"),
      ])
    for currency in all {
      let now = figures.total(currency)
      let before = earlier[currency] ?? PageSums()
      table.rows.append([
        .text("\(currency)"), .amount(now.net, currency), .amount(before.net, currency),
        .signedAmount(now.net - before.net, currency),
        before.net == 0
          ? now.net == 0 ? .empty : .percent("new")
          : PagePercent.change(from: before.net, to: now.net).map { .percent($0) } ?? .empty,
        .amount(now.gross, currency), .amount(now.returns, currency),
        .amount(now.reversals, currency), .count(now.units), .count(now.returnedUnits),
      ])
    }
    table.write(to: &html)
  }
}

// MARK: - Changes in ended months

/// Revenue of months that had already ended, as known at an earlier state of the ledger and as known now.
struct PageChanges {
  /// One month, country and currency.
  struct Row {
    let month: String
    let countryCode: String
    /// Nil for sales without a price.
    let currency: Currency?
    let unitsBefore: Int128
    let unitsAfter: Int128
    /// In micros.
    var netBefore: Int128
    var netAfter: Int128
    let saleCount: Int

    fileprivate func rounded(_ amounts: ReportAmounts) -> Row {
      guard amounts == .minor, let currency else { return self }
      var row = self
      row.netBefore = MinorRounding.halfToEven(netBefore, currency)
      row.netAfter = MinorRounding.halfToEven(netAfter, currency)
      return row
    }
  }

  /// The number of events of the earlier state.
  let size: Int
  /// When its last event was recorded; nil if it has none.
  let atMs: Int64?
  let rows: [Row]

  init(_ request: PageRequest, from older: Database, to newer: Database) throws {
    size = try Report.head(of: older).size
    atMs = try Report.lastEventAtMs(of: older)
    guard let atMs, let environment = request.report.environments?.first else {
      rows = []
      return
    }
    var lines = ComparedLines(of: environment, request.report)
    (lines.fromDay, lines.toDay) = (nil, nil)
    let difference = try RevenueDifference(from: older, to: newer, lines, saleLimit: 0)
    rows = difference.rows.compactMap { row in
      guard let month = PagePeriod(parsingMonth: row.place.month),
        request.report.zone.startMs(ofDay: month.last.dayNumber + 1) <= atMs
      else { return nil }
      return Row(
        month: row.place.month, countryCode: row.place.countryCode,
        currency: row.place.currency.flatMap { Currency.parse($0) },
        unitsBefore: Int128(row.before.netUnits), unitsAfter: Int128(row.after.netUnits),
        netBefore: row.before.netMicros, netAfter: row.after.netMicros, saleCount: row.saleCount
      ).rounded(request.report.amounts)
    }
  }
}
