// merged.from: a run of a merge begins; and the member by which each merged event names the event that it was.
package import Base

/// What a run of a merge takes. A ledger whose first event is of this type takes nothing but merges.
package struct MergedFrom: Equatable, Sendable {
  /// A ledger that the run reads.
  package struct Source: Equatable, Sendable {
    package var origin: String
    /// The ledger's id, a UUID.
    package var id: String
    /// Earlier runs took the events before this position.
    package var first: Position
    /// The run takes those before this one.
    package var size: Int
    /// The root of the tree of the ledger's first `size` events.
    package var root: SHA256Digest
    /// What precedes the user identifiers of its uploads; nil if nothing does.
    package var userPrefix: String?

    package init(
      origin: String, id: String, first: Position, size: Int, root: SHA256Digest,
      userPrefix: String?
    ) {
      (self.origin, self.id, self.userPrefix) = (origin, id, userPrefix)
      (self.first, self.size, self.root) = (first, size, root)
    }
  }

  /// An erasure that the run repeats although it took place later than what the run takes.
  package struct Erasure: Hashable, Sendable {
    package var origin: String
    /// The position in its ledger of the event that opened it.
    package var position: Position

    package init(origin: String, position: Position) {
      (self.origin, self.position) = (origin, position)
    }
  }

  /// The run takes what was recorded before this time, in epoch milliseconds.
  package var beforeMs: Int64
  /// Whether an operator gave the time; otherwise it is the smallest of the ledgers' newest times.
  package var isByOperator: Bool
  /// By origin.
  package var sources: [Source]
  /// How many merged events follow.
  package var eventCount: Int
  /// The erasures whose events follow those, in this order.
  package var erasures: [Erasure]

  package init(
    beforeMs: Int64, isByOperator: Bool, sources: [Source], eventCount: Int, erasures: [Erasure]
  ) {
    (self.beforeMs, self.isByOperator) = (beforeMs, isByOperator)
    (self.sources, self.eventCount, self.erasures) = (sources, eventCount, erasures)
  }

  private static let (operatorWord, ledgersWord) = ("operator", "ledgers")

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("before", Timestamp.fixedText(ms: beforeMs))
    writer.member("chosen_by", isByOperator ? Self.operatorWord : Self.ledgersWord)
    writer.key("ledgers")
    writer.beginArray()
    for source in sources {
      writer.beginObject()
      writer.member("origin", source.origin)
      writer.member("id", source.id)
      writer.member("first", source.first)
      writer.member("size", source.size)
      writer.member("root", Base64.text(source.root.bytes))
      writer.member("user_prefix", ifPresent: source.userPrefix)
      writer.endObject()
    }
    writer.endArray()
    writer.member("events", eventCount)
    writer.key("erasures")
    writer.beginArray()
    for erasure in erasures {
      writer.beginObject()
      writer.member("origin", erasure.origin)
      writer.member("position", erasure.position)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.mergedFrom, data)
    guard let beforeMs = Timestamp.parseFixed(try members.string("before")) else {
      throw members.fault("before")
    }
    let word = try members.string("chosen_by")
    guard word == Self.operatorWord || word == Self.ledgersWord else {
      throw members.fault("chosen_by")
    }
    var sources: [Source] = []
    for ledger in try members.objects("ledgers") {
      let source = Source(
        origin: try ledger.string("origin"), id: try ledger.string("id"),
        first: try ledger.count("first"), size: try ledger.count("size"),
        root: try ledger.root("root"), userPrefix: try ledger.optionalString("user_prefix"))
      guard source.first <= source.size else { throw members.fault("ledgers") }
      sources.append(source)
    }
    let eventCount = try members.count("events")
    // Positions are computed from it.
    guard eventCount <= Format.positionMax else { throw members.fault("events") }
    var erasures: [Erasure] = []
    for erasure in try members.objects("erasures") {
      erasures.append(
        Erasure(
          origin: try erasure.string("origin"), position: try erasure.count("position")))
    }
    self.init(
      beforeMs: beforeMs, isByOperator: word == Self.operatorWord, sources: sources,
      eventCount: eventCount, erasures: erasures)
  }
}

extension Timestamp {
  fileprivate static func parseFixed(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { parseFixed(UnsafeRawBufferPointer($0)) }
  }
}

// MARK: - The event that a merged event was

/// `merged`, the first member of a merged event's data, or of what was kept of it.
package enum MergedEvent {
  package static let member: StaticString = "merged"

  /// The data of an event of another ledger with the member in front.
  /// - Parameter data: begins and ends with a brace.
  package static func data(
    _ data: [UInt8], from origin: String, at position: Position
  ) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(data.count + origin.utf8.count + 64)
    writer.beginObject()
    writer.key(member)
    writer.beginObject()
    writer.member("ledger", origin)
    writer.member("position", position)
    writer.endObject()
    var bytes = writer.bytes
    if data.count > 2 { bytes.append(UInt8(ascii: ",")) }
    bytes += data.dropFirst()
    return bytes
  }

  /// The ledger and the position that an event's data names; nil for an event that was not merged.
  package static func source(of data: JSONBytes) -> (origin: String, position: Position)? {
    var cursor = JSONCursor(data)
    guard (try? cursor.beginObject()) != nil, let key = try? cursor.nextKey(), key == member,
      (try? cursor.kind()) == .object, (try? cursor.beginObject()) != nil
    else { return nil }
    var origin: String?
    var position: Position?
    while let key = try? cursor.nextKey() {
      if key == "ledger" {
        origin = (try? cursor.readStringOrSkip())?.string
      } else if key == "position" {
        position = (try? cursor.readIntegerOrSkip()).flatMap { $0 >= 0 ? Int($0) : nil }
      } else {
        guard (try? cursor.skipValue()) != nil else { return nil }
      }
    }
    guard let origin, let position else { return nil }
    return (origin, position)
  }
}

// MARK: - Merged ledgers

/// A ledger that was made of others.
package enum MergedLedger {
  /// The file that says that a run was begun and not finished.
  package static let markerName = "merging"

  /// Whether a ledger takes nothing but merges.
  package static func isOne(_ directory: LedgerDirectory) throws(LedgerError) -> Bool {
    let reader = try LogReader(directory, part: 0..<1)
    guard reader.head.size > 0 else { return false }
    return try reader.event(at: 0).withUnsafeBytes { bytes in
      EventLine(bytes).map { EventType($0.type) == .mergedFrom } ?? false
    }
  }

  /// Throws `standby` if a ledger takes nothing but merges.
  package static func refuseAppends(
    _ directory: LedgerDirectory, operation: String
  ) throws(LedgerError) {
    guard try isOne(directory) else { return }
    throw LedgerError(
      .standby, operation: operation, object: directory.path,
      cause: "it was merged from other ledgers: change those, and run 'ledgerctl merge' again")
  }

  /// Throws `standby` if a run was begun and not finished.
  static func refuseUnfinished(_ root: Folder, path: String) throws(LedgerError) {
    guard try root.status(markerName) != nil else { return }
    throw LedgerError(
      .standby, operation: "open ledger", object: path,
      cause: "a merge into it is not finished; the same 'ledgerctl merge' completes it")
  }

  /// Notes durably that a run begins.
  package static func mark(_ directory: LedgerDirectory) throws(LedgerError) {
    try directory.replaceFile(markerName, with: [])
  }

  package static func isMarked(_ directory: LedgerDirectory) throws(LedgerError) -> Bool {
    try directory.root.status(markerName) != nil
  }

  /// Notes durably that the run is finished.
  package static func unmark(_ directory: LedgerDirectory) throws(LedgerError) {
    guard try isMarked(directory) else { return }
    try directory.root.unlink(markerName)
    try directory.root.sync()
  }
}
