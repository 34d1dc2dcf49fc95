// The erasures of a ledger, as the projections know them.
package import Ledger
package import Projections

/// Reads the erasures from one generation of the projections.
package struct ErasureQueries {
  /// An erasure in the log.
  package struct Erasure: Sendable {
    package let position: Position
    /// Epoch milliseconds.
    package let recordedAtMs: Int64
    package let scope: String
    package let reason: String
    package let request: String
    /// How many lines its events list.
    package let lineCount: Int
  }

  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// All erasures, by position.
  package func all() throws(ErasureError) -> [Erasure] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT o.position, o.recorded_at_ms, o.scope, o.reason, o.request,
          (SELECT coalesce(sum(l.lines), 0) FROM redactions l WHERE l.erasure = o.position)
        FROM redactions o WHERE o.request IS NOT NULL ORDER BY o.position
        """)
      var erasures: [Erasure] = []
      while try rows.step() {
        erasures.append(
          Erasure(
            position: try rows.ordinal(0), recordedAtMs: rows.integer(1), scope: rows.text(2),
            reason: rows.text(3), request: rows.text(4), lineCount: try rows.ordinal(5)))
      }
      return erasures
    } catch { throw .projections(.database(error)) }
  }
}
