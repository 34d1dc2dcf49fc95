// The lines below a report's rows in a table, and what is said about a report on standard error.
import Base
import Projections
import Revenue

/// Totals, exceptions, rates and the note of rule R11, a line each.
struct ReportFooter {
  private let kind: ReportKind
  private let note: String
  private let summary: ReportSummary
  private let tableVersion: Int

  init(_ request: ReportRequest, _ summary: ReportSummary) {
    (kind, note) = (request.kind, request.note)
    tableVersion = request.layout.tableVersion
    self.summary = summary
  }

  /// The lines below a table; empty for reports without figures.
  var tableLines: [String] {
    if kind.hasMoment { return momentLines + [reportNote] }
    if kind.isOfSettlement { return exceptionLines + [note] }
    if kind == .users { return notShownLines + roundingLines + rateLines }
    guard kind == .revenue || kind == .journal else { return notShownLines + roundingLines }
    return notShownLines + totalLines + figureLines + [reportNote]
  }

  /// More totals would be longer than many reports.
  private static let totalCountMax = 5

  private var totalLines: [String] {
    if summary.totals.count <= Self.totalCountMax || tableVersion < 3 {
      return summary.totals.map(Self.text)
    }
    let currencies = summary.totals.count { $0.currency != nil }
    return [
      "Totals: in \(counted(currencies, "currency", "currencies")); --total shows them, --in CURRENCY makes one"
    ]
  }

  /// The line about a report in a file.
  /// - Parameter size: how many events the report rests on.
  func fileLine(size: Int, path: String) -> String {
    var parts = [
      "Wrote \(grouped(summary.rowCount)) \(summary.rowCount == 1 ? "row" : "rows") of \(kind.rawValue) to \(path)"
    ]
    let currencies = summary.totals.count { $0.currency != nil }
    if currencies > 1 { parts.append(counted(currencies, "currency", "currencies")) }
    return (parts + [Self.stand(size: size)]).joined(separator: ", ")
  }

  /// The newest event behind a report of so many events: the position that `--as-of` takes.
  static func stand(size: Int) -> String {
    size > 0 ? "as of event \(size - 1)" : "of an empty ledger"
  }

  private var notShownLines: [String] {
    if summary.notShownCount == 0 { return [] }
    let totals = summary.totals.isEmpty ? "" : "; totals are those of all rows"
    return ["Not shown: \(counted(summary.notShownCount, "more row"))\(totals)"]
  }

  private var momentLines: [String] {
    summary.momentMs.map { ["As they stood at \(Timestamp.text(ms: $0))"] } ?? []
  }

  private var figureLines: [String] {
    roundingLines + exceptionLines + rateLines
  }

  private var exceptionLines: [String] {
    if summary.exceptions.isEmpty { return [] }
    let counts = summary.exceptions.map { "\($0.count) \($0.type)" }.joined(separator: ", ")
    return ["Exceptions: \(counts)"]
  }

  private var roundingLines: [String] {
    guard let rounding = summary.rounding, summary.isRounded || tableVersion < 3 else { return [] }
    return [rounding.note]
  }

  private var rateLines: [String] {
    var lines: [String] = []
    if !summary.rates.sources.isEmpty {
      lines.append("Rates: \(summary.rates.sources.map(Self.text).joined(separator: ", "))")
    }
    if let oldest = summary.rates.oldest {
      lines.append(
        "Oldest rate: \(oldest.base) to \(oldest.quote) of \(CivilDate(dayNumber: oldest.day))")
    }
    return lines
  }

  /// The name of a source of rates, with the positions of its declarations.
  static func text(_ source: RateSource) -> String {
    // Limited: a file may be declared again every day.
    let shown = source.positions.suffix(8).map(String.init).joined(separator: ", ")
    let more = source.positions.count > 8 ? " and \(source.positions.count - 8) earlier" : ""
    let noun = source.positions.count == 1 ? "position" : "positions"
    return "\(source.name) (\(noun) \(shown)\(more))"
  }

  private static func text(_ total: ReportTotal) -> String {
    let sums = total.sums.compactMap { sum -> String? in
      let isAmount = sum.column.content == .amount
      if isAmount && total.currency == nil || !isAmount && sum.value == 0 { return nil }
      let value =
        isAmount
        ? Amount.text(micros: sum.value, currency: total.currency) : String(sum.value)
      return "\(sum.column.name) \(value)"
    }
    return "Total \(total.currency?.description ?? "without currency"): "
      + sums.joined(separator: ", ")
  }
}

extension ReportSummary {
  /// What a reader must act on: lines without a rate or a price, with the command that lists them.
  /// - Parameter isTable: whether the report's own exceptions are shown below it.
  func warnings(_ request: ReportRequest, isTable: Bool = false) -> [String] {
    func count(_ type: String) -> Int { exceptions.first { $0.type == type }?.count ?? 0 }
    guard request.kind == .revenue || request.kind == .journal else { return [] }
    var warnings: [String] = []
    if let currency = request.reportingCurrency, count("unconverted") > 0 {
      let (unconverted, stale) = (count("unconverted"), count("stale_rate"))
      var text =
        "\(counted(unconverted, "line")) \(unconverted == 1 ? "has" : "have") no rate to \(currency)"
      if stale > 0, let days = request.ratesAgeMaxDays {
        text += " of the day or of the \(counted(days, "day")) before"
      }
      warnings.append(text + ", and \(unconverted == 1 ? "keeps its" : "keep their") own currency")
    }
    let unpriced = count("unpriced")
    if unpriced > 0, !isTable {
      warnings.append("\(counted(unpriced, "sale")) \(unpriced == 1 ? "has" : "have") no price")
    }
    return warnings.map { $0 + " ('ledgerctl export exceptions')" }
  }

  /// Whether rows are sorted by amounts in several currencies, which are not compared.
  func sortsSeveralCurrencies(_ request: ReportRequest) -> Bool {
    let column = request.columns.first { $0.name == request.sort?.column }
    return column?.content == .amount && totals.count { $0.currency != nil } > 1
  }

  /// Codes that people use instead of those of ISO 3166-1.
  private static let countryCodes = ["UK": "GB", "EL": "GR"]

  /// The warnings about filters that name what the ledger does not know, a line each.
  var unknownTexts: [String] {
    unknownNames.map { name in
      switch name {
      case .app(let text): "--app \(ShownArgument.text(text)): no data for this app"
      case .product(let text, let similar):
        "--product \(ShownArgument.text(text)): no data for this product"
          + (similar.map { "; did you mean \($0)?" } ?? "")
      case .country(let text):
        "--country \(ShownArgument.text(text)): no data for this country"
          + (Self.countryCodes[text].map { "; did you mean \($0)?" } ?? "")
      case .payment(let month): "--paid-on \(month): no payment of this month"
      case .user: "--user: no data for this user"
      }
    }
  }

  /// The note about sales whose replies are not known to come from a host of Apple's; nil if all are, and in a ledger
  /// whose sales all have one source.
  var trustText: String? {
    if isOfOneSource { return nil }
    let counts = trust.compactMap { word, count -> String? in
      guard let replies = Self.replies[word] else { return nil }
      return "\(counted(count, "sale")) \(count == 1 ? "rests" : "rest") on \(replies)"
    }
    if counts.isEmpty { return nil }
    return counts.joined(separator: ", ") + ", not on Apple's signature (--by trust)"
  }

  private static let replies = [
    "imported": "imported replies", "configured": "replies of configured hosts",
    "not_recorded": "replies of unrecorded hosts",
  ]
}
