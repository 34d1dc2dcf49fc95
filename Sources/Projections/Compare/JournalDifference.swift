// Compares the journal lines of two states of the same books, and names the events behind each difference.
import AppStore
package import Base
package import Ledger
package import Revenue

/// The journal of one environment before and after, line by line. Both databases must be of the same log and the same
/// versions, so that a sale has the same number in both.
package struct JournalDifference: Sendable {
  package enum Change: String, Sendable { case added, removed, changed }

  /// The parts of a line that affect revenue. Amounts are in the reporting currency where a rate converts them.
  package struct Line: Equatable, Sendable {
    package let dateMs: Int64
    /// `Sale`, `Return`, `Reversal`.
    package let type: String
    package let bundleID: String
    package let saleKey: String
    package let productID: String
    package let kind: String
    /// `ZZ` if unknown.
    package let countryCode: String
    package let quantity: Int64
    package fileprivate(set) var currency: Currency?
    /// Signed; nil if the sale is unpriced.
    package fileprivate(set) var amountMicros: Int64?
  }

  package struct Entry: Sendable {
    package let change: Change
    /// Nil if the line was added.
    package let before: Line?
    /// Nil if the line was removed.
    package let after: Line?
    /// The event that created the line.
    package let position: Position
    /// The events since the older state, in order, that created the line or gave its sale its country or price: the
    /// upload or price list, and for an upload also the verification through which its data reached the sale. For a
    /// changed line also the declarations of rates that now convert it differently.
    package fileprivate(set) var events: [Position]
    /// Whether only the rates that convert the line differ.
    package let hasOnlyOtherRates: Bool
    /// The events that gave the sale a country, a price or a rate it did not have before.
    fileprivate let sources: Set<Position>
    fileprivate let place: Place
  }

  /// Identifies a line: the number of its sale, and its ordinal within the sale.
  fileprivate struct Place: Comparable {
    let sale: Int64
    let ordinal: Int64

    static func < (left: Place, right: Place) -> Bool {
      (left.sale, left.ordinal) < (right.sale, right.ordinal)
    }
  }

  /// Sorted by date, then by sale.
  package let entries: [Entry]

  /// Compares two databases. Memory use grows with the number of differences.
  ///
  /// With a currency, each state's lines are converted with the rates that it knew, so a rate that was declared later
  /// changes lines.
  /// - Parameters:
  ///   - lines: which lines are compared, and in which currency.
  ///   - isCancelled: called for each line; if it returns true, the initializer throws `interrupted`.
  package init(
    from older: Database, to newer: Database, _ lines: ComparedLines = .init(),
    isCancelled: () -> Bool = { false }
  ) throws(ProjectionError) {
    var found: [Entry] = []
    do {
      let since = try Progress(older).position
      let sources = try SaleSources(older, newer)
      var olderLines = try LineCursor(older, lines)
      var newerLines = try LineCursor(newer, lines)
      var (before, after) = (try olderLines.next(), try newerLines.next())
      while let place = [before?.place, after?.place].compactMap({ $0 }).min() {
        if isCancelled() { throw ProjectionError.interrupted }
        let old = before?.place == place ? before : nil
        let new = after?.place == place ? after : nil
        if old?.line != new?.line, let either = new ?? old {
          let rates = Self.newRates(old, &olderLines, new, &newerLines)
          found.append(
            Entry(
              change: old == nil ? .added : new == nil ? .removed : .changed, before: old?.line,
              after: new?.line, position: either.position, events: [],
              hasOnlyOtherRates: old?.own == new?.own,
              sources: try sources.new(of: place.sale).union(rates), place: place))
        }
        if old != nil { before = try olderLines.next() }
        if new != nil { after = try newerLines.next() }
      }
      try Self.nameEvents(&found, newer, since: since, isCancelled)
    } catch { throw Projector.projectionError(error) }
    func dateMs(_ entry: Entry) -> Int64 { (entry.after ?? entry.before)?.dateMs ?? 0 }
    entries = found.sorted { left, right in
      (dateMs(left), left.place) < (dateMs(right), right.place)
    }
  }

  /// The declarations whose rates convert a changed line, if they differ from those before. A new line needs none: the
  /// event that created it is named.
  private static func newRates(
    _ old: LineCursor.Found?, _ olderLines: inout LineCursor, _ new: LineCursor.Found?,
    _ newerLines: inout LineCursor
  ) -> Set<Position> {
    guard let old, let new else { return [] }
    let before = olderLines.rateDeclarations(of: old)
    return Set(newerLines.rateDeclarations(of: new)).subtracting(before)
  }

  /// Reads a journal line by line.
  private struct LineCursor {
    struct Found {
      let place: Place
      /// The line as it is compared.
      let line: Line
      /// The line in its own currency.
      let own: Line
      let position: Position
    }

    private var books: ComparedBooks
    private let rows: Statement

    init(_ database: Database, _ lines: ComparedLines) throws {
      books = try ComparedBooks(database, lines)
      rows = try database.prepare(
        """
        SELECT sale, ordinal, date_ms, line, bundle_id, sale_key, product_id, kind, country_code,
        quantity, currency, amount_micros, position FROM journal_view WHERE environment = ?
        ORDER BY 1, 2
        """)
      rows.bind(1, text: lines.environment)
    }

    /// The next line of the days that are compared; nil at the end.
    mutating func next() throws(DatabaseError) -> Found? {
      repeat {
        guard try rows.step() else { return nil }
      } while !books.isWithinDays(rows.integer(2))
      let own = Line(
        dateMs: rows.integer(2), type: rows.text(3), bundleID: rows.text(4),
        saleKey: rows.text(5), productID: rows.text(6), kind: rows.text(7),
        countryCode: rows.text(8), quantity: rows.integer(9),
        currency: Currency.parse(rows.bytes(10)), amountMicros: rows.optionalInteger(11))
      var line = own
      if let currency = own.currency, let micros = own.amountMicros {
        let converted = books.converted(micros, currency, atMs: own.dateMs)
        (line.amountMicros, line.currency) = (converted.micros, converted.currency)
      }
      return Found(
        place: Place(sale: rows.integer(0), ordinal: rows.integer(1)), line: line, own: own,
        position: try rows.ordinal(12))
    }

    mutating func rateDeclarations(of found: Found) -> [Position] {
      books.rateDeclarations(found.own.currency, atMs: found.own.dateMs)
    }
  }

  // MARK: Events

  /// Finds the events that gave a sale its country and price.
  private struct SaleSources {
    private let before: Statement
    private let after: Statement

    init(_ older: Database, _ newer: Database) throws(DatabaseError) {
      let sql = "SELECT country_position, price_position FROM sales WHERE id = ?"
      before = try older.prepare(sql)
      after = try newer.prepare(sql)
    }

    /// The events that gave the sale its country or price, if they differ from those before.
    func new(of sale: Int64) throws(DatabaseError) -> Set<Position> {
      let (old, new) = (try read(before, sale), try read(after, sale))
      return Set(new.indices.filter { old.isEmpty || old[$0] != new[$0] }.compactMap { new[$0] })
    }

    /// Empty if there is no such sale.
    private func read(_ row: Statement, _ sale: Int64) throws(DatabaseError) -> [Position?] {
      row.reset()
      row.bind(1, sale)
      guard try row.step() else { return [] }
      return [try row.optionalOrdinal(0), try row.optionalOrdinal(1)]
    }
  }

  /// Sets the events of all entries. An upload may be much older than the change, because its data reaches a sale only
  /// with the App Store's reply.
  private static func nameEvents(
    _ entries: inout [Entry], _ newer: Database, since: Position, _ isCancelled: () -> Bool
  ) throws {
    let sources = Set(entries.lazy.flatMap(\.sources))
    var answers: [Position: [Position]] = [:]
    let rows = try newer.prepare(
      """
      SELECT upload, position FROM verifications WHERE position >= ? AND authority = 1
      AND outcome = \(OutcomeCode(.valid).rawValue) ORDER BY position
      """)
    rows.bind(1, since)
    while !sources.isEmpty, try rows.step() {
      if isCancelled() { throw ProjectionError.interrupted }
      let upload = try rows.ordinal(0)
      if sources.contains(upload) { answers[upload, default: []].append(try rows.ordinal(1)) }
    }
    for index in entries.indices {
      let position = entries[index].position
      var events = entries[index].sources.union([position])
      for answers in entries[index].sources.compactMap({ answers[$0] })
      where !answers.contains(position) {
        events.formUnion(answers.prefix(1))
      }
      entries[index].events = events.filter { $0 >= since }.sorted()
    }
  }

  // MARK: Writing

  private static let columns = [
    ReportColumn("change"), ReportColumn("date", .time), ReportColumn("line"),
    ReportColumn("bundle_id"), ReportColumn("sale_key"), ReportColumn("product_id"),
    ReportColumn("kind"), ReportColumn("country_code_before"), ReportColumn("country_code_after"),
    ReportColumn("quantity_before", .integer), ReportColumn("quantity_after", .integer),
    ReportColumn("currency_before"), ReportColumn("currency_after"),
    ReportColumn("amount_before", .amount), ReportColumn("amount_after", .amount),
    ReportColumn("position", .integer), ReportColumn("events", .list),
  ]

  /// Writes the entries as rows.
  package func write(to writer: any ReportWriter) throws {
    func text(_ text: String?) throws {
      guard var text, !text.isEmpty else { return try writer.write(.empty) }
      try text.withUTF8 { try writer.write(.text(UnsafeRawBufferPointer($0))) }
    }
    func amount(_ line: Line?) throws {
      try writer.write(
        line?.amountMicros.map { .amount(Int128($0), line?.currency) } ?? .empty)
    }
    try writer.begin(Self.columns)
    for entry in entries {
      guard let either = entry.after ?? entry.before else { continue }
      try text(entry.change.rawValue)
      try writer.write(.time(either.dateMs))
      for value in [either.type, either.bundleID, either.saleKey, either.productID, either.kind] {
        try text(value)
      }
      for line in [entry.before, entry.after] { try text(line?.countryCode) }
      for line in [entry.before, entry.after] {
        try writer.write(line.map { .integer($0.quantity) } ?? .empty)
      }
      for line in [entry.before, entry.after] {
        try writer.write(line?.currency.map(ReportCell.currency) ?? .empty)
      }
      for line in [entry.before, entry.after] { try amount(line) }
      try writer.write(.integer(Int64(entry.position)))
      try writer.write(.integers(entry.events.map(Int64.init)))
      try writer.endRow()
    }
    try writer.end(ReportSummary())
  }
}

// MARK: - One state of the compared books

/// Which lines of a journal are compared, and how they are shown.
package struct ComparedLines: Sendable {
  /// As the App Store names it.
  package var environment = EnvironmentName.production.description
  /// The zone of days and months.
  package var zone: TimeZoneTable = .utc
  /// The first and the last day of the lines, by their own dates in the zone, both included; nil is no limit.
  package var fromDay: CivilDate?
  package var toDay: CivilDate?
  /// The currency to convert to (rule R10); nil converts nothing.
  package var currency: Currency?
  /// R10: how many days older than its line a rate may be; nil sets no limit.
  package var ratesAgeMaxDays: Int? = ReportRequest.ratesAgeMaxDaysStandard

  /// All lines of Production, each in its own currency.
  package init() {}

  /// The lines that a report of one environment shows.
  package init(of environment: String, _ request: ReportRequest) {
    self.environment = environment
    zone = request.zone
    (fromDay, toDay) = (request.from, request.to)
    currency = request.reportingCurrency
    ratesAgeMaxDays = request.ratesAgeMaxDays
  }
}

/// What the rates of one state of the books converted, and what they did not.
package struct ComparedRates: Equatable, Sendable {
  /// The rates used (rule R10).
  package fileprivate(set) var used = UsedRates()
  /// The lines that keep their own currencies, because no rate converts them.
  package fileprivate(set) var unconvertedCount = 0
}

/// One state of the books, as a comparison reads it. Amounts are converted with the rates that were known then.
struct ComparedBooks {
  /// The first and the last day, in days since 1970-01-01; nil compares all days.
  private let days: ClosedRange<Int>?
  private var calendar: PeriodCalendar
  private var conversion: ReportingCurrency?
  private var unconvertedCount = 0
  private var lastPeriod: Period?
  private var lastMonth = ""

  init(_ database: Database, _ lines: ComparedLines) throws(ProjectionError) {
    let (first, last) = (lines.fromDay?.dayNumber ?? .min, lines.toDay?.dayNumber ?? .max)
    guard first <= last else { throw .usage("the last day comes before the first") }
    days = first == .min && last == .max ? nil : first...last
    calendar = PeriodCalendar(.month, in: lines.zone)
    guard let currency = lines.currency else { return }
    conversion = try ReportingCurrency(currency, ageMaxDays: lines.ratesAgeMaxDays, database)
  }

  /// Whether a line of this date, in epoch milliseconds, is compared.
  mutating func isWithinDays(_ dateMs: Int64) -> Bool {
    days?.contains(calendar.dayNumber(atMs: dateMs)) ?? true
  }

  /// The month of a date in epoch milliseconds, such as `2026-03`.
  mutating func month(_ dateMs: Int64) -> String {
    let period = calendar.period(atMs: dateMs)
    if period != lastPeriod {
      lastPeriod = period
      lastMonth = period.description
    }
    return lastMonth
  }

  /// R10: an amount of a line of this date, converted; unchanged if no rate allows it.
  mutating func converted(
    _ micros: Int64, _ currency: Currency, atMs dateMs: Int64
  ) -> (micros: Int64, currency: Currency) {
    guard let target = conversion?.target else { return (micros, currency) }
    guard let converted = conversion?.convert(micros, from: currency, atMs: dateMs) else {
      unconvertedCount += 1
      return (micros, currency)
    }
    return (converted, target)
  }

  /// The declarations whose rates convert a line of this date.
  mutating func rateDeclarations(_ currency: Currency?, atMs dateMs: Int64) -> [Int] {
    guard let currency else { return [] }
    let positions = conversion?.rateUse(of: currency, atMs: dateMs)?.positions ?? []
    return Set(positions.map { Int($0) }).sorted()
  }

  var isConverting: Bool { conversion != nil }

  var rates: ComparedRates {
    var rates = ComparedRates()
    rates.used = conversion?.usedRates ?? UsedRates()
    rates.unconvertedCount = unconvertedCount
    return rates
  }
}
