// Compares revenue between two states of the books, by month, country and currency, and lists the sales behind it.
import AppStore
import Base
import Revenue

/// The revenue of one environment before and after, where it differs. It is read from `journal_view`, whose columns
/// are stable, so the two databases may be of different versions.
package struct RevenueDifference: Equatable, Sendable {
  /// Where revenue is booked. The month is that of the line's date in the comparison's zone.
  package struct Place: Hashable, Sendable {
    /// For example `2026-03`.
    package let month: String
    /// `ZZ` if unknown.
    package let countryCode: String
    /// Nil for lines without a price. The reporting currency where a rate converts the line.
    package let currency: String?
  }

  /// Sums of journal lines.
  package struct Figures: Equatable, Sendable {
    /// Gross minus returns plus reversals (rule R9); 0 if nothing is priced.
    package fileprivate(set) var netMicros: Int128 = 0
    /// Units of paid sales, minus returned units, plus reversed units.
    package fileprivate(set) var netUnits = 0

    fileprivate static func += (left: inout Figures, right: Figures) {
      left.netMicros += right.netMicros
      left.netUnits += right.netUnits
    }
  }

  /// A sale that is booked differently.
  package struct Sale: Equatable, Sendable {
    package let bundleID: String
    package let saleKey: String
    package let productID: String
    package let before: Figures
    package let after: Figures
  }

  /// A place where the sums differ, or the sales behind them.
  package struct Row: Equatable, Sendable {
    package let place: Place
    package let before: Figures
    package let after: Figures
    /// How many sales are booked differently in this place.
    package let saleCount: Int
    /// The first of these sales, sorted by bundle and key.
    package let sales: [Sale]
  }

  /// Sorted by month, country and currency.
  package let rows: [Row]
  /// The rates of the older state that were used.
  package let ratesBefore: ComparedRates
  /// The rates of the newer state that were used.
  package let ratesAfter: ComparedRates

  package var isEmpty: Bool { rows.isEmpty }

  /// Compares the journals of two databases line by line. Memory use grows only with the number of places.
  ///
  /// With a currency, each state's lines are converted with the rates that it knew. A rate that was declared later is
  /// therefore a difference, and both databases must be of this program's version.
  /// - Parameters:
  ///   - lines: which lines are compared, and in which currency.
  ///   - saleLimit: the maximum number of sales to keep for each row.
  ///   - isCancelled: called for each sale; if it returns true, the initializer throws `interrupted`.
  package init(
    from older: Database, to newer: Database, _ lines: ComparedLines = .init(), saleLimit: Int = 10,
    isCancelled: () -> Bool = { false }
  ) throws(ProjectionError) {
    var sums = DifferenceSums(saleLimit: saleLimit)
    var olderSales = try JournalCursor(older, lines)
    var newerSales = try JournalCursor(newer, lines)
    do throws(DatabaseError) {
      var before = try olderSales.next()
      var after = try newerSales.next()
      while before != nil || after != nil {
        if isCancelled() { break }
        switch JournalSale.order(before, after) {
        case .olderFirst:
          sums.add(before, nil)
          before = try olderSales.next()
        case .newerFirst:
          sums.add(nil, after)
          after = try newerSales.next()
        case .same:
          sums.add(before, after)
          before = try olderSales.next()
          after = try newerSales.next()
        }
      }
    } catch { throw .database(error) }
    if isCancelled() { throw .interrupted }
    rows = sums.rows
    ratesBefore = olderSales.books.rates
    ratesAfter = newerSales.books.rates
  }
}

/// The sums of each place, and the sales that differ there.
private struct DifferenceSums {
  private struct Entry {
    var before = RevenueDifference.Figures()
    var after = RevenueDifference.Figures()
    var saleCount = 0
    var sales: [RevenueDifference.Sale] = []
  }

  private let saleLimit: Int
  private var entries: [RevenueDifference.Place: Entry] = [:]

  init(saleLimit: Int) { self.saleLimit = saleLimit }

  mutating func add(_ before: JournalSale?, _ after: JournalSale?) {
    guard let sale = after ?? before else { return }
    var places = before?.parts ?? [:]
    for (place, _) in after?.parts ?? [:] where places[place] == nil {
      places[place] = .init()
    }
    for place in places.keys {
      let old = before?.parts[place]
      let new = after?.parts[place]
      add(old, new, at: place, of: sale)
    }
  }

  private mutating func add(
    _ old: RevenueDifference.Figures?, _ new: RevenueDifference.Figures?,
    at place: RevenueDifference.Place, of sale: JournalSale
  ) {
    let (old, new) = (old ?? .init(), new ?? .init())
    entries[place, default: Entry()].before += old
    entries[place, default: Entry()].after += new
    if old == new { return }
    entries[place, default: Entry()].saleCount += 1
    guard entries[place]?.sales.count ?? 0 < saleLimit else { return }
    entries[place, default: Entry()].sales.append(
      RevenueDifference.Sale(
        bundleID: sale.bundleID, saleKey: sale.saleKey, productID: sale.productID,
        before: old, after: new))
  }

  /// The places with a difference, sorted.
  var rows: [RevenueDifference.Row] {
    func key(_ place: RevenueDifference.Place) -> [String] {
      [place.month, place.countryCode, place.currency ?? ""]
    }
    return entries.filter { $0.value.saleCount > 0 }.map { place, entry in
      RevenueDifference.Row(
        place: place, before: entry.before, after: entry.after, saleCount: entry.saleCount,
        sales: entry.sales)
    }.sorted { key($0.place).lexicographicallyPrecedes(key($1.place)) }
  }
}

/// One sale's lines, summed by place.
private struct JournalSale {
  enum Order { case olderFirst, newerFirst, same }

  /// The sort key, bundle id and sale key: compared byte by byte, as the database does.
  let key: ([UInt8], [UInt8])
  let productID: String
  var parts: [RevenueDifference.Place: RevenueDifference.Figures] = [:]

  var bundleID: String { String(decoding: key.0, as: UTF8.self) }
  var saleKey: String { String(decoding: key.1, as: UTF8.self) }

  /// Which of two sales comes first; an absent one comes last.
  static func order(_ older: JournalSale?, _ newer: JournalSale?) -> Order {
    guard let older else { return .newerFirst }
    guard let newer else { return .olderFirst }
    if older.key == newer.key { return .same }
    let isOlderFirst =
      older.key.0 == newer.key.0
      ? older.key.1.lexicographicallyPrecedes(newer.key.1)
      : older.key.0.lexicographicallyPrecedes(newer.key.0)
    return isOlderFirst ? .olderFirst : .newerFirst
  }
}

/// Reads a journal sale by sale.
private struct JournalCursor {
  private(set) var books: ComparedBooks
  private let rows: Statement
  private var isAtRow = false

  init(_ database: Database, _ lines: ComparedLines) throws(ProjectionError) {
    books = try ComparedBooks(database, lines)
    let kinds = SaleKind.allCases.filter(\.isPaid).map { "'\($0.word)'" }.joined(separator: ", ")
    do throws(DatabaseError) {
      rows = try database.prepare(
        """
        SELECT coalesce(bundle_id, ''), sale_key, coalesce(product_id, ''), date_ms,
        country_code, currency, iif(kind IN (\(kinds)), quantity, 0), coalesce(amount_micros, 0)
        FROM journal_view WHERE environment = ? ORDER BY 1, 2
        """)
      rows.bind(1, text: lines.environment)
      isAtRow = try rows.step()
    } catch { throw .database(error) }
  }

  /// The next sale, with its lines of the days that are compared; nil at the end.
  mutating func next() throws(DatabaseError) -> JournalSale? {
    guard isAtRow else { return nil }
    let key = (Array(rows.bytes(0)), Array(rows.bytes(1)))
    var sale = JournalSale(key: key, productID: rows.text(2))
    while isAtRow, rows.bytes(0).elementsEqual(key.0), rows.bytes(1).elementsEqual(key.1) {
      if books.isWithinDays(rows.integer(3)) { addLine(to: &sale) }
      isAtRow = try rows.step()
    }
    return sale
  }

  private mutating func addLine(to sale: inout JournalSale) {
    let dateMs = rows.integer(3)
    var currency = rows.optionalText(5)
    var figures = RevenueDifference.Figures()
    figures.netUnits = Int(rows.integer(6))
    figures.netMicros = Int128(rows.integer(7))
    if books.isConverting, let own = Currency.parse(rows.bytes(5)) {
      let converted = books.converted(rows.integer(7), own, atMs: dateMs)
      figures.netMicros = Int128(converted.micros)
      currency = converted.currency.description
    }
    let place = RevenueDifference.Place(
      month: books.month(dateMs), countryCode: rows.text(4), currency: currency)
    sale.parts[place, default: .init()] += figures
  }
}
