// The sections about evidence: prices, exceptions in words, changes of ended months, facts and commands.
import Base
import Ledger
import Projections
import Revenue

extension PageWriter {
  func evidence(_ html: inout HTML) {
    html.element(
      "p", ["class": "soft"],
      text:
        "Each sale has its price from one source. The most reliable one, what Apple signed, stands first."
    )
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
        "p", ["class": "soft"], text: "There are no exceptions.")
    }
    html.element(
      "p", ["class": "soft"],
      text: "What to know about these figures; what changes amounts stands first. "
        + "‘ledgerctl export exceptions’ lists all.")
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

  /// Exceptions that change amounts come first; then the order is by descending count.
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
  /// Whether it makes amounts of the page missing or too high.
  static func changesAmounts(_ type: ExceptionType) -> Bool {
    switch type {
    case .unpriced, .unconverted, .staleRate, .upgradeCreditUnknown, .refundAmountUnknown,
      .refundExceedsAmount, .malformedEvent, .pendingSale, .renewalWithoutLineItem:
      true
    default: false
    }
  }
}

// MARK: - Changes, facts and commands

extension PageWriter {
  // MARK: Changes

  func changes(_ html: inout HTML) {
    guard let changes = figures.changes else { return }
    let since =
      changes.atMs.map { "on \(PagePeriod.momentTitle($0))" } ?? "when the ledger was empty"
    html.element(
      "p", ["class": "soft"],
      text: "What is known now about months that had ended, compared with what was known \(since)."
        + (hasFilters ? " All apps, products and countries are compared." : "")
        + (figures.request.report.reportingCurrency == nil
          ? ""
          : " Each side uses the exchange rates known at its time, so a new rate is a change too.")
    )
    if changes.rows.isEmpty {
      return html.element("p", text: "No month that had ended has changed.")
    }
    var table = PageTable(
      caption: "Net of ended months, then and now", id: "changed-months",
      columns: [
        .text("Month"), .text("Country"),
        .currency(of: Set(changes.rows.compactMap(\.currency)).count), .wide("Units then"),
        .wide("Units now"), .wide("Net then"), .number("Net now"), .number("Change"),
        .wide("Sales"),
      ], showsCaption: false)
    for row in changes.rows.prefix(Self.changesMax) {
      func amount(_ micros: Int128) -> PageTable.Cell {
        row.currency.map { .amount(micros, $0) } ?? .empty
      }
      table.rows.append([
        .period(row.month), .named(row.countryCode, CountryNames.name(row.countryCode)),
        .text(row.currency?.description ?? "–"), .count(row.unitsBefore), .count(row.unitsAfter),
        amount(row.netBefore), amount(row.netAfter),
        row.currency.map { .signedAmount(row.netAfter - row.netBefore, $0) } ?? .empty,
        .count(Int128(row.saleCount)),
      ])
    }
    table.write(to: &html)
    let more = changes.rows.count - Self.changesMax
    if more > 0 {
      html.element("p", ["class": "soft"], text: "\(more) more rows are in ledgerctl diff.")
    }
  }

  /// Further rows are left to the output of `diff`.
  private static let changesMax = 200

  // MARK: Facts

  func facts(_ html: inout HTML) {
    let until =
      figures.lastEventAtMs.map { ", as recorded until \(PagePeriod.momentTitle($0))" } ?? ""
    html.element(
      "p", ["class": "soft"],
      text:
        "Everything on this page comes from the purchases, prices and exchange rates in the ledger "
        + "\(figures.basis.ledger.origin)\(until).")
    details("For auditors", &html) { html in
      html.element("dl", ["class": "facts"]) { html in
        for (name, value) in factList {
          html.element("dt", text: name)
          html.element("dd", text: value)
        }
      }
      html.element("h3", text: "The same figures again")
      html.element(
        "p", ["class": "soft"],
        text:
          "Each command gives the figures of one section; --format csv and -o FILE write them to "
          + "a file. The same events give the same page, byte for byte.")
      html.element("dl", ["class": "commands"]) { html in
        for (name, command) in PageCommands(figures).all {
          html.element("dt", text: name)
          html.element("dd") { $0.element("code", text: command) }
        }
      }
    }
  }

  private var factList: [(String, String)] {
    let report = figures.request.report
    let summary = figures.places.summary
    var facts: [(String, String)] = [
      ("Ledger", "\(figures.basis.ledger.origin), \(figures.basis.ledger.id)"),
      ("Events", "the first \(figures.head.size)"),
    ]
    if let atMs = figures.lastEventAtMs {
      facts.append(("Last event recorded at", Timestamp.text(ms: atMs)))
    }
    facts += [
      ("Root of these events", Base64.text(figures.head.root.bytes)),
      ("Days", "\(period.first) to \(period.last), in \(report.zone.name)"),
      ("Environment", report.environments?.joined(separator: ", ") ?? "all"),
      (
        "Returns and reversals",
        report.refunds == .eventDate ? "on their own dates" : "on the date of the sale"
      ),
    ]
    if let currency = report.reportingCurrency {
      let age = report.ratesAgeMaxDays.map { ", at rates of the day or at most \($0) days before" }
      facts.append(("Converted to", "\(currency)\(age ?? "")"))
      facts.append(("Sources of rates", rateSources(summary.rates)))
      if let oldest = summary.rates.oldest {
        facts.append(
          (
            "Oldest rate",
            "\(oldest.base) to \(oldest.quote) of \(CivilDate(dayNumber: oldest.day))"
          ))
      }
    }
    facts.append(
      (
        "Trusted besides Apple",
        figures.basis.foreignTrust.isEmpty
          ? "nothing" : figures.basis.foreignTrust.joined(separator: ", ")
      ))
    facts += figures.basis.versions.map { ($0.name, $0.version) }
    return facts + [("Note of all reports", reportNote)]
  }

  private func rateSources(_ rates: UsedRates) -> String {
    if rates.sources.isEmpty { return "none were needed" }
    return rates.sources.map { source in
      // Limited, because a file may be declared again every day.
      let shown = source.positions.suffix(8).map { "\($0)" }.joined(separator: ", ")
      let more = source.positions.count > 8 ? " and \(source.positions.count - 8) earlier" : ""
      return "\(source.name) (declared at \(shown)\(more))"
    }.joined(separator: ", ")
  }
}
