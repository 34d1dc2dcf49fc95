// What an import looks up in the projections.
import Base
import Intake
import Ledger
import Projections

/// Known lines, known notifications and app families from the projections. If they cannot be read, the import ends:
/// what may be known must not be appended again.
final class Lookup: KnownLines, KnownNotifications, AppFamilies {
  private let lookup: IntakeLookup
  /// The first failure; after it, all results are such that nothing is appended.
  private(set) var failure: DatabaseError?
  private let stop: StopFlag

  init(_ lookup: IntakeLookup, stop: StopFlag) {
    self.lookup = lookup
    self.stop = stop
  }

  func contains(_ digest: SHA256Digest) -> Bool {
    do throws(DatabaseError) { return try lookup.containsLine(digest) } catch {
      note(error)
      return true
    }
  }

  func contains(notificationUUID: String) -> Bool {
    do throws(DatabaseError) { return try lookup.containsNotification(notificationUUID) } catch {
      note(error)
      return true
    }
  }

  func id(forBundleID bundleID: String) -> String? {
    do throws(DatabaseError) { return try lookup.appFamilyID(ofBundle: bundleID) } catch {
      note(error)
      return nil
    }
  }

  func appAppleID(ofFamily id: String) -> Int64? {
    do throws(DatabaseError) { return try lookup.appAppleID(ofFamily: id) } catch {
      note(error)
      return nil
    }
  }

  private func note(_ error: DatabaseError) {
    if failure == nil { failure = error }
    stop.set()
  }
}
