// Rules R8 and R12: the lines of the journal, from the current state of a sale.

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

  package init(
    _ type: LineType, dateMs: Int64, quantity: Int64, amountMicros: Int64?, position: Int,
    reason: Text
  ) {
    self.type = type
    self.dateMs = dateMs
    self.quantity = quantity
    self.amountMicros = amountMicros
    self.position = position
    self.reason = reason
  }

  /// R8: the signed amount for a signed quantity.
  @inlinable @inline(__always)
  public static func amountMicros(
    of quantity: Int64, priceMicros: Int64?, _ kind: SaleKind
  ) -> Int64? {
    guard let priceMicros else { return kind.isPaid ? nil : 0 }
    let (amount, overflow) = priceMicros.multipliedReportingOverflow(by: quantity)
    precondition(!overflow, "an amount exceeds 64 bits")
    return amount
  }
}

extension SaleStore {
  /// R8 and R12: calls `body` with the lines of a sale in order, starting with the Sale line.
  package func forEachJournalLine<Failure: Error>(
    of sale: Sale, _ body: (JournalLine) throws(Failure) -> Void
  ) throws(Failure) {
    try body(
      JournalLine(
        .sale, dateMs: sale.saleDateMs, quantity: sale.quantity, amountMicros: sale.amountMicros,
        position: sale.firstPosition, reason: Text(start: nil, count: 0)))
    if sale.firstLine < 0 { return }
    var walk = RefundWalk(sale)
    try forEachLine(of: sale) { line throws(Failure) in
      let figures = walk.next(line)
      try body(
        JournalLine(
          line.type, dateMs: line.dateMs, quantity: figures.quantity,
          amountMicros: figures.amountMicros, position: line.position, reason: line.reason))
    }
  }
}
