// settlement.mapped: which product a vendor identifier of Apple's reports is.
package import Base

/// Rows with a vendor identifier are of a product, in all months (settlement rule S16). The latest event of an
/// identifier counts.
package struct SettlementMapped: Equatable, Sendable {
  /// The vendor identifier, or SKU, as reports have it.
  package var sku: String
  /// Nil withdraws what was said before.
  package var productID: String?

  package init(sku: String, productID: String?) { (self.sku, self.productID) = (sku, productID) }

  /// The event.
  package var draft: EventDraft {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("sku", sku)
    writer.member("product_id", ifPresent: productID)
    writer.endObject()
    return EventDraft(.settlementMapped, writer.bytes)
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.settlementMapped, data)
    sku = try members.string("sku")
    productID = try members.optionalString("product_id")
    if sku.isEmpty { throw members.fault("sku") }
    if productID?.isEmpty == true { throw members.fault("product_id") }
  }
}
