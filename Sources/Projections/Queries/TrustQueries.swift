// Whom verification trusted, and from which event on.
package import Ledger

/// A declaration of trust and its position.
package struct DeclaredTrust: Equatable, Sendable {
  package let position: Position
  package let trust: TrustDeclared
}

/// Questions about trust to one generation of the projections.
package struct TrustQueries {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// The trust that was declared last; nil where none was.
  package func newest() throws(ProjectionError) -> TrustDeclared? {
    try declarations("ORDER BY position DESC LIMIT 1").first?.trust
  }

  /// Those that name something which is not Apple's own, by position.
  package func foreign() throws(ProjectionError) -> [DeclaredTrust] {
    try declarations("WHERE is_apple = 0 ORDER BY position")
  }

  private func declarations(_ condition: String) throws(ProjectionError) -> [DeclaredTrust] {
    do throws(DatabaseError) {
      let rows = try database.prepare("SELECT position, data FROM trust_declarations \(condition)")
      var result: [DeclaredTrust] = []
      while try rows.step() {
        // What was read from its event before it was written reads again.
        guard let trust = try? TrustDeclared(data: rows.bytes(1)) else { continue }
        result.append(DeclaredTrust(position: Position(rows.integer(0)), trust: trust))
      }
      return result
    } catch { throw .database(error) }
  }
}
