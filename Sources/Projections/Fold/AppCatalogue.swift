// The products that app families have declared, as verdicts of fraud ask for them.
import JSON
import Ledger

/// The declared products of one app family.
final class DeclaredProducts {
  private let types: [TextKey: ProductType]

  fileprivate init(_ types: [TextKey: ProductType]) { self.types = types }

  /// The declared type of a product; nil for one that is not declared.
  func type(of product: Text) -> ProductType? { types[TextKey(text: product)] }
}

/// The app families that declare products, as they were registered last.
final class AppCatalogue {
  private let symbols: SymbolTable
  private let arena: TextArena
  private var families: [Symbol: DeclaredProducts] = [:]

  init(_ symbols: SymbolTable, _ arena: TextArena) {
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
  }

  /// Takes in a registration, which replaces an earlier one of the family as a whole.
  func add(_ app: AppRegistered) {
    if app.products.isEmpty {
      if let family = symbols.known(app.appFamilyID) { families[family] = nil }
      return
    }
    var types: [TextKey: ProductType] = [:]
    for product in app.products {
      types[TextKey(text: arena.keep(Array(product.id.utf8)))] = product.type
    }
    families[symbols.symbol(app.appFamilyID)] = DeclaredProducts(types)
  }

  /// What a family declares; nil where any product is taken.
  func products(of family: Symbol) -> DeclaredProducts? { families[family] }
}
