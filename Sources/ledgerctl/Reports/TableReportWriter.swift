// Reports as text tables.
import Base
import Projections
import Revenue

/// Collects rows and writes them aligned; below those of a report stand totals, exceptions and the note of rule R11.
final class TableReportWriter: ReportWriter {
  /// Nil for the rows of a query.
  private let request: ReportRequest?
  private let output: Output
  private let context: Context
  private var table = TextTable([])
  private var cells: [String] = []
  /// The text that a query's table holds at most: its values may be of any length.
  private static let byteCountMax = 256 << 20
  private var byteCount = 0

  init(_ request: ReportRequest?, to output: Output, _ context: Context) {
    self.request = request
    self.output = output
    self.context = context
  }

  func begin(_ columns: [ReportColumn]) {
    table = TextTable(
      columns.map { column in
        TextTable.Column(
          visible(column.name),
          isNumber: request == nil || column.content == .amount || column.content == .integer,
          isKey: column.isKey)
      })
  }

  func write(_ cell: ReportCell) throws {
    if case .amounts = cell { table.neverCut(cells.count) }
    // The columns of a query are numbers until a text is in them.
    if request == nil, case .text = cell { table.isText(cells.count) }
    let text = Self.text(cell)
    byteCount += text.utf8.count
    if request == nil, byteCount > Self.byteCountMax {
      throw Failure(
        operation: "query", object: "SQL",
        cause: "it has more than \(Self.byteCountMax >> 20) MiB of text, too much for a table")
    }
    cells.append(text)
  }

  func endRow() throws {
    try context.interruption.check()
    table.append(cells)
    cells.removeAll(keepingCapacity: true)
  }

  private static func text(_ cell: ReportCell) -> String {
    switch cell {
    case .empty: ""
    case .decimal(let digits): digits
    case .text(let bytes): String(decoding: bytes, as: UTF8.self)
    case .word(let word): "\(word)"
    case .currency(let currency): currency.description
    case .integer(let value): String(value)
    case .real(let value): ReportCell.text(value)
    case .amount(let micros, let currency): Amount.text(micros: micros, currency: currency)
    case .amounts(let sums): Amount.text(sums)
    case .time(let epochMs): Timestamp.text(ms: epochMs)
    case .flag(let value): value ? "yes" : "no"
    case .list(let texts):
      texts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    case .integers(let values): values.map { String($0) }.joined(separator: " ")
    }
  }

  func end(_ summary: ReportSummary) throws {
    // Only a terminal limits the width.
    let terminal = output === context.output ? context.terminal : Terminal(descriptor: -1)
    guard let request else {
      return try table.write(to: output, terminal: terminal, isCut: false)
    }
    // What somebody asked for by name is shown.
    let leavesOut = request.layout.columns.isEmpty && request.layout.tableVersion > 1
    let leftOut = leavesOut ? table.leaveOutUnused() : []
    var notShown: [String] = []
    if request.layout.columns.isEmpty, let limit = terminal.widthColumns {
      notShown = table.leaveOut(Self.leastImportant(of: request), toFit: limit)
    }
    try table.write(to: output, terminal: terminal)
    var lines = ReportFooter(request, summary).tableLines
    if !leftOut.isEmpty {
      lines.insert(
        "Left out, empty or zero throughout: \(leftOut.joined(separator: ", "))", at: 0)
    }
    if !notShown.isEmpty {
      lines.insert(TextTable.notShown(notShown, "--columns chooses"), at: 0)
    }
    if lines.isEmpty { return }
    try output.writeLine()
    for line in lines { try output.writeLine(line) }
  }

  // MARK: What a narrow terminal leaves out

  /// The columns of a report that a narrow terminal leaves out, the least important first. What rows are sorted by
  /// stays, and the first cell of a row of totals.
  private static func leastImportant(of request: ReportRequest) -> [String] {
    let first = request.layout.hasTotal ? request.columns.first?.name : nil
    return leastImportant(request.kind, isByMonth: request.isByMonth)
      .split(separator: " ").map(String.init)
      .filter { $0 != request.sort?.column && $0 != first }
  }

  private static func leastImportant(_ kind: ReportKind, isByMonth: Bool) -> String {
    switch kind {
    case .revenue:
      "family_shared trials reversed_units reversals returned_units returns unpriced_units units gross"
    case .journal:
      "environment transaction_id reason position user_identifier price_basis bundle_id kind "
        + "rate_position rate_date rate original_currency original_amount unit_price sale_key "
        + "country_code quantity line"
    case .sales:
      "user_basis user_position country_position price_position price_basis reversal_positions "
        + "cancellation_positions is_upgraded pending first_position transaction_ids "
        + "original_transaction_id environment user_identifier bundle_id kind country_code "
        + "cancelled sale_key"
    case .receipts:
      "app_family_id style environment last_position first_position updated_at fraud_reason uploads "
        + "purchases user_identifier country_code bundle_id"
    case .exceptions:
      "environment transaction_id user_identifier country_code bundle_id date product_id position"
    case .reconcile:
      "rows positions candidates transaction_month ledger_month ledger_price apple_price "
        + "apple_currency ledger_currency apple_country"
    case .proceeds: "kept share_currency seller"
    case .payout:
      "latest_payment expected_payment effective_rate balance adjustments input_tax withholding_tax units region"
    case .entries: "fiscal_month kind description"
    case .users: "uploads receipts trials first_seen_at countries returns last_seen_at"
    case .subscriptions where isByMonth: "recovered converted renewed gross churned new"
    case .subscriptions:
      "environment position current_period_start_at grace_period_expires_at revoked_at offer "
        + "expiration_intent in_billing_retry auto_renew_product_id started_at country_code bundle_id "
        + "auto_renew user_identifier"
    }
  }
}
