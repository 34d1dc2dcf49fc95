// How many exceptions of each type concern what a report shows (rule R9).
import Revenue

extension ReportSource {
  /// The number of exceptions of each type, by name, for what the report shows. The counts match the exceptions
  /// report.
  /// - Parameter shownSales: the confirmed sales that the report's days concern.
  func exceptionCounts(_ shownSales: ShownSales) throws -> [(type: String, count: Int)] {
    let days = try ExceptionDays(self)
    var counts: [ExceptionType: Int] = [:]
    try count(of: shownSales, days, into: &counts)
    _ = try forEachUnconverted { type, _, _ in counts[type, default: 0] += 1 }
    let pendingCount = days.pendingSales().count { shows($0) }
    if pendingCount > 0 { counts[.pendingSale] = pendingCount }
    return counts.map { ($0.key.word, $0.value) }.sorted { $0.0 < $1.0 }
  }

  /// The confirmed sales that have a line in the report's days.
  func shownSales() throws(ProjectionError) -> ShownSales {
    var shown = ShownSales()
    try forEachConfirmedLine { line in
      if isWithinDays(decidingDateMs(line)) { shown.note(line) }
    }
    return shown
  }

  /// Joins the upload of an exception `e`: the one that its verification belongs to, else the one at its position.
  static let uploadJoin = """
    LEFT JOIN uploads x ON x.position = coalesce(
    (SELECT y.upload FROM verifications y WHERE y.position = e.position), e.position)
    """

  /// The upload in three columns of a row: its position, country and user. Nil if there is none.
  static func upload(
    _ row: Statement, at column: Int32
  ) throws(DatabaseError) -> (country: Symbol, user: Int32)? {
    if row.isNull(column) { return nil }
    return (
      try row.symbol(column + 1),
      try row.optionalNumber(column + 2) ?? -1
    )
  }

  /// Counts the exceptions of confirmed sales, and those without a sale.
  private func count(
    of shownSales: ShownSales, _ days: ExceptionDays, into counts: inout [ExceptionType: Int]
  ) throws {
    if shownSales.unpricedCount > 0 { counts[.unpriced] = shownSales.unpricedCount }
    let excesses = try database.prepare("SELECT sale FROM later_lines WHERE is_first_excess = 1")
    while try excesses.step() {
      guard shownSales.holds(try excesses.ordinal(0)) else { continue }
      counts[.refundExceedsAmount, default: 0] += 1
    }
    let occurredAt =
      days.isAll
      ? "NULL"
      : """
      CASE WHEN sale IS NULL THEN coalesce(
      (SELECT occurred_at_ms FROM verifications v WHERE v.position = e.position),
      (SELECT occurred_at_ms FROM uploads u WHERE u.position = e.position),
      (SELECT occurred_at_ms FROM notifications n WHERE n.position = e.position)) END
      """
    // Only filters ask for more; each further column costs time in every report.
    let (more, join) =
      filter == nil
      ? ("", "") : (", bundle, product_id, x.position, x.country, x.user", Self.uploadJoin)
    let recorded = try database.prepare(
      "SELECT type, environment, sale, \(occurredAt)\(more) FROM exceptions e \(join)")
    while try recorded.step() {
      let type: ExceptionType = try recorded.code(0)
      guard shows(type, environment: try recorded.number(1))
      else { continue }
      if let sale = recorded.optionalInteger(2) {
        guard shownSales.holds(Int(sale)) else { continue }
      } else {
        guard days.hold(occurredAtMs: recorded.optionalInteger(3)),
          filter?.shows(
            bundle: try recorded.number(4), product: recorded.bytes(5),
            upload: try Self.upload(recorded, at: 6)) ?? true
        else { continue }
      }
      counts[type, default: 0] += 1
    }
  }
}
