// App families of several ledgers: those that share a bundle id are one, with the apps and products of all.
import Base
package import Ledger

/// Which app families are one, and the id of each merged one: that of the family that was registered first.
package struct AppFamilies {
  private struct Family {
    var id: String
    /// Whether an earlier run has used the id.
    var isFixed: Bool
    /// When it was registered, in merged order.
    var number: Int
  }

  /// Family ids and bundle ids, told apart by their first byte; each names another of its set, or itself.
  private var parents: [String: String] = [:]
  private var families: [String: Family] = [:]
  private var count = 0

  package init() {}

  /// Adds a registration, in merged order.
  /// - Parameter mergedID: the id that an earlier run gave it.
  package mutating func add(_ app: AppRegistered, mergedID: String? = nil) throws(MergeError) {
    count += 1
    let node = "i" + app.appFamilyID
    if parents[node] == nil {
      parents[node] = node
      families[node] = Family(id: app.appFamilyID, isFixed: false, number: count)
    }
    if let mergedID {
      let root = root(of: node)
      families[root]?.id = mergedID
      families[root]?.isFixed = true
    }
    for bundle in app.bundleIDs { try join("b" + bundle, node) }
  }

  private mutating func join(_ bundle: String, _ node: String) throws(MergeError) {
    guard parents[bundle] != nil else {
      parents[bundle] = root(of: node)
      return
    }
    let (one, other) = (root(of: bundle), root(of: node))
    guard one != other, let first = families[one], let second = families[other] else { return }
    if first.isFixed, second.isFixed, first.id != second.id {
      throw .joinedFamilies(first.id, second.id)
    }
    let keepsFirst =
      first.isFixed == second.isFixed ? first.number < second.number : first.isFixed
    let (kept, gone) = keepsFirst ? (one, other) : (other, one)
    parents[gone] = kept
    families[gone] = nil
  }

  private func root(of node: String) -> String {
    var node = node
    while let next = parents[node], next != node { node = next }
    return node
  }

  /// The merged id of a family; its own if no registration named it.
  package func mergedID(of family: String) -> String {
    families[root(of: "i" + family)]?.id ?? family
  }
}

/// The latest registration of each family, in merged order.
package struct RegisteredFamilies {
  private struct Registration {
    let source: Int
    let app: AppRegistered
  }

  /// By merged id, the newest last.
  private var latest: [String: [Registration]] = [:]

  package init() {}

  /// The data of the next registration as it counts.
  package mutating func mapped(
    _ line: EventLine, of source: Int, _ families: AppFamilies
  ) -> [UInt8] {
    // Nothing is known of a malformed one; readers pass it over.
    guard let app = try? AppRegistered(data: line.data) else { return Array(line.data) }
    let mergedID = families.mergedID(of: app.appFamilyID)
    return add(app, of: source, mergedID: mergedID)?.data ?? Array(line.data)
  }

  /// The registration of a merged family from here on: its own, with what other families say that are one with it; nil
  /// if that is the registration itself.
  mutating func add(_ app: AppRegistered, of source: Int, mergedID: String) -> AppRegistered? {
    var known = latest[mergedID, default: []]
    known.removeAll { $0.source == source && $0.app.appFamilyID == app.appFamilyID }
    known.append(Registration(source: source, app: app))
    latest[mergedID] = known
    if known.count == 1, app.appFamilyID == mergedID { return nil }
    var merged = app
    merged.appFamilyID = mergedID
    merged.bundleIDs = []
    for bundle in known.flatMap(\.app.bundleIDs) where !merged.bundleIDs.contains(bundle) {
      merged.bundleIDs.append(bundle)
    }
    // A family without products allows any.
    let areAny = known.contains { $0.app.products.isEmpty }
    merged.products = []
    for product in areAny ? [] : known.flatMap(\.app.products) {
      merged.products.removeAll { $0.id == product.id }
      merged.products.append(product)
    }
    merged.entitlements = []
    for entitlement in known.flatMap(\.app.entitlements) {
      merged.entitlements.removeAll { $0.name == entitlement.name }
      merged.entitlements.append(entitlement)
    }
    merged.appAppleID = known.reversed().compactMap(\.app.appAppleID).first
    return merged
  }
}
