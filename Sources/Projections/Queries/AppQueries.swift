// Queries about apps (registrations, sales by product, undeclared products), names for completion, and trust.
import Base
package import Ledger
import Revenue

/// The latest registration of an app family.
package struct RegisteredApp: Sendable {
  package let registration: AppRegistered
  /// The position of that registration.
  package let position: Position
  package let receiptCount: Int
}

/// A product that the App Store sells but its app does not declare, although the app declares others. Uploads with
/// such a product are treated as fraud.
package struct UndeclaredProduct: Hashable, Sendable {
  package let appFamilyID: String
  package let bundleID: String
  package let productID: String
  /// The number of transactions with this product.
  package let transactionCount: Int
  /// The latest verification in which such a transaction first appeared.
  package let lastPosition: Position
}

/// Queries about apps in one generation of the projections. Use it from one thread at a time.
package final class AppQueries {
  private let database: Database

  package init(_ database: Database) { self.database = database }

  /// All app families, sorted by name, then by id.
  package func apps() throws(ProjectionError) -> [RegisteredApp] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT a.data, a.position, ifnull(r.receipts, 0) FROM apps a LEFT JOIN
        (SELECT s.text AS family, count(*) AS receipts FROM receipts
        JOIN symbols s ON s.id = app_family GROUP BY app_family) r
        ON r.family = a.app_family_id ORDER BY a.name, a.app_family_id
        """)
      var result: [RegisteredApp] = []
      while try rows.step() {
        // This data was parsed before it was stored, so it parses again.
        guard let registration = try? AppRegistered(data: rows.bytes(0)) else { continue }
        result.append(
          RegisteredApp(
            registration: registration, position: try rows.ordinal(1),
            receiptCount: try rows.ordinal(2)))
      }
      return result
    } catch { throw .database(error) }
  }

  /// The app family with this id or bundle id.
  package func app(_ word: String) throws(ProjectionError) -> RegisteredApp? {
    try apps().first { app in
      app.registration.appFamilyID.hasSameBytes(as: word.lowercased())
        || app.registration.bundleIDs.contains { $0.hasSameBytes(as: word) }
    }
  }

  /// The number of an app family's sales for each product, including sales that the App Store has not confirmed yet.
  package func soldProducts(of app: AppRegistered) throws(ProjectionError) -> [String: Int] {
    var counts: [String: Int] = [:]
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT p.text, count(*) FROM sales s JOIN symbols p ON p.id = s.product
        LEFT JOIN verifications v ON v.position = s.first_position
        LEFT JOIN receipts r ON r.id = v.receipt
        LEFT JOIN signed_uploads g ON g.position = s.first_position
        LEFT JOIN notifications n ON n.position = s.first_position
        WHERE coalesce(r.app_family, g.app_family, n.app_family) =
        (SELECT id FROM symbols WHERE text = ?) GROUP BY s.product
        """)
      rows.bind(1, text: app.appFamilyID)
      while try rows.step() { counts[rows.text(0), default: 0] += try rows.ordinal(1) }
      guard try database.integer("SELECT 1 FROM pending_receipts LIMIT 1") != nil
      else { return counts }
    } catch { throw .database(error) }
    let arena = TextArena()
    let symbols = StringInterner(arena)
    do throws(DatabaseError) { try symbols.load(from: database) } catch { throw .database(error) }
    let bundles = Set(app.bundleIDs.compactMap { symbols.known($0) })
    for sale in try PendingSales(database, symbols, arena).sales
    where bundles.contains(sale.bundle) {
      counts[symbols.string(sale.product), default: 0] += 1
    }
    return counts
  }

  /// The number of an app family's receipts for a bundle id.
  package func receiptCount(
    ofBundle bundleID: String, _ app: AppRegistered
  ) throws(ProjectionError) -> Int {
    do throws(DatabaseError) {
      let row = try database.prepare(
        """
        SELECT count(*) FROM receipts WHERE bundle = (SELECT id FROM symbols WHERE text = ?)
        AND app_family = (SELECT id FROM symbols WHERE text = ?)
        """)
      row.bind(1, text: bundleID)
      row.bind(2, text: app.appFamilyID)
      return try row.step() ? row.ordinal(0) : 0
    } catch { throw .database(error) }
  }

  /// Products that a verification showed although their app family, which declares products, had not declared them,
  /// and that it still does not declare. Sorted by bundle id, then product id.
  package func undeclaredProducts() throws(ProjectionError) -> [UndeclaredProduct] {
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT b.text, e.product_id, e.transactions, e.position, a.app_family_id, a.data FROM
        (SELECT bundle, product_id, count(*) AS transactions, max(position) AS position
        FROM exceptions WHERE type = \(ExceptionType.productUnknown.rawValue)
        GROUP BY bundle, product_id) e
        JOIN symbols b ON b.id = e.bundle JOIN app_bundles f ON f.bundle_id = b.text
        JOIN apps a ON a.app_family_id = f.app_family_id ORDER BY 1, 2
        """)
      var declared: [String: Set<String>] = [:]
      var result: [UndeclaredProduct] = []
      while try rows.step() {
        let (family, product) = (rows.text(4), rows.text(1))
        if declared[family] == nil {
          let app = try? AppRegistered(data: rows.bytes(5))
          declared[family] = Set(app?.products.map(\.id) ?? [])
        }
        guard let known = declared[family], !known.isEmpty, !known.contains(product)
        else { continue }
        result.append(
          UndeclaredProduct(
            appFamilyID: family, bundleID: rows.text(0), productID: product,
            transactionCount: try rows.ordinal(2), lastPosition: try rows.ordinal(3)))
      }
      return result
    } catch { throw .database(error) }
  }
}

// MARK: - Names for completion

/// A kind of names that complete command lines.
package enum KnownNames: Sendable {
  case appFamilies, bundles, products, countries, currencies

  /// The names in the projections, each with what it stands for. Names that a shell would have to quote are left out.
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

// MARK: - Trust

/// A trust declaration and its position.
package struct DeclaredTrust: Equatable, Sendable {
  package let position: Position
  package let trust: TrustDeclared
}

/// Queries about which hosts and certificates verification trusted, and since which event, in one generation of the
/// projections.
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
