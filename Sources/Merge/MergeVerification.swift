// Compares a merged ledger with the ledgers that it was merged from, event by event.
import Base
package import Ledger

/// What a comparison of a merged ledger with its sources found.
package struct MergeVerification {
  /// An event that is not what its source gives.
  package struct Difference: Equatable, Sendable {
    /// Where it stands in the merged ledger; nil if it should and does not.
    package let position: Position?
    package let origin: String
    package let sourcePosition: Position
    package let cause: String
  }

  package static let differenceCountMax = 100

  /// How many events were compared.
  package private(set) var eventCount = 0
  package private(set) var differenceCount = 0
  /// The first ones.
  package private(set) var differences: [Difference] = []
  /// How many events lost their data in their source since they were merged.
  package private(set) var erasedCount = 0
  /// How many events of the sources were recorded since the last run, or too late for it.
  package private(set) var newCount = 0
  package let runCount: Int
  package let head: LogHead

  /// Whether every event is what its source gives.
  package var isEqual: Bool { differenceCount == 0 }

  private let state: MergeState
  private var mapping: EventMapping
  /// Answers which events are copied, in merged order, as a merge does.
  private var order: (atMs: Int64, source: Int)?

  /// Throws `MergeError` if these are other ledgers, or other histories, than those that were merged.
  package init(
    of directory: LedgerDirectory, with sources: [LedgerDirectory],
    checkCancelled: () throws -> Void = {},
    progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
  ) throws {
    let sources = try Merge.opened(sources)
    let reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    let runs = try MergedRuns(reader).runs
    guard let last = runs.last else { throw MergeError.notMerged(directory.path) }
    try Merge.check(last.header, sources)
    for run in runs { try Merge.check(run.header, sources) }
    head = reader.head
    runCount = runs.count
    state = MergeState(sources)
    state.prefixes = last.header.sources.map(\.userPrefix)
    _ = try state.load(runs[...], reader, checkCancelled: checkCancelled)
    mapping = EventMapping(state)
    for run in runs {
      order = nil
      try reader.read(from: run.start + 1, to: run.eventEnd) { chunk in
        try checkCancelled()
        progress(chunk.firstPosition, reader.head.size)
        try chunk.forEachEvent { try compare($0) }
        return true
      }
    }
    try findMissing(last.header, checkCancelled)
  }

  private mutating func compare(_ merged: EventLine) throws {
    guard let (origin, position) = MergedEvent.source(of: merged.data),
      let source = state.sources.firstIndex(where: { $0.origin == origin })
    else { throw MergeError.unknownEvent(position: merged.position) }
    eventCount += 1
    let cause = try state.sources[source].event(at: position) { line -> String? in
      if let order, (merged.recordedAtMs, source) < (order.atMs, order.source) {
        return "it is not in the order of the merge"
      }
      order = (merged.recordedAtMs, source)
      return try difference(merged, line, source)
    }
    if let cause {
      add(
        Difference(
          position: merged.position, origin: origin, sourcePosition: position, cause: cause))
    }
  }

  private mutating func add(_ difference: Difference) {
    differenceCount += 1
    if differences.count < Self.differenceCountMax { differences.append(difference) }
  }

  /// What of a merged event is not as its source gives it; nil if all is.
  private mutating func difference(
    _ merged: EventLine, _ line: EventLine, _ source: Int
  ) throws -> String? {
    guard merged.type.elementsEqual(line.type), merged.version == line.version else {
      return "its type differs"
    }
    guard merged.recordedAtMs == line.recordedAtMs else { return "its time differs" }
    let type = try state.sources[source].type(of: line)
    if let erasure = line.redactedBy,
      !merged.isRedacted
        || merged.redactedBy != state.erasure(erasure, of: line.position, in: source)
    {
      erasedCount += 1
      return nil
    }
    guard line.isRedacted == merged.isRedacted else { return "its data is redacted here alone" }
    guard merged.saltText.elementsEqual(line.saltText) else { return "its salt differs" }
    if type == .dataRedacted { return try difference(ofErasure: merged, line, source) }
    let data = try mapping.mapped(line, type, of: source)
    if merged.data.elementsEqual(data) { return nil }
    if type == .receiptUploaded, line.isRedacted, Self.isEqualButForReceiptID(merged.data, data) {
      return nil
    }
    return "its data differs"
  }

  /// Whether what was kept of two uploads is the same but for the receipt's id. It follows from the receipt's SHA-256,
  /// which only another upload of the receipt still held, and may have lost since, or have brought later.
  private static func isEqualButForReceiptID(_ merged: JSONBytes, _ mapped: [UInt8]) -> Bool {
    mapped.withUnsafeBytes { mapped in
      guard let one = receiptID(in: merged), let other = receiptID(in: mapped) else { return false }
      return merged[..<one.lowerBound].elementsEqual(mapped[..<other.lowerBound])
        && merged[one.upperBound...].elementsEqual(mapped[other.upperBound...])
    }
  }

  /// Where the value of `receipt_id` stands; nil if it is not a UUID.
  private static func receiptID(in data: JSONBytes) -> Range<Int>? {
    var cursor = JSONCursor(data)
    do throws(JSONError) {
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        let start = cursor.offset
        let value = try cursor.readRaw()
        guard key == "receipt_id" else { continue }
        let text = String(decoding: value.dropFirst().dropLast(), as: UTF8.self)
        return UUID16(text) == nil ? nil : start..<cursor.offset
      }
    } catch {}
    return nil
  }

  /// A list of redacted lines holds what was redacted when it was merged; later erasures may have redacted it again.
  private func difference(
    ofErasure merged: EventLine, _ line: EventLine, _ source: Int
  ) throws -> String? {
    guard let event = try? DataRedacted(data: line.data),
      let known = try? DataRedacted(data: merged.data)
    else { return (try? DataRedacted(data: merged.data)) == nil ? nil : "its data differs" }
    switch (event, known) {
    case (.opening, .opening): return event == known ? nil : "its data differs"
    case (.listing(let listing), .listing(let knownListing)):
      let positions = Set(
        listing.lines.compactMap { state.position(of: $0.position, in: source) })
      let isSame =
        state.position(of: listing.erasure, in: source) == knownListing.erasure
        && listing.part == knownListing.part && listing.partCount == knownListing.partCount
        && listing.reason == knownListing.reason
        && knownListing.lines.allSatisfy { positions.contains($0.position) }
      return isSame ? nil : "it lists other lines"
    default: return "its data differs"
    }
  }

  /// Finds events of the sources that the merged ledger should hold and does not.
  private mutating func findMissing(
    _ header: MergedFrom, _ checkCancelled: () throws -> Void
  ) throws {
    for (index, source) in state.sources.enumerated() {
      let size = header.sources[index].size
      newCount += source.size - size
      var missing: [Difference] = []
      try source.reader.read(from: 0, to: size) { chunk in
        try checkCancelled()
        try chunk.forEachEvent(where: { state.position(of: $0, in: index) == nil }) { line in
          // The tables know all that is there: what is copied once and missing here is there from elsewhere.
          let type = try source.type(of: line)
          if state.copies(line, type, of: index) {
            missing.append(
              Difference(
                position: nil, origin: source.origin, sourcePosition: line.position,
                cause: "it is missing"))
          }
        }
        return true
      }
      for difference in missing { add(difference) }
    }
  }
}
