// A merged ledger as earlier runs left it: their first events, and the tables of the merge read back from the log.
import Base
import Ledger

/// The runs of a merged ledger.
struct MergedRuns {
  struct Run {
    let start: Position
    let header: MergedFrom

    /// The position after the merged events.
    var eventEnd: Position { start + 1 + header.eventCount }
  }

  private(set) var runs: [Run] = []

  /// Throws if the log does not begin with a run.
  init(_ reader: LogReader) throws {
    var start = 0
    let size = reader.head.size
    while start < size {
      guard let header = try Self.header(reader, at: start) else {
        throw MergeError.notMerged(reader.directory.path)
      }
      let run = Run(start: start, header: header)
      runs.append(run)
      start = run.eventEnd + header.erasures.count
      // The lists of its erasures.
      while start < size, try Self.header(reader, at: start) == nil { start += 1 }
    }
  }

  private static func header(_ reader: LogReader, at position: Position) throws -> MergedFrom? {
    try reader.event(at: position).withUnsafeBytes { bytes in
      guard let line = EventLine(bytes), EventType(line.type) == .mergedFrom else { return nil }
      return try? MergedFrom(data: line.data)
    }
  }
}

extension MergeState {
  /// Reads back the tables that earlier runs had at their end.
  /// - Returns: the mapping as it was then.
  func load(
    _ runs: ArraySlice<MergedRuns.Run>, _ reader: LogReader,
    checkCancelled: () throws -> Void
  ) throws -> EventMapping {
    var mapping = EventMapping(self)
    for run in runs {
      try load(run, reader, &mapping, checkCancelled)
      for (index, source) in run.header.sources.enumerated() {
        placeNone(of: index, upTo: source.size)
      }
      for (number, erasure) in run.header.erasures.enumerated() {
        guard let source = sources.firstIndex(where: { $0.origin == erasure.origin }) else {
          continue
        }
        addEarly(
          EarlyErasure(
            erasure: run.eventEnd + number, limit: run.header.sources[source].size),
          of: erasure.position, in: source)
      }
    }
    return mapping
  }

  private func load(
    _ run: MergedRuns.Run, _ reader: LogReader, _ mapping: inout EventMapping,
    _ checkCancelled: () throws -> Void
  ) throws {
    var registrations: [(app: AppRegistered, source: Int, mergedID: String)] = []
    try reader.read(from: run.start + 1, to: run.eventEnd) { chunk in
      try checkCancelled()
      try chunk.forEachEvent { line in
        guard let (origin, position) = MergedEvent.source(of: line.data),
          let type = EventType(line.type),
          let source = sources.firstIndex(where: { $0.origin == origin }),
          position >= count(of: source)
        else { throw MergeError.unknownEvent(position: line.position) }
        placeNone(of: source, upTo: position)
        place(line.position, of: source)
        _ = copies(line, type, of: source)
        if type == .appRegistered {
          let app = try sources[source].event(at: position) { try? AppRegistered(data: $0.data) }
          let merged = try? AppRegistered(data: line.data)
          if let app, let merged { registrations.append((app, source, merged.appFamilyID)) }
        }
      }
      return true
    }
    for registration in registrations {
      try families.add(registration.app, mergedID: registration.mergedID)
      mapping.note(registration: registration.app, of: registration.source)
    }
  }
}
