// Reports as tables for people.
import Projections
import Time

/// Collects a report's rows and writes them aligned, with totals, exceptions and rule R11's words below.
final class TableReportWriter: ReportWriter {
  private let kind: ReportKind
  private let output: Output
  private let context: Context
  private var columns: [ReportColumn] = []
  private var table = TextTable([])
  private var cells: [String] = []

  init(_ kind: ReportKind, to output: Output, _ context: Context) {
    self.kind = kind
    self.output = output
    self.context = context
  }

  func begin(_ columns: [ReportColumn]) {
    self.columns = columns
    table = TextTable(
      columns.map { column in
        TextTable.Column(
          "\(column.name)", isNumber: column.content == .amount || column.content == .integer)
      })
  }

  func write(_ cell: ReportCell) { cells.append(Self.text(cell)) }

  func endRow() throws {
    try context.interruption.check()
    table.append(cells)
    cells.removeAll(keepingCapacity: true)
  }

  private static func text(_ cell: ReportCell) -> String {
    switch cell {
    case .empty: ""
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .word(let word): "\(word)"
    case .currency(let currency): currency.description
    case .integer(let value): String(value)
    case .amount(let micros, let currency): Amount.text(micros: micros, currency: currency)
    case .time(let epochMs): Timestamp.text(ms: epochMs)
    case .flag(let value): value ? "yes" : "no"
    case .list(let texts):
      texts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    case .integers(let values): values.map { String($0) }.joined(separator: " ")
    }
  }

  func end(_ summary: ReportSummary) throws {
    // A file is as wide as it needs to be; only a terminal has an edge.
    let terminal = output === context.output ? context.terminal : Terminal(descriptor: -1)
    try table.write(to: output, terminal: terminal)
    guard kind == .revenue || kind == .journal else { return }
    try output.writeLine()
    for total in summary.totals { try output.writeLine(Self.line(total)) }
    if !summary.exceptions.isEmpty {
      let counts = summary.exceptions.map { "\($0.count) \($0.type)" }.joined(separator: ", ")
      try output.writeLine("Exceptions: \(counts)")
    }
    if !summary.rateSources.isEmpty {
      let sources = summary.rateSources.map(Self.text).joined(separator: ", ")
      try output.writeLine("Rates: \(sources)")
    }
    try output.writeLine(reportNote)
  }

  private static func text(_ source: RateSource) -> String {
    // A file that is declared anew each day fills no page.
    let shown = source.positions.suffix(8).map(String.init).joined(separator: ", ")
    let more = source.positions.count > 8 ? " and \(source.positions.count - 8) earlier" : ""
    let noun = source.positions.count == 1 ? "position" : "positions"
    return "\(source.name) (\(noun) \(shown)\(more))"
  }

  private static func line(_ total: ReportTotal) -> String {
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
