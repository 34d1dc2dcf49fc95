// All sales that a report may show, both confirmed and pending, with the data it needs about each.
package import Revenue

/// Sales in memory, looked up by number.
package final class SaleList {
  /// Confirmed sales in numerical order, then pending ones.
  private(set) var sales: [Sale]
  private let source: ReportSource

  package init(_ source: ReportSource) throws(ProjectionError) {
    self.source = source
    let lastOfJournal: Int64
    do throws(DatabaseError) {
      sales = try SaleTable(source.database, source.symbols, isFresh: true).all(source.arena)
      lastOfJournal = try source.database.integer("SELECT max(sale) FROM later_lines") ?? -1
    } catch { throw .database(error) }
    // Sales are numbered from 0 without gaps, in the order of first observation. Check this, because other programs
    // may write to the file.
    guard sales.indices.allSatisfy({ sales[$0].id == $0 }), lastOfJournal < sales.count else {
      throw .inconsistent("the sales do not match their journal")
    }
    if source.request.includesPending, let pending = source.pending { sales += pending.sales }
  }

  /// The sale with a number.
  package func sale(_ id: Int) -> Sale {
    // The numbers of pending sales continue those of confirmed ones.
    precondition(sales[id].id == id, "a line of a missing sale")
    return sales[id]
  }

  /// The transaction ids of each sale, sorted as bytes.
  func transactions() throws(ProjectionError) -> [Int: [Text]] {
    var result: [Int: [Text]] = [:]
    do throws(DatabaseError) {
      let rows = try source.database.prepare(
        """
        SELECT sale, transaction_id FROM sale_transactions
        UNION ALL SELECT id, transaction_id FROM sales WHERE is_transaction_alias = 1 ORDER BY 1, 2
        """)
      while try rows.step() {
        let sale = try rows.ordinal(0)
        result[sale, default: []].append(source.arena.keep(rows.bytes(1)))
      }
    } catch { throw .database(error) }
    if let pending = source.pending {
      for place in pending.store.sales.indices where pending.store.sales[place].isPending {
        result[pending.store.sales[place].id] = pending.store.sortedAliases(place)
      }
    }
    return result
  }
}
