// The products that app families have declared, for detecting fraud; and the table `symbols`.
import Base
import Ledger
package import Revenue

/// The latest registration of each app family: its bundle ids and products.
final class AppCatalogue {
  private let symbols: StringInterner
  private let arena: TextArena
  private var families: [Symbol: DeclaredProducts] = [:]
  /// Each registered bundle id's family.
  private var bundleFamilies: [TextKey: String] = [:]
  /// All bundle ids that any registration ever named.
  private var knownBundles: Set<TextKey> = []

  init(_ symbols: StringInterner, _ arena: TextArena) {
    self.symbols = symbols
    self.arena = arena
  }

  /// True if no family declares products, so no lookup is needed.
  var isEmpty: Bool { families.isEmpty }

  /// Loads the families stored in a database.
  func load(from database: Database) throws(DatabaseError) {
    let rows = try database.prepare("SELECT data FROM apps ORDER BY app_family_id")
    while try rows.step() {
      // This data was parsed before it was stored, so it parses again.
      if let app = try? AppRegistered(data: rows.bytes(0)) { add(app) }
    }
    // If two families have named a bundle, this table tells which of them has it.
    let bundles = try database.prepare("SELECT bundle_id, app_family_id FROM app_bundles")
    while try bundles.step() {
      bundleFamilies[TextKey(text: arena.keep(bundles.bytes(0)))] = bundles.text(1)
    }
    let known = try database.prepare("SELECT bundle_id FROM known_bundles")
    while try known.step() { knownBundles.insert(TextKey(text: arena.keep(known.bytes(0)))) }
  }

  /// Whether a registration named a bundle id, even if a later one no longer does (rule R12).
  func isKnown(bundle: Text) -> Bool { knownBundles.contains(TextKey(text: bundle)) }

  /// Whether a family has registered at least one bundle id.
  func isRegistered(_ family: Text) -> Bool {
    bundleFamilies.values.contains { $0.utf8.elementsEqual(family) }
  }

  /// Whether a bundle id belongs to a family.
  func isOfFamily(_ family: Text, bundle: Text) -> Bool {
    bundleFamilies[TextKey(text: bundle)]?.utf8.elementsEqual(family) ?? false
  }

  /// Applies a registration. It replaces the family's previous registration entirely.
  func add(_ app: AppRegistered) {
    for (bundle, family) in bundleFamilies where family == app.appFamilyID {
      bundleFamilies[bundle] = nil
    }
    for bundle in app.bundleIDs {
      let key = TextKey(text: arena.keep(Array(bundle.utf8)))
      bundleFamilies[key] = app.appFamilyID
      knownBundles.insert(key)
    }
    if app.products.isEmpty {
      if let family = symbols.known(app.appFamilyID) { families[family] = nil }
      return
    }
    var areConsumable: [TextKey: Bool] = [:]
    for product in app.products {
      areConsumable[TextKey(text: arena.keep(Array(product.id.utf8)))] = product.type == .consumable
    }
    families[symbols.symbol(app.appFamilyID)] = DeclaredProducts(areConsumable)
  }

  /// The products that a family declares; nil if it declares none, which allows any product.
  func products(of family: Symbol) -> DeclaredProducts? { families[family] }
}

// MARK: - Symbols

extension StringInterner {
  /// Loads the symbols of a database that are not in memory yet.
  package func load(from database: Database) throws(DatabaseError) {
    let statement = try database.prepare("SELECT text FROM symbols WHERE id >= ? ORDER BY id")
    statement.bind(1, count)
    while try statement.step() { _ = symbol(statement.bytes(0)) }
  }
}

/// Writes to the table `symbols` those that the database does not have yet.
package struct SymbolRows {
  private let symbols: StringInterner
  /// How many symbols the database has.
  private var storedCount: Int
  private var target: RowTarget?

  /// - Parameter symbols: exactly the symbols loaded from the database.
  package init(_ symbols: StringInterner) {
    self.symbols = symbols
    storedCount = symbols.count
  }

  package mutating func store(_ rows: RowWriter) throws(DatabaseError) {
    guard storedCount < symbols.count else { return }
    if target == nil { target = try rows.target("INSERT INTO symbols(id, text)", valueCount: 2) }
    guard let target else { return }
    for number in storedCount..<symbols.count {
      rows.begin(target)
      rows.add(number)
      rows.add(kept: symbols.text(Symbol(number)))
      try rows.end()
    }
    storedCount = symbols.count
  }
}
