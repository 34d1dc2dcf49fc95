// The products that app families have declared, as verdicts of fraud ask for them.
import JSON
import Ledger
import Revenue

/// The app families that declare products, as they were registered last.
final class AppCatalogue {
  private let symbols: StringInterner
  private let arena: TextArena
  private var families: [Symbol: DeclaredProducts] = [:]
  /// The ids of all families, by bundle id.
  private var bundleFamilies: [TextKey: String] = [:]

  init(_ symbols: StringInterner, _ arena: TextArena) {
    self.symbols = symbols
    self.arena = arena
  }

  /// Whether no family declares any product, so that there is nothing to look for.
  var isEmpty: Bool { families.isEmpty }

  /// Reads the families that a database has.
  func load(from database: Database) throws(DatabaseError) {
    let rows = try database.prepare("SELECT data FROM apps ORDER BY app_family_id")
    while try rows.step() {
      // What was read from its event before it was written reads again.
      if let app = try? AppRegistered(data: rows.bytes(0)) { add(app) }
    }
    // Whose a bundle is that two families have named, the table knows.
    let bundles = try database.prepare("SELECT bundle_id, app_family_id FROM app_bundles")
    while try bundles.step() {
      bundleFamilies[TextKey(text: arena.keep(bundles.bytes(0)))] = bundles.text(1)
    }
  }

  /// Whether a family has registered any bundle id.
  func isRegistered(_ family: Text) -> Bool {
    bundleFamilies.values.contains { $0.utf8.elementsEqual(family) }
  }

  /// Whether a family has registered a bundle id.
  func isOfFamily(_ family: Text, bundle: Text) -> Bool {
    bundleFamilies[TextKey(text: bundle)]?.utf8.elementsEqual(family) ?? false
  }

  /// Applies a registration, which replaces an earlier one of the family as a whole.
  func add(_ app: AppRegistered) {
    for (bundle, family) in bundleFamilies where family == app.appFamilyID {
      bundleFamilies[bundle] = nil
    }
    for bundle in app.bundleIDs {
      bundleFamilies[TextKey(text: arena.keep(Array(bundle.utf8)))] = app.appFamilyID
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

  /// What a family declares; nil where any product is taken.
  func products(of family: Symbol) -> DeclaredProducts? { families[family] }
}
