// Makes the data of merged events: of registrations and lists of redacted lines as a whole, of others by their members.
import Base
import Ledger

/// Maps the data of events, in merged order. Used by one thread.
struct EventMapping {
  private let state: MergeState
  private let names: NameMapping<MergeState>
  private var registered = RegisteredFamilies()
  private let hasher = SHA256()

  init(_ state: MergeState) {
    self.state = state
    names = NameMapping(state)
  }

  /// The data of an event, or what was kept of it, with the member that names where it comes from.
  mutating func mapped(
    _ line: EventLine, _ type: EventType, of source: Int
  ) throws -> [UInt8] {
    let data: [UInt8]
    switch type {
    case .appRegistered: data = registered.mapped(line, of: source, state.families)
    case .dataRedacted: data = try redaction(line, of: source)
    default: data = names.mapped(line, type, of: source)
    }
    return MergedEvent.data(data, from: state.sources[source].origin, at: line.position)
  }

  /// Notes a registration that an earlier run has mapped.
  mutating func note(registration app: AppRegistered, of source: Int) {
    _ = registered.add(
      app, of: source, mergedID: state.families.mergedID(of: app.appFamilyID))
  }

  // MARK: Erasures

  private func redaction(_ line: EventLine, of source: Int) throws -> [UInt8] {
    guard case .listing(var listing)? = try? DataRedacted(data: line.data) else {
      return Array(line.data)
    }
    let erasure = listing.erasure
    listing.lines = try mappedLines(
      of: erasure, at: listing.lines.map(\.position), in: source
    ) { state.earlyErasure(erasure, of: $0, in: source) == nil }
    listing.erasure = state.position(of: erasure, in: source) ?? nowhere
    return DataRedacted.listing(listing).data
  }

  /// The lines that an erasure of a source redacted, as the merged ledger lists them: those that stand there, and that
  /// no later erasure redacted.
  func mappedLines(
    of erasure: Position, at positions: [Position], in source: Int,
    where isListed: (Position) -> Bool
  ) throws -> [DataRedacted.Line] {
    let ledger = state.sources[source]
    var lines: [DataRedacted.Line] = []
    for position in positions where position < erasure && isListed(position) {
      guard let merged = state.position(of: position, in: source) else { continue }
      try ledger.event(at: position) { line in
        guard line.redactedBy == erasure else { return }
        let kept = try kept(of: line, in: source)
        let digest = kept.withUnsafeBytes { line.contentDigest(of: $0, hasher) }
        lines.append(.init(position: merged, digest: digest))
      }
    }
    return lines
  }

  /// What the merged ledger keeps of an event that lost its data.
  func kept(of line: EventLine, in source: Int) throws -> [UInt8] {
    let ledger = state.sources[source]
    return MergedEvent.data(
      names.mapped(line, try ledger.type(of: line), of: source), from: ledger.origin,
      at: line.position)
  }
}
