// Drives the additional projections from the standard fold.
import Ledger
import Revenue

/// Passes events and sales to the additional projections.
final class AdditionalFold {
  private let projections: [any Projection]
  private let rows: ProjectionRows
  private let symbols: StringInterner
  private let userIdentifier: (Int32) throws(DatabaseError) -> Text

  /// Nil if there are none, so that the fold has no cost for them.
  init?(
    _ projections: ProjectionSet, _ rows: RowWriter, _ symbols: StringInterner,
    userIdentifier: @escaping (Int32) throws(DatabaseError) -> Text
  ) {
    if projections.additional.isEmpty { return nil }
    self.projections = projections.additional
    self.rows = ProjectionRows(rows)
    self.symbols = symbols
    self.userIdentifier = userIdentifier
  }

  func fold(_ event: EventLine, _ data: Text) throws {
    for projection in projections { try projection.fold(event, data: data, into: rows) }
  }

  /// Passes on the sale at an index of the store.
  func fold(_ place: Int, of store: SaleStore) throws(DatabaseError) {
    let sale = try sale(store.sales[place], store)
    for projection in projections {
      do { try projection.fold(sale, into: rows) } catch let error as DatabaseError {
        throw error
      } catch {
        throw DatabaseError(
          operation: "folding a sale", cause: "projection \(projection.name): \(error)", code: 0)
      }
    }
  }

  private func sale(_ sale: Sale, _ store: SaleStore) throws(DatabaseError) -> FoldedSale {
    var lines: [FoldedSale.Line] = []
    try store.forEachJournalLine(of: sale) { line throws(DatabaseError) in
      lines.append(
        FoldedSale.Line(
          type: "\(line.type.word)", dateMs: line.dateMs, quantity: line.quantity,
          amountMicros: line.amountMicros, position: line.position))
    }
    return FoldedSale(
      number: sale.id, environment: symbols.string(sale.environment),
      bundleID: symbols.string(sale.bundle), productID: symbols.string(sale.product),
      kind: "\(sale.kind.word)", isPaid: sale.kind.isPaid, quantity: sale.quantity,
      saleDateMs: sale.saleDateMs, periodEndMs: sale.periodEndMs,
      countryCode: sale.country == .none ? "ZZ" : symbols.string(sale.country),
      userIdentifier: sale.user < 0
        ? nil : String(decoding: try userIdentifier(sale.user), as: UTF8.self),
      firstPosition: sale.firstPosition, currency: sale.price?.currency.description,
      unitPriceMicros: sale.price?.micros, isCancelled: sale.cancellationState == .returned,
      lines: lines)
  }
}
