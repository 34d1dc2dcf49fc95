// The filters of a report in the ledger's own numbers: which sales it shows (rule R9).
import Base
import Ledger
import Revenue

/// Decides whether a sale is one that a report was asked for.
final class SaleFilter {
  /// A set of symbols.
  private struct Symbols {
    private var areHeld: [Bool]

    /// The symbols for which a condition on their text holds.
    init(_ symbols: StringInterner, where isHeld: (Text) -> Bool) {
      areHeld = (0..<symbols.count).map { isHeld(symbols.text(Symbol($0))) }
    }

    func holds(_ symbol: Symbol) -> Bool {
      areHeld.indices.contains(Int(symbol)) && areHeld[Int(symbol)]
    }
  }

  private let filter: ReportFilter
  private let apps: Symbols?
  private let products: Symbols?
  private let countries: Symbols?
  private let showsUnknownCountry: Bool
  /// The number of the user; nil if the ledger does not know them, or if all are shown.
  private let user: Int32?
  /// The sales of the user; nil shows those of all users.
  private let sales: SaleNumbers?

  /// - Returns: nil if the report shows all sales.
  init?(_ source: ReportSource) throws(ProjectionError) {
    filter = source.request.filter
    if filter.isEmpty { return nil }
    let (filter, symbols) = (filter, source.symbols)
    let bundles = try filter.apps.map { names throws(ProjectionError) in
      try source.bundles(named: names)
    }
    apps = bundles.map { names in Symbols(symbols) { $0.isOne(of: names) } }
    products = filter.products.map { patterns in
      Symbols(symbols) { text in patterns.contains { $0.matches(text) } }
    }
    countries = filter.countries.map { codes in Symbols(symbols) { $0.isOne(of: codes) } }
    showsUnknownCountry = filter.countries?.contains(ReportFilter.unknownCountry) ?? true
    guard let identifier = filter.user else {
      (user, sales) = (nil, nil)
      return
    }
    let number = try source.number(ofUser: identifier)
    user = number
    sales = try SaleNumbers(source, "user = ?") {
      $0.bind(1, Int(number ?? -1))
    } pending: {
      $0.user == number
    }
  }

  // MARK: Sales

  func shows(_ figures: SaleFigures, _ sale: Int) -> Bool {
    shows(figures.bundle, figures.product, figures.country, figures.kind, sale)
  }

  func shows(_ line: ReportLine) -> Bool {
    shows(line.bundle, line.product, line.country, line.kind, line.sale)
  }

  func shows(_ sale: Sale) -> Bool {
    shows(sale.bundle, sale.product, sale.country, sale.kind, sale.id)
  }

  func shows(
    _ bundle: Symbol, _ product: Symbol, _ country: Symbol, _ kind: SaleKind, _ sale: Int
  ) -> Bool {
    if let apps, !apps.holds(bundle) { return false }
    if let products, !products.holds(product) { return false }
    if let kinds = filter.kinds, !kinds.contains(kind) { return false }
    return shows(country: country) && (sales?.holds(sale) ?? true)
  }

  private func shows(country: Symbol) -> Bool {
    guard let countries else { return true }
    return country == .none ? showsUnknownCountry : countries.holds(country)
  }

  // MARK: Exceptions without a sale

  /// Whether an exception that belongs to no sale is shown. It has no kind.
  /// - Parameter upload: the country and user of the upload that met it; nil if no upload did.
  func shows(
    bundle: Symbol, product: Text, upload: (country: Symbol, user: Int32)?
  ) -> Bool {
    if filter.kinds != nil { return false }
    if let apps, !apps.holds(bundle) { return false }
    if let patterns = filter.products, !patterns.contains(where: { $0.matches(product) }) {
      return false
    }
    if filter.countries == nil, filter.user == nil { return true }
    guard let upload else { return false }
    return shows(country: upload.country) && (filter.user == nil || upload.user == user)
  }
}

extension ReportFilter {
  /// How reports write the country of a sale for which none is known.
  static let unknownCountry = "ZZ"
}

extension ReportFilter.ProductPattern {
  /// Whether it is the id, or the beginning of the id, of a product.
  func matches(_ product: Text) -> Bool {
    isPrefix ? product.starts(with: text.utf8) : product.elementsEqual(text.utf8)
  }
}

extension Text {
  /// Whether one of these has the same bytes.
  fileprivate func isOne(of texts: [String]) -> Bool { texts.contains { elementsEqual($0.utf8) } }
}

extension ReportSource {
  /// The bundles that names of apps stand for: a bundle identifier for itself, an app's id for the bundles that the app
  /// is registered with.
  fileprivate func bundles(named names: [String]) throws(ProjectionError) -> [String] {
    let ids = Set(names.compactMap { UUID16($0)?.description })
    if ids.isEmpty { return names }
    let apps = try AppQueries(database).apps().map(\.registration)
    return names + apps.filter { ids.contains($0.appFamilyID) }.flatMap(\.bundleIDs)
  }

  /// The number of the user with an identifier; nil if the ledger does not know them.
  func number(ofUser identifier: String) throws(ProjectionError) -> Int32? {
    do throws(DatabaseError) {
      let row = try database.prepare("SELECT id FROM users WHERE user_identifier = ?")
      row.bind(1, text: TokenUser.canonical(user: identifier))
      return try row.step() ? try row.number(0) : nil
    } catch { throw .database(error) }
  }
}

// MARK: - Names in a report's filters that the ledger does not know: most likely typing errors

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
        }.map { pattern in
          let names = known.map { String(decoding: $0, as: UTF8.self) }.sorted()
          return .product(pattern.pattern, similar: suggestion(for: pattern.pattern, among: names))
        }
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
