// app.registered: an app family, its bundle ids and its products.
package import JSON

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
  /// The declared products, in the order given; none declared means that any product is taken.
  package var products: [Product]

  package struct Product: Equatable, Sendable {
    package var id: String
    package var type: ProductType

    package init(id: String, type: ProductType) {
      self.id = id
      self.type = type
    }
  }

  package init(appFamilyID: String, name: String, bundleIDs: [String], products: [Product]) {
    self.appFamilyID = appFamilyID
    self.name = name
    self.bundleIDs = bundleIDs
    self.products = products
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("app_family_id")
    writer.string(appFamilyID)
    writer.key("name")
    writer.string(name)
    writer.key("bundle_ids")
    writer.beginArray()
    for id in bundleIDs { writer.string(id) }
    writer.endArray()
    writer.key("products")
    writer.beginObject()
    for product in products {
      writer.key(product.id)
      writer.string(product.type.rawValue)
    }
    writer.endObject()
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.appRegistered
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    guard let id = value["app_family_id"]?.stringValue, EventUUID.isOne(id) else {
      throw .badField(type, field: "app_family_id")
    }
    guard let name = value["name"]?.stringValue else { throw .badField(type, field: "name") }
    var bundles: [String] = []
    guard let list = value["bundle_ids"]?.arrayValue else {
      throw .badField(type, field: "bundle_ids")
    }
    for element in list {
      guard let bundle = element.stringValue else { throw .badField(type, field: "bundle_ids") }
      bundles.append(bundle)
    }
    guard case .object(let members) = value["products"] ?? .null else {
      throw .badField(type, field: "products")
    }
    var products: [Product] = []
    for member in members {
      guard let text = member.value.stringValue, let productType = ProductType(rawValue: text)
      else { throw .badField(type, field: "products") }
      products.append(Product(id: member.key, type: productType))
    }
    self.init(appFamilyID: id, name: name, bundleIDs: bundles, products: products)
  }
}
