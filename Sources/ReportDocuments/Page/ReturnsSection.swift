// What was refunded and taken back, by product and reason.
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
      text: "A return takes back what a customer paid; a reversal gives a return back. "
        + (figures.request.report.refunds == .eventDate
          ? "Each counts on its own date, so that it never changes a month that has ended."
          : "Each counts on the date of its sale."))
    reasons(&html)
    byProduct(&html)
  }

  /// The largest returns of each currency first; with more currencies than are charted, by units.
  private func byProduct(_ html: inout HTML) {
    var table = PageTable(
      caption: "Returns and reversals by product and reason", id: "refunds",
      columns: [
        .text("Product"), .text("Reason"), .text("Currency"), .number("Returned units"),
        .number("Returns"), .number("Reversed units"), .number("Reversals"),
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

  /// More rows are summed.
  private static let refundsMax = 40

  private func reason(_ row: RefundSums) -> String {
    row.reason.isEmpty && row.returnedUnits == 0 && row.returns == 0
      ? "Taken back" : CodeWords.reason(row.reason)
  }

  /// Units by reason: the one sum that all currencies share.
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
