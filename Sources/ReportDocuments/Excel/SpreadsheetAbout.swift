// The second sheet of an Excel file: what the rows are, and what they are based on.
package import Base
import Ledger
package import Projections
package import Revenue

/// What a spreadsheet states about its rows in addition to a report's summary.
package struct SpreadsheetAbout: Sendable {
  /// A name and the text next to it.
  package struct Fact: Sendable {
    package let name: String
    package let text: String

    package init(_ name: String, _ text: String) { (self.name, self.text) = (name, text) }
  }

  /// The name of the first sheet: at most 31 characters, none of `[]:*?/\`.
  package var sheetName: String
  package var title: String
  /// In the order in which they are shown.
  package var facts: [Fact]
  /// The zone of the sheet's times.
  package var zone: TimeZoneTable
  /// The creation time in the file, in epoch milliseconds: that of the last event, because a report reads no clock.
  package var createdAtMs: Int64
  /// Whether each amount's exact text stands next to it.
  package var hasExactTexts = false
  /// The version of the file's form.
  package var form = SpreadsheetLibrary.form
  /// The columns whose texts are days or months.
  package var periods: [String: Period.Granularity] = [:]

  /// Whether there is a sheet of settlement.
  package var hasSettlement = false

  /// The last remark on the sheet; nil for none.
  package var note: String? = reportNote

  package init(
    sheetName: String, title: String, facts: [Fact], zone: TimeZoneTable, createdAtMs: Int64
  ) {
    self.sheetName = sheetName
    self.title = title
    self.facts = facts
    self.zone = zone
    self.createdAtMs = createdAtMs
  }
}

extension SpreadsheetAbout {
  /// The content of the sheet for a report.
  /// - Parameter lastEventAtMs: nil for a ledger without events.
  package init(_ heading: ReportHeading, lastEventAtMs: Int64?) {
    let request = heading.request
    var facts = [Fact("Report", request.kind.rawValue)]
    facts += Self.facts(heading.ledger, heading.size, heading.root)
    facts += [
      Fact("Last event", lastEventAtMs.map { Timestamp.text(ms: $0) } ?? "none"),
      Fact("Times on the first sheet are in", request.zone.name),
    ]
    facts += request.options.map { Fact("Filter \($0.rawValue)", Self.text($1)) }
    self.init(
      sheetName: request.kind.rawValue, title: "Receipt Ledger: \(request.kind.rawValue)",
      facts: facts, zone: request.zone, createdAtMs: lastEventAtMs ?? 0)
    hasExactTexts = Self.hasExactTexts(request)
    form = request.layout.spreadsheetForm
    note = request.note
    hasSettlement = request.kind == .reconcile
    if request.kind == .revenue {
      periods[ReportDimension.period.column] = request.granularity
    }
    if request.kind == .subscriptions, request.isByMonth {
      periods["month"] = .month
    }
  }

  /// Whether a report's amounts have their exact texts beside them.
  package static func hasExactTexts(_ request: ReportRequest) -> Bool {
    if request.layout.spreadsheetForm < 3 { return true }
    return request.amounts == .exact && ReportOption.amounts.reports.contains(request.kind)
  }

  private static func facts(
    _ ledger: LedgerIdentity, _ size: Int, _ root: SHA256Digest
  ) -> [Fact] {
    [
      Fact("Ledger", ledger.origin), Fact("Ledger id", "\(ledger.id)"),
      Fact("Events", "the first \(size)"),
      Fact("As of position", size > 0 ? "\(size - 1)" : "none"),
      Fact("Root", String(decoding: Base64.encode(root.bytes), as: UTF8.self)),
    ]
  }

  private static func text(_ value: JSONValue) -> String {
    switch value {
    case .null: "none"
    case .boolean(let value): value ? "yes" : "no"
    case .array(let values): values.map { text($0) }.joined(separator: ", ")
    case .string(let text), .number(let text): text
    case .object: ""
    }
  }
}

/// Writes the second sheet.
struct AboutSheet {
  private let workbook: Workbook
  private var row = 0

  init(_ workbook: Workbook) {
    self.workbook = workbook
    workbook.setColumn(.about, 0, width: 34)
    workbook.setColumn(.about, 1, width: 48)
    for column in 2...24 { workbook.setColumn(.about, column, width: 18) }
  }

  mutating func write(_ about: SpreadsheetAbout, _ summary: ReportSummary) throws {
    try line([about.title], .title)
    for fact in about.facts { try write(fact.name, fact.text) }
    try write("Rows", "\(summary.rowCount)")
    if about.form >= 3, summary.isRounded, let rounding = summary.rounding {
      try write("Amounts", rounding.note)
    }
    if let momentMs = summary.momentMs {
      try write("As they stood at", Timestamp.text(ms: momentMs))
    }
    if workbook.cutTextCount > 0 {
      try write("Texts cut at 32,767 characters", "\(workbook.cutTextCount)")
    }
    try write(summary.rates)
    if !summary.unknownEnvironments.isEmpty {
      try write("Environments not known", summary.unknownEnvironments.joined(separator: ", "))
    }
    try write(summary.totals, hasExactTexts: about.hasExactTexts)
    try counts("Exceptions", summary.exceptions.map { ($0.type, $0.count) })
    try counts("Sales by the source of their reply", summary.trust.map { ($0.word, $0.count) })
  }

  /// Writes a remark at the end, below an empty row.
  mutating func note(_ text: String) throws {
    row += 1
    try line([text], nil)
  }

  private mutating func write(_ name: String, _ text: String) throws {
    try cell(name, 0, .name)
    try cell(text, 1, nil)
    row += 1
  }

  private mutating func line(_ texts: [String], _ look: Workbook.CellFormat?) throws {
    for (column, text) in texts.enumerated() { try cell(text, column, look) }
    row += 1
  }

  private func cell(_ text: String, _ column: Int, _ look: Workbook.CellFormat?) throws {
    try Array(text.utf8).withUnsafeBytes {
      try workbook.write($0, row, column, look, on: .about)
    }
  }

  private mutating func write(_ rates: UsedRates) throws {
    for source in rates.sources {
      // Limited, because a file may be declared again every day.
      let shown = source.positions.suffix(8).map { "\($0)" }.joined(separator: ", ")
      let more = source.positions.count > 8 ? " and \(source.positions.count - 8) earlier" : ""
      try write("Rates", "\(source.name), declared at \(shown)\(more)")
    }
    if let oldest = rates.oldest {
      let day = CivilDate(dayNumber: oldest.day)
      try write("Oldest rate", "\(oldest.base) to \(oldest.quote) of \(day)")
    }
  }

  /// A row for each currency.
  private mutating func write(_ totals: [ReportTotal], hasExactTexts: Bool) throws {
    guard let first = totals.first else { return }
    row += 1
    var titles = ["Totals by currency"]
    for sum in first.sums {
      titles.append(sum.column.name)
      if sum.column.content == .amount, hasExactTexts {
        titles.append(sum.column.name + exactSuffix)
      }
    }
    for (column, title) in titles.enumerated() {
      try cell(title, column, column == 0 ? .heading : .numberHeading)
    }
    row += 1
    for total in totals {
      try cell(total.currency?.description ?? "without currency", 0, nil)
      var column = 1
      for sum in total.sums {
        let isAmount = sum.column.content == .amount
        if !isAmount {
          try workbook.write(Double(sum.value), row, column, on: .about)
        } else if let currency = total.currency {
          let text = Amount.text(micros: sum.value, currency: currency)
          if hasExactTexts || AmountNumber.holds(sum.value) {
            let number = AmountNumber(sum.value, currency)
            try workbook.write(number.value, decimals: number.decimals, row, column, on: .about)
            if hasExactTexts { try cell(text, column + 1, .right) }
          } else {
            try cell(text, column, .right)
          }
        }
        column += isAmount && hasExactTexts ? 2 : 1
      }
      row += 1
    }
  }

  private mutating func counts(_ title: String, _ counts: [(String, Int)]) throws {
    guard !counts.isEmpty else { return }
    row += 1
    try line([title], .heading)
    for (name, count) in counts {
      try cell(name, 0, nil)
      try workbook.write(Double(count), row, 1, on: .about)
      row += 1
    }
  }
}
