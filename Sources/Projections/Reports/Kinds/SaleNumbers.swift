// A set of sales by number, so that a report that passes over every line asks the database once.
import Revenue

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
