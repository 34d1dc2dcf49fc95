// A report request: which report, and its options (rule R9).
import AppStore
package import Base
package import Revenue

/// The available reports.
package enum ReportKind: String, CaseIterable, Sendable {
  case revenue, journal, sales, exceptions, receipts, users, subscriptions
  case reconcile, proceeds, payout, entries

  /// Increased when the same events and filters would produce different bytes.
  package var version: Int {
    switch self {
    case .exceptions: 9
    case .revenue, .journal: 8
    case .sales: 6
    case .users, .subscriptions: 5
    case .receipts: 4
    case .reconcile, .proceeds, .payout, .entries: 1
    }
  }

  /// Whether the report accepts a range of days.
  package var hasDays: Bool {
    ![.receipts, .users, .subscriptions].contains(self) && !isOfSettlement
  }

  /// Whether the report is of Apple's reports: by fiscal months, of Production and of every app.
  package var isOfSettlement: Bool { [.reconcile, .proceeds, .payout, .entries].contains(self) }

  /// Whether the report is of a moment (rule R13).
  package var hasMoment: Bool { self == .subscriptions }

  /// Whether the report lets the reader choose the date on which Returns and Reversals count.
  package var hasRefundDate: Bool { self == .revenue || self == .journal || self == .exceptions }
}

/// The dimensions by which revenue can be split.
package enum ReportDimension: String, CaseIterable, Sendable {
  case period, app, product, country, environment, basis, trust

  /// The dimension's column name.
  package var column: String {
    switch self {
    case .period: "period"
    case .app: "bundle_id"
    case .product: "product_id"
    case .country: "country_code"
    case .environment: "environment"
    case .basis: "price_basis"
    case .trust: "trust"
    }
  }
}

/// What entries rest on (settlement rule S15).
package enum EntryBasis: String, CaseIterable, Sendable {
  /// The receipts, by day; Apple's reports correct them.
  case ledger
  /// Apple's reports alone, by fiscal month.
  case apple
}

/// The date on which a Return or Reversal counts.
package enum RefundDate: String, CaseIterable, Sendable {
  /// Its own date: a closed period never changes because of it.
  case eventDate = "event-date"
  /// The date of the sale: it restates the sale's period.
  case saleDate = "sale-date"
}

/// A report and its options.
package struct ReportRequest: Sendable {
  package var kind: ReportKind
  /// The dimensions that split revenue, in this order.
  package var dimensions: [ReportDimension] = [.country]
  package var granularity: Period.Granularity = .month
  package var zone: TimeZoneTable = .utc
  package var refunds: RefundDate = .eventDate
  /// The first and last day in the zone, both inclusive. They apply to the date that decides the period.
  package var from: CivilDate?
  package var to: CivilDate?
  /// The names of environments to include; nil includes all.
  package var environments: [String]? = [EnvironmentName.production.description]
  /// Whether to include sales that the App Store has not confirmed.
  package var includesPending = false
  /// The currency to convert to (rule R10).
  package var reportingCurrency: Currency?
  /// R10: how many days older than its line a rate may be. Nil sets no limit; manifests from before the limit existed
  /// have nil.
  package var ratesAgeMaxDays: Int? = Self.ratesAgeMaxDaysStandard
  /// The default suits rates that are declared once a month.
  package static let ratesAgeMaxDaysStandard = 35
  /// More days than dates can span.
  package static let ratesAgeMaxDaysLimit = 9_999_999

  /// R13: the moment at which subscriptions are judged, in epoch milliseconds. Nil is the time of the last folded
  /// event; a report that is written names it.
  package var momentMs: Int64?
  /// S14: whether lines have what Apple's reports say of them.
  package var hasSettlement = false
  /// S13: by what payments are split; empty lists the rows of payment overviews.
  package var payoutGroups: [PayoutGroup] = []
  /// R13: whether subscriptions are counted by month instead of listed.
  package var isByMonth = false

  /// What entries rest on, the days of payments by fiscal month, and what accounts are called.
  package var basis = EntryBasis.ledger
  package var paidOn: [String: CivilDate] = [:]
  package var accounts = EntryAccounts()
  /// S15: whether entries are replaced by both ways of computing the receivable's balance.
  package var isCheck = false

  /// What narrows the rows down, besides days and environments.
  package var filter = ReportFilter()
  /// What rows are sorted by; nil is the report's own order.
  package var sort: ReportSort?
  /// How many rows are shown; nil shows all. Totals are those of all rows.
  package var top: Int?
  package var amounts = ReportAmounts.exact
  package var layout = ReportLayout()
  /// The version of the report to write, from 1 to `kind.version`. Earlier ones are for the manifests that name them.
  package var version: Int

  package init(_ kind: ReportKind) {
    self.kind = kind
    version = kind.version
  }
}

extension ReportRequest {
  /// What the figures are, or are not. Every report with room for this text shows it.
  package var note: String {
    payoutGroups.isEmpty
      ? kind.note
      : "An allocation of each payment by the shares of its rows: Apple pays a sum, not parts."
  }
}

/// A note on what the figures are not (rule R11).
package let reportNote =
  "Operational gross at customer prices as clients reported them, not settlement."

extension ReportKind {
  fileprivate var note: String {
    switch self {
    case .reconcile, .entries:
      "Units and amounts as Apple's reports and the receipts state them; differences are counted, not explained."
    case .proceeds:
      "Units and amounts as Apple's reports state them; what Apple kept holds commission and taxes, which it does not "
        + "part."
    case .payout: "Amounts as Apple's payment overviews state them."
    default: reportNote
    }
  }
}

// MARK: - The state of the projections that reports are made from

extension Report {
  /// Calls `body` while nothing that another process folds becomes visible, so that all that it reads is of one state.
  /// Calls may be nested.
  package static func inOneState<Result>(
    _ database: Database, _ body: () throws -> Result
  ) throws -> Result {
    // Unlike a transaction, a savepoint may be inside another.
    try database.execute("SAVEPOINT report")
    defer { try? database.execute("RELEASE report") }
    return try body()
  }

  /// When the last event of a database was recorded, in epoch milliseconds; nil if it has none.
  package static func lastEventAtMs(of database: Database) throws(ProjectionError) -> Int64? {
    do throws(DatabaseError) { return try Progress(database).lastEventAtMs } catch {
      throw .database(error)
    }
  }
}

// MARK: - Some of a report's columns, in an order that the reader chose

/// Passes the selected columns on, row by row. Their cells wait for the end of their row, because their order may differ.
final class ColumnSelection: ReportWriter {
  /// A cell that outlives the call that wrote it; texts are ranges of `bytes`.
  private enum Kept {
    case cell(ReportCell)
    case text(Range<Int>)
    case list([Range<Int>])
  }

  private let names: [String]
  private let writer: any ReportWriter
  /// The selected place of each column of the report; nil if it is not shown.
  private var places: [Int?] = []
  private var place = 0
  private var cells: [Kept] = []
  private var bytes: [UInt8] = []

  /// - Parameter names: the columns shown, in this order; the report has all of them.
  init(_ names: [String], to writer: any ReportWriter) {
    self.names = names
    self.writer = writer
  }

  func begin(_ columns: [ReportColumn]) throws {
    places = columns.map { column in names.firstIndex(of: column.name) }
    cells = Array(repeating: .cell(.empty), count: names.count)
    try writer.begin(
      names.map { name throws(ProjectionError) in
        guard let column = columns.first(where: { $0.name == name }) else {
          throw .usage("the report has no column '\(name)'")
        }
        return column
      })
  }

  func write(_ cell: ReportCell) {
    defer { place += 1 }
    guard let selected = places[place] else { return }
    cells[selected] =
      switch cell {
      case .text(let text): .text(keep(text))
      case .list(let texts): .list(texts.map { keep($0) })
      default: .cell(cell)
      }
  }

  private func keep(_ text: UnsafeRawBufferPointer) -> Range<Int> {
    let start = bytes.count
    bytes.append(contentsOf: text)
    return start..<bytes.count
  }

  func endRow() throws {
    try bytes.withUnsafeBytes { bytes in
      for cell in cells {
        switch cell {
        case .cell(let cell): try writer.write(cell)
        case .text(let range): try writer.write(.text(.init(rebasing: bytes[range])))
        case .list(let ranges):
          try writer.write(.list(ranges.map { .init(rebasing: bytes[$0]) }))
        }
      }
    }
    try writer.endRow()
    bytes.removeAll(keepingCapacity: true)
    place = 0
  }

  func end(_ summary: ReportSummary) throws { try writer.end(summary) }
}
