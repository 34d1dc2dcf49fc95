// The commands that give a page's figures again.
import Base
import Projections
import Revenue

/// Command lines of `ledgerctl export` with the filters and the state of a page.
struct PageCommands {
  private let figures: PageFigures

  init(_ figures: PageFigures) { self.figures = figures }

  /// The sections of the page, and the commands for them.
  var all: [(name: String, command: String)] {
    let period = figures.request.period
    let step = period.granularity.rawValue
    var commands = [
      ("Totals and by \(step)", revenue("period", step, period)),
      ("By country", revenue("country", nil, period)),
      ("By product", revenue("product", nil, period)),
      ("By source of the price", revenue("basis", nil, period)),
      ("By source of the evidence", revenue("trust", nil, period)),
      ("By month", revenue("period", "month", period.year)),
      (
        "\(period.before.title.prefix(1).uppercased())\(period.before.title.dropFirst())",
        revenue("period", period.isMonth ? "month" : step, period.before)
      ),
      ("Returns and reversals, line by line", line(["journal"] + days(period) + filters)),
      ("Exceptions", line(["exceptions"] + days(period) + filters)),
    ]
    if let momentMs = figures.subscriptions.momentMs {
      let moment = ["--at", Timestamp.text(ms: momentMs)] + environment
      commands.append(("Subscriptions", line(["subscriptions"] + moment)))
      commands.append(
        (
          "Subscriptions by month",
          line(["subscriptions", "--by", "month"] + zone + moment)
        ))
    }
    return commands
  }

  private func revenue(_ by: String, _ granularity: String?, _ period: PagePeriod) -> String {
    let length = granularity.map { ["--period", $0] } ?? []
    return line(["revenue", "--by", by] + length + days(period) + filters)
  }

  private func days(_ period: PagePeriod) -> [String] {
    ["--from", "\(period.first)", "--to", "\(period.last)"]
  }

  private var zone: [String] {
    let name = figures.request.report.zone.name
    return name == "UTC" ? [] : ["--timezone", name]
  }

  private var environment: [String] {
    let names = figures.request.report.environments
    return names == ["Production"] ? [] : ["--environment", names?.joined(separator: ",") ?? "all"]
  }

  /// What differs from the defaults.
  private var filters: [String] {
    let report = figures.request.report
    var words = zone + environment
    if report.refunds == .saleDate { words += ["--refunds", report.refunds.rawValue] }
    if let currency = report.reportingCurrency {
      words += ["--in", "\(currency)"]
      if let days = report.ratesAgeMaxDays, days != ReportRequest.ratesAgeMaxDaysStandard {
        words += ["--rates-max-age", "\(days)"]
      }
    }
    return words
  }

  private func line(_ words: [String]) -> String {
    // An empty state has no last position.
    let state = figures.head.size > 0 ? ["--as-of", "\(figures.head.size - 1)"] : []
    return (["ledgerctl", "export"] + words + state).map(Self.quoted).joined(separator: " ")
  }

  /// A word for a shell.
  private static func quoted(_ word: String) -> String {
    let isPlain = word.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
        || "-_+/:.,=".utf8.contains(byte)
    }
    if isPlain, !word.isEmpty { return word }
    return "'"
      + word.split(separator: "'", omittingEmptySubsequences: false)
      .joined(separator: "'\\''") + "'"
  }
}
