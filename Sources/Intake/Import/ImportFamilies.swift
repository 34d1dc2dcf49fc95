// The app families that an import knows: the ledger's, and those that it registers itself.
import Base
import Ledger

/// Finds the app family of a bundle id. Used by one thread.
final class ImportFamilies {
  /// What is known of a bundle id.
  enum Answer {
    case family(UUID16)
    /// None has it, and one is to be registered.
    case unregistered
    case refused(FieldProblem.Code, String)
  }

  private let registered: any AppFamilies
  private let registersApps: Bool
  /// The ledger's that were looked up, and those registered by this import.
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

  /// The App Store's number of a family; nil if it declares none, as those registered by this import.
  func appAppleID(of appFamily: UUID16) -> Int64? {
    if let known = appleIDs[appFamily] { return known }
    let id = registered.appAppleID(ofFamily: appFamily.description)
    appleIDs[appFamily] = .some(id)
    return id
  }

  /// Remembers a family whose registration was submitted.
  func note(_ bundleID: String, _ appFamily: UUID16) { known[bundleID] = appFamily }

  /// The event that registers a family for one bundle id.
  static func registration(_ bundleID: String, _ appFamily: UUID16) -> EventDraft {
    let event = AppRegistered(
      appFamilyID: appFamily.description, name: bundleID, bundleIDs: [bundleID], products: [])
    return EventDraft(.appRegistered, event.data)
  }
}
