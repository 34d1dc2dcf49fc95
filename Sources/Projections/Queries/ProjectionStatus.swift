// The state of the projections, reported without updating them.
package import Base
package import Ledger
import Revenue

/// What `status` shows about the projections.
package struct ProjectionStatus: Equatable, Sendable {
  package struct Version: Equatable, Sendable {
    package let name: String
    /// Nil if the database does not have the projection.
    package let stored: Int?
    /// Nil if this program does not have the projection.
    package let current: Int?
    /// Whether the database defines its tables and views as this program does.
    package let isDefinedAlike: Bool

    /// Whether version and definition match this program's.
    package var isCurrent: Bool { stored == current && isDefinedAlike }
  }

  /// Counts of what the database holds. They exist only if all versions match this program's.
  package struct Counts: Equatable, Sendable {
    /// The number of receipts in each state, in the order of the states.
    package let receipts: [(state: String, count: Int)]
    package let uploads: Int
    package let verifications: Int
    package let notifications: Int
    package let sales: Int
    package let exceptions: Int
    /// Sales that the App Store has not confirmed (rule R1); `sales` does not include them.
    package let pendingSales: Int
    /// Products that are sold but that their apps do not declare, although these declare others.
    package let undeclaredProducts: [UndeclaredProduct]

    package static func == (left: Counts, right: Counts) -> Bool {
      left.receipts.elementsEqual(right.receipts) { $0 == $1 }
        && left.undeclaredProducts == right.undeclaredProducts
        && [
          left.uploads, left.verifications, left.notifications, left.sales, left.exceptions,
          left.pendingSales,
        ]
          == [
            right.uploads, right.verifications, right.notifications, right.sales, right.exceptions,
            right.pendingSales,
          ]
    }
  }

  /// How many events are folded.
  package let position: Position
  /// Whether the log has, at that position, the root that the projections recorded.
  package let isOfThisLog: Bool
  package let versions: [Version]
  package let counts: Counts?

  /// Whether a command that needs them must rebuild them.
  package var mustBeRebuilt: Bool { !isOfThisLog || counts == nil }
}

/// The projections of a ledger, listed one by one.
package struct ProjectionList: Equatable, Sendable {
  package struct Entry: Equatable, Sendable {
    package let version: ProjectionStatus.Version
    /// The number of rows in its tables; nil if it has no tables, or if the database does not have them.
    package let rowCount: Int?
  }

  /// How many events are folded. It is the same for all projections, because one transaction folds events into all of
  /// them.
  package let position: Position
  /// Whether the log has, at that position, the root that the projections recorded.
  package let isOfThisLog: Bool
  /// When the database file was put in use, in epoch milliseconds.
  package let inUseSinceMs: Int64?
  package let entries: [Entry]

  /// Whether a command that needs them must rebuild them.
  package var mustBeRebuilt: Bool {
    !isOfThisLog || entries.contains { !$0.version.isCurrent }
  }
}

/// The number of events that the projections have folded, and the root recorded with them.
package struct RecordedHead: Equatable, Sendable {
  package let size: Int
  package let root: SHA256Digest
  /// The number of these events whose reply is not about its receipt; nil if the stored version of the projection
  /// differs from this program's.
  package let replyMismatches: Int?
}

extension Projector {
  /// The current state of the projections; nil if there are none. Changes nothing.
  package func status() throws(ProjectionError) -> ProjectionStatus? {
    try generations.withCurrent { path throws(ProjectionError) in
      do {
        let database = try Database(path: path, mode: reading)
        return try status(of: database)
      } catch { throw Self.projectionError(error) }
    }
  }

  /// The state of a database, which must not be in a transaction.
  package func status(of database: Database) throws(ProjectionError) -> ProjectionStatus {
    do {
      // Read everything in one transaction, so that it is consistent.
      try database.execute("BEGIN")
      defer { try? database.execute("COMMIT") }
      let progress = try Progress(database)
      let versions = try versions(database)
      let isCurrent = versions.allSatisfy(\.isCurrent)
      return ProjectionStatus(
        position: progress.position, isOfThisLog: rests(progress), versions: versions,
        counts: isCurrent ? try Self.counts(database) : nil)
    } catch { throw Self.projectionError(error) }
  }

  /// The current state of each projection; nil if there are none. Changes nothing.
  package func list() throws(ProjectionError) -> ProjectionList? {
    try generations.withCurrent { path throws(ProjectionError) in
      do {
        let database = try Database(path: path, mode: .read)
        try database.execute("BEGIN")
        let progress = try Progress(database)
        let entries = try versions(database).map { version in
          ProjectionList.Entry(
            version: version, rowCount: try rowCount(of: version.name, database))
        }
        return ProjectionList(
          position: progress.position, isOfThisLog: rests(progress),
          inUseSinceMs: generations.putInUseAtMs, entries: entries)
      } catch { throw Self.projectionError(error) }
    }
  }

  private func rowCount(of name: String, _ database: Database) throws(DatabaseError) -> Int? {
    var sum: Int?
    for table in projections.tableNames(of: name) {
      let isThere = try database.prepare(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?")
      isThere.bind(1, text: table)
      guard try isThere.step() else { continue }
      sum = (sum ?? 0) + Int(try database.integer("SELECT count(*) FROM \(table)") ?? 0)
    }
    return sum
  }

  /// The number of events that the projections of a ledger have folded, and their root; nil if there are none. Does
  /// not read the log.
  package static func recordedHead(
    _ ledger: LedgerDirectory
  ) throws(ProjectionError) -> RecordedHead? {
    try Generations(ledger).withCurrent { path throws(ProjectionError) in
      do throws(DatabaseError) {
        let database = try Database(path: path, mode: .read)
        let progress = try Progress(database)
        return RecordedHead(
          size: progress.position, root: progress.root,
          replyMismatches: try replyMismatches(in: database))
      } catch { throw .database(error) }
    }
  }

  private static func replyMismatches(in database: Database) throws(DatabaseError) -> Int? {
    let stored = try database.integer("SELECT version FROM projections WHERE name = 'exceptions'")
    guard let current = Schema.versions.first(where: { $0.name == "exceptions" })?.version,
      stored == Int64(current)
    else { return nil }
    let type = ExceptionType.replyMismatch.rawValue
    let count = try database.integer("SELECT count(*) FROM exceptions WHERE type = \(type)")
    return count.map { Int($0) }
  }

  /// The unfinished erasures: from the projections and from the log after their position; from the whole log if there
  /// are no projections.
  package func unfinishedErasures() throws(ProjectionError) -> [UnfinishedErasure] {
    var erasures = ErasureProgress()
    do {
      var start = 0
      if let database = try? existing(), let progress = try? Progress(database), rests(progress) {
        try Self.read(&erasures, from: database)
        start = progress.position
      }
      try erasures.read(reader, from: start)
    } catch { throw Self.projectionError(error) }
    return erasures.unfinished
  }

  private static func read(
    _ erasures: inout ErasureProgress, from database: Database
  ) throws(DatabaseError) {
    let rows = try database.prepare(
      """
      SELECT position, erasure, request, scope, reason, part, parts FROM redactions
      ORDER BY position
      """)
    while try rows.step() {
      if let request = UUID16(rows.text(2)), let scope = DataRedacted.Scope(rawValue: rows.text(3))
      {
        let opening = DataRedacted.Opening(request: request, scope: scope, reason: rows.text(4))
        erasures.add(opening, at: try rows.ordinal(0))
      } else if !rows.isNull(5) {
        erasures.add(
          part: try rows.ordinal(5), of: try rows.ordinal(6), erasure: try rows.ordinal(1))
      }
    }
  }

  func rests(_ progress: Progress) -> Bool {
    // A server may have appended and folded events since the log was read.
    if progress.position > reader.head.size { try? reader.refresh() }
    guard progress.position <= reader.head.size else { return false }
    return (try? reader.frontier(at: progress.position).root) == progress.root
  }

  func versions(
    _ database: Database
  ) throws(DatabaseError) -> [ProjectionStatus.Version] {
    var stored: [String: ProjectionIdentity] = [:]
    for identity in try Progress.storedIdentities(database) { stored[identity.name] = identity }
    var result = projections.identities.map { projection in
      let found = stored.removeValue(forKey: projection.name)
      return ProjectionStatus.Version(
        name: projection.name, stored: found?.version, current: projection.version,
        isDefinedAlike: found?.definition == projection.definition)
    }
    for name in stored.keys.sorted() {
      result.append(
        .init(name: name, stored: stored[name]?.version, current: nil, isDefinedAlike: false))
    }
    return result
  }

  private static func counts(_ database: Database) throws -> ProjectionStatus.Counts {
    func count(_ rest: String) throws(DatabaseError) -> Int {
      Int(try database.integer("SELECT count(*) FROM \(rest)") ?? 0)
    }
    var receipts: [(state: String, count: Int)] = []
    for state in ReceiptState.allCases {
      receipts.append(("\(state.word)", try count("receipts WHERE state = \(state.rawValue)")))
    }
    // Unpriced sales are exceptions too, but they are derived when reported, not recorded.
    let unpriced = try count("sales WHERE price_basis = \(PriceBasis.none.rawValue)")
    return ProjectionStatus.Counts(
      receipts: receipts, uploads: try count("uploads"),
      verifications: try count("verifications"), notifications: try count("notifications"),
      sales: try count("sales"),
      exceptions: try count("exceptions") + unpriced,
      pendingSales: try pendingSaleCount(database),
      undeclaredProducts: try AppQueries(database).undeclaredProducts())
  }

  private static func pendingSaleCount(_ database: Database) throws -> Int {
    guard try database.integer("SELECT 1 FROM pending_receipts LIMIT 1") != nil else { return 0 }
    let arena = TextArena()
    let symbols = StringInterner(arena)
    try symbols.load(from: database)
    return try PendingSales(database, symbols, arena).sales.count
  }
}
