// What was refunded and taken back, by product and reason: the Return and Reversal lines of a revenue report.
package import Revenue

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
