// The exceptions report: what finance must know in addition to the figures (rules R1–R10).
import Base
package import Revenue

struct ExceptionsReport {
  /// One exception. Its texts are in the order of the columns; the position comes first here.
  struct Row {
    var position: Int
    var type: String
    var environment: Text
    var bundle: Text
    var saleKey: Text
    var product: Text
    var transaction: Text
    var detail: Text
    /// Of the sale or of the line; without a sale, when the event occurred. Nil if that is not known.
    var dateMs: Int64?
    /// Of the sale, or of the upload; empty where there is neither.
    var country: Text
    var user: Text

    /// R9: sorts by position, then by the columns.
    func precedes(_ other: Row) -> Bool {
      if position != other.position { return position < other.position }
      if type != other.type {
        return type.utf8.lexicographicallyPrecedes(other.type.utf8)
      }
      if let order = Self.order(
        [environment, bundle, saleKey, product, transaction, detail],
        [
          other.environment, other.bundle, other.saleKey, other.product, other.transaction,
          other.detail,
        ])
      {
        return order
      }
      if dateMs != other.dateMs { return (dateMs ?? .min) < (other.dateMs ?? .min) }
      return Self.order([country, user], [other.country, other.user]) ?? false
    }

    /// Whether the first texts precede the others; nil if they are the same.
    private static func order(_ texts: [Text], _ others: [Text]) -> Bool? {
      for (one, another) in zip(texts, others) {
        let order = one.order(another)
        if order != 0 { return order < 0 }
      }
      return nil
    }
  }

  static let columns = [
    ReportColumn("exception", isKey: true), ReportColumn("environment"), ReportColumn("bundle_id"),
    ReportColumn("sale_key", isKey: true), ReportColumn("product_id"),
    ReportColumn("transaction_id"),
    ReportColumn("position", .integer, isKey: true), ReportColumn("detail"),
    ReportColumn("date", .time), ReportColumn("country_code"), ReportColumn("user_identifier"),
  ]

  /// The columns of a version of the report. Up to version 5 it had none after `detail`.
  static func columns(ofVersion version: Int) -> [ReportColumn] {
    version < 6 ? columns.dropLast(3) : columns
  }

  let source: ReportSource
  private let users: [Int32: Text]
  private let days: ExceptionDays
  private let nothing = Text(start: nil, count: 0)

  init(_ source: ReportSource) throws {
    self.source = source
    days = try ExceptionDays(source)
    users = try source.userIdentifiers()
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var rows = try recorded()
    let rates = try derived(into: &rows)
    rows.sort { $0.precedes($1) }
    var summary = ReportSummary()
    let columns = Self.columns(ofVersion: source.request.version)
    try writer.begin(columns)
    for row in rows {
      try withText(row.type) { try writer.write(.text($0)) }
      try writer.write(.text(row.environment))
      try writer.write(.text(row.bundle))
      try writer.write(.text(row.saleKey))
      try writer.write(.text(row.product))
      try writer.write(.text(row.transaction))
      try writer.write(.integer(Int64(row.position)))
      try writer.write(.text(row.detail))
      if columns.count == Self.columns.count {
        try writer.write(row.dateMs.map { .time($0) } ?? .empty)
        try writer.write(.text(row.country))
        try writer.write(.text(row.user))
      }
      try writer.endRow()
    }
    summary.rowCount = rows.count
    summary.rates = rates
    return summary
  }

  /// The exceptions that the fold recorded.
  private func recorded() throws -> [Row] {
    var result: [Row] = []
    let rows = try source.database.prepare(
      """
      SELECT e.type, e.environment, e.bundle, s.sale_key, s.product, s.transaction_id,
      e.product_id, e.transaction_id, e.detail, e.position, e.sale, s.sale_date_ms,
      coalesce(v.occurred_at_ms, x.occurred_at_ms, n.occurred_at_ms), coalesce(f.occurred_at_ms, a.occurred_at_ms),
      s.country, s.user, s.kind, x.position, x.country, x.user
      FROM exceptions e LEFT JOIN sales s ON s.id = e.sale
      LEFT JOIN verifications v ON v.position = e.position
      LEFT JOIN notifications n ON n.position = e.position
      LEFT JOIN fetched_pages f ON f.position = e.position
      LEFT JOIN signature_acceptances a ON a.position = e.position \(ReportSource.uploadJoin)
      """)
    while try rows.step() {
      let type: ExceptionType = try rows.code(0)
      guard source.shows(type, environment: try rows.number(1))
      else { continue }
      let row = rows.isNull(10) ? try withoutSale(rows, type) : try ofSale(rows, type)
      if let row { result.append(row) }
    }
    return result
  }

  /// The exception of a sale in a row of the query; nil if the report does not show it.
  private func ofSale(_ row: Statement, _ type: ExceptionType) throws -> Row? {
    let (symbols, arena) = (source.symbols, source.arena)
    let (number, product) = (try row.ordinal(10), try row.symbol(4))
    let country = try row.symbol(14)
    let isShown = source.filter?.shows(
      try row.symbol(2), product, country, try row.code(16), number)
    guard isShown ?? true, try days.hold(sale: number, saleDateMs: try row.instant(11))
    else { return nil }
    return Row(
      position: try row.ordinal(9), type: type.word,
      environment: symbols.text(try row.number(1)),
      bundle: symbols.text(try row.number(2)), saleKey: arena.keep(row.bytes(3)),
      product: symbols.text(product), transaction: arena.keep(row.bytes(5)),
      detail: arena.keep(row.bytes(8)), dateMs: try row.instant(11),
      country: symbols.country(country),
      user: try row.optionalNumber(15).flatMap { users[$0] } ?? nothing)
  }

  /// The same of one without a sale.
  private func withoutSale(_ row: Statement, _ type: ExceptionType) throws -> Row? {
    let (symbols, arena) = (source.symbols, source.arena)
    let upload = try ReportSource.upload(row, at: 17)
    let isShown = source.filter?.shows(
      bundle: try row.number(2), product: row.bytes(6), upload: upload)
    guard isShown ?? true, days.hold(occurredAtMs: row.optionalInteger(12)) else { return nil }
    return Row(
      position: try row.ordinal(9), type: type.word,
      environment: symbols.text(try row.number(1)),
      bundle: symbols.text(try row.number(2)), saleKey: nothing,
      product: arena.keep(row.bytes(6)), transaction: arena.keep(row.bytes(7)),
      detail: arena.keep(row.bytes(8)),
      dateMs: row.optionalInteger(12) ?? row.optionalInteger(13),
      country: upload.map { symbols.country($0.country) } ?? nothing,
      user: upload.flatMap { users[$0.user] } ?? nothing)
  }

  /// Adds the exceptions that follow from sales at the report's position. Returns the rates used.
  private func derived(into rows: inout [Row]) throws -> UsedRates {
    let list = try SaleList(source)
    for sale in list.sales
    where !sale.isPending && sale.priceBasis == .none && source.shows(sale) {
      guard try days.hold(sale: sale.id, saleDateMs: sale.saleDateMs) else { continue }
      // R7.6: the detail is the sale's first price problem, or `no_price`.
      rows.append(row(.unpriced, sale, sale.firstPosition, sale.priceProblem.word.text))
    }
    let excesses = try source.database.prepare(
      "SELECT sale, position, date_ms FROM later_lines WHERE is_first_excess = 1")
    while try excesses.step() {
      let number = try excesses.ordinal(0)
      guard list.sales.indices.contains(number) else { continue }
      let sale = list.sale(number)
      guard source.shows(sale), try days.hold(sale: number, saleDateMs: sale.saleDateMs)
      else { continue }
      rows.append(
        row(
          .refundExceedsAmount, sale, try excesses.ordinal(1), nothing,
          dateMs: try excesses.instant(2)))
    }
    for sale in days.pendingSales() where source.shows(sale) {
      rows.append(row(.pendingSale, sale, sale.firstPosition, nothing))
    }
    var found: [Row] = []
    let rates = try source.forEachUnconverted { type, line, detail in
      let detail = source.arena.keep(Array(detail.utf8))
      found.append(
        row(type, list.sale(line.sale), line.position, detail, dateMs: line.dateMs))
    }
    rows += found
    rows += try ofSettlement()
    return rates
  }

  /// What Apple's files show. It belongs to no app, user or day.
  private func ofSettlement() throws -> [Row] {
    guard source.request.filter.isEmpty, source.request.version >= Self.settlementVersion else {
      return []
    }
    return try SettlementBooks(source.database, source.symbols).findings.map { finding in
      Row(
        position: finding.position, type: finding.type, environment: nothing, bundle: nothing,
        saleKey: nothing, product: nothing, transaction: nothing,
        detail: source.arena.keep(Array(finding.detail.utf8)), dateMs: nil, country: nothing,
        user: nothing)
    }
  }

  /// Since this version the report has what Apple's files show.
  private static let settlementVersion = 9

  /// - Parameter dateMs: that of the line; nil is that of the sale.
  private func row(
    _ type: ExceptionType, _ sale: Sale, _ position: Int, _ detail: Text, dateMs: Int64? = nil
  ) -> Row {
    Row(
      position: position, type: type.word, environment: source.symbols.text(sale.environment),
      bundle: source.symbols.text(sale.bundle), saleKey: sale.key,
      product: source.symbols.text(sale.product), transaction: sale.transactionID, detail: detail,
      dateMs: dateMs ?? sale.saleDateMs, country: source.symbols.country(sale.country),
      user: users[sale.user] ?? nothing)
  }
}

extension ReportSource {
  /// Whether a recorded exception belongs to a requested environment. A malformed event belongs to none and is always
  /// included.
  func shows(_ type: ExceptionType, environment: Symbol) -> Bool {
    type == .malformedEvent || shows(environment: environment)
  }

  /// What makes an unconverted line's exception one of its own.
  private struct Unconverted: Hashable {
    var sale: Int
    var type: ExceptionType
    /// The type of the line, or the day of the rate.
    var number: Int
  }

  /// R10: calls `body` with the exceptions for lines in the requested days that no rate converts, once per sale and
  /// detail: `unconverted`, and also `stale_rate` if a rate exists but is too old. The line is the one with the first
  /// position, of these the earliest; its reason is not kept. Returns the rates used.
  func forEachUnconverted(
    _ body: (ExceptionType, ReportLine, _ detail: String) -> Void
  ) throws -> UsedRates {
    guard var conversion = try request.conversion(database) else { return UsedRates() }
    // What the report of users converts are the lines of sales that have a user.
    let owned =
      request.kind == .users
      ? try SaleNumbers(self, "user IS NOT NULL", pending: { $0.user >= 0 }) : nil
    var found: [Unconverted: (line: ReportLine, detail: String)] = [:]
    func note(_ type: ExceptionType, _ number: Int, _ line: ReportLine, _ detail: String) {
      let key = Unconverted(sale: line.sale, type: type, number: number)
      if let known = found[key]?.line,
        (known.position, known.dateMs) <= (line.position, line.dateMs)
      {
        return
      }
      found[key] = (line, detail)
    }
    try forEachLine { line throws(ProjectionError) in
      guard isWithinDays(decidingDateMs(line)), owned?.holds(line.sale) ?? true else { return }
      var converted = line
      guard let currency = line.currency, !conversion.convert(&converted) else { return }
      note(.unconverted, Int(line.type.rawValue), line, "\(line.type.word) \(currency)")
      if let day = conversion.staleRateDay(of: line) {
        note(.staleRate, day.dayNumber, line, "\(currency) \(day)")
      }
    }
    for (key, exception) in found { body(key.type, exception.line, exception.detail) }
    return conversion.usedRates
  }
}

extension TextArena {
  /// Copies bytes into the arena.
  package func keep(_ bytes: [UInt8]) -> Text { withText(bytes) { keep($0) } }
}

// MARK: - Which exceptions and sales fall within the days that a report covers (rule R9)

/// Selects the exceptions within a report's days, so that a month shows the ones that affect its own figures.
final class ExceptionDays {
  /// Whether the report covers all days.
  let isAll: Bool
  private let source: ReportSource
  private let laterLines: Statement

  init(_ source: ReportSource) throws(DatabaseError) {
    self.source = source
    isAll = source.request.from == nil && source.request.to == nil
    laterLines = try source.database.prepare("SELECT date_ms FROM later_lines WHERE sale = ?")
  }

  /// Whether an exception of a sale counts: one of the sale's lines must be within the days.
  func hold(sale: Int, saleDateMs: Int64) throws(DatabaseError) -> Bool {
    if source.isWithinDays(saleDateMs) { return true }
    if source.decidesBySaleDate { return false }
    laterLines.bind(1, sale)
    defer { laterLines.reset() }
    while try laterLines.step() {
      if source.isWithinDays(laterLines.integer(0)) { return true }
    }
    return false
  }

  /// Whether an exception without a sale counts: the event that caused it must have occurred within the days. An
  /// exception without a time always counts.
  func hold(occurredAtMs: Int64?) -> Bool { occurredAtMs.map(source.isWithinDays) ?? true }

  /// The pending sales that have a line within the days.
  func pendingSales() -> [Sale] {
    guard let pending = source.pending else { return [] }
    if isAll { return pending.sales }
    var numbers: Set<Int> = []
    for line in pending.lines where source.isWithinDays(source.decidingDateMs(line)) {
      numbers.insert(line.sale)
    }
    return pending.sales.filter { numbers.contains($0.id) }
  }
}

/// The confirmed sales that have a line within the days that a report covers, collected line by line.
struct ShownSales {
  private var areShown: [Bool] = []
  /// How many of these sales have no price.
  private(set) var unpricedCount = 0
  private var trusts = InlineArray<5, Int>(repeating: 0)

  /// Records a confirmed line within the days.
  @inline(__always)
  mutating func note(_ line: ReportLine) {
    while areShown.count <= line.sale { areShown.append(false) }
    if areShown[line.sale] { return }
    areShown[line.sale] = true
    trusts[Int(line.trust.rawValue)] += 1
    if line.basis == .none { unpricedCount += 1 }
  }

  /// How many of these sales come from replies of each source, in the order of the sources. Sources without sales are
  /// omitted.
  var trustCounts: [(word: String, count: Int)] {
    ReplyTrust.allCases.compactMap { trust in
      let count = trusts[Int(trust.rawValue)]
      return count == 0 ? nil : ("\(trust.word)", count)
    }
  }

  func holds(_ sale: Int) -> Bool { areShown.indices.contains(sale) && areShown[sale] }
}

// MARK: - How many exceptions of each type concern what a report shows (rule R9)

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
