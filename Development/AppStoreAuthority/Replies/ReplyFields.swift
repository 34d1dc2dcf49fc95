// How the App Store writes one value and one date in a reply.
package import Base

/// The three names under which a reply gives a date.
package struct DateKeys: Sendable {
  package let greenwich: StaticString
  package let epoch: StaticString
  package let losAngeles: StaticString

  package static let purchase = DateKeys(
    greenwich: "purchase_date", epoch: "purchase_date_ms", losAngeles: "purchase_date_pst")
  package static let originalPurchase = DateKeys(
    greenwich: "original_purchase_date", epoch: "original_purchase_date_ms",
    losAngeles: "original_purchase_date_pst")
  package static let expires = DateKeys(
    greenwich: "expires_date", epoch: "expires_date_ms", losAngeles: "expires_date_pst")
  package static let cancellation = DateKeys(
    greenwich: "cancellation_date", epoch: "cancellation_date_ms",
    losAngeles: "cancellation_date_pst")
  package static let creation = DateKeys(
    greenwich: "receipt_creation_date", epoch: "receipt_creation_date_ms",
    losAngeles: "receipt_creation_date_pst")
  package static let request = DateKeys(
    greenwich: "request_date", epoch: "request_date_ms", losAngeles: "request_date_pst")
  package static let gracePeriod = DateKeys(
    greenwich: "grace_period_expires_date", epoch: "grace_period_expires_date_ms",
    losAngeles: "grace_period_expires_date_pst")
}

extension JSONWriter {
  package mutating func field(_ key: StaticString, _ value: String) {
    self.key(key)
    string(value)
  }

  package mutating func field(_ key: StaticString, integer value: Int) {
    self.key(key)
    self.integer(value)
  }

  /// A number or another value that is written already.
  package mutating func field(_ key: StaticString, raw value: String) {
    self.key(key)
    var value = value
    value.withUTF8 { raw(JSONBytes($0)) }
  }

  package mutating func dates(_ keys: DateKeys, _ epochMs: Int64) {
    field(keys.greenwich, StoreTime.greenwich(epochMs))
    field(keys.epoch, String(epochMs))
    field(keys.losAngeles, StoreTime.losAngeles(epochMs))
  }
}
