// Events that an erasure names and that hold their data all the same: a backup brought them back.
import Base
import JSON
import Ledger
import Projections

/// Finds such events, and redacts them as their erasure did, or by a new one where that can't be repeated.
struct RestoredLines {
  /// What the newest erasure of a position lists.
  private struct Entry {
    var erasure: Position
    var digest: SHA256Digest
    var scope: DataRedacted.Scope
  }

  private var entries: [Position: Entry] = [:]
  private var positions: [Position] = []

  var isEmpty: Bool { positions.isEmpty }
  var count: Int { positions.count }

  init(_ reader: LogReader, _ database: Database, isCancelled: () -> Bool) throws {
    try list(reader, database)
    let listed = entries.keys.sorted()
    try reader.readEvents(at: listed, isCancelled: isCancelled) { event in
      guard let entry = entries[event.position] else { return }
      if let erasure = event.redactedBy, erasure >= entry.erasure { return }
      positions.append(event.position)
    }
  }

  private mutating func list(_ reader: LogReader, _ database: Database) throws {
    let rows = try database.prepare(
      """
      SELECT l.position, l.erasure, (SELECT o.scope FROM redactions o WHERE o.position = l.erasure)
      FROM redactions l WHERE l.part IS NOT NULL ORDER BY l.erasure, l.part
      """)
    while try rows.step() {
      // A log that is not whole may list lines of an erasure that it does not begin.
      let scope = rows.isNull(2) ? .user : try rows.word(2, as: DataRedacted.Scope.self)
      let line = try reader.event(at: try rows.ordinal(0))
      let redaction = try line.withUnsafeBytes { bytes in
        try EventLine(bytes).map { try DataRedacted(data: $0.data) }
      }
      guard case .listing(let listing)? = redaction else { continue }
      for line in listing.lines {
        entries[line.position] = Entry(
          erasure: listing.erasure, digest: line.digest, scope: scope)
      }
    }
  }

  /// Passes on the redacted lines, by position.
  /// - Parameter erasure: the position of the new erasure; nil to see whether one is needed.
  /// - Returns: how many events can't be redacted as their erasure did: its random ids can't be made again.
  @discardableResult
  func redact(
    by erasure: Position?, _ reader: LogReader, _ database: Database,
    lineDigest: @escaping (SHA256Digest) -> SHA256Digest, _ body: ([UInt8]) throws -> Void
  ) throws -> Int {
    var otherCount = 0
    var reducers: [Position: LineReducer] = [:]
    func reducer(_ erasure: Position) throws -> LineReducer {
      if let known = reducers[erasure] { return known }
      let made = try LineReducer(
        erasure: erasure, Ownership(), database, lineDigest: lineDigest)
      reducers[erasure] = made
      return made
    }
    let hasher = SHA256()
    try reader.readEvents(at: positions, isCancelled: { false }) { event in
      guard let entry = entries[event.position] else { return }
      let extents = Self.extents(entry.scope)
      for extents in extents {
        guard let kept = try reducer(entry.erasure).kept(of: event, extents) else { continue }
        let line = event.redacted(by: entry.erasure, kept: kept, hasher)
        let digest = line.withUnsafeBytes { EventLine($0)?.contentDigest(hasher) }
        if digest == entry.digest { return try body(line) }
      }
      otherCount += 1
      // The name stays that of the first erasure: other lines of the user have it.
      guard let erasure, let kept = try reducer(entry.erasure).kept(of: event, extents[0]) else {
        return
      }
      try body(event.redacted(by: erasure, kept: kept, hasher))
    }
    return otherCount
  }

  /// How an erasure of this scope may have redacted an event; first what takes the most.
  private static func extents(_ scope: DataRedacted.Scope) -> [[ErasureExtent]] {
    let fields: [[ErasureExtent]] = [
      [.ipAddress, .identifierForVendor, .metadata], [.ipAddress, .identifierForVendor],
      [.ipAddress, .metadata], [.identifierForVendor, .metadata], [.ipAddress],
      [.identifierForVendor], [.metadata],
    ]
    return switch scope {
    case .user: [[.whole], [.names]]
    case .receipt, .position: [[.whole], [.receipt], [.receiptKeepingID]]
    case .retention: fields
    }
  }
}
