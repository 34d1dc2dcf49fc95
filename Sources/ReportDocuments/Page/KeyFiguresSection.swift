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
      text:
        "Compared with \(period.before.title). Net is gross, less returns, plus returns that were "
        + "reversed."
        + (figures.isRounded
          ? " Amounts are rounded so that tables add up; net is that of the rounded figures." : ""))
    if let main = figures.mainCurrency { amounts(main, &html) }
    counts(&html)
    for text in remarks { html.element("p", text: text) }
    currencyTable(&html)
  }

  private var emptyText: String {
    figures.head.size == 0
      ? "The ledger is empty." : "There is no sale, return or reversal \(period.phrase)."
  }

  /// Why figures of this section differ from those below it, or are not all that was sold, a sentence each.
  private var remarks: [String] {
    var remarks: [String] = []
    if let main = figures.request.report.reportingCurrency {
      let others = figures.currencies.filter { $0 != main && figures.places.totals[$0] != nil }
      if !others.isEmpty {
        remarks.append(
          "Amounts in \(list(others)) have no exchange rate: they keep their own currencies, and "
            + "are not in the sums in \(main).")
      }
    } else if figures.currencies.count > 1 {
      remarks.append(
        "Different currencies are never added up. For one total, declare exchange rates "
          + "(‘ledgerctl rates import FILE’), then make this page with ‘--in \(figures.currencies[0])’ "
          + "or another currency.")
    }
    let unpriced = figures.counts.unpricedUnits
    if unpriced > 0 {
      remarks.append(
        unpriced == 1
          ? "1 of the units has no known price: it counts among the units, but adds no amount."
          : "\(unpriced) of the units have no known price: they count among the units, but add no "
            + "amount.")
    }
    let pending =
      figures.places.summary.exceptions.first { $0.type == "\(ExceptionType.pendingSale.word)" }
    if let count = pending?.count {
      remarks.append(
        count == 1
          ? "1 sale is not confirmed by the App Store yet, and is in no figure."
          : "\(count) sales are not confirmed by the App Store yet, and are in no figure.")
    }
    return remarks
  }

  /// `USD`, `USD and GBP`, `USD, GBP and 3 other currencies`.
  private func list(_ currencies: [Currency]) -> String {
    let isShort = currencies.count <= Self.currenciesNamed + 1
    var names = (isShort ? currencies : Array(currencies.prefix(Self.currenciesNamed))).map {
      "\($0)"
    }
    if !isShort { names.append("\(currencies.count - names.count) other currencies") }
    guard names.count > 1, let last = names.popLast() else { return names.joined() }
    return "\(names.joined(separator: ", ")) and \(last)"
  }

  /// How many currencies a sentence names.
  private static let currenciesNamed = 4

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
    guard now != before else { return html.text("unchanged") }
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
    var table = PageTable(
      caption: "By currency", id: "by-currency",
      columns: [
        .text("Currency"), .number("Net"), .wide("Net before"), .wide("Change"),
        .wide("Change, %"), .number("Gross"), .number("Returns"), .wide("Reversals"),
        .wide("Units"), .wide("Returned units"),
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
    let netBefore: Int128
    let netAfter: Int128
    let saleCount: Int
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
      let currency = row.place.currency.flatMap(Currency.parse)
      let amounts = request.report.amounts
      return Row(
        month: row.place.month, countryCode: row.place.countryCode, currency: currency,
        unitsBefore: Int128(row.before.netUnits), unitsAfter: Int128(row.after.netUnits),
        netBefore: amounts.shown(row.before.netMicros, currency),
        netAfter: amounts.shown(row.after.netMicros, currency), saleCount: row.saleCount)
    }
  }
}
