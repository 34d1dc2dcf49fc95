// What the journal shows of a sale, read for a batch of lines at a time.
package import Revenue

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
