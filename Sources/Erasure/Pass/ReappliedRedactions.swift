// Redacts again the events that an erasure lists and whose data a restored backup brought back.
import Base
import Ledger
import Projections

/// Finds such events, and redacts them as their erasure did, or by a new one if that can't be repeated.
struct ReappliedRedactions {
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
      // An incomplete log may list lines of an erasure whose opening event it lacks.
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
  /// - Returns: how many events can't be redacted as their erasure did, because its random ids can't be reproduced.
  @discardableResult
  func redact(
    by erasure: Position?, _ reader: LogReader, _ database: Database,
    lineDigest: @escaping (SHA256Digest) -> SHA256Digest, _ body: ([UInt8]) throws -> Void
  ) throws -> Int {
    var otherCount = 0
    var reducers: [Position: LineRedactor] = [:]
    func reducer(_ erasure: Position) throws -> LineRedactor {
      if let known = reducers[erasure] { return known }
      let made = try LineRedactor(
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
      // Keep the name from the first erasure: other lines of the user have it.
      guard let erasure, let kept = try reducer(entry.erasure).kept(of: event, extents[0]) else {
        return
      }
      try body(event.redacted(by: erasure, kept: kept, hasher))
    }
    return otherCount
  }

  /// How an erasure of this scope may have redacted an event, the largest extent first.
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

// MARK: - Reapplication by the eraser

extension Eraser {
  /// Removes redacted lines that can't be read, and the projections that were made with them. The log lists the lines
  /// that they were to redact, or their requests still wait.
  private func dropDamagedFile() throws {
    do throws(LedgerError) { _ = try RedactedLines.ifPresent(directory) } catch {
      guard error.kind == .corruption else { throw error }
      observer.notice("\(RedactionFile.name) is damaged and removed: \(error.cause)")
      try RedactionFile.remove(from: directory)
      try projector(try LogReader(directory, .durable)).rebuild()
      try onProjectionsReplaced()
    }
  }

  /// Finishes an interrupted pass, and redacts again the events that erasures list and that still have their data, as
  /// after a restored backup.
  /// - Returns: whether a pass was interrupted, and how many events were redacted again.
  package func redactAgain() throws(ErasureError) -> (wasInterrupted: Bool, count: Int) {
    do {
      try dropDamagedFile()
      let wasInterrupted = try finishInterrupted()
      // Requests whose pass was not committed, here or where this log was copied from. They come before the others: a
      // pass lists its lines as it redacts them, whatever an earlier pass has listed.
      let isRunning = try hasBegunRequests()
      if isRunning { _ = try run() }
      return (wasInterrupted || isRunning, try redactRestored())
    } catch { throw Self.erasureError(error) }
  }

  private func hasBegunRequests() throws -> Bool {
    let open = try queue.open()
    if open.isEmpty { return false }
    if open.contains(where: { $0.state == .running }) { return true }
    let database = try projector(try LogReader(directory, .durable)).current()
    return try open.contains { try opening(of: $0.id, database) != nil }
  }

  private func redactRestored() throws -> Int {
    directory = try writer.directory.reread()
    guard directory.identity.formatVersion >= Format.versionWithRedactions else { return 0 }
    _ = try writer.sealAll()
    let reader = try LogReader(directory, .durable)
    let database = try projector(reader).current()
    let restored = try ReappliedRedactions(reader, database, isCancelled: observer.isCancelled)
    if restored.isEmpty { return 0 }
    let opening = DataRedacted.Opening(ofNoRequest: DataRedacted.restoredReason)
    var item = Item(opening)
    let key = try LineHMACKey.made(directory)
    let otherCount = try restored.redact(
      by: nil, reader, database, lineDigest: { key.digest(of: $0) }
    ) { _ in
    }
    if otherCount > 0 {
      item.erasure = try writer.append([
        EventDraft(.dataRedacted, DataRedacted.opening(opening).data)
      ]).firstPosition
    }
    let file = try RedactionFileWriter(directory, pass: .random())
    do {
      try restored.redact(by: item.erasure, reader, database, lineDigest: { key.digest(of: $0) }) {
        try file.append(line: $0)
      }
    } catch {
      try? file.discard()
      throw error
    }
    let rewritten = try putInUse(file)
    if let lines = try RedactedLines.ifPresent(directory) { try finish(lines, rewritten) }
    return restored.count
  }
}
