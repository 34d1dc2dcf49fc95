// The source that all reports read: one generation of the projections, filtered by the request.
import Base
package import Revenue

/// A journal line as reports see it.
package struct ReportLine {
  package var type: LineType
  package var dateMs: Int64
  var saleDateMs: Int64
  package var environment: Symbol
  package var bundle: Symbol
  package var product: Symbol
  package var country: Symbol
  package var kind: SaleKind
  package var basis: PriceBasis
  package var trust: ReplyTrust
  package var quantity: Int64
  var currency: Currency?
  package var amountMicros: Int64?
  package var position: Int
  /// The number of the line's sale.
  package var sale: Int
  package var reason: Text
  /// Its place among the lines of its sale: 0 for the Sale line, the ordinal in `later_lines` for others. For a line
  /// of a pending sale, its index among those.
  var ordinal: Int32 = 0
}

extension ReportLine {
  init(_ line: JournalLine, of sale: Sale) {
    self.init(
      type: line.type, dateMs: line.dateMs, saleDateMs: sale.saleDateMs,
      environment: sale.environment, bundle: sale.bundle, product: sale.product,
      country: sale.country, kind: sale.kind, basis: sale.priceBasis, trust: sale.trust,
      quantity: line.quantity, currency: sale.price?.currency, amountMicros: line.amountMicros,
      position: line.position, sale: sale.id, reason: line.reason)
  }

  /// The Sale line of a sale.
  @inline(__always)
  init(_ figures: SaleFigures, _ sale: Int, _ currency: Currency?) {
    self.init(
      .sale, of: figures, sale, currency, dateMs: figures.saleDateMs,
      quantity: Int64(figures.quantity),
      amountMicros: currency == nil && figures.kind.isPaid ? nil : figures.amountMicros,
      position: Int(figures.firstPosition), reason: Text(start: nil, count: 0))
  }

  @inline(__always)
  init(
    _ type: LineType, of figures: SaleFigures, _ sale: Int, _ currency: Currency?, dateMs: Int64,
    quantity: Int64, amountMicros: Int64?, position: Int, reason: Text
  ) {
    self.init(
      type: type, dateMs: dateMs, saleDateMs: figures.saleDateMs,
      environment: figures.environment, bundle: figures.bundle, product: figures.product,
      country: figures.country, kind: figures.kind, basis: figures.priceBasis, trust: figures.trust,
      quantity: quantity, currency: currency, amountMicros: amountMicros, position: position,
      sale: sale, reason: reason)
  }
}

/// Reads a database for one report.
package final class ReportSource {
  let database: Database
  let request: ReportRequest
  package let arena = TextArena()
  package let symbols: StringInterner
  private var currencies: [Currency?] = []
  /// For each symbol, whether it is an environment that the request includes. Symbols beyond the end are not
  /// included; nil includes all environments.
  private var shownEnvironments: [Bool]?
  /// The pending sales and their lines (rule R1); nil until `loadPending()` has run.
  private(set) var pending: PendingSales?
  /// Which sales the request shows; nil shows all.
  private(set) var filter: SaleFilter?
  private var calendar: PeriodCalendar
  private let firstDay: Int
  private let lastDay: Int
  /// Whether the date of its sale decides a line's period. The sales report always works this way.
  let decidesBySaleDate: Bool
  /// The sources of the replies of all confirmed sales read so far, shown or not, as bits.
  private var sources: UInt8 = 0
  /// Whether all confirmed sales read so far have one source.
  var isOfOneSource: Bool { sources.nonzeroBitCount <= 1 }

  package init(_ database: Database, _ request: ReportRequest) throws(ProjectionError) {
    self.database = database
    self.request = request
    symbols = StringInterner(arena)
    calendar = PeriodCalendar(request.granularity, in: request.zone)
    firstDay = request.from?.dayNumber ?? .min
    lastDay = request.to?.dayNumber ?? .max
    decidesBySaleDate = request.kind == .sales || request.refunds == .saleDate
    do throws(DatabaseError) { try symbols.load(from: database) } catch {
      throw .database(error)
    }
    noteShownEnvironments()
    filter = try SaleFilter(self)
  }

  private func noteShownEnvironments() {
    guard let names = request.environments else { return }
    var shown: [Bool] = []
    for symbol in names.compactMap({ symbols.known($0) }) {
      while shown.count <= symbol { shown.append(false) }
      shown[Int(symbol)] = true
    }
    shownEnvironments = shown
  }

  /// Folds the pending receipts together with the confirmed sales.
  package func loadPending() throws(ProjectionError) {
    pending = try PendingSales(database, symbols, arena)
    // Pending receipts may bring environments and products that no confirmed sale has.
    noteShownEnvironments()
    filter = try SaleFilter(self)
  }

  // MARK: Filters

  @inline(__always)
  func shows(environment: Symbol) -> Bool {
    guard let shownEnvironments else { return true }
    return shownEnvironments.indices.contains(Int(environment))
      && shownEnvironments[Int(environment)]
  }

  /// Whether the request includes a sale, whatever its date.
  func shows(_ sale: Sale) -> Bool {
    shows(environment: sale.environment) && (filter?.shows(sale) ?? true)
  }

  /// Whether the request includes the environment with this name, which the ledger may not know.
  func shows(environmentNamed name: Text) -> Bool {
    request.environments.map { names in names.contains { name.elementsEqual($0.utf8) } } ?? true
  }

  /// R9: the date that decides a line's period.
  @inline(__always)
  func decidingDateMs(_ line: ReportLine) -> Int64 {
    decidesBySaleDate ? line.saleDateMs : line.dateMs
  }

  /// R9: whether a date lies within `--from` and `--to`.
  func isWithinDays(_ epochMs: Int64) -> Bool {
    if firstDay == .min, lastDay == .max { return true }
    let day = calendar.dayNumber(atMs: epochMs)
    return firstDay <= day && day <= lastDay
  }

  /// R9: the period that contains a date.
  func period(_ epochMs: Int64) -> Period { calendar.period(atMs: epochMs) }

  /// The currency that a symbol stands for; nil for `none`. A symbol that stands for no currency is damage.
  @inline(__always)
  func currency(_ symbol: Symbol) throws(ProjectionError) -> Currency? {
    if symbol == .none { return nil }
    let index = Int(symbol)
    while currencies.count <= index, currencies.count < symbols.count {
      currencies.append(Currency.parse(symbols.text(Symbol(currencies.count))))
    }
    guard currencies.indices.contains(index), let currency = currencies[index]
    else { throw .inconsistent("an amount has no currency") }
    return currency
  }

  // MARK: Rows

  /// Calls `body` with the lines of the confirmed sales that the request includes, sale by sale, in each sale's order.
  func forEachConfirmedLine(
    _ body: (ReportLine) throws(ProjectionError) -> Void
  ) throws(ProjectionError) {
    do {
      let later = try database.prepare(
        """
        SELECT sale, line, date_ms, position, reason, quantity, amount_micros, ordinal
        FROM later_lines ORDER BY sale, ordinal
        """)
      var nextLater = try later.step() ? later.ordinal(0) : .max
      let isWhole = try PackedSaleTable<SaleFigures>.forEach(in: database) { sale, figures in
        let isShown =
          shows(environment: figures.environment) && (filter?.shows(figures, sale) ?? true)
        let currency = try currency(figures.currency)
        sources |= 1 << UInt8(figures.trust.rawValue)
        if isShown { try body(ReportLine(figures, sale, currency)) }
        while nextLater == sale {
          if isShown { try body(Self.line(later, of: figures, sale, currency)) }
          nextLater = try later.step() ? later.ordinal(0) : .max
        }
      }
      guard isWhole, nextLater == .max else {
        throw ProjectionError.inconsistent("the sales do not match their journal")
      }
    } catch let error as DatabaseError {
      throw .database(error)
    } catch let error as ProjectionError {
      throw error
    } catch { throw .output(error) }
  }

  /// The line in a row of `later_lines`.
  private static func line(
    _ row: Statement, of figures: SaleFigures, _ sale: Int, _ currency: Currency?
  ) throws(ProjectionError) -> ReportLine {
    let quantity = row.integer(5)
    // Other programs may write to the file.
    guard quantity.magnitude <= UInt64(Sale.quantityMax)
    else { throw .inconsistent("the sales do not match their journal") }
    let type: LineType
    let ordinal: Int32
    let dateMs: Int64
    let position: Int
    do throws(DatabaseError) {
      (type, ordinal) = (try row.code(1), try row.number(7))
      (dateMs, position) = (try row.instant(2), try row.ordinal(3))
    } catch { throw .database(error) }
    var line = ReportLine(
      type, of: figures, sale, currency, dateMs: dateMs, quantity: quantity,
      amountMicros: row.optionalInteger(6), position: position, reason: row.bytes(4))
    line.ordinal = ordinal
    return line
  }

  /// Calls `body` with every line that the request includes, whatever its date. Pending sales come last, if requested.
  package func forEachLine(
    _ body: (ReportLine) throws(ProjectionError) -> Void
  ) throws(ProjectionError) {
    try forEachConfirmedLine(body)
    try forEachPendingLine(body)
  }

  /// Calls `body` with the lines of the pending sales that the request includes.
  func forEachPendingLine(
    _ body: (ReportLine) throws(ProjectionError) -> Void
  ) throws(ProjectionError) {
    guard request.includesPending, let pending else { return }
    for line in pending.lines
    where shows(environment: line.environment) && (filter?.shows(line) ?? true) {
      try body(line)
    }
  }

  /// The identifiers of all users, by number.
  package func userIdentifiers() throws(ProjectionError) -> [Int32: Text] {
    var result: [Int32: Text] = [:]
    do throws(DatabaseError) {
      let rows = try database.prepare("SELECT id, user_identifier FROM users")
      while try rows.step() { result[try rows.number(0)] = arena.keep(rows.bytes(1)) }
    } catch { throw .database(error) }
    return result
  }
}

/// The text of the country column: `ZZ` if no upload has named a country (rule R6).
extension StringInterner {
  func country(_ symbol: Symbol) -> Text {
    symbol == .none ? ("ZZ" as StaticString).text : text(symbol)
  }
}
