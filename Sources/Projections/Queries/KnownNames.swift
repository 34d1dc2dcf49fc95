// Names that occur in a ledger, for completing command lines.

/// A kind of names.
package enum KnownNames: Sendable {
  case appFamilies, bundles, products, countries, currencies

  /// The names in the projections, each with what it stands for. Those that a shell would have to quote are left out.
  package func all(
    in database: Database
  ) throws(ProjectionError) -> [(name: String, meaning: String)] {
    do throws(DatabaseError) {
      let rows = try database.prepare(statement)
      var names: [(name: String, meaning: String)] = []
      while try rows.step() {
        let name = rows.text(0)
        if name.utf8.allSatisfy(Self.isPlain) { names.append((name, rows.text(1))) }
      }
      return names
    } catch { throw .database(error) }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
  }

  /// The newest sales suffice, and take a moment at most.
  private static let newestSales = "(SELECT * FROM sales ORDER BY id DESC LIMIT 100000)"

  private var statement: String {
    switch self {
    case .appFamilies: "SELECT app_family_id, name FROM apps ORDER BY 1"
    case .bundles:
      "SELECT bundle_id, name FROM app_bundles JOIN apps USING (app_family_id) ORDER BY 1"
    case .products:
      """
      SELECT text, '' FROM symbols WHERE id IN (SELECT product FROM \(Self.newestSales)) ORDER BY 1
      """
    case .countries:
      """
      SELECT text, '' FROM symbols WHERE id IN (SELECT country FROM \(Self.newestSales)) ORDER BY 1
      """
    case .currencies: "SELECT base, '' FROM rates UNION SELECT quote, '' FROM rates"
    }
  }
}
