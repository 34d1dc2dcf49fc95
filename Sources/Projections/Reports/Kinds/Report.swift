// Runs a report against one generation of the projections.
import AppStore
package import Base
import Ledger

/// The reports of a database.
package enum Report {
  /// The number of events that a database has folded, and the root of their tree.
  package static func head(
    of database: Database
  ) throws(ProjectionError) -> (size: Int, root: SHA256Digest) {
    do throws(DatabaseError) {
      let progress = try Progress(database)
      return (progress.position, progress.root)
    } catch { throw .database(error) }
  }

  /// Whether an environment belongs to the App Store, or a receipt or reply in a database names it.
  package static func knows(
    environment: String, _ database: Database
  ) throws(ProjectionError) -> Bool {
    if EnvironmentName.isKnown(environment) { return true }
    do throws(DatabaseError) {
      let found = try database.prepare(
        """
        SELECT 1 FROM symbols s WHERE s.text = ?
          AND (EXISTS(SELECT 1 FROM verifications WHERE environment = s.id)
            OR EXISTS(SELECT 1 FROM receipts WHERE environment = s.id))
        """)
      found.bind(1, text: environment)
      return try found.step()
    } catch { throw .database(error) }
  }

  /// Writes one report.
  @discardableResult
  package static func write(
    _ request: ReportRequest, from database: Database, to writer: any ReportWriter
  ) throws -> ReportSummary {
    try write(request, from: database) { _, _, _ in writer }
  }

  /// Writes one report, with a writer made from the number of events it is based on, the root of their tree, and the
  /// request with the moment of the report.
  @discardableResult
  package static func write(
    _ request: ReportRequest, from database: Database,
    with makeWriter: (_ size: Int, _ root: SHA256Digest, ReportRequest) throws -> any ReportWriter
  ) throws -> ReportSummary {
    // The figures and their footnotes must come from the same database state.
    try inOneState(database) { try writeOfOneState(request, from: database, with: makeWriter) }
  }

  private static func writeOfOneState(
    _ request: ReportRequest, from database: Database,
    with makeWriter: (_ size: Int, _ root: SHA256Digest, ReportRequest) throws -> any ReportWriter
  ) throws -> ReportSummary {
    let head = try head(of: database)
    var request = request
    if request.kind.hasMoment, request.momentMs == nil {
      request.momentMs = try Progress(database).lastEventAtMs
    }
    let inner = try makeWriter(head.size, head.root, request)
    // Sorted rows are rounded already: remainders go by the report's own order.
    let sorted = SortedRows(request, to: inner)
    var writer = sorted ?? inner
    let rounded = try rounding(request, database, to: writer)
    writer = rounded ?? writer
    let source = try ReportSource(database, request)
    try source.loadPending()
    let written = try writeRows(request, source, to: writer)
    var summary = written.summary
    if request.kind.isOfSettlement {
      try writer.end(summary)
      return summary
    }
    let shown = try written.shownSales ?? source.shownSales()
    summary.exceptions = try source.exceptionCounts(shown)
    if request.kind.hasDays, request.kind != .exceptions {
      (summary.trust, summary.isOfOneSource) = (shown.trustCounts, source.isOfOneSource)
    }
    summary.unknownEnvironments = try (request.environments ?? []).filter {
      try !knows(environment: $0, database)
    }
    summary.unknownNames = try source.unknownNames()
    summary.rounding = request.rounding
    if let rounded {
      summary.roundTotals()
      summary.isRounded = rounded.hasChanged
    }
    try writer.end(summary)
    return sorted?.summary(summary) ?? summary
  }

  /// What rounds the amounts on their way; nil if they are exact or the report rounds its rows itself.
  private static func rounding(
    _ request: ReportRequest, _ database: Database, to writer: any ReportWriter
  ) throws -> (any RoundingWriter)? {
    switch request.rounding {
    case .apportioned: RoundedRows(try remainders(request, database), to: writer)
    case .alone: RoundedLines(to: writer)
    case .computedNet, nil: nil
    }
  }

  /// The remainders of a report's amounts, in the report's own order.
  private static func remainders(
    _ request: ReportRequest, _ database: Database
  ) throws -> RowRemainders {
    var request = request
    (request.sort, request.top) = (nil, nil)
    let source = try ReportSource(database, request)
    try source.loadPending()
    let remainders = RowRemainders()
    remainders.end(try writeRows(request, source, to: remainders).summary)
    return remainders
  }

  /// Writes a report's rows; returns its totals and, for revenue, the sales it shows.
  private static func writeRows(
    _ request: ReportRequest, _ source: ReportSource, to writer: any ReportWriter
  ) throws -> (summary: ReportSummary, shownSales: ShownSales?) {
    var summary: ReportSummary
    var shownSales: ShownSales?
    switch request.kind {
    case .revenue:
      var report = try RevenueReport(source)
      summary = try report.write(to: writer)
      shownSales = report.shownSales
    case .journal: summary = try JournalReport(source: source).write(to: writer)
    case .sales: summary = try SalesReport(source: source).write(to: writer)
    case .exceptions: summary = try ExceptionsReport(source).write(to: writer)
    case .receipts: summary = try ReceiptsReport(source: source).write(to: writer)
    case .users: summary = try UsersReport(source: source).write(to: writer)
    case .reconcile: summary = try ReconcileReport(request, source.database).write(to: writer)
    case .proceeds: summary = try ProceedsReport(request, source.database).write(to: writer)
    case .payout: summary = try PayoutReport(request, source.database).write(to: writer)
    case .entries: summary = try EntriesReport(request, source.database).write(to: writer)
    case .subscriptions:
      summary =
        request.isByMonth
        ? try SubscriptionMonthsReport(source: source).write(to: writer)
        : try SubscriptionsReport(source: source).write(to: writer)
      summary.momentMs = request.momentMs
    }
    return (summary, shownSales)
  }
}
