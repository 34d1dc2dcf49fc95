// What an app grants to those who own certain products.

/// A named grant of an app, such as `pro`, and the products that give it.
package struct Entitlement: Equatable, Sendable {
  /// How a pattern names a product.
  package enum Match: Sendable {
    /// By its whole id.
    case exact
    /// By the beginning of its id.
    case prefix
  }

  package var name: String
  /// Product ids; one that ends with `*` stands for all ids that begin with what precedes it.
  package var patterns: [String]

  package init(name: String, patterns: [String]) {
    self.name = name
    self.patterns = patterns
  }

  /// How the patterns name a product, `exact` before `prefix`; nil if none does. Texts are compared as bytes.
  package func match(_ productID: String) -> Match? {
    var found: Match?
    for pattern in patterns {
      if pattern.utf8.last != UInt8(ascii: "*") {
        if pattern.utf8.elementsEqual(productID.utf8) { return .exact }
      } else if productID.utf8.starts(with: pattern.utf8.dropLast()) {
        found = .prefix
      }
    }
    return found
  }
}
