// app.registered: an app family, its bundle ids and its products.
package import Base

/// The types of products that an app may declare.
package enum ProductType: String, CaseIterable, Sendable {
  case consumable
  case nonConsumable = "non_consumable"
  case autoRenewable = "auto_renewable"
  case nonRenewing = "non_renewing"
}

/// An app family. A later event with the same id replaces the earlier one as a whole.
package struct AppRegistered: Equatable, Sendable {
  /// The app family's UUID.
  package var appFamilyID: String
  package var name: String
  package var bundleIDs: [String]
  /// The declared products, in the order given; an empty list allows any product.
  package var products: [Product]
  /// The App Store's number of the app (`appAppleId`), from 1; nil if it is not declared.
  package var appAppleID: Int64?
  /// What owners of products are entitled to, in the order given; names are distinct.
  package var entitlements: [Entitlement]

  package struct Product: Equatable, Sendable {
    package var id: String
    package var type: ProductType

    package init(id: String, type: ProductType) {
      self.id = id
      self.type = type
    }
  }

  package init(
    appFamilyID: String, name: String, bundleIDs: [String], products: [Product],
    appAppleID: Int64? = nil, entitlements: [Entitlement] = []
  ) {
    self.appFamilyID = appFamilyID
    self.name = name
    self.bundleIDs = bundleIDs
    self.products = products
    self.appAppleID = appAppleID
    self.entitlements = entitlements
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("app_family_id", appFamilyID)
    writer.member("name", name)
    writer.member("bundle_ids", bundleIDs)
    writer.key("products")
    writer.beginObject()
    for product in products {
      writer.key(product.id)
      writer.string(product.type.rawValue)
    }
    writer.endObject()
    writer.member("app_apple_id", ifPresent: appAppleID)
    if !entitlements.isEmpty {
      writer.key("entitlements")
      writer.beginObject()
      for entitlement in entitlements {
        writer.key(entitlement.name)
        writer.beginArray()
        for pattern in entitlement.patterns { writer.string(pattern) }
        writer.endArray()
      }
      writer.endObject()
    }
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.appRegistered, data)
    appFamilyID = try members.string("app_family_id")
    guard EventUUID.isOne(appFamilyID) else { throw members.fault("app_family_id") }
    name = try members.string("name")
    bundleIDs = try members.strings("bundle_ids")
    products = try members.named("products") { $0.stringValue.flatMap(ProductType.init) }
      .map { Product(id: $0.name, type: $0.value) }
    appAppleID = try members.optionalCount("app_apple_id").map { Int64($0) }
    entitlements = try members.optionalNamed("entitlements") { value in
      guard let elements = value.arrayValue else { return nil }
      let patterns = elements.compactMap(\.stringValue)
      return patterns.count == elements.count ? patterns : nil
    }.map { Entitlement(name: $0.name, patterns: $0.value) }
  }
}

// MARK: - What an app grants to those who own certain products

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
