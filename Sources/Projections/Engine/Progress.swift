// How far, and with which code, a database has folded the log.
import Base
package import Ledger

/// The position up to which a database has folded, and the history of those events.
package struct Progress {
  /// The position of the next event.
  package var position = 0
  package var frontier = Frontier()
  /// Epoch milliseconds; nil if no event was folded.
  var lastEventAtMs: Int64?

  /// The tree's root at the position.
  var root: SHA256Digest { frontier.root }

  package init() {}

  /// Reads the progress of a database.
  package init(_ database: Database) throws(DatabaseError) {
    let row = try database.prepare(
      "SELECT position, frontier, last_event_at_ms FROM progress WHERE id = 0")
    guard try row.step() else { return }
    position = try row.ordinal(0)
    // A frontier that does not match its size gets a root that no log has, so it will be discarded.
    frontier = Frontier(size: position, bytes: row.bytes(1)) ?? Frontier()
    lastEventAtMs = try row.optionalInstant(2)
  }

  /// Writes the progress, inside the transaction that writes the rows.
  func store(to database: Database) throws(DatabaseError) {
    precondition(frontier.size == position, "the tree is of another size than what was folded")
    let insert = try database.prepare("INSERT OR REPLACE INTO progress VALUES(0, ?, ?, ?, ?)")
    insert.bind(1, position)
    root.bytes.withUnsafeBytes { insert.bind(2, blob: $0) }
    frontier.bytes.withUnsafeBytes { insert.bind(3, blob: $0) }
    insert.bind(4, lastEventAtMs)
    try insert.run()
  }

  // MARK: Versions

  /// Records the versions and definitions of projections.
  static func store(
    versionsOf projections: ProjectionSet, _ database: Database
  ) throws(DatabaseError) {
    let insert = try database.prepare("INSERT INTO projections VALUES(?, ?, ?)")
    for projection in projections.identities {
      insert.bind(1, text: projection.name)
      insert.bind(2, projection.version)
      insert.bind(3, text: projection.definition)
      try insert.run()
    }
  }

  /// Whether exactly these projections, in these versions and definitions, folded the database.
  static func hasVersions(
    _ projections: ProjectionSet, _ database: Database
  ) throws(DatabaseError) -> Bool {
    // An empty file is a valid database without tables.
    let tableCount = try database.integer(
      "SELECT count(*) FROM sqlite_master WHERE name IN ('projections', 'progress')")
    guard tableCount == 2 else { return false }
    return Set(try storedIdentities(database)) == Set(projections.identities)
  }

  /// What a database records about its projections, by name. Databases made before definitions were recorded have
  /// empty ones.
  static func storedIdentities(
    _ database: Database
  ) throws(DatabaseError) -> [ProjectionIdentity] {
    let column = try database.integer(
      "SELECT count(*) FROM pragma_table_info('projections') WHERE name = 'definition'")
    let definition = column == 1 ? "definition" : "''"
    let rows = try database.prepare(
      "SELECT name, version, \(definition) FROM projections ORDER BY name")
    var stored: [ProjectionIdentity] = []
    while try rows.step() {
      stored.append(
        ProjectionIdentity(
          name: rows.text(0), version: try rows.ordinal(1), definition: rows.text(2)))
    }
    return stored
  }
}
