// Queries about trust: which hosts and certificates verification trusted, and from which event on.
package import Ledger

/// A trust declaration and its position.
package struct DeclaredTrust: Equatable, Sendable {
  package let position: Position
  package let trust: TrustDeclared
}

/// Queries about trust in one generation of the projections.
package struct TrustQueries {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// The latest trust declaration; nil if there is none.
  package func newest() throws(ProjectionError) -> TrustDeclared? {
    try declarations("ORDER BY position DESC LIMIT 1").first?.trust
  }

  /// The declarations that name a host or certificate that is not Apple's, sorted by position.
  package func foreign() throws(ProjectionError) -> [DeclaredTrust] {
    try declarations("WHERE is_apple = 0 ORDER BY position")
  }

  private func declarations(_ condition: String) throws(ProjectionError) -> [DeclaredTrust] {
    do throws(DatabaseError) {
      let rows = try database.prepare("SELECT position, data FROM trust_declarations \(condition)")
      var result: [DeclaredTrust] = []
      while try rows.step() {
        // This data was parsed before it was stored, so it parses again.
        guard let trust = try? TrustDeclared(data: rows.bytes(1)) else { continue }
        result.append(DeclaredTrust(position: try rows.ordinal(0), trust: trust))
      }
      return result
    } catch { throw .database(error) }
  }
}
