// The journal report: every line in order, with details of its sale (rules R8 and R9).
import Base
import Revenue

struct JournalReport {
  /// The columns of a journal; with a reporting currency also those by which a conversion is followed down.
  static func columns(of request: ReportRequest) -> [ReportColumn] {
    columns + (request.tracesConversions ? conversionColumns : [])
      + (request.hasSettlement ? SettlementLines.columns : [])
  }

  private static let conversionColumns = [
    ReportColumn("original_amount", .amount), ReportColumn("original_currency"),
    ReportColumn("rate"), ReportColumn("rate_date", .list), ReportColumn("rate_position", .list),
  ]

  private static let columns = [
    ReportColumn("date", .time, isKey: true), ReportColumn("line", isKey: true),
    ReportColumn("environment"),
    ReportColumn("bundle_id"), ReportColumn("sale_key", isKey: true),
    ReportColumn("transaction_id"),
    ReportColumn("product_id"), ReportColumn("country_code"), ReportColumn("user_identifier"),
    ReportColumn("kind"), ReportColumn("quantity", .integer), ReportColumn("currency", isKey: true),
    ReportColumn("unit_price", .amount), ReportColumn("amount", .amount),
    ReportColumn("price_basis"), ReportColumn("reason"),
    ReportColumn("position", .integer, isKey: true),
  ]

  let source: ReportSource

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let order = try JournalOrder(source)
    var conversion = try source.request.conversion(source.database)
    var summary = ReportSummary()
    var totals: [Currency?: (quantity: Int64, amount: Int128)] = [:]
    try writer.begin(Self.columns(of: source.request))
    let settlement = try SettlementLines(source.request, source.database)
    let tracesConversions = source.request.tracesConversions
    try order.forEach { line, sale in
      var shown = line
      var unitPrice = sale.unitPriceMicros
      if let price = unitPrice, let currency = sale.currency, conversion?.convert(&shown) ?? false {
        unitPrice = conversion?.convert(price, from: currency, atMs: line.dateMs)
      }
      try write(shown, sale, unitPrice, writer)
      if tracesConversions {
        // A line that no rate converts keeps its currency.
        let own = shown.currency == line.currency ? nil : line.currency
        let use = own.flatMap { conversion?.rateUse(of: $0, atMs: line.dateMs) }
        try write(line, use, writer)
      }
      try settlement?.write(line, to: writer)
      try writer.endRow()
      totals[shown.currency, default: (0, 0)].quantity += shown.quantity
      totals[shown.currency, default: (0, 0)].amount += Int128(shown.amountMicros ?? 0)
      summary.rowCount += 1
    }
    summary.totals = totals.keys.sorted { ($0?.description ?? "") < ($1?.description ?? "") }
      .map { currency in
        let sums = totals[currency] ?? (0, 0)
        return ReportTotal(
          currency: currency,
          sums: [
            (ReportColumn("quantity", .integer), Int128(sums.quantity)),
            (ReportColumn("amount", .amount), sums.amount),
          ])
      }
    summary.rates = conversion?.usedRates ?? UsedRates()
    return summary
  }

  private func write(
    _ line: ReportLine, _ sale: LineSale, _ unitPrice: Int64?, _ writer: any ReportWriter
  ) throws {
    let symbols = source.symbols
    try writer.write(.time(line.dateMs))
    try writer.write(.word(line.type.word))
    try writer.write(.text(symbols.text(line.environment)))
    try writer.write(.text(symbols.text(line.bundle)))
    try writer.write(.text(sale.key))
    try writer.write(.text(sale.transactionID))
    try writer.write(.text(symbols.text(line.product)))
    try writer.write(.text(symbols.country(line.country)))
    try writer.write(sale.user.map(ReportCell.text) ?? .empty)
    try writer.write(.word(line.kind.word))
    try writer.write(.integer(line.quantity))
    try writer.write(line.currency.map(ReportCell.currency) ?? .empty)
    try writer.write(unitPrice.map { .amount(Int128($0), line.currency) } ?? .empty)
    try writer.write(line.amountMicros.map { .amount(Int128($0), line.currency) } ?? .empty)
    try writer.write(line.basis == .notApplicable ? .empty : .word(line.basis.word))
    try writer.write(line.reason.isEmpty ? .empty : .text(line.reason))
    try writer.write(.integer(Int64(line.position)))
  }

  /// The amount before its conversion, and the rates.
  private func write(_ line: ReportLine, _ use: RateUse?, _ writer: any ReportWriter) throws {
    try writer.write(line.amountMicros.map { .amount(Int128($0), line.currency) } ?? .empty)
    try writer.write(line.currency.map(ReportCell.currency) ?? .empty)
    guard let use else {
      for _ in 0..<3 { try writer.write(.empty) }
      return
    }
    try withText(use.rate) { try writer.write(.text($0)) }
    let days = use.days.map { Array(CivilDate(dayNumber: $0).description.utf8) }
    try Array(days.joined()).withUnsafeBytes { bytes in
      var start = 0
      let texts = days.map { day in
        defer { start += day.count }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + day.count])
      }
      try writer.write(.list(texts))
    }
    try writer.write(.integers(use.positions))
  }
}

extension ReportRequest {
  /// Whether a journal shows amounts before their conversion, which earlier versions did not.
  var tracesConversions: Bool { kind == .journal && reportingCurrency != nil && version >= 8 }
}

// MARK: - The journal's lines in order, without holding all sales: sorted by what is short, then completed batch by batch

/// A journal line's place: what orders it against lines of other dates or apps, and how to find it again.
struct JournalPlace {
  var dateMs: Int64
  /// The rank of its environment and bundle, as bytes.
  var rank: Int32
  var sale: Int32
  /// 0 for a Sale line, the ordinal in `later_lines` for others. For a pending sale, the index of its line.
  var ordinal: Int32

  @inline(__always)
  func isBeside(_ other: JournalPlace) -> Bool { dateMs == other.dateMs && rank == other.rank }
}

/// Reads the lines of a report's days in the journal's order (rule R8).
package struct JournalOrder {
  private let source: ReportSource
  private var places: [JournalPlace] = []
  private let batchLineCount: Int

  /// - Parameter batchLineCount: how many lines are completed at a time. The sales of a batch are read in the order in
  ///   which they are stored, so larger batches read less often.
  package init(_ source: ReportSource, batchLineCount: Int = 1 << 16) throws {
    self.source = source
    self.batchLineCount = batchLineCount
    try collect()
    places.sort { left, right in
      if left.dateMs != right.dateMs { return left.dateMs < right.dateMs }
      if left.rank != right.rank { return left.rank < right.rank }
      if left.sale != right.sale { return left.sale < right.sale }
      return left.ordinal < right.ordinal
    }
  }

  private mutating func collect() throws {
    // Rows are counted, not taken from a number in one of them. What is reserved but never used takes no memory.
    let lineCount = try source.database.integer(
      """
      SELECT (SELECT count(*) FROM later_lines)
      + (SELECT count(*) FROM \(SaleFigures.table)) * \(SaleFigures.rowCapacity)
      """)
    places.reserveCapacity(Int(lineCount ?? 0) + (source.pending?.lines.count ?? 0))
    var apps = AppRanks()
    try source.forEachLine { line throws(ProjectionError) in
      guard source.isWithinDays(source.decidingDateMs(line)) else { return }
      guard let sale = Int32(exactly: line.sale) else {
        throw .inconsistent("the sales do not match their journal")
      }
      places.append(
        JournalPlace(
          dateMs: line.dateMs, rank: apps.number(line.environment, line.bundle), sale: sale,
          ordinal: line.ordinal))
    }
    let ranks = apps.ranks(source.symbols)
    for index in places.indices { places[index].rank = ranks[Int(places[index].rank)] }
  }

  /// Calls `body` with each line and its sale. Their texts are valid during the call.
  package func forEach(_ body: (ReportLine, LineSale) throws -> Void) throws {
    let reader = try JournalReader(source)
    var start = 0
    while start < places.count {
      var end = min(start + batchLineCount, places.count)
      // Lines that only their keys can order must be in the same batch.
      while end < places.count, places[end].isBeside(places[end - 1]) { end += 1 }
      let batch = try reader.batch(of: places[start..<end])
      try Self.forEach(places[start..<end], batch, reader, body)
      start = end
    }
  }

  private static func forEach(
    _ places: ArraySlice<JournalPlace>, _ batch: JournalBatch, _ reader: JournalReader,
    _ body: (ReportLine, LineSale) throws -> Void
  ) throws {
    var beside: [(line: ReportLine, sale: LineSale)] = []
    var start = places.startIndex
    while start < places.endIndex {
      var end = start + 1
      while end < places.endIndex, places[end].isBeside(places[start]) { end += 1 }
      beside.removeAll(keepingCapacity: true)
      for place in places[start..<end] {
        let sale = try batch.sale(place.sale)
        beside.append((try reader.line(place, sale, keptIn: batch.arena), sale))
      }
      if beside.count > 1 { beside.sort { Self.precedes($0, $1) } }
      for (line, sale) in beside { try body(line, sale) }
      start = end
    }
  }

  /// R8: after date, environment and bundle: key, position, Sale < Return < Reversal.
  private static func precedes(
    _ left: (line: ReportLine, sale: LineSale), _ right: (line: ReportLine, sale: LineSale)
  ) -> Bool {
    let keys = left.sale.key.order(right.sale.key)
    if keys != 0 { return keys < 0 }
    if left.line.position != right.line.position { return left.line.position < right.line.position }
    if left.line.type != right.line.type {
      return left.line.type.rawValue < right.line.type.rawValue
    }
    return left.sale.keyKind.rawValue < right.sale.keyKind.rawValue
  }
}

/// Numbers pairs of environment and bundle as they come, and ranks them at the end.
private struct AppRanks {
  private var pairs: [(environment: Symbol, bundle: Symbol)] = []
  private var numbers: [UInt64: Int32] = [:]
  /// Consecutive lines often have the same pair.
  private var last: (key: UInt64, number: Int32)?

  mutating func number(_ environment: Symbol, _ bundle: Symbol) -> Int32 {
    let key =
      UInt64(UInt32(bitPattern: environment)) << 32 | UInt64(UInt32(bitPattern: bundle))
    if let last, last.key == key { return last.number }
    var number = Int32(pairs.count)
    if let known = numbers[key] {
      number = known
    } else {
      pairs.append((environment, bundle))
      numbers[key] = number
    }
    last = (key, number)
    return number
  }

  /// The rank of each number, by the texts of environment and bundle as bytes.
  func ranks(_ symbols: StringInterner) -> [Int32] {
    let sorted = pairs.indices.sorted { left, right in
      let (one, other) = (pairs[left], pairs[right])
      let environments = symbols.text(one.environment).order(symbols.text(other.environment))
      if environments != 0 { return environments < 0 }
      return symbols.text(one.bundle).precedes(symbols.text(other.bundle))
    }
    var ranks = [Int32](repeating: 0, count: pairs.count)
    for (rank, number) in sorted.enumerated() { ranks[number] = Int32(rank) }
    return ranks
  }
}
