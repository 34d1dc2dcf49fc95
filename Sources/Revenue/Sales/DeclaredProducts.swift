// The products that an app family declares, used to detect fraud.

/// The declared products of one app family.
package final class DeclaredProducts {
  /// Whether each is a consumable.
  private let areConsumable: [TextKey: Bool]

  /// - Parameter areConsumable: the declared products, and whether each is a consumable. The texts must live
  ///   as long as this object.
  package init(_ areConsumable: [TextKey: Bool]) { self.areConsumable = areConsumable }

  /// Whether a product is declared.
  func holds(_ product: Text) -> Bool { areConsumable[TextKey(text: product)] != nil }

  /// Whether a product is declared as a consumable.
  func isConsumable(_ product: Text) -> Bool { areConsumable[TextKey(text: product)] == true }
}
