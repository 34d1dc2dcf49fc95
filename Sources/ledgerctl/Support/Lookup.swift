// The projections as intake asks them.
import Base
import Intake
import Ledger
import Projections

/// Known lines and app families from the projections. A failure to read them ends the import: what is not
/// known for certain must not be appended twice.
final class Lookup: KnownLines, AppFamilies {
  private let lookup: IntakeLookup
  /// The first failure; after it every answer is the one that appends nothing.
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

  func id(forBundleID bundleID: String) -> String? {
    do throws(DatabaseError) { return try lookup.appFamilyID(ofBundle: bundleID) } catch {
      note(error)
      return nil
    }
  }

  private func note(_ error: DatabaseError) {
    if failure == nil { failure = error }
    stop.set()
  }
}
