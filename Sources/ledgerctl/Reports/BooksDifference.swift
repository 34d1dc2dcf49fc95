// What `diff` found between two sizes of the log, as text and as JSON.
import Base
import Ledger
import Projections
import ReportDocuments
import Revenue

/// The differences between two sizes of the log, or between its head and what a plan makes of it.
struct BooksDifference {
  private struct Side {
    let size: Int
    let root: String
  }

  /// Nil for a plan, whose events are in no log.
  private let sides: (before: Side, after: Side)?
  private let eventCounts: [(type: String, count: Int)]
  private let lines: ComparedLines
  private let revenue: RevenueDifference
  /// Whether the environment is one of the App Store's or named by an event.
  private let isOfKnownEnvironment: Bool
  let journal: JournalDifference
  /// The month of the last event before; those before it have ended. Nil if there is none.
  private let lastMonth: String?

  init(
    _ ledger: OpenLedger, _ range: Range<Position>, _ lines: ComparedLines, _ context: Context
  ) throws {
    let projector = try ledger.projector()
    let older = try projector.books(at: range.lowerBound)
    let newer = try projector.books(at: range.upperBound, from: older)
    let heads = (try Report.head(of: older), try Report.head(of: newer))
    try self.init(
      from: older, to: newer, lines, context,
      sides: (
        Side(size: heads.0.size, root: heads.0.root.base64),
        Side(size: heads.1.size, root: heads.1.root.base64)
      ), eventCounts: Self.counts(ledger.reader, range, context))
  }

  /// What would change if these declarations were appended.
  init(
    adding declarations: [EventDraft], to ledger: OpenLedger, _ lines: ComparedLines,
    _ context: Context
  ) throws {
    let (before, after) = try ledger.projector().books(adding: declarations)
    try self.init(from: before, to: after, lines, context, sides: nil, eventCounts: [])
  }

  private init(
    from older: Database, to newer: Database, _ lines: ComparedLines, _ context: Context,
    sides: (before: Side, after: Side)?, eventCounts: [(type: String, count: Int)]
  ) throws {
    (self.lines, self.sides, self.eventCounts) = (lines, sides, eventCounts)
    isOfKnownEnvironment = try Report.knows(environment: lines.environment, newer)
    lastMonth = try Report.lastEventAtMs(of: older).map {
      PagePeriod(monthAtMs: $0, in: lines.zone).monthText
    }
    let isCancelled = { context.interruption.isRequested }
    // Its sales are those whose lines are listed.
    revenue = try RevenueDifference(
      from: older, to: newer, lines, saleLimit: 0, isCancelled: isCancelled)
    journal = try JournalDifference(from: older, to: newer, lines, isCancelled: isCancelled)
  }

  /// What a reader of the figures must know, in any format.
  var warnings: [String] {
    var warnings: [String] = []
    if !isOfKnownEnvironment {
      warnings.append(
        "--environment \(ShownArgument.text(lines.environment)): no data for this environment")
    }
    let counts = (revenue.ratesBefore.unconvertedCount, revenue.ratesAfter.unconvertedCount)
    if let currency = lines.currency, counts != (0, 0) {
      warnings.append(
        "--in \(currency): lines without a rate keep their own currency: \(counts.0) before, "
          + "\(counts.1) after")
    }
    return warnings
  }

  private static func counts(
    _ reader: LogReader, _ range: Range<Position>, _ context: Context
  ) throws -> [(type: String, count: Int)] {
    if range.isEmpty { return [] }
    var counts: [String: Int] = [:]
    try reader.read(from: range.lowerBound, to: range.upperBound) { chunk in
      try context.interruption.check()
      try chunk.forEachEvent { event in
        counts[String(decoding: event.type, as: UTF8.self), default: 0] += 1
      }
      return true
    }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: Text

  /// - Parameter amounts: how amounts are shown; whether something differs depends on all digits.
  func write(to sheet: inout TextSections, _ amounts: ReportAmounts) throws {
    if let (before, after) = sides {
      try sheet.line("since  \(counted(before.size, "event")), root \(before.root)")
      try sheet.line("until  \(counted(after.size, "event")), root \(after.root)")
      if !lines.words.isEmpty { try sheet.line("lines  \(visible(lines.words))") }
      if before.size == after.size { return try sheet.line("There are no events in between.") }
      try sheet.table(
        "Events, positions \(before.size) to \(after.size - 1)",
        TextTable(
          ["type", .number("events")], eventCounts.map { ["type": $0.type, "events": $0.count] }))
    }
    if revenue.isEmpty, journal.entries.isEmpty {
      if sides != nil { try sheet.line() }
      return try sheet.line(
        isOfKnownEnvironment
          ? sides == nil ? "Revenue would not change." : "Revenue did not change."
          : "There is no revenue for this environment.")
    }
    try sheet.table("Revenue", revenueTable(amounts))
    try sheet.table("Journal lines", lineTable(amounts))
    try sheet.line()
    for line in rateLines { try sheet.line(visible(line)) }
    if sides == nil { try sheet.line(endedText) }
    try sheet.line(reportNote)
  }

  /// The months that had ended by the last event before, and differ.
  private var endedMonths: [String] {
    guard let lastMonth else { return [] }
    return Set(revenue.rows.map(\.place.month)).filter { $0 < lastMonth }.sorted()
  }

  private var endedText: String {
    let months = endedMonths
    return months.isEmpty
      ? "No month that has ended would change."
      : "\(counted(months.count, "month")) that \(months.count == 1 ? "has" : "have") ended would "
        + "change: \(months.joined(separator: ", "))"
  }

  /// The rates of both sides, and how much of the difference is theirs alone; empty if nothing is converted.
  private var rateLines: [String] {
    if lines.currency == nil { return [] }
    func text(_ rates: ComparedRates) -> String {
      let sources = rates.used.sources.map(ReportFooter.text)
      return sources.isEmpty ? "none" : sources.joined(separator: ", ")
    }
    let count = otherRatesCount
    return [
      "Rates before: \(text(revenue.ratesBefore)); after: \(text(revenue.ratesAfter))",
      "\(counted(count, "line")) \(count == 1 ? "differs" : "differ") by other rates alone",
    ]
  }

  private var otherRatesCount: Int { journal.entries.lazy.filter(\.hasOnlyOtherRates).count }

  private func revenueTable(_ amounts: ReportAmounts) -> TextTable {
    revenue.table(
      [
        "period", "country_code", "currency", .number("units before"), .number("units after"),
        .number("net before"), .number("net after"), .number("change"), .number("sales"),
      ], amounts)
  }

  private func lineTable(_ amounts: ReportAmounts) -> TextTable {
    var table = TextTable([
      "change", "date", "line", "sale_key", "product_id", "before", "after", "events",
    ])
    for entry in journal.entries {
      guard let line = entry.after ?? entry.before else { continue }
      table.append([
        entry.change.rawValue, timeText(line.dateMs), line.type, line.saleKey, line.productID,
        entry.before.map { text($0, amounts) } ?? "", entry.after.map { text($0, amounts) } ?? "",
        entry.events.map { "\($0)" }.joined(separator: " "),
      ])
    }
    return table
  }

  /// `DE 9.98 EUR`.
  private func text(_ line: JournalDifference.Line, _ amounts: ReportAmounts) -> String {
    let amount = line.amountMicros.map {
      Amount.text(micros: amounts.shown(Int128($0), line.currency), currency: line.currency)
    }
    let price = amount.map { "\($0) \(line.currency?.description ?? "")" } ?? "unpriced"
    let isFree = line.currency == nil && line.amountMicros == 0
    return "\(line.countryCode) \(isFree ? line.kind : price)"
  }

  // MARK: JSON

  var record: Record {
    var record: Record = [:]
    if let (before, after) = sides {
      record = [
        "since": ["events": before.size, "root": before.root] as Record,
        "until": ["events": after.size, "root": after.root] as Record,
        "filters": lines.record,
        "events": eventCounts.map { ["type": $0.type, "count": $0.count] as Record },
      ]
    } else {
      record = ["filters": lines.record, "ended_months": endedMonths]
    }
    record =
      record + [
        "revenue": revenue.rows.map(self.record),
        "lines": journal.entries.map { entry in
          [
            "change": entry.change.rawValue, "before": entry.before.map(self.record),
            "after": entry.after.map(self.record), "position": entry.position,
            "events": entry.events,
          ] as Record
        },
      ]
    if lines.currency != nil {
      record =
        record + [
          "rates_before": self.record(revenue.ratesBefore),
          "rates_after": self.record(revenue.ratesAfter),
          "lines_with_other_rates_alone": otherRatesCount,
        ]
    }
    return record + ["note": reportNote]
  }

  private func record(_ rates: ComparedRates) -> Record {
    [
      "sources": rates.used.sources.map {
        ["name": $0.name, "positions": $0.positions.map { Int($0) }] as Record
      },
      "unconverted_lines": rates.unconvertedCount,
    ]
  }

  private func record(_ row: RevenueDifference.Row) -> Record {
    let (place, old, new) = (row.place, row.before, row.after)
    let change = place.amountText(new.netMicros - old.netMicros)
    return [
      "period": place.month, "country_code": place.countryCode, "currency": place.currency,
    ] + place.record(old, new) + ["net_change": change, "sales": row.saleCount]
  }

  private func record(_ line: JournalDifference.Line) -> Record {
    let amount = line.amountMicros.map { Amount.text(micros: Int128($0), currency: line.currency) }
    return [
      "date": timeText(line.dateMs), "line": line.type, "bundle_id": line.bundleID,
      "sale_key": line.saleKey, "product_id": line.productID, "kind": line.kind,
      "country_code": line.countryCode, "quantity": line.quantity,
      "currency": line.currency?.description, "amount": amount,
    ]
  }
}
