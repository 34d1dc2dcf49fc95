// The revenue report: journal lines summed by the requested dimensions (rule R9).
package import Revenue

/// The sums of one row.
struct RevenueSums {
  var units: Int64 = 0
  var gross: Int128 = 0
  var returnedUnits: Int64 = 0
  var returns: Int128 = 0
  var reversedUnits: Int64 = 0
  var reversals: Int128 = 0
  var unpricedUnits: Int64 = 0
  var trials: Int64 = 0
  var familyShared: Int64 = 0

  /// R9: gross − returns + reversals.
  var net: Int128 { gross - returns + reversals }

  /// R9: adds a line; returns false if the line changes no column.
  mutating func add(_ line: ReportLine) -> Bool {
    if !line.kind.isPaid {
      guard line.type == .sale else { return false }
      if line.kind == .trial { trials += 1 } else { familyShared += 1 }
      return true
    }
    // 128 bits hold the sum of more lines than a log can have: 2^64 lines of 2^63 micros each.
    let amount = Int128(line.amountMicros ?? 0)
    switch line.type {
    case .sale:
      units += line.quantity
      gross += amount
      if line.amountMicros == nil { unpricedUnits += line.quantity }
    // R12: a Reversal that ends at part of the units may take some.
    case .return:
      returnedUnits -= line.quantity
      returns -= amount
    case .reversal:
      reversedUnits += line.quantity
      reversals += amount
    }
    return true
  }

  mutating func add(_ other: RevenueSums) {
    units += other.units
    gross += other.gross
    returnedUnits += other.returnedUnits
    returns += other.returns
    reversedUnits += other.reversedUnits
    reversals += other.reversals
    unpricedUnits += other.unpricedUnits
    trials += other.trials
    familyShared += other.familyShared
  }

  /// R9: the columns after the dimensions and the currency.
  static let columns = [
    ReportColumn("units", .integer), ReportColumn("gross", .amount),
    ReportColumn("returned_units", .integer), ReportColumn("returns", .amount),
    ReportColumn("reversed_units", .integer), ReportColumn("reversals", .amount),
    ReportColumn("net", .amount), ReportColumn("unpriced_units", .integer),
    ReportColumn("trials", .integer), ReportColumn("family_shared", .integer),
  ]

  /// The values of `columns`, in their order.
  var values: InlineArray<10, Int128> {
    [
      Int128(units), gross, Int128(returnedUnits), returns, Int128(reversedUnits), reversals, net,
      Int128(unpricedUnits), Int128(trials), Int128(familyShared),
    ]
  }
}

struct RevenueReport {
  /// What identifies a row: numbers for the dimensions' values, in the requested order, then the currency's ordinal
  /// at `currencyIndex`.
  private struct Key {
    static let currencyIndex = 7
    var numbers = InlineArray<8, Int64>(repeating: 0)

    var currency: Currency? {
      let number = numbers[Self.currencyIndex]
      return number < 0 ? nil : Currency(ordinal: UInt8(number))
    }

    @inline(__always)
    static func == (left: Key, right: Key) -> Bool {
      for index in 0..<8 where left.numbers[index] != right.numbers[index] { return false }
      return true
    }

    var hash: UInt64 { withUnsafeBytes(of: numbers) { $0.placeHash() } }
  }

  private let source: ReportSource
  private var conversion: ReportingCurrency?
  private let dimensions: [ReportDimension]
  private let places = HashIndex()
  private var rows: [(key: Key, sums: RevenueSums)] = []
  /// The row of the previous line; consecutive lines often share a row.
  private var lastPlace = 0
  private var periods: [Int64: Period] = [:]
  /// The confirmed sales that have a line in the report's days.
  private(set) var shownSales = ShownSales()

  /// The columns of revenue that is split by `dimensions`.
  static func columns(_ dimensions: [ReportDimension]) -> [ReportColumn] {
    dimensions.map { ReportColumn($0.column, isKey: true) }
      + [ReportColumn("currency", isKey: true)] + RevenueSums.columns
  }

  init(_ source: ReportSource) throws(ProjectionError) {
    self.source = source
    dimensions = source.request.dimensions
    precondition(dimensions.count <= Key.currencyIndex, "too many dimensions")
    conversion = try source.request.conversion(source.database)
  }

  /// Writes the report; returns its totals and remarks.
  mutating func write(to writer: any ReportWriter) throws -> ReportSummary {
    // A local copy can be changed in place.
    var conversion = self.conversion
    try source.forEachConfirmedLine { line throws(ProjectionError) in
      let dateMs = source.decidingDateMs(line)
      guard source.isWithinDays(dateMs) else { return }
      shownSales.note(line)
      try add(line, dateMs, &conversion)
    }
    try source.forEachPendingLine { line throws(ProjectionError) in
      let dateMs = source.decidingDateMs(line)
      if source.isWithinDays(dateMs) { try add(line, dateMs, &conversion) }
    }
    return try finish(writer, rates: conversion?.usedRates ?? UsedRates())
  }

  private mutating func add(
    _ line: ReportLine, _ dateMs: Int64, _ conversion: inout ReportingCurrency?
  ) throws(ProjectionError) {
    var line = line
    if conversion != nil { _ = conversion?.convert(&line) }
    var sums = RevenueSums()
    guard sums.add(line) else { return }
    let key = key(line, dateMs)
    if rows.isEmpty || !(rows[lastPlace].key == key) { lastPlace = place(key) }
    rows[lastPlace].sums.add(sums)
  }

  private mutating func place(_ key: Key) -> Int {
    let hash = key.hash
    if let known = places.find(hash, { rows[$0].key == key }) { return known }
    rows.append((key, RevenueSums()))
    places.insert(hash, rows.count - 1)
    return rows.count - 1
  }

  private mutating func key(_ line: ReportLine, _ dateMs: Int64) -> Key {
    var key = Key()
    key.numbers[Key.currencyIndex] = line.currency.map { Int64($0.ordinal) } ?? -1
    for index in dimensions.indices {
      key.numbers[index] =
        switch dimensions[index] {
        case .period: number(of: source.period(dateMs))
        case .app: Int64(line.bundle)
        case .product: Int64(line.product)
        case .country: Int64(line.country)
        case .environment: Int64(line.environment)
        case .basis: Int64(line.basis.rawValue)
        case .trust: Int64(line.trust.rawValue)
        }
    }
    return key
  }

  private mutating func number(of period: Period) -> Int64 {
    let number = Int64(period.ordinal)
    if periods[number] == nil { periods[number] = period }
    return number
  }

  private func text(_ dimension: ReportDimension, _ number: Int64) -> [UInt8] {
    switch dimension {
    case .period: Array((periods[number]?.description ?? "").utf8)
    case .country: Array(source.symbols.country(Symbol(number)))
    case .basis: Array((PriceBasis(rawValue: Int8(number)) ?? .none).word.text)
    case .trust: Array((ReplyTrust(rawValue: Int8(number)) ?? .notRecorded).word.text)
    default: Array(source.symbols.text(Symbol(number)))
    }
  }

  /// A dimension's values: their texts, sorted as bytes, and the index of each number's text.
  private struct Values {
    var texts: [[UInt8]] = []
    var ranks: [Int64: Int] = [:]
  }

  private func values(ofDimensionAt index: Int) -> Values {
    let numbers = Set(rows.map { $0.key.numbers[index] })
    let sorted = numbers.map { (number: $0, text: text(dimensions[index], $0)) }
      .sorted { $0.text.lexicographicallyPrecedes($1.text) }
    var values = Values()
    for (number, text) in sorted {
      // Two numbers may have the same text.
      if values.texts.last != text { values.texts.append(text) }
      values.ranks[number] = values.texts.count - 1
    }
    return values
  }

  /// R9: sorts rows by the dimensions in the given order, then by currency, as bytes. Ranks replace the numbers of
  /// the dimensions' values.
  private func sortedPlaces(_ values: [Values]) -> [(place: Int, ranks: Key)] {
    rows.indices.map { place in
      // Currencies are numbered in the order of their codes.
      var ranks = rows[place].key
      for index in dimensions.indices {
        ranks.numbers[index] = Int64(values[index].ranks[ranks.numbers[index]] ?? 0)
      }
      return (place: place, ranks: ranks)
    }.sorted { left, right in
      for index in 0..<8 where left.ranks.numbers[index] != right.ranks.numbers[index] {
        return left.ranks.numbers[index] < right.ranks.numbers[index]
      }
      return left.place < right.place
    }
  }

  /// Rounds the rows; ties go by their order. Net follows from the rounded figures.
  /// - Returns: whether an amount changed.
  private mutating func roundRows(_ places: [Int]) -> Bool {
    var hasChanged = false
    for (currency, places) in Dictionary(grouping: places, by: { rows[$0].key.currency }) {
      guard let currency else { continue }
      var sums = places.map { rows[$0].sums }
      let columns: [WritableKeyPath<RevenueSums, Int128>] = [\.gross, \.returns, \.reversals]
      guard MinorRounding.round(&sums, columns, currency) else { continue }
      hasChanged = true
      for (place, sums) in zip(places, sums) { rows[place].sums = sums }
    }
    return hasChanged
  }

  private mutating func finish(
    _ writer: any ReportWriter, rates: UsedRates
  ) throws -> ReportSummary {
    let values = dimensions.indices.map { self.values(ofDimensionAt: $0) }
    let columns = RevenueSums.columns
    try writer.begin(Self.columns(dimensions))
    var summary = ReportSummary()
    var totals: [Currency?: RevenueSums] = [:]
    let sorted = sortedPlaces(values)
    if source.request.rounding == .computedNet {
      summary.isRounded = roundRows(sorted.map(\.place))
    }
    for (place, ranks) in sorted {
      let row = rows[place]
      for index in dimensions.indices {
        try values[index].texts[Int(ranks.numbers[index])].withUnsafeBytes {
          try writer.write($0.isEmpty ? .empty : .text($0))
        }
      }
      let currency = row.key.currency
      try writer.write(currency.map { .currency($0) } ?? .empty)
      let sums = row.sums.values
      for index in columns.indices { try writer.write(cell(columns[index], sums[index], currency)) }
      try writer.endRow()
      totals[currency, default: RevenueSums()].add(row.sums)
    }
    summary.rowCount = rows.count
    summary.totals = totals.sorted { ($0.key?.description ?? "") < ($1.key?.description ?? "") }
      .map { currency, total in
        let sums = total.values
        return ReportTotal(
          currency: currency, sums: columns.indices.map { (columns[$0], sums[$0]) })
      }
    summary.rates = rates
    return summary
  }

  /// R9: if the currency is empty, amounts are empty, not 0.
  private func cell(_ column: ReportColumn, _ value: Int128, _ currency: Currency?) -> ReportCell {
    if column.content == .amount { return currency == nil ? .empty : .amount(value, currency) }
    return .integer(Int64(value))
  }
}

// MARK: - What was refunded and taken back, by product and reason: the Return and Reversal lines of a revenue report

/// The Returns and Reversals of one product, reason and currency. Amounts are in micros.
package struct RefundSums: Equatable, Sendable {
  package let productID: String
  /// As the App Store wrote it; empty if it gave none, and for Reversals, which have none.
  package let reason: String
  /// Nil if the sales have no price.
  package let currency: Currency?
  package fileprivate(set) var returnedUnits: Int128 = 0
  package fileprivate(set) var returns: Int128 = 0
  package fileprivate(set) var reversedUnits: Int128 = 0
  package fileprivate(set) var reversals: Int128 = 0

  /// Rounds amounts to the minor units of their currencies, so that they add up to the rounded totals.
  package static func round(_ rows: inout [RefundSums]) {
    for (currency, places) in Dictionary(grouping: rows.indices, by: { rows[$0].currency }) {
      guard let currency else { continue }
      var sums = places.map { rows[$0] }
      _ = MinorRounding.round(&sums, [\.returns, \.reversals], currency)
      for (place, sums) in zip(places, sums) { rows[place] = sums }
    }
  }
}

extension Report {
  private struct RefundKey: Hashable {
    let product: Symbol
    let reason: String
    let currency: Currency?
  }

  /// The Returns and Reversals that a revenue report sums, sorted by product, reason and currency as bytes. Its
  /// dimensions do not matter.
  package static func refunds(
    _ request: ReportRequest, from database: Database
  ) throws -> [RefundSums] {
    precondition(request.kind == .revenue, "refunds of another report")
    let source = try ReportSource(database, request)
    try source.loadPending()
    var conversion = try request.conversion(database)
    var found: [RefundKey: RefundSums] = [:]
    try source.forEachLine { line throws(ProjectionError) in
      guard line.type != .sale, source.isWithinDays(source.decidingDateMs(line)) else { return }
      var line = line
      if conversion != nil { _ = conversion?.convert(&line) }
      var sums = RevenueSums()
      guard sums.add(line) else { return }
      let key = RefundKey(
        product: line.product, reason: String(decoding: line.reason, as: UTF8.self),
        currency: line.currency)
      var row =
        found[key]
        ?? RefundSums(
          productID: String(decoding: source.symbols.text(line.product), as: UTF8.self),
          reason: key.reason, currency: key.currency)
      row.returnedUnits += Int128(sums.returnedUnits)
      row.returns += sums.returns
      row.reversedUnits += Int128(sums.reversedUnits)
      row.reversals += sums.reversals
      found[key] = row
    }
    func order(_ row: RefundSums) -> [String.UTF8View] {
      [row.productID.utf8, row.reason.utf8, (row.currency?.description ?? "").utf8]
    }
    return found.values.sorted { left, right in
      for (one, other) in zip(order(left), order(right)) where !one.elementsEqual(other) {
        return one.lexicographicallyPrecedes(other)
      }
      return false
    }
  }
}
