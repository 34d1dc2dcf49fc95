// The revenue report: journal lines summed by what the reader asks for (rule R9).

/// Sums of one row.
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

  /// R9: adds a line; false for one that changes no column.
  mutating func add(_ line: ReportLine) -> Bool {
    if !line.kind.isPaid {
      guard line.type == .sale else { return false }
      if line.kind == .trial { trials += 1 } else { familyShared += 1 }
      return true
    }
    // 128 bits hold the sum of more lines than a log can have: 2^64 lines of 2^63 micros each.
    let quantity = abs(line.quantity)
    let amount = Int128((line.amountMicros ?? 0).magnitude)
    switch line.type {
    case .sale:
      units += quantity
      gross += amount
      if line.amountMicros == nil { unpricedUnits += quantity }
    case .return:
      returnedUnits += quantity
      returns += amount
    case .reversal:
      reversedUnits += quantity
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

  /// R9: the columns behind the dimensions and the currency, with their values.
  var columns: [(column: ReportColumn, value: Int128)] {
    [
      (ReportColumn("units", .integer), Int128(units)), (ReportColumn("gross", .amount), gross),
      (ReportColumn("returned_units", .integer), Int128(returnedUnits)),
      (ReportColumn("returns", .amount), returns),
      (ReportColumn("reversed_units", .integer), Int128(reversedUnits)),
      (ReportColumn("reversals", .amount), reversals), (ReportColumn("net", .amount), net),
      (ReportColumn("unpriced_units", .integer), Int128(unpricedUnits)),
      (ReportColumn("trials", .integer), Int128(trials)),
      (ReportColumn("family_shared", .integer), Int128(familyShared)),
    ]
  }
}

struct RevenueReport {
  /// What a row is for: numbers of the dimensions' values, in the order asked for, then the currency.
  private struct Key: Hashable {
    var dimensions: InlineArray<6, Int64>
    var currency: Currency?

    static func == (left: Key, right: Key) -> Bool {
      for index in 0..<6 where left.dimensions[index] != right.dimensions[index] { return false }
      return left.currency == right.currency
    }

    func hash(into hasher: inout Hasher) {
      for index in 0..<6 { hasher.combine(dimensions[index]) }
      hasher.combine(currency)
    }
  }

  private let source: ReportSource
  private var conversion: ReportingCurrency?
  private var places: [Key: Int] = [:]
  private var rows: [(key: Key, sums: RevenueSums)] = []
  private var periods: [Int64: Period] = [:]

  init(_ source: ReportSource) throws(ProjectionError) {
    self.source = source
    if let target = source.request.reportingCurrency {
      conversion = try ReportingCurrency(target, source.database)
    }
  }

  /// Writes the report; returns what stands beside its rows.
  mutating func write(to writer: any ReportWriter) throws -> ReportSummary {
    var last: (key: Key, place: Int)?
    // Moved out, so that it is changed in place.
    var conversion = self.conversion
    try source.forEachLine { line throws(ProjectionError) in
      let dateMs = source.decidingDateMs(line)
      guard source.isWithinDays(dateMs) else { return }
      var line = line
      if conversion != nil { _ = try conversion?.convert(&line) }
      var sums = RevenueSums()
      guard sums.add(line) else { return }
      let key = key(line, dateMs)
      let place: Int
      if let last, last.key == key {
        place = last.place
      } else if let known = places[key] {
        place = known
      } else {
        place = rows.count
        rows.append((key, RevenueSums()))
        places[key] = place
      }
      last = (key, place)
      rows[place].sums.add(sums)
    }
    return try finish(writer, rateSources: conversion?.sources ?? [])
  }

  private mutating func key(_ line: ReportLine, _ dateMs: Int64) -> Key {
    var key = Key(dimensions: InlineArray(repeating: 0), currency: line.currency)
    for (index, dimension) in source.request.dimensions.enumerated() {
      key.dimensions[index] =
        switch dimension {
        case .period: number(of: source.period(dateMs))
        case .app: Int64(line.bundle)
        case .product: Int64(line.product)
        case .country: Int64(line.country)
        case .environment: Int64(line.environment)
        case .basis: Int64(line.basis.rawValue)
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
    default: Array(source.symbols.text(Symbol(number)))
    }
  }

  private func finish(
    _ writer: any ReportWriter, rateSources: [String]
  ) throws -> ReportSummary {
    let dimensions = source.request.dimensions
    var output = rows.map { row in
      (
        texts: dimensions.indices.map { text(dimensions[$0], row.key.dimensions[$0]) }
          + [Array((row.key.currency?.description ?? "").utf8)], row: row
      )
    }
    // R9: sorted by the dimensions in the order given, then currency, as bytes.
    output.sort { left, right in
      for (one, other) in zip(left.texts, right.texts) where one != other {
        return one.lexicographicallyPrecedes(other)
      }
      return false
    }
    try writer.begin(
      dimensions.map { ReportColumn($0.column) } + [ReportColumn("currency")]
        + RevenueSums().columns.map(\.column))
    var summary = ReportSummary()
    var totals: [Currency?: RevenueSums] = [:]
    for (texts, row) in output {
      for text in texts {
        try text.withUnsafeBytes { try writer.write($0.isEmpty ? .empty : .text($0)) }
      }
      for (column, value) in row.sums.columns {
        try writer.write(cell(column, value, row.key.currency))
      }
      try writer.endRow()
      totals[row.key.currency, default: RevenueSums()].add(row.sums)
    }
    summary.rowCount = output.count
    summary.totals = totals.keys.sorted { ($0?.description ?? "") < ($1?.description ?? "") }
      .map { ReportTotal(currency: $0, sums: (totals[$0] ?? RevenueSums()).columns) }
    summary.rateSources = rateSources
    return summary
  }

  /// R9: with an empty currency the amounts are empty, not 0.
  private func cell(_ column: ReportColumn, _ value: Int128, _ currency: Currency?) -> ReportCell {
    if column.content == .amount { return currency == nil ? .empty : .amount(value, currency) }
    return .integer(Int64(value))
  }
}
