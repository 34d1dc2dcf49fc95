// What is known of a merge so far: where each event of the sources stands, and what several of them have in common.
import Ledger

/// The tables of a merge. They grow run by run; positions take 8 bytes an event.
final class MergeState {
  /// An erasure of a source that the merged ledger repeats before it merges the erasure's own events.
  struct EarlyErasure {
    /// Where the merged ledger opens it.
    let erasure: Position
    /// It redacts events of the source before this position.
    let limit: Position
  }

  /// By origin.
  let sources: [SourceLedger]
  /// What precedes user identifiers, by source.
  var prefixes: [String?]
  /// For each source, where its events stand in the merged ledger; -1 for those that are not copied.
  private(set) var positions: [[Position]]
  var families = AppFamilies()
  /// For each source, its early erasures by their positions there.
  private(set) var early: [[Position: [EarlyErasure]]]
  /// For each source, the SHA-256 of receipts, by their ids, of which redacted uploads have lost it.
  var receiptDigests: [[String: String]]
  private var copies = CopiedOnce()

  init(_ sources: [SourceLedger]) {
    self.sources = sources
    prefixes = sources.map { _ in nil }
    positions = sources.map { _ in [] }
    early = sources.map { _ in [:] }
    receiptDigests = sources.map { _ in [:] }
  }

  /// How many events of a source are placed.
  func count(of source: Int) -> Int { positions[source].count }

  /// Notes where the next event of a source stands.
  func place(_ position: Position?, of source: Int) { positions[source].append(position ?? -1) }

  /// Notes that the events of a source up to a position are not copied.
  func placeNone(of source: Int, upTo end: Position) {
    while positions[source].count < end { positions[source].append(-1) }
  }

  /// Where an event of a source stands; nil if it is not there.
  func position(of position: Position, in source: Int) -> Position? {
    guard positions[source].indices.contains(position) else { return nil }
    let merged = positions[source][position]
    return merged < 0 ? nil : merged
  }

  func addEarly(_ erasure: EarlyErasure, of position: Position, in source: Int) {
    early[source][position, default: []].append(erasure)
  }

  /// The early erasure that redacts an event of a source, whose line names an erasure there.
  func earlyErasure(_ erasure: Position, of position: Position, in source: Int) -> Position? {
    early[source][erasure]?.first { position < $0.limit }?.erasure
  }

  /// By which erasure of the merged ledger an event is redacted.
  func erasure(_ erasure: Position, of position: Position, in source: Int) -> Position? {
    earlyErasure(erasure, of: position, in: source) ?? self.position(of: erasure, in: source)
  }

  /// The erasure after which the merged ledger names what one of a source has erased.
  func namingErasure(_ erasure: Position, in source: Int) -> Position? {
    early[source][erasure]?.first?.erasure ?? position(of: erasure, in: source)
  }

  /// Whether an event of a source is copied. Asked once for each event.
  func copies(_ line: EventLine, _ type: EventType, of source: Int) -> Bool {
    copies.copies(line, type, of: source)
  }
}

extension MergeState: SourceNames {
  func userPrefix(of source: Int) -> String? { prefixes[source] }

  func receiptDigest(of receiptID: String, in source: Int) -> String? {
    receiptDigests[source][receiptID]
  }
}

extension SourceLedger {
  /// The type of an event of this ledger.
  func type(of line: EventLine) throws(MergeError) -> EventType {
    guard let type = EventType(line.type) else {
      throw .unreadableEvent(origin: origin, position: line.position, .unknownType)
    }
    do throws(EventError) { try type.checkVersion(line.version) } catch {
      throw .unreadableEvent(origin: origin, position: line.position, error)
    }
    return type
  }
}
