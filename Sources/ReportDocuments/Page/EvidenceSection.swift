// What the figures rest on: where prices came from, where evidence came from; and the exceptions, in words.
import Projections
import Revenue

extension PageWriter {
  func evidence(_ html: inout HTML) {
    html.element(
      "p", ["class": "soft"],
      text:
        "Each sale has a price from one source. The best evidence, what Apple signed, comes first; "
        + "sales without a known price come last.")
    html.element("div", ["class": "panels"]) { html in
      split(.basis, "Source of the price", "basis", order: Self.bases, &html) {
        CodeWords(basis: $0)
      }
      split(.trust, "Source of the evidence", "trust", order: Self.trusts, &html) {
        CodeWords(trust: $0)
      }
    }
  }

  /// From the best evidence to none.
  private static let bases = [
    PriceBasis.signedTransaction, .clientTransaction, .clientProduct, .clientSingle,
    .carriedForward, .priceList, .none, .notApplicable,
  ].map { "\($0.word)" }
  private static let trusts = [
    ReplyTrust.appStore, .configured, .imported, .notRecorded, .unconfirmed,
  ].map { "\($0.word)" }

  private func split(
    _ dimension: ReportDimension, _ heading: String, _ id: String, order: [String],
    _ html: inout HTML, _ words: (String) -> CodeWords
  ) {
    let counts = figures.steps.counts(by: dimension).sorted {
      (order.firstIndex(of: $0.label) ?? .max) < (order.firstIndex(of: $1.label) ?? .max)
    }
    if counts.isEmpty { return }
    let main = figures.mainCurrency
    let amounts = Dictionary(
      uniqueKeysWithValues: main.map { currency in
        figures.steps.sums(by: dimension, currency).map { ($0.label, $0.sums) }
      } ?? [])
    let total = figures.counts.units
    let scale = PageScale(around: counts.map(\.sums.units))
    var table = PageTable(
      caption: heading, id: id,
      columns: [.text(heading), .bar, .number("Units"), .share]
        + (main.map { [.number("Gross, \($0)")] } ?? []), showsCaption: false)
    for (code, sums) in counts {
      let share = PagePercent.text(sums.units, of: total)
      var row: [PageTable.Cell] = [
        .explained(words(code)), .bar(RowBar(scale: scale, value: sums.units)),
        .count(sums.units), .share(share),
      ]
      if let main { row.append(amounts[code].map { .amount($0.gross, main) } ?? .empty) }
      table.rows.append(row)
    }
    table.write(to: &html)
  }

  // MARK: Exceptions

  func exceptions(_ html: inout HTML) {
    let counts = figures.places.summary.exceptions
    if counts.isEmpty {
      return html.element(
        "p", ["class": "soft"], text: "Nothing stands out: there is no exception.")
    }
    html.element(
      "p", ["class": "soft"],
      text: "What a reader of these figures should know, those first that change amounts. "
        + "ledgerctl export exceptions lists each one.")
    html.element("ul", ["class": "exceptions"]) { html in
      for (type, count) in ordered(counts) {
        let words = ExceptionWords(type)
        html.element("li", ["id": "exception-\(type.word)"]) { html in
          html.element("span", ["class": "times"]) { $0.count(Int128(count)) }
          html.element("div") { html in
            html.element("h3", text: words.title)
            html.element("p", text: words.meaning)
            html.element("p", ["class": "soft"], text: words.action)
          }
        }
      }
    }
  }

  /// Those that change amounts come first; of the others, those that are more.
  private func ordered(
    _ counts: [(type: String, count: Int)]
  ) -> [(type: ExceptionType, count: Int)] {
    counts.compactMap { entry in
      ExceptionType.allCases.first { $0.word == entry.type }.map { ($0, entry.count) }
    }.enumerated().sorted { left, right in
      let (one, other) = (left.element, right.element)
      let ranks = (ExceptionWords.changesAmounts(one.0), ExceptionWords.changesAmounts(other.0))
      if ranks.0 != ranks.1 { return ranks.0 }
      return one.1 != other.1 ? one.1 > other.1 : left.offset < right.offset
    }.map { ($0.element.0, $0.element.1) }
  }
}

extension ExceptionWords {
  /// Whether amounts of the page are missing or too high because of it.
  static func changesAmounts(_ type: ExceptionType) -> Bool {
    switch type {
    case .unpriced, .unconverted, .staleRate, .upgradeCreditUnknown, .refundAmountUnknown,
      .refundExceedsAmount, .malformedEvent, .pendingSale, .renewalWithoutLineItem:
      true
    default: false
    }
  }
}
