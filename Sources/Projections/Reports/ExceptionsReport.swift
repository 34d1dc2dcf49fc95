// The exceptions report: what finance must know in addition to the figures (rules R1–R10).
import Base
import JSON
import Revenue

struct ExceptionsReport {
  /// One exception. Its texts are in the order of the columns; the position comes first here.
  struct Row {
    var position: Int
    var type: ExceptionType
    var environment: Text
    var bundle: Text
    var saleKey: Text
    var product: Text
    var transaction: Text
    var detail: Text

    /// R9: sorts by position, then by the columns.
    func precedes(_ other: Row) -> Bool {
      if position != other.position { return position < other.position }
      if type != other.type {
        return type.word.utf8.lexicographicallyPrecedes(other.type.word.utf8)
      }
      let mine = [environment, bundle, saleKey, product, transaction, detail]
      let theirs = [
        other.environment, other.bundle, other.saleKey, other.product, other.transaction,
        other.detail,
      ]
      for (one, another) in zip(mine, theirs) {
        let order = one.order(another)
        if order != 0 { return order < 0 }
      }
      return false
    }
  }

  static let columns = [
    ReportColumn("exception", isKey: true), ReportColumn("environment"), ReportColumn("bundle_id"),
    ReportColumn("sale_key", isKey: true), ReportColumn("product_id"),
    ReportColumn("transaction_id"),
    ReportColumn("position", .integer, isKey: true), ReportColumn("detail"),
  ]

  let source: ReportSource
  private let days: ExceptionDays
  private let nothing = Text(start: nil, count: 0)

  init(_ source: ReportSource) throws(DatabaseError) {
    self.source = source
    days = try ExceptionDays(source)
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var rows = try recorded()
    let rates = try derived(into: &rows)
    rows.sort { $0.precedes($1) }
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    for row in rows {
      try withText(row.type.word) { try writer.write(.text($0)) }
      try writer.write(.text(row.environment))
      try writer.write(.text(row.bundle))
      try writer.write(.text(row.saleKey))
      try writer.write(.text(row.product))
      try writer.write(.text(row.transaction))
      try writer.write(.integer(Int64(row.position)))
      try writer.write(.text(row.detail))
      try writer.endRow()
    }
    summary.rowCount = rows.count
    summary.rates = rates
    return summary
  }

  /// The exceptions that the fold recorded.
  private func recorded() throws -> [Row] {
    let symbols = source.symbols
    let arena = source.arena
    var result: [Row] = []
    let rows = try source.database.prepare(
      """
      SELECT e.type, e.environment, e.bundle, s.sale_key, s.product, s.transaction_id,
      e.product_id, e.transaction_id, e.detail, e.position, e.sale, s.sale_date_ms,
      coalesce(v.occurred_at_ms, u.occurred_at_ms, n.occurred_at_ms)
      FROM exceptions e LEFT JOIN sales s ON s.id = e.sale
      LEFT JOIN verifications v ON v.position = e.position
      LEFT JOIN uploads u ON u.position = e.position
      LEFT JOIN notifications n ON n.position = e.position
      """)
    while try rows.step() {
      guard let type = ExceptionType(rawValue: Int8(rows.integer(0))),
        source.shows(type, environment: Symbol(rows.integer(1)))
      else { continue }
      let isOfSale = !rows.isNull(10)
      let isShown =
        isOfSale
        ? try days.hold(sale: Int(rows.integer(10)), saleDateMs: rows.integer(11))
        : days.hold(occurredAtMs: rows.optionalInteger(12))
      guard isShown else { continue }
      result.append(
        Row(
          position: Int(rows.integer(9)), type: type,
          environment: symbols.text(Symbol(rows.integer(1))),
          bundle: symbols.text(Symbol(rows.integer(2))),
          saleKey: isOfSale ? arena.keep(rows.bytes(3)) : nothing,
          product: isOfSale
            ? symbols.text(Symbol(rows.integer(4))) : arena.keep(rows.bytes(6)),
          transaction: arena.keep(rows.bytes(isOfSale ? 5 : 7)),
          detail: arena.keep(rows.bytes(8))))
    }
    return result
  }

  /// Adds the exceptions that follow from sales at the report's position. Returns the rates used.
  private func derived(into rows: inout [Row]) throws -> UsedRates {
    let list = try SaleList(source)
    for sale in list.sales
    where !sale.isPending && sale.priceBasis == .none && source.shows(environment: sale.environment)
    {
      guard try days.hold(sale: sale.id, saleDateMs: sale.saleDateMs) else { continue }
      // R7.6: the detail is the sale's first price problem, or `no_price`.
      rows.append(row(.unpriced, sale, sale.firstPosition, sale.priceProblem.word.text))
    }
    let excesses = try source.database.prepare(
      "SELECT sale, position FROM later_lines WHERE is_first_excess = 1")
    while try excesses.step() {
      let number = Int(excesses.integer(0))
      guard list.sales.indices.contains(number) else { continue }
      let sale = list.sale(number)
      guard source.shows(environment: sale.environment),
        try days.hold(sale: number, saleDateMs: sale.saleDateMs)
      else { continue }
      rows.append(row(.refundExceedsAmount, sale, Int(excesses.integer(1)), nothing))
    }
    for sale in days.pendingSales() where source.shows(environment: sale.environment) {
      rows.append(row(.pendingSale, sale, sale.firstPosition, nothing))
    }
    var found: [Row] = []
    let rates = try source.forEachUnconverted { type, line, detail in
      let detail = source.arena.keep(Array(detail.utf8))
      found.append(row(type, list.sale(line.sale), line.position, detail))
    }
    rows += found
    return rates
  }

  private func row(_ type: ExceptionType, _ sale: Sale, _ position: Int, _ detail: Text) -> Row {
    Row(
      position: position, type: type, environment: source.symbols.text(sale.environment),
      bundle: source.symbols.text(sale.bundle), saleKey: sale.key,
      product: source.symbols.text(sale.product), transaction: sale.transactionID, detail: detail)
  }
}

extension ReportSource {
  /// Whether a recorded exception belongs to a requested environment. A malformed event belongs to none and is always
  /// included.
  fileprivate func shows(_ type: ExceptionType, environment: Symbol) -> Bool {
    type == .malformedEvent || shows(environment: environment)
  }

  /// R10: calls `body` with the exceptions for lines in the requested days that no rate converts, once per sale and
  /// detail: `unconverted`, and also `stale_rate` if a rate exists but is too old. Returns the rates used.
  fileprivate func forEachUnconverted(
    _ body: (ExceptionType, ReportLine, _ detail: String) -> Void
  ) throws -> UsedRates {
    guard var conversion = try request.conversion(database) else { return UsedRates() }
    // What the report of users converts are the lines of sales that have a user.
    let owned =
      request.kind == .users
      ? try SaleNumbers(self, "user IS NOT NULL", pending: { $0.user >= 0 }) : nil
    var seen: Set<[Int]> = []
    var seenStale: Set<[Int]> = []
    try forEachLine { line throws(ProjectionError) in
      guard isWithinDays(decidingDateMs(line)), owned?.holds(line.sale) ?? true else { return }
      var converted = line
      guard let currency = line.currency, !conversion.convert(&converted) else { return }
      if seen.insert([line.sale, Int(line.type.rawValue)]).inserted {
        body(.unconverted, line, "\(line.type.word) \(currency)")
      }
      if let day = conversion.staleRateDay(of: line),
        seenStale.insert([line.sale, day.dayNumber]).inserted
      {
        body(.staleRate, line, "\(currency) \(day)")
      }
    }
    return conversion.usedRates
  }

  /// The number of exceptions of each type, by name, for what the report shows. The counts match the exceptions
  /// report.
  /// - Parameter shownSales: the confirmed sales that the report's days concern.
  func exceptionCounts(_ shownSales: ShownSales) throws -> [(type: String, count: Int)] {
    let days = try ExceptionDays(self)
    var counts: [ExceptionType: Int] = [:]
    try count(of: shownSales, days, into: &counts)
    _ = try forEachUnconverted { type, _, _ in counts[type, default: 0] += 1 }
    let pendingCount = days.pendingSales().count { shows(environment: $0.environment) }
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

  /// Counts the exceptions of confirmed sales, and those without a sale.
  private func count(
    of shownSales: ShownSales, _ days: ExceptionDays, into counts: inout [ExceptionType: Int]
  ) throws {
    if shownSales.unpricedCount > 0 { counts[.unpriced] = shownSales.unpricedCount }
    let excesses = try database.prepare("SELECT sale FROM later_lines WHERE is_first_excess = 1")
    while try excesses.step() {
      guard shownSales.holds(Int(excesses.integer(0))) else { continue }
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
    let recorded = try database.prepare(
      "SELECT type, environment, sale, \(occurredAt) FROM exceptions e")
    while try recorded.step() {
      guard let type = ExceptionType(rawValue: Int8(recorded.integer(0))),
        shows(type, environment: Symbol(recorded.integer(1)))
      else { continue }
      if let sale = recorded.optionalInteger(2) {
        guard shownSales.holds(Int(sale)) else { continue }
      } else if !days.hold(occurredAtMs: recorded.optionalInteger(3)) {
        continue
      }
      counts[type, default: 0] += 1
    }
  }
}

extension TextArena {
  /// Copies bytes into the arena.
  func keep(_ bytes: [UInt8]) -> Text { withText(bytes) { keep($0) } }
}
