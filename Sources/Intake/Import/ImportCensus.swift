// Counts what the lines of a dry run contain and lack; and the app families that an import knows.
import AppStore
import Base
import Ledger

/// Counts of what an import would append.
package struct ImportCensus: Equatable, Sendable {
  /// Receipts with a recorded reply, and receipts about which the App Store would be asked.
  package private(set) var receiptsWithReply = 0
  package private(set) var receiptsWithoutReply = 0
  /// Lines of signed transactions.
  package private(set) var signedTransactions = 0
  package private(set) var notifications = 0
  package private(set) var legacyNotifications = 0
  /// Uploads that lack one of these; notifications never have them.
  package private(set) var withoutUser = 0
  package private(set) var withoutCountry = 0
  package private(set) var withoutPrice = 0
  /// Lines by the environment that they name; a receipt without a reply names none that counts.
  package private(set) var environments: [String: Int] = [:]
  /// Lines by bundle ids that no app has registered.
  package private(set) var unregistered: [String: Int] = [:]
  /// Lines with further such bundle ids: a file may name any number.
  package private(set) var furtherUnregistered = 0

  private static let namesMax = 100

  /// Facts of a line that its events do not contain.
  package struct Facts: Equatable, Sendable {
    package var environment: String?
    package var hasReply = false
    package var hasUser = false
    package var hasCountry = false
    package var hasPrice = false
  }

  package init() {}

  /// Counts a line that would be accepted.
  mutating func add(_ line: AcceptedLine) {
    if let bundleID = line.newFamily?.bundleID { addUnregistered(bundleID) }
    let environment = line.facts.environment ?? ""
    if environments[environment] != nil || environments.count < Self.namesMax {
      environments[environment, default: 0] += 1
    }
    switch line.kind {
    case .notification: notifications += 1
    case .legacyNotification: legacyNotifications += 1
    case .upload:
      if line.drafts.contains(where: { $0.type == EventType.transactionsReceived.rawValue }) {
        signedTransactions += 1
      } else if line.facts.hasReply {
        receiptsWithReply += 1
      } else {
        receiptsWithoutReply += 1
      }
      if !line.facts.hasUser { withoutUser += 1 }
      if !line.facts.hasCountry { withoutCountry += 1 }
      if !line.facts.hasPrice { withoutPrice += 1 }
    }
  }

  private mutating func addUnregistered(_ bundleID: String) {
    guard unregistered[bundleID] != nil || unregistered.count < Self.namesMax else {
      furtherUnregistered += 1
      return
    }
    unregistered[bundleID, default: 0] += 1
  }
}

extension ImportCensus.Facts {
  init(_ client: ClientFields) {
    hasUser = client.userIdentifier?.isEmpty == false
    hasCountry = client.countryCode != nil
    hasPrice =
      client.metadata.map { metadata in
        metadata.withUnsafeBytes { Self.hasPrice($0) }
      } ?? false
  }

  /// Whether metadata has a member of a price: `prices`, `price`, `price_micros`, `price_milliunits`.
  private static func hasPrice(_ object: JSONBytes) -> Bool {
    var cursor = JSONCursor(object)
    do throws(JSONError) {
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if key.string.hasPrefix("price") { return true }
        try cursor.skipValue()
      }
    } catch { return false }
    return false
  }
}

extension Endpoint {
  /// The environment of replies that name none (rule R1).
  var environment: String {
    switch self {
    case .production: EnvironmentName.production.description
    case .sandbox: EnvironmentName.sandbox.description
    }
  }
}

// MARK: - App families

/// Finds the app family of a bundle id: among the ledger's and those that this import registers. Used by one thread.
final class ImportFamilies {
  /// The result of looking up a bundle id.
  enum Answer {
    case family(UUID16)
    /// No family has it, and one is to be registered.
    case unregistered
    case refused(FieldProblem.Code, String)
  }

  private let registered: any AppFamilies
  private let registersApps: Bool
  /// The ledger's families that were looked up, and those that this import registered.
  private var known: [String: UUID16] = [:]
  private var appleIDs: [UUID16: Int64?] = [:]

  init(_ registered: any AppFamilies, registersApps: Bool) {
    self.registered = registered
    self.registersApps = registersApps
  }

  /// - Parameter malformed: the code of a bundle id that no app can have.
  func answer(_ bundleID: String, malformed: FieldProblem.Code) -> Answer {
    if bundleID.isEmpty { return .refused(malformed, "has no bundle id, so it belongs to no app") }
    if let appFamily = known[bundleID] { return .family(appFamily) }
    guard bundleID.utf8.count <= EventLimits.bundleIDBytes else {
      return .refused(malformed, "has a bundle id of more than \(EventLimits.bundleIDBytes) bytes")
    }
    if let id = registered.id(forBundleID: bundleID) {
      guard let appFamily = UUID16(id) else {
        return .refused(.invalidValue, "belongs to an app family whose id is not a UUID")
      }
      known[bundleID] = appFamily
      return .family(appFamily)
    }
    return registersApps
      ? .unregistered
      : .refused(.bundleNotRegistered, "has a bundle id that no app has registered")
  }

  /// The App Store's number of a family; nil if it declares none, as for those registered by this import.
  func appAppleID(of appFamily: UUID16) -> Int64? {
    if let known = appleIDs[appFamily] { return known }
    let id = registered.appAppleID(ofFamily: appFamily.description)
    appleIDs[appFamily] = .some(id)
    return id
  }

  /// Records a family whose registration was submitted.
  func record(_ bundleID: String, _ appFamily: UUID16) { known[bundleID] = appFamily }

  /// The event that registers a family for one bundle id.
  static func registration(_ bundleID: String, _ appFamily: UUID16) -> EventDraft {
    let event = AppRegistered(
      appFamilyID: appFamily.description, name: bundleID, bundleIDs: [bundleID], products: [])
    return EventDraft(.appRegistered, event.data)
  }
}
