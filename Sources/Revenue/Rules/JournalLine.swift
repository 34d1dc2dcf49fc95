// Rule R8: the lines of the journal, from the current state of a sale.

/// One dated, signed entry of the sales journal.
public struct JournalLine {
  package var type: LineType
  package var dateMs: Int64
  /// Signed. Trials and family-shared sales have a quantity too.
  package var quantity: Int64
  /// Signed; 0 for trials and family-shared sales, nil for unpriced sales.
  package var amountMicros: Int64?
  package var position: Int
  package var reason: Text

  /// R8: the line of a Sale, Return or Reversal, with the sign applied to quantity and amount.
  package init(_ type: LineType, of sale: Sale, dateMs: Int64, position: Int, reason: Text) {
    self.type = type
    self.dateMs = dateMs
    self.position = position
    self.reason = reason
    quantity = type.sign * sale.quantity
    amountMicros = Self.amountMicros(of: quantity, priceMicros: sale.price?.micros, sale.kind)
  }

  /// R8: the signed amount for a signed quantity.
  @inlinable @inline(__always)
  public static func amountMicros(
    of quantity: Int64, priceMicros: Int64?, _ kind: SaleKind
  ) -> Int64? {
    guard let priceMicros else { return kind.isPaid ? nil : 0 }
    // A unit price has at most 11 digits before its 6 decimals, and a quantity is at most 10.
    let (amount, overflow) = priceMicros.multipliedReportingOverflow(by: quantity)
    precondition(!overflow, "an amount exceeds 64 bits")
    return amount
  }
}

extension SaleStore {
  /// R8: calls `body` with the lines of a sale in order, starting with the Sale line.
  package func forEachJournalLine<Failure: Error>(
    of sale: Sale, _ body: (JournalLine) throws(Failure) -> Void
  ) throws(Failure) {
    try body(
      JournalLine(
        .sale, of: sale, dateMs: sale.saleDateMs, position: sale.firstPosition,
        reason: Text(start: nil, count: 0)))
    try forEachLine(of: sale) { line throws(Failure) in
      try body(
        JournalLine(
          line.type, of: sale, dateMs: line.dateMs, position: line.position, reason: line.reason))
    }
  }
}
