// The days of a page, the previous period, the steps of its chart, and the commands for its figures.
package import Base
import Projections
package import Revenue

/// The days of a page, both ends included.
package struct PagePeriod: Equatable, Sendable {
  package let first: CivilDate
  package let last: CivilDate

  /// The most days of a page: a century.
  package static let daysMax = 36_525

  /// Days from one to another; nil if they are in the wrong order or too many.
  package init?(from first: CivilDate, to last: CivilDate) {
    guard first <= last, last.dayNumber - first.dayNumber < Self.daysMax else { return nil }
    (self.first, self.last) = (first, last)
  }

  /// A month.
  /// - Parameter ordinal: months since year 0.
  package init(month ordinal: Int) {
    first = CivilDate(dayNumber: Period.firstDay(ofMonth: ordinal))
    last = CivilDate(dayNumber: Period.firstDay(ofMonth: ordinal + 1) - 1)
  }

  /// Parses a month such as `2026-06`; nil for anything else.
  package init?(parsingMonth text: String) {
    guard text.utf8.count == 7, let day = try? CivilDate(parsing: text + "-01") else { return nil }
    self.init(month: Self.month(of: day))
  }

  /// The month in which an instant falls, in epoch milliseconds.
  package init(monthAtMs epochMs: Int64, in zone: TimeZoneTable) {
    var calendar = PeriodCalendar(.month, in: zone)
    self.init(month: calendar.period(atMs: epochMs).ordinal)
  }

  /// Months since year 0.
  static func month(of day: CivilDate) -> Int { day.year * 12 + day.month - 1 }

  var dayCount: Int { last.dayNumber - first.dayNumber + 1 }
  var firstMonth: Int { Self.month(of: first) }
  var lastMonth: Int { Self.month(of: last) }

  /// How many months it consists of; nil if it does not consist of whole months.
  private var wholeMonths: Int? {
    let isWhole =
      first.day == 1 && last.day == CivilDate.dayCount(year: last.year, month: last.month)
    return isWhole ? lastMonth - firstMonth + 1 : nil
  }

  var isMonth: Bool { wholeMonths == 1 }

  /// The previous period: as many months before it, or as many days if it does not consist of whole months.
  package var before: PagePeriod {
    if let months = wholeMonths {
      let start = Period.firstDay(ofMonth: firstMonth - months)
      return PagePeriod(unchecked: CivilDate(dayNumber: start), first.dayNumber - 1)
    }
    return PagePeriod(
      unchecked: CivilDate(dayNumber: first.dayNumber - dayCount), first.dayNumber - 1)
  }

  private init(unchecked first: CivilDate, _ lastDay: Int) {
    self.first = first
    last = CivilDate(dayNumber: lastDay)
  }

  /// The 13 months that end with it.
  package var year: PagePeriod {
    let start = Period.firstDay(ofMonth: lastMonth - Self.monthsShown + 1)
    return PagePeriod(unchecked: CivilDate(dayNumber: start), last.dayNumber)
  }

  /// A year and the month that it is compared with.
  static let monthsShown = 13

  /// The steps of its chart: at most about a hundred.
  package var granularity: Period.Granularity {
    switch dayCount {
    case ...93: .day
    case ...731: .week
    case ...3660: .month
    default: .year
    }
  }

  /// Its steps, without gaps.
  package var steps: [Period] {
    let granularity = granularity
    let from = Period(granularity, containing: first.dayNumber).ordinal
    let to = Period(granularity, containing: last.dayNumber).ordinal
    return (from...to).map { Period(granularity, ordinal: $0) }
  }

  // MARK: Words

  /// `2026-06`, the form that `init(parsingMonth:)` reads: the month of its first day.
  package var monthText: String { Period(.month, ordinal: firstMonth).description }

  /// `June 2026`, or `14 June 2026 to 3 July 2026`.
  package var title: String {
    if isMonth { return Self.monthTitle(firstMonth) }
    if first == last { return Self.dayTitle(first) }
    return "\(Self.dayTitle(first)) to \(Self.dayTitle(last))"
  }

  /// The title within a sentence: `in June 2026`, `from 14 June 2026 to 3 July 2026`.
  package var phrase: String {
    isMonth ? "in \(title)" : first == last ? "on \(title)" : "from \(title)"
  }

  /// `June 2026`.
  /// - Parameter ordinal: months since year 0.
  package static func monthTitle(_ ordinal: Int) -> String {
    let day = CivilDate(dayNumber: Period.firstDay(ofMonth: ordinal))
    return "\(monthNames[day.month - 1]) \(day.year)"
  }

  static func dayTitle(_ day: CivilDate) -> String {
    "\(day.day) \(monthNames[day.month - 1]) \(day.year)"
  }

  /// `3 July 2026, 14:05 UTC`.
  static func momentTitle(_ epochMs: Int64) -> String {
    let text = Timestamp.text(ms: epochMs)
    guard let day = try? CivilDate(parsing: String(text.prefix(10))) else { return text }
    return "\(dayTitle(day)), \(text.dropFirst(11).prefix(5)) UTC"
  }

  /// The short name of a step on a chart's axis.
  static func axisLabel(_ step: Period) -> String {
    switch step.granularity {
    case .day: return "\(CivilDate(dayNumber: step.ordinal).day)"
    case .week: return "W" + step.description.suffix(2)
    case .month:
      let day = CivilDate(dayNumber: Period.firstDay(ofMonth: step.ordinal))
      let year = String(day.year % 100)
      return "\(monthNames[day.month - 1].prefix(3)) ’\(year.count < 2 ? "0" + year : year)"
    case .year, .quarter, .fiscalMonth: return step.description
    }
  }

  private static let monthNames = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
  ]
}

// MARK: - Commands

/// Command lines of `ledgerctl export` that reproduce a page's figures, with its filters and state.
struct PageCommands {
  private let figures: PageFigures

  init(_ figures: PageFigures) { self.figures = figures }

  /// The sections of the page, and the commands for them.
  var all: [(name: String, command: String)] {
    let period = figures.request.period
    let step = period.granularity.rawValue
    var commands = [
      ("Totals and by \(step)", revenue("period", step, period)),
      ("By app", revenue("app", nil, period)),
      ("By country", revenue("country", nil, period)),
      ("By product", revenue("product", nil, period)),
      ("By source of the price", revenue("basis", nil, period)),
      ("By source of the evidence", revenue("trust", nil, period)),
      ("By month", revenue("period", "month", period.year)),
      (
        "\(period.before.title.prefix(1).uppercased())\(period.before.title.dropFirst())",
        revenue("period", period.isMonth ? "month" : step, period.before)
      ),
      ("Returns and reversals, line by line", line(["journal"] + days(period) + filters + amounts)),
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
    if let month = figures.settlement?.month.name {
      commands += [
        ("Settlement", line(["reconcile", "--month", month])),
        ("Shares", line(["proceeds", "--month", month])),
        ("Payments", line(["payout", "--month", month])),
      ]
    }
    return commands
  }

  private func revenue(_ by: String, _ granularity: String?, _ period: PagePeriod) -> String {
    let length = granularity.map { ["--period", $0] } ?? []
    return line(["revenue", "--by", by] + length + days(period) + filters + amounts)
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

  /// The options that differ from the defaults.
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
    for (option, value) in report.options where Self.refinements.contains(option) {
      words += ["--" + option.name, option.text(of: value)]
    }
    return words
  }

  private static let refinements: Set<ReportOption> = [.app, .product, .country, .kind]

  private var amounts: [String] {
    ["--" + ReportOption.amounts.name, figures.request.report.amounts.rawValue]
  }

  private func line(_ words: [String]) -> String {
    // An empty state has no last position.
    let state = figures.head.size > 0 ? ["--as-of", "\(figures.head.size - 1)"] : []
    return (["ledgerctl", "export"] + words + state).map(Self.quoted).joined(separator: " ")
  }

  /// Quotes a word for a shell.
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
