// The sales report: each sale, with the positions of the events that determined its values (rule R9).
package import Revenue

struct SalesReport {
  static func columns(of request: ReportRequest) -> [ReportColumn] {
    request.hasSettlement ? columns + SettlementLines.columns : columns
  }

  private static let columns = [
    ReportColumn("environment"), ReportColumn("bundle_id"), ReportColumn("sale_key", isKey: true),
    ReportColumn("product_id"), ReportColumn("kind"), ReportColumn("quantity", .integer),
    ReportColumn("sale_date", .time), ReportColumn("original_transaction_id"),
    ReportColumn("transaction_ids", .list), ReportColumn("first_position", .integer, isKey: true),
    ReportColumn("country_code"), ReportColumn("country_position", .integer),
    ReportColumn("user_identifier"), ReportColumn("user_position", .integer),
    ReportColumn("user_basis"),
    ReportColumn("currency", isKey: true), ReportColumn("unit_price", .amount),
    ReportColumn("price_basis"),
    ReportColumn("price_position", .integer), ReportColumn("is_upgraded", .flag),
    ReportColumn("cancelled", .flag), ReportColumn("cancellation_positions", .list),
    ReportColumn("reversal_positions", .list), ReportColumn("pending", .flag),
  ]

  let source: ReportSource

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let list = try SaleList(source)
    let users = try source.userIdentifiers()
    let transactions = try list.transactions()
    var returns: [Int: [Int64]] = [:]
    var reversals: [Int: [Int64]] = [:]
    try source.forEachLine { line throws(ProjectionError) in
      switch line.type {
      case .sale: break
      case .return: returns[line.sale, default: []].append(Int64(line.position))
      case .reversal: reversals[line.sale, default: []].append(Int64(line.position))
      }
    }
    var summary = ReportSummary()
    let settlement = try SettlementLines(source.request, source.database)
    try writer.begin(Self.columns(of: source.request))
    for sale in sorted(list) {
      try write(
        sale, users[sale.user], transactions[sale.id] ?? [], returns[sale.id] ?? [],
        reversals[sale.id] ?? [], writer)
      try settlement?.write(Self.saleLine(of: sale), to: writer)
      try writer.endRow()
      summary.rowCount += 1
    }
    return summary
  }

  private static func saleLine(of sale: Sale) -> ReportLine {
    ReportLine(
      JournalLine(
        .sale, dateMs: sale.saleDateMs, quantity: sale.quantity, amountMicros: sale.amountMicros,
        position: sale.firstPosition, reason: Text(start: nil, count: 0)), of: sale)
  }

  /// R9: sorted by environment, bundle and key.
  private func sorted(_ list: SaleList) -> [Sale] {
    let symbols = source.symbols
    return list.sales.filter {
      source.shows($0) && source.isWithinDays($0.saleDateMs)
    }.sorted { left, right in
      if left.environment != right.environment {
        return symbols.text(left.environment).precedes(symbols.text(right.environment))
      }
      if left.bundle != right.bundle {
        return symbols.text(left.bundle).precedes(symbols.text(right.bundle))
      }
      let keys = left.key.order(right.key)
      return keys != 0 ? keys < 0 : left.keyKind.rawValue < right.keyKind.rawValue
    }
  }

  private func write(
    _ sale: Sale, _ user: Text?, _ transactions: [Text], _ returns: [Int64],
    _ reversals: [Int64], _ writer: any ReportWriter
  ) throws {
    let symbols = source.symbols
    func position(_ value: Int) -> ReportCell { value >= 0 ? .integer(Int64(value)) : .empty }
    try writer.write(.text(symbols.text(sale.environment)))
    try writer.write(.text(symbols.text(sale.bundle)))
    try writer.write(.text(sale.key))
    try writer.write(.text(symbols.text(sale.product)))
    try writer.write(.word(sale.kind.word))
    try writer.write(.integer(sale.quantity))
    try writer.write(.time(sale.saleDateMs))
    try writer.write(.text(sale.originalTransactionID))
    try writer.write(.list(transactions))
    try writer.write(position(sale.firstPosition))
    try writer.write(.text(symbols.country(sale.country)))
    try writer.write(position(sale.countryPosition))
    try writer.write(user.map(ReportCell.text) ?? .empty)
    try writer.write(position(sale.userPosition))
    try writer.write(sale.userBasis == .none ? .empty : .word(sale.userBasis.word))
    try writer.write(sale.price.map { .currency($0.currency) } ?? .empty)
    try writer.write(sale.price.map { .amount(Int128($0.micros), $0.currency) } ?? .empty)
    try writer.write(sale.priceBasis == .notApplicable ? .empty : .word(sale.priceBasis.word))
    try writer.write(position(sale.pricePosition))
    try writer.write(.flag(sale.isUpgraded))
    try writer.write(.flag(sale.cancellationState == .returned))
    try writer.write(.integers(returns))
    try writer.write(.integers(reversals))
    try writer.write(.flag(sale.isPending))
  }
}

// MARK: - What the journal shows of a sale, read for a batch of lines at a time

/// The part of a sale that its journal lines show.
package struct LineSale {
  var figures: SaleFigures
  var currency: Currency?
  var keyKind: KeyKind
  package var key: Text
  var transactionID: Text
  /// Nil if no upload or transaction names a user.
  package var user: Text?
  /// The price of one unit; nil if there is none.
  var unitPriceMicros: Int64?
}

/// The sales of a batch of lines.
struct JournalBatch {
  /// In ascending order.
  fileprivate(set) var numbers: [Int32] = []
  fileprivate(set) var sales: [LineSale] = []
  /// Holds their texts.
  let arena = TextArena()

  /// The sale with a number; throws if it was not found.
  func sale(_ number: Int32) throws(ProjectionError) -> LineSale {
    var (low, high) = (0, numbers.count)
    while low < high {
      let middle = (low + high) / 2
      if numbers[middle] < number { low = middle + 1 } else { high = middle }
    }
    guard low < sales.count, numbers[low] == number
    else { throw .inconsistent("the sales do not match their journal") }
    return sales[low]
  }
}

/// Reads sales and lines by their numbers.
final class JournalReader {
  /// Sales whose numbers differ by at most this are read in one pass: that costs less than looking up the next.
  private static let nearbyCount: Int32 = 4

  private let source: ReportSource
  /// The number of the first pending sale.
  private let pendingStart: Int32
  private let selectSales: Statement
  private let selectUser: Statement
  private let selectLine: Statement

  init(_ source: ReportSource) throws(DatabaseError) {
    self.source = source
    let database = source.database
    pendingStart = try database.nextNumber(of: "sales")
    selectSales = try database.prepare(
      """
      SELECT s.id, s.environment, s.bundle, s.key_kind, s.sale_key, s.product, s.quantity,
        s.sale_date_ms, s.kind, s.transaction_id, s.first_position, s.country,
        s.unit_price_micros, s.currency, s.price_basis, s.trust, s.amount_micros, u.user_identifier
      FROM sales s LEFT JOIN users u ON u.id = s.user WHERE s.id BETWEEN ? AND ? ORDER BY s.id
      """)
    selectUser = try database.prepare("SELECT user_identifier FROM users WHERE id = ?")
    selectLine = try database.prepare(
      """
      SELECT line, date_ms, position, reason, quantity, amount_micros FROM later_lines
      WHERE sale = ? AND ordinal = ?
      """)
  }

  // MARK: Sales

  /// The sales of some lines.
  func batch(of places: ArraySlice<JournalPlace>) throws -> JournalBatch {
    var batch = JournalBatch()
    var numbers = places.map(\.sale)
    numbers.sort()
    batch.numbers.reserveCapacity(numbers.count)
    for number in numbers where batch.numbers.last != number { batch.numbers.append(number) }
    batch.sales.reserveCapacity(batch.numbers.count)
    var index = 0
    while index < batch.numbers.count {
      // Sales that are stored side by side, with few others between them, are read in one pass.
      var end = index + 1
      while end < batch.numbers.count,
        batch.numbers[end] - batch.numbers[end - 1] <= Self.nearbyCount
      { end += 1 }
      let (first, last) = (batch.numbers[index], batch.numbers[end - 1])
      if first < pendingStart { try readSales(first...last, into: &batch) }
      index = end
    }
    try addPending(to: &batch)
    return batch
  }

  /// Reads those sales between two numbers that the batch names. Numbers that are missing in the database are missing
  /// in the batch.
  private func readSales(_ range: ClosedRange<Int32>, into batch: inout JournalBatch) throws {
    selectSales.bind(1, Int(range.lowerBound))
    selectSales.bind(2, Int(range.upperBound))
    defer { selectSales.reset() }
    while try selectSales.step() {
      let next = batch.sales.count
      guard next < batch.numbers.count else { break }
      let number = selectSales.integer(0)
      if number < Int64(batch.numbers[next]) { continue }
      guard number == Int64(batch.numbers[next])
      else { throw ProjectionError.inconsistent("the sales do not match their journal") }
      batch.sales.append(try sale(batch.arena))
    }
  }

  /// The sale in the row of `selectSales`.
  private func sale(_ arena: TextArena) throws -> LineSale {
    let row = selectSales
    let quantity = row.integer(6)
    // Other programs may write to the file.
    guard 1...Sale.quantityMax ~= quantity
    else { throw ProjectionError.inconsistent("the sales do not match their journal") }
    let currency =
      row.isNull(12) || row.isNull(16)
      ? nil : try source.currency(try row.symbol(13))
    let figures = SaleFigures(
      saleDateMs: try row.instant(7), amountMicros: currency == nil ? 0 : try row.unsigned(16),
      firstPosition: try row.unsigned(10), environment: try row.number(1),
      bundle: try row.number(2),
      product: try row.number(5),
      country: try row.symbol(11),
      currency: .none, quantity: Int32(quantity), kind: try row.code(8),
      priceBasis: try row.code(14),
      trust: try row.code(15))
    return LineSale(
      figures: figures, currency: currency, keyKind: try row.code(3),
      key: arena.keep(row.bytes(4)), transactionID: arena.keep(row.bytes(9)),
      user: row.isNull(17) ? nil : arena.keep(row.bytes(17)),
      unitPriceMicros: currency == nil ? nil : row.integer(12))
  }

  private func addPending(to batch: inout JournalBatch) throws(DatabaseError) {
    guard let pending = source.pending else { return }
    while batch.sales.count < batch.numbers.count {
      let index = Int(batch.numbers[batch.sales.count]) - Int(pendingStart)
      // A confirmed sale that is missing leaves the rest of the batch empty, which is found out with its line.
      guard pending.sales.indices.contains(index) else { return }
      let sale = pending.sales[index]
      var user: Text?
      if sale.user >= 0 {
        selectUser.bind(1, Int(sale.user))
        defer { selectUser.reset() }
        if try selectUser.step() { user = batch.arena.keep(selectUser.bytes(0)) }
      }
      batch.sales.append(
        LineSale(
          figures: SaleFigures(sale, currency: .none), currency: sale.price?.currency,
          keyKind: sale.keyKind, key: sale.key, transactionID: sale.transactionID, user: user,
          unitPriceMicros: sale.price?.micros))
    }
  }

  // MARK: Lines

  /// The line at a place, with its reason in `arena`.
  func line(
    _ place: JournalPlace, _ sale: LineSale, keptIn arena: TextArena
  ) throws -> ReportLine {
    if place.sale >= pendingStart, let pending = source.pending {
      return pending.lines[Int(place.ordinal)]
    }
    if place.ordinal == 0 { return ReportLine(sale.figures, Int(place.sale), sale.currency) }
    selectLine.bind(1, Int(place.sale))
    selectLine.bind(2, Int(place.ordinal))
    defer { selectLine.reset() }
    // The same transaction has shown the line before.
    guard try selectLine.step()
    else { throw ProjectionError.inconsistent("the sales do not match their journal") }
    return ReportLine(
      try selectLine.code(0), of: sale.figures, Int(place.sale), sale.currency,
      dateMs: try selectLine.instant(1),
      quantity: selectLine.integer(4), amountMicros: selectLine.optionalInteger(5),
      position: try selectLine.ordinal(2), reason: arena.keep(selectLine.bytes(3)))
  }
}

// MARK: - All sales that a report may show, both confirmed and pending, with the data it needs about each

/// Sales in memory, looked up by number.
package final class SaleList {
  /// Confirmed sales in numerical order, then pending ones.
  private(set) var sales: [Sale]
  private let source: ReportSource

  package init(_ source: ReportSource) throws(ProjectionError) {
    self.source = source
    let lastOfJournal: Int64
    do throws(DatabaseError) {
      sales = try SaleTable(source.database, source.symbols, isFresh: true).all(source.arena)
      lastOfJournal = try source.database.integer("SELECT max(sale) FROM later_lines") ?? -1
    } catch { throw .database(error) }
    // Sales are numbered from 0 without gaps, in the order of first observation. Check this, because other programs
    // may write to the file.
    guard sales.indices.allSatisfy({ sales[$0].id == $0 }), lastOfJournal < sales.count else {
      throw .inconsistent("the sales do not match their journal")
    }
    if source.request.includesPending, let pending = source.pending { sales += pending.sales }
  }

  /// The sale with a number.
  package func sale(_ id: Int) -> Sale {
    // The numbers of pending sales continue those of confirmed ones.
    precondition(sales[id].id == id, "a line of a missing sale")
    return sales[id]
  }

  /// The transaction ids of each sale, sorted as bytes.
  func transactions() throws(ProjectionError) -> [Int: [Text]] {
    var result: [Int: [Text]] = [:]
    do throws(DatabaseError) {
      let rows = try source.database.prepare(
        """
        SELECT sale, transaction_id FROM sale_transactions
        UNION ALL SELECT id, transaction_id FROM sales WHERE is_transaction_alias = 1 ORDER BY 1, 2
        """)
      while try rows.step() {
        let sale = try rows.ordinal(0)
        result[sale, default: []].append(source.arena.keep(rows.bytes(1)))
      }
    } catch { throw .database(error) }
    if let pending = source.pending {
      for place in pending.store.sales.indices where pending.store.sales[place].isPending {
        result[pending.store.sales[place].id] = pending.store.sortedAliases(place)
      }
    }
    return result
  }
}

// MARK: - A set of sales by number, so that a report that passes over every line asks the database once

/// The numbers of some sales, confirmed and pending.
struct SaleNumbers {
  private var numbers: Set<Int> = []

  /// The confirmed sales for which an SQL condition on the table `sales` holds, and the pending ones for which
  /// `isHeld` does.
  /// - Parameter bind: gives the condition's parameters their values.
  init(
    _ source: ReportSource, _ condition: StaticString, bind: (Statement) -> Void = { _ in },
    pending isHeld: (Sale) -> Bool
  ) throws(ProjectionError) {
    do throws(DatabaseError) {
      let rows = try source.database.prepare("SELECT id FROM sales WHERE \(condition)")
      bind(rows)
      while try rows.step() { numbers.insert(try rows.ordinal(0)) }
    } catch { throw .database(error) }
    for sale in source.pending?.sales ?? [] where isHeld(sale) { numbers.insert(sale.id) }
  }

  func holds(_ sale: Int) -> Bool { numbers.contains(sale) }
}
