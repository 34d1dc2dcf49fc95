// The section on settlement: from the receipts of a fiscal month to the bank, and what is open or missing.
import Base
import Projections
import Revenue

extension PageWriter {
  func settlement(_ html: inout HTML) {
    guard let settlement = figures.settlement else { return }
    let month = settlement.month
    let days = [month.firstDay, month.lastDay].map {
      PagePeriod.dayTitle(CivilDate(dayNumber: $0))
    }
    html.element(
      "p", ["class": "soft"],
      text: "Fiscal month \(month.name), \(days.joined(separator: " to ")), the newest that Apple "
        + "has reported by then: what the receipts say was sold, what Apple’s reports say was sold, kept and paid. "
        + "Amounts keep their currencies. \(stateText(settlement))")
    let waterfalls = ordered(settlement)
    let shown = waterfalls.prefix(Self.currenciesMax)
    html.element("div", ["class": shown.count > 1 ? "panels" : "single"]) { html in
      for waterfall in shown { panel(waterfall, settlement, &html) }
    }
    let more = waterfalls.dropFirst(Self.currenciesMax)
    if !more.isEmpty {
      details("\(more.count) more \(more.count == 1 ? "currency" : "currencies")", &html) { html in
        html.element("div", ["class": "panels"]) { html in
          for waterfall in more { panel(waterfall, settlement, &html) }
        }
      }
    }
    rests(settlement, &html)
  }

  /// The currencies of the page first, in its order.
  private func ordered(_ settlement: SettlementFigures) -> [SettlementWaterfall] {
    let codes = figures.currencies.map { "\($0)" }
    return settlement.waterfalls.enumerated().map { index, waterfall in
      (codes.firstIndex(of: settlement.code(waterfall.currency)) ?? codes.count + index, waterfall)
    }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  private func stateText(_ settlement: SettlementFigures) -> String {
    let month = settlement.month
    switch settlement.state(FiscalMonthOrdinal(month.ordinal)) {
    case .complete:
      return "Its reports are complete."
    case .reported, .noReport:
      return "Whether its reports are complete is not known: there is no report of all regions, "
        + "and no payment overview that agrees."
    }
  }

  private func panel(
    _ waterfall: SettlementWaterfall, _ settlement: SettlementFigures, _ html: inout HTML
  ) {
    html.element("div") { html in
      table(waterfall, settlement, &html)
      if waterfall.proceeds.isEmpty { return }
      let amounts = waterfall.proceeds.sorted { $0.key < $1.key }.map { currency, micros in
        let text = Amount.shown(micros: micros, currency: settlement.currency(currency))
        return "\(text) \(settlement.code(currency))"
      }
      let day = PagePeriod.dayTitle(CivilDate(dayNumber: settlement.month.expectedPaymentDay))
      html.element(
        "p", ["class": "soft"],
        text: "At the bank: \(amounts.joined(separator: ", ")), expected on \(day).")
    }
  }

  /// The waterfall of a currency: each step's bar begins where the one before it ended.
  private func table(
    _ waterfall: SettlementWaterfall, _ settlement: SettlementFigures, _ html: inout HTML
  ) {
    let code = settlement.code(waterfall.currency)
    let bars = waterfall.bars
    let scale = PageScale(around: bars.flatMap { [$0.fromMicros, $0.fromMicros + $0.micros] })
    var table = PageTable(
      caption: "From the receipts to the bank, \(code)", id: "settlement-\(code)",
      columns: [.text("Step"), .bar, .number(code)])
    for bar in bars {
      if bar.step.isSum { table.sumRows.insert(table.rows.count) }
      table.rows.append([
        .text(bar.step.title),
        .bar(RowBar(scale: scale, value: bar.micros, from: bar.fromMicros, isSum: bar.step.isSum)),
        amount(bar.micros, waterfall.currency, settlement),
      ])
    }
    table.write(to: &html)
  }

  private func amount(
    _ micros: Int128, _ currency: Symbol, _ settlement: SettlementFigures
  ) -> PageTable.Cell {
    settlement.currency(currency).map { .amount(micros, $0) } ?? .empty
  }

  // MARK: What is open or missing

  private func rests(_ settlement: SettlementFigures, _ html: inout HTML) {
    let rests = settlement.rests
    if rests.isEmpty {
      return html.element("p", text: "Nothing is open or missing in any fiscal month.")
    }
    var table = PageTable(
      caption: "Open and missing, by fiscal month", id: "settlement-rests",
      columns: [
        .text("Month"), .text("Reports"),
        .currency(of: Set(rests.map(\.currency)).count), .number("Open"),
        .number("Missing at Apple"), .wide("Without a receipt"), .wide("Without a report"),
        .wide("Units"),
      ])
    for rest in rests.prefix(Self.restsMax) {
      let code = settlement.code(rest.currency)
      table.rows.append(
        [
          .period(SettlementFigures.name(rest.month)), .text(settlement.state(rest.month).word),
          .text(code.isEmpty ? "no price" : code),
        ]
          + SettlementRests.classes.map { kind in
            rest.sums[kind].map { amount($0.micros, rest.currency, settlement) } ?? .empty
          } + [.count(rest.unitCount)])
    }
    table.write(to: &html)
    let more = rests.count - Self.restsMax
    html.element(
      "p", ["class": "soft"],
      text: (more > 0 ? "\(more) more rows are left out. " : "")
        + "‘ledgerctl export reconcile’ lists them with their events and Apple’s rows.")
  }

  /// Further rows are left to the report.
  private static let restsMax = 24
}
