// What the server reads from live projections, as plain values.
package import AppStore
package import Base
package import Ledger

/// The resource of a receipt as one upload sees it, or of an upload of signed transactions.
package struct ClientReceipt: Equatable, Sendable {
  /// Whether the upload is a fraud; `fraudReason` has the reason.
  package let isFraud: Bool
  package let fraudReason: String?
  /// Whether the upload has no final reply of the App Store yet.
  package let isPending: Bool
  /// The resource as JSON: see docs/client-api.md.
  package let body: ResponseBody
}

/// An upload that is to be answered.
package struct FoldedUpload: Sendable {
  package let position: Position
  /// The types of the products in its receipt's file, if they are known already.
  package let filedTypes: [String: ProductType]?

  package init(at position: Position, filedTypes: [String: ProductType]? = nil) {
    (self.position, self.filedTypes) = (position, filedTypes)
  }

  /// The types of the products in a receipt's file, by product id; the first if a product has several.
  package static func types(in file: Receipt) -> [String: ProductType] {
    var types: [String: ProductType] = [:]
    for purchase in file.purchases {
      guard let product = purchase.productID, types[product] == nil,
        let type = ReceiptPurchases.type(purchase.productType.map(Int64.init))
      else { continue }
      types[product] = type
    }
    return types
  }
}

/// An upload that waits for the App Store.
package struct WaitingUpload: Equatable, Sendable {
  package let position: Position
  /// When it was received, in epoch milliseconds.
  package let occurredAtMs: Int64
  /// Whether an event records that the App Store could not be reached: one event per upload is enough.
  package let isUnreachableRecorded: Bool
}

/// Selects some of a receipt's waiting uploads: the first ones, by position.
package struct WaitingPart: Equatable, Sendable {
  /// The maximum number; nil for no limit.
  package let limit: Int?
  /// Whether to leave out uploads for which it is recorded that the App Store could not be reached.
  package let isUnrecordedAlone: Bool

  package init(limit: Int?, isUnrecordedAlone: Bool = false) {
    (self.limit, self.isUnrecordedAlone) = (limit, isUnrecordedAlone)
  }

  package static let all = WaitingPart(limit: nil)
}

/// A pending receipt, with all uploads that wait for its final reply.
package struct WaitingReceipt: Equatable, Sendable {
  /// Its number in the projections, for `waiting(afterReceipt:)`.
  package let number: Int64
  package let receiptID: UUID16
  package let appFamily: UUID16
  package let bundleID: String
  /// In the order of their positions; never empty.
  package let uploads: [WaitingUpload]

  /// When the first of them was received, in epoch milliseconds.
  package var sinceMs: Int64 { uploads.map(\.occurredAtMs).min() ?? 0 }
  /// Whether it is recorded for each upload that the App Store could not be reached.
  package var isUnreachableRecorded: Bool { uploads.allSatisfy(\.isUnreachableRecorded) }
}

/// The newest final reply of the App Store for a receipt.
package struct RecentReply: Equatable, Sendable {
  /// The event that holds the reply; `reply_of` must name it.
  package let position: Position
  package let outcome: Outcome
  package let status: Int64?
  /// As the reply named it.
  package let environment: String?
  package let endpoint: Endpoint?
  package let reason: String?
  /// Nil if it was not recorded.
  package let source: ReplySource?
  /// When it was given, in epoch milliseconds.
  package let occurredAtMs: Int64

  package init(
    position: Position, outcome: Outcome, status: Int64?, environment: String?,
    endpoint: Endpoint?, reason: String?, source: ReplySource?, occurredAtMs: Int64
  ) {
    self.position = position
    self.outcome = outcome
    self.status = status
    self.environment = environment
    self.endpoint = endpoint
    self.reason = reason
    self.source = source
    self.occurredAtMs = occurredAtMs
  }
}

/// The latest registration of an app family.
package struct AppFamily: Equatable, Sendable {
  package let id: UUID16
  package let name: String
  /// The bundle ids that belong to it, sorted.
  package let bundleIDs: [String]
  /// Declared types by product id; empty if any product is allowed.
  package let products: [String: ProductType]
  /// The App Store's number of the app; nil if it is not declared.
  package let appAppleID: Int64?
  package let entitlements: [Entitlement]
}

/// All app families, at one position.
struct AppDirectory: Sendable {
  private(set) var families: [UUID16: AppFamily] = [:]
  private(set) var familiesByBundle: [String: UUID16] = [:]

  init() {}

  init(_ database: Database) throws(DatabaseError) {
    let bundles = try database.prepare(
      "SELECT bundle_id, app_family_id FROM app_bundles ORDER BY bundle_id")
    var bundleIDs: [UUID16: [String]] = [:]
    while try bundles.step() {
      guard let family = UUID16(bundles.text(1)) else { continue }
      familiesByBundle[bundles.text(0)] = family
      bundleIDs[family, default: []].append(bundles.text(0))
    }
    let apps = try database.prepare("SELECT data FROM apps")
    while try apps.step() {
      // This data was parsed before it was stored, so it parses again.
      guard let app = try? AppRegistered(data: apps.bytes(0)), let id = UUID16(app.appFamilyID)
      else { continue }
      families[id] = AppFamily(
        id: id, name: app.name, bundleIDs: bundleIDs[id] ?? [],
        products: Dictionary(app.products.map { ($0.id, $0.type) }) { $1 },
        appAppleID: app.appAppleID, entitlements: app.entitlements)
    }
  }
}
