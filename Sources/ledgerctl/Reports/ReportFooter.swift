// The lines below a report's rows in a table, or on standard error if the report goes to a file.
import Base
import Projections
import Revenue

/// Totals, exceptions, rates and the note of rule R11, a line each.
struct ReportFooter {
  private let kind: ReportKind
  private let summary: ReportSummary

  init(_ kind: ReportKind, _ summary: ReportSummary) {
    self.kind = kind
    self.summary = summary
  }

  /// The lines below a table; empty for reports without figures.
  var tableLines: [String] {
    if kind.hasMoment { return momentLines + [reportNote] }
    if kind == .users { return notShownLines + roundingLines + rateLines }
    guard kind == .revenue || kind == .journal else { return notShownLines + roundingLines }
    return notShownLines + summary.totals.map(Self.text) + figureLines + [reportNote]
  }

  /// The lines about a report in a file, whose format may contain only rows.
  /// - Parameter asOf: the value of `--as-of`; nil is now.
  func fileLines(_ written: WrittenReport, _ request: ReportRequest, asOf: String?, path: String)
    -> [String]
  {
    let place = asOf.map { ", as of \($0)" } ?? ""
    let first =
      "Wrote \(counted(summary.rowCount, "row")) of \(kind.rawValue) to \(path), from the first "
      + "\(counted(written.size, "event"))\(place)"
    // Exceptions only belong to reports that are filtered by day.
    let figures = kind.hasDays ? figureLines : roundingLines + rateLines
    let isFigure = kind == .revenue || kind == .journal || kind.hasMoment
    return [first, "Filters: \(request.words)"] + momentLines + notShownLines
      + summary.totals.map(Self.text)
      + figures
      + (isFigure ? [reportNote] : [])
  }

  private var notShownLines: [String] {
    if summary.notShownCount == 0 { return [] }
    let totals = summary.totals.isEmpty ? "" : "; totals are those of all rows"
    return ["Not shown: \(counted(summary.notShownCount, "more row"))\(totals)"]
  }

  /// What `--amounts minor` does to the figures.
  private static let roundingNote =
    "Rounded to minor units: totals half to even, rows by largest remainder, so that they add up."

  private var momentLines: [String] {
    summary.momentMs.map { ["As they stood at \(Timestamp.text(ms: $0))"] } ?? []
  }

  private var figureLines: [String] {
    if summary.exceptions.isEmpty { return roundingLines + rateLines }
    let counts = summary.exceptions.map { "\($0.count) \($0.type)" }.joined(separator: ", ")
    return roundingLines + ["Exceptions: \(counts)"] + rateLines
  }

  private var roundingLines: [String] { summary.isRounded ? [Self.roundingNote] : [] }

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
  /// The warning about lines that keep their own currencies, since a CSV shows them as rows like any others; nil if
  /// all are converted.
  func unconvertedText(_ request: ReportRequest) -> String? {
    func count(_ type: String) -> Int { exceptions.first { $0.type == type }?.count ?? 0 }
    let (unconverted, stale) = (count("unconverted"), count("stale_rate"))
    guard let currency = request.reportingCurrency, unconverted > 0 else { return nil }
    let isOne = unconverted == 1
    var text = "--in \(currency): \(counted(unconverted, "line")) "
    text += isOne ? "keeps its own currency: no rate " : "keep their own currencies: no rate "
    if stale > 0, let days = request.ratesAgeMaxDays {
      text += "of the day or of the \(counted(days, "day")) before "
    }
    text += isOne ? "converts it" : "converts them"
    return text + " (exception unconverted\(stale > 0 ? ", stale_rate" : ""))"
  }
}

extension ReportSummary {
  /// The warnings about filters that name what the ledger does not know, a line each.
  var unknownTexts: [String] {
    unknownNames.map { name in
      switch name {
      case .app(let text): "--app \(ShownArgument.text(text)): no data for this app"
      case .product(let text): "--product \(ShownArgument.text(text)): no data for this product"
      case .country(let text): "--country \(ShownArgument.text(text)): no data for this country"
      case .user: "--user: no data for this user"
      }
    }
  }
}

extension ReportSummary {
  /// The warning about sales whose replies are not known to come from a host of Apple's; nil if all are.
  var trustText: String? {
    if trust.allSatisfy({ $0.word == "app_store" }) { return nil }
    let counts = trust.map { "\($0.count) \($0.word)" }.joined(separator: ", ")
    return "sales by the source of their reply: \(counts) (--by trust, docs/revenue.md)"
  }
}

extension ReportRequest {
  /// The filters as options of `export`, defaults included. The user is not named: these words go to standard error.
  fileprivate var words: String {
    var shown = options.filter { option, value in
      switch option {
      case .period: dimensions.contains(.period)
      case .timezone: !kind.hasMoment || isByMonth
      default: value != .null && value != .boolean(false)
      }
    }
    // The days come before what counts on them.
    if let refunds = shown.firstIndex(where: { $0.option == .refunds }) {
      let moved = shown.remove(at: refunds)
      shown.insert(
        moved, at: shown.firstIndex { $0.option == .environment } ?? shown.endIndex)
    }
    return shown.map { option, value in
      let text = option == .user ? "…" : option.text(of: value)
      return "--\(option.name)" + (text.isEmpty ? "" : " " + text)
    }.joined(separator: " ")
  }
}
