// The price lists and exchange rates that were declared, and whether they still count.
package import Base
package import Ledger
import Revenue

/// A declaration of prices or rates: one event. A large file is several.
package struct DeclarationListing: Equatable, Sendable {
  package let position: Position
  package let recordedAtMs: Int64
  /// The name of the file.
  package let source: String
  package let sha256Hex: String
  package let entryCount: Int
  /// How many sales take their price from it; nil for rates.
  package let pricedSaleCount: Int?
  /// The first and the last day for which there are rates; nil for prices, and once they are withdrawn.
  package let days: ClosedRange<CivilDate>?
  /// The event that withdrew it; nil if it counts.
  package let withdrawnBy: Position?
}

/// What is declared, as of the state of a database.
package struct DeclarationQueries {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// The declarations of a type, in the order of the log.
  package func all(_ type: EventType) throws(ProjectionError) -> [DeclarationListing] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT d.position, d.recorded_at_ms, d.source, d.source_sha256, d.entries, d.withdrawn_by,
          (SELECT min(day) FROM rates r WHERE r.position = d.position),
          (SELECT max(day) FROM rates r WHERE r.position = d.position)
        FROM declarations d WHERE d.type = ? ORDER BY d.position
        """)
      rows.bind(1, DeclarationTable.code(type))
      let saleCounts = type == .pricesDeclared ? try saleCounts() : nil
      var listings: [DeclarationListing] = []
      while try rows.step() {
        let hasDays = !rows.isNull(6) && !rows.isNull(7)
        let position = try rows.ordinal(0)
        listings.append(
          DeclarationListing(
            position: position, recordedAtMs: try rows.instant(1),
            source: rows.text(2), sha256Hex: rows.text(3), entryCount: try rows.ordinal(4),
            pricedSaleCount: saleCounts.map { $0[position] ?? 0 },
            days: hasDays
              ? CivilDate(dayNumber: try rows.day(6))...CivilDate(dayNumber: try rows.day(7)) : nil,
            withdrawnBy: rows.isNull(5) ? nil : try rows.ordinal(5)))
      }
      return listings
    } catch { throw .database(error) }
  }

  /// How many sales take their price from each list, in one pass: lists may be many, and sales have no index by them.
  private func saleCounts() throws(DatabaseError) -> [Position: Int] {
    let rows = try database.prepare(
      "SELECT price_position, count(*) FROM sales WHERE price_basis = ? GROUP BY price_position")
    rows.bind(1, Int(PriceBasis.priceList.rawValue))
    var counts: [Position: Int] = [:]
    while try rows.step() { counts[try rows.ordinal(0)] = try rows.ordinal(1) }
    return counts
  }
}
