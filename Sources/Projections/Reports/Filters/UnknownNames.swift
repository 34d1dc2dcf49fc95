// Names in a report's filters that the ledger does not know: most likely typing errors.
import Base
import Ledger
import Revenue

extension ReportSource {
  /// What the filters name and no app, sale, upload, exception or price list does.
  func unknownNames() throws(ProjectionError) -> [UnknownName] {
    let filter = request.filter
    if filter.isEmpty { return [] }
    var unknown: [UnknownName] = []
    do throws(DatabaseError) {
      if let names = filter.apps {
        let known = try knownApps()
        unknown += names.filter { name in
          !known.contains(Array((UUID16(name)?.description ?? name).utf8))
        }.map(UnknownName.app)
      }
      if let patterns = filter.products {
        let known = try knownProducts()
        unknown += patterns.filter { pattern in
          !known.contains { $0.withUnsafeBytes(pattern.matches) }
        }.map { .product($0.pattern) }
      }
      if let codes = filter.countries {
        let known = try knownCountries()
        unknown += codes.filter { !known.contains(Array($0.utf8)) }.map(UnknownName.country)
      }
    } catch { throw .database(error) }
    if let user = filter.user, try number(ofUser: user) == nil { unknown.append(.user) }
    return unknown
  }

  private func knownApps() throws(DatabaseError) -> Set<[UInt8]> {
    try known(
      """
      SELECT bundle_id FROM app_bundles UNION SELECT bundle_id FROM known_bundles
      UNION SELECT text FROM symbols WHERE id IN
      (SELECT bundle FROM sales UNION SELECT bundle FROM receipts UNION SELECT bundle FROM exceptions)
      UNION SELECT app_family_id FROM apps
      """, ofPending: \.bundle)
  }

  private func knownProducts() throws(DatabaseError) -> Set<[UInt8]> {
    var result = try known(
      """
      SELECT text FROM symbols WHERE id IN
      (SELECT product FROM sales UNION SELECT product FROM price_list)
      UNION SELECT product_id FROM exceptions
      """, ofPending: \.product)
    let apps = try? AppQueries(database).apps()
    for app in apps ?? [] {
      for product in app.registration.products { result.insert(Array(product.id.utf8)) }
    }
    return result
  }

  private func knownCountries() throws(DatabaseError) -> Set<[UInt8]> {
    var result = try known(
      """
      SELECT text FROM symbols WHERE id IN
      (SELECT country FROM sales UNION SELECT country FROM uploads UNION SELECT country FROM price_list)
      """, ofPending: \.country)
    result.insert(Array(ReportFilter.unknownCountry.utf8))
    return result
  }

  /// The texts in the first column of a query, and those of the pending sales.
  private func known(
    _ query: StaticString, ofPending symbol: (Sale) -> Symbol
  ) throws(DatabaseError) -> Set<[UInt8]> {
    var result: Set<[UInt8]> = []
    let rows = try database.prepare("\(query)")
    while try rows.step() { result.insert(Array(rows.bytes(0))) }
    for sale in pending?.sales ?? [] { result.insert(Array(symbols.text(symbol(sale)))) }
    return result
  }
}
