// What intake looks up in the projections: known lines, app families, earlier declarations.
package import Base
package import Ledger
import Revenue

/// Queries of one generation of the projections, as it was when opened.
package final class IntakeLookup {
  private let database: Database
  /// The key for what replaces a line's digest in redacted lines; nil if no line is redacted.
  private let key: LineHMACKey?
  private let selectLine: Statement
  private let selectNotification: Statement
  private let selectFamily: Statement
  private let selectDeclaration: Statement

  /// - Parameter directory: whose key hides the digests of redacted lines; nil if lines are not looked up.
  package init(
    _ database: Database, linesOf directory: LedgerDirectory? = nil
  ) throws(ProjectionError) {
    self.database = database
    do throws(LedgerError) {
      key = try directory.flatMap { directory throws(LedgerError) in
        try LineHMACKey.ifPresent(directory)
      }
    } catch { throw .ledger(error) }
    do throws(DatabaseError) {
      selectLine = try database.prepare(
        """
        SELECT 1 FROM uploads WHERE line_hash = ?1 AND line_sha256 = ?2
        UNION ALL SELECT 1 FROM notifications WHERE line_hash = ?1 AND line_sha256 = ?2
        """)
      selectNotification = try database.prepare(
        "SELECT 1 FROM notifications WHERE uuid_hash = ? AND notification_uuid = ?")
      selectFamily = try database.prepare(
        "SELECT app_family_id FROM app_bundles WHERE bundle_id = ?")
      selectDeclaration = try database.prepare(
        """
        SELECT position FROM declarations WHERE source_sha256 = ? AND type = ? AND withdrawn_by IS NULL
        ORDER BY position
        """)
    } catch { throw .database(error) }
  }

  /// Whether the ledger contains an import line with this digest, redacted or not.
  package func containsLine(_ digest: SHA256Digest) throws(DatabaseError) -> Bool {
    if try containsRecorded(digest) { return true }
    for hidden in key?.digests(of: digest) ?? [] where try containsRecorded(hidden) { return true }
    return false
  }

  private func containsRecorded(_ digest: SHA256Digest) throws(DatabaseError) -> Bool {
    defer { selectLine.reset() }
    selectLine.bind(1, digest.indexHash)
    digest.withUnsafeBytes { selectLine.bind(2, blob: $0) }
    return try selectLine.step()
  }

  /// Whether the ledger contains a notification with this `notificationUUID`.
  package func containsNotification(_ uuid: String) throws(DatabaseError) -> Bool {
    defer { selectNotification.reset() }
    selectNotification.bind(1, withText(uuid) { $0.indexHash })
    selectNotification.bind(2, text: uuid)
    return try selectNotification.step()
  }

  /// The app family that a bundle id belongs to; nil if there is none.
  package func appFamilyID(ofBundle bundleID: String) throws(DatabaseError) -> String? {
    defer { selectFamily.reset() }
    selectFamily.bind(1, text: bundleID)
    return try selectFamily.step() ? selectFamily.text(0) : nil
  }

  /// The App Store's number of an app family; nil if the family declares none.
  package func appAppleID(ofFamily appFamilyID: String) throws(DatabaseError) -> Int64? {
    let row = try database.prepare("SELECT data FROM apps WHERE app_family_id = ?")
    row.bind(1, text: appFamilyID)
    guard try row.step() else { return nil }
    // This data was parsed before it was stored, so it parses again.
    return (try? AppRegistered(data: row.bytes(0)))?.appAppleID
  }

  /// The name of the app family with an id; nil if no family is registered with it.
  package func appName(ofFamily appFamilyID: String) throws(DatabaseError) -> String? {
    let row = try database.prepare("SELECT name FROM apps WHERE app_family_id = ?")
    row.bind(1, text: appFamilyID)
    return try row.step() ? row.text(0) : nil
  }

  /// The latest trust declaration; nil if there is none.
  package func newestTrust() throws(ProjectionError) -> TrustDeclared? {
    try TrustQueries(database).newest()
  }

  /// The positions of the events that declare a file with this SHA-256 and were not withdrawn, in ascending order.
  package func declarations(
    _ type: EventType, sha256Hex: String
  ) throws(DatabaseError) -> [Position] {
    defer { selectDeclaration.reset() }
    selectDeclaration.bind(1, text: sha256Hex)
    selectDeclaration.bind(2, DeclarationTable.code(type))
    var positions: [Position] = []
    while try selectDeclaration.step() { positions.append(try selectDeclaration.ordinal(0)) }
    return positions
  }
}
