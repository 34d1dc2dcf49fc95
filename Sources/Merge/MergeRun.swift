// A run of a merge, planned: which events it takes, where they will stand, and what it redacts.
import Base
import Ledger

/// What a run does, known before it writes anything.
struct MergeRun {
  /// An event whose data is redacted in the merged ledger.
  struct Redacted {
    let merged: Position
    let source: Int
    let position: Position
  }

  /// An erasure that the run opens and lists after the merged events.
  struct OwnErasure {
    let source: Int
    /// Its position in the source.
    let position: Position
    /// Its position in the merged ledger.
    let merged: Position
    /// The events of earlier runs that it redacts.
    var earlier: [Redacted] = []
  }

  /// The position of the run's first event.
  let start: Position
  let header: MergedFrom
  /// When events of the merged ledger itself are recorded: before the merged ones, and after them.
  let firstAtMs: Int64
  let lastAtMs: Int64
  var erasures: [OwnErasure]
  /// What earlier runs copied and must redact before anything is merged.
  var redacted: [Redacted] = []
  /// Whether the merged ledger holds redacted lines at the run's end.
  let hasRedactions: Bool

  /// The ends of what is taken, by source.
  func end(of source: Int) -> Position { header.sources[source].size }
}

/// Plans runs.
struct RunPlanner {
  private let state: MergeState
  private let start: Position
  private let beforeMs: Int64
  private let lastAtMs: Int64
  /// The first event of a run that was begun and not finished.
  private let recorded: MergedFrom?
  private let checkCancelled: () throws -> Void
  private var scans: [ErasureScan]
  private var firsts: [Position]
  private var ends: [Position]
  private var next: Position
  private var times: (first: Int64?, last: Int64)

  /// - Parameters:
  ///   - start: the position of the run's first event.
  ///   - lastAtMs: when the merged ledger's newest event was recorded; 0 if there is none.
  init(
    _ state: MergeState, start: Position, before beforeMs: Int64, lastAtMs: Int64,
    recorded: MergedFrom?, checkCancelled: @escaping () throws -> Void
  ) {
    self.state = state
    (self.start, self.beforeMs, self.lastAtMs) = (start, beforeMs, lastAtMs)
    (self.recorded, self.checkCancelled) = (recorded, checkCancelled)
    firsts = state.sources.indices.map { state.count(of: $0) }
    scans = firsts.map { ErasureScan(first: $0) }
    ends = firsts
    next = start + 1
    times = (nil, lastAtMs)
  }

  /// The run; nil if there is nothing to merge and nothing to redact.
  /// - Parameter destination: reads the merged ledger; nil if it has no events.
  mutating func plan(_ destination: LogReader?, isByOperator: Bool) throws -> MergeRun? {
    try placeEvents()
    try readRest()
    try resolveReceipts()
    let eventCount = next - start - 1
    let wanted = try wantedErasures(destination)
    if let recorded {
      guard eventCount == recorded.eventCount, ends == recorded.sources.map(\.size),
        wanted.allSatisfy({ recorded.erasures.contains($0) })
      else { throw MergeError.otherRun(position: start) }
    } else if eventCount == 0, try redactions(destination, []).redacted.isEmpty, wanted.isEmpty {
      return nil
    }
    var erasures: [MergeRun.OwnErasure] = []
    for (index, erasure) in (recorded?.erasures ?? wanted).enumerated() {
      guard let source = state.sources.firstIndex(where: { $0.origin == erasure.origin }) else {
        throw MergeError.otherRun(position: start)
      }
      let merged = start + 1 + eventCount + index
      erasures.append(
        .init(source: source, position: erasure.position, merged: merged))
      state.addEarly(
        .init(erasure: merged, limit: ends[source]), of: erasure.position, in: source)
    }
    let (redacted, own) = try redactions(destination, erasures)
    var header: MergedFrom
    if let recorded {
      header = recorded
    } else {
      header = MergedFrom(
        beforeMs: beforeMs, isByOperator: isByOperator, sources: [], eventCount: eventCount,
        erasures: wanted)
      for (index, source) in state.sources.enumerated() {
        header.sources.append(
          MergedFrom.Source(
            origin: source.origin, id: source.id, first: firsts[index], size: ends[index],
            root: try source.root(of: ends[index]), userPrefix: state.prefixes[index]))
      }
    }
    return MergeRun(
      start: start, header: header, firstAtMs: lastAtMs > 0 ? lastAtMs : times.first ?? 0,
      lastAtMs: times.last, erasures: own, redacted: redacted,
      hasRedactions: !redacted.isEmpty || scans.contains { !$0.named.isEmpty })
  }

  // MARK: The events that it takes

  private mutating func placeEvents() throws {
    let cursors = try state.sources.enumerated().map { index, source in
      try EventCursor(source.reader, firsts[index]..<(recorded?.sources[index].size ?? source.size))
    }
    var order = MergeOrder(cursors, before: beforeMs)
    while let (index, line) = try order.next() {
      if next % 4096 == 0 { try checkCancelled() }
      let source = state.sources[index]
      let type = try source.type(of: line)
      ends[index] = line.position + 1
      if type == .appRegistered, let app = try? AppRegistered(data: line.data) {
        try state.families.add(app)
      }
      if let erasure = line.redactedBy { scans[index].note(redacted: line, erasure) }
      if type == .dataRedacted { scans[index].note(erasureEvent: line) }
      guard state.copies(line, type, of: index) else {
        state.place(nil, of: index)
        continue
      }
      state.place(next, of: index)
      next += 1
      if times.first == nil { times.first = line.recordedAtMs }
      times.last = line.recordedAtMs
    }
  }

  /// Reads the events that the run leaves, which may name earlier ones.
  private mutating func readRest() throws {
    for (index, source) in state.sources.enumerated() where ends[index] < source.size {
      var scan = scans[index]
      try source.reader.read(from: ends[index], to: source.size) { chunk in
        try checkCancelled()
        try chunk.forEachEvent { line in
          if line.hasType("data.redacted") { scan.note(erasureEvent: line) }
        }
        return true
      }
      scans[index] = scan
    }
  }

  /// Finds the digests of receipts of redacted uploads, those that earlier runs took included.
  private func resolveReceipts() throws {
    for (index, source) in state.sources.enumerated() {
      var wanted = scans[index].receiptIDs
      for position in scans[index].candidates {
        let id = try source.event(at: position) { ErasureScan.receiptWithoutDigest($0) }
        if let id { wanted.insert(id) }
      }
      if wanted.isEmpty { continue }
      try source.reader.read(from: 0, to: source.size) { chunk in
        try checkCancelled()
        try chunk.forEachEvent { line in
          guard line.hasType("receipt.uploaded"),
            let view = try? ReceiptUploadedView(
              data: line.data, isRedacted: line.isRedacted, version: line.version),
            let id = view.receiptID?.string, wanted.contains(id),
            let digest = view.receiptSHA256Hex?.string
          else { return }
          state.receiptDigests[index][id] = digest
        }
        return true
      }
    }
  }

  // MARK: What it redacts

  /// Whether the merged ledger has redacted an event as its source has.
  private func isDone(
    _ position: Position, _ erasure: Position, in source: Int, _ merged: EventLine
  ) -> Bool {
    guard let by = merged.redactedBy else { return false }
    return by == state.earlyErasure(erasure, of: position, in: source)
      || by == state.position(of: erasure, in: source)
  }

  /// Passes on the events of earlier runs that may have lost data since, which some list names.
  private func forEachCandidate(
    _ destination: LogReader?, _ body: (Int, EventLine, Position, EventLine) throws -> Void
  ) throws {
    guard let destination else { return }
    for (index, source) in state.sources.enumerated() {
      for position in scans[index].candidates {
        guard let merged = state.position(of: position, in: index) else { continue }
        try source.event(at: position) { line in
          guard let erasure = line.redactedBy else { return }
          try destination.event(at: merged).withUnsafeBytes { bytes in
            guard let mergedLine = EventLine(bytes) else { return }
            try body(index, line, erasure, mergedLine)
          }
        }
      }
    }
  }

  /// The erasures of the sources whose own events the run does not take, or not all of them, by source and position.
  private func wantedErasures(_ destination: LogReader?) throws -> [MergedFrom.Erasure] {
    var wanted: [Set<Position>] = state.sources.map { _ in [] }
    func want(_ erasure: Position, in source: Int) {
      if !scans[source].isWhole(erasure, before: ends[source]) { wanted[source].insert(erasure) }
    }
    func wantName(_ erasure: Position, in source: Int) {
      if state.namingErasure(erasure, in: source) == nil { wanted[source].insert(erasure) }
    }
    for (index, source) in state.sources.enumerated() {
      for erasure in scans[index].named {
        // Lines name it, or names of users that an earlier erasure gave do.
        if erasure >= source.size { continue }
        if erasure < firsts[index] {
          wantName(erasure, in: index)
        } else {
          want(erasure, in: index)
        }
      }
    }
    try forEachCandidate(destination) { source, line, erasure, merged in
      if isDone(line.position, erasure, in: source, merged) { return }
      want(erasure, in: source)
      ErasedNames.forEach(in: Array(line.data)) { name, _ in wantName(name, in: source) }
    }
    var result: [MergedFrom.Erasure] = []
    for (index, source) in state.sources.enumerated() {
      result += wanted[index].sorted().map { .init(origin: source.origin, position: $0) }
    }
    return result
  }

  /// The events of earlier runs that are redacted now, by position, and the run's erasures with those that they list.
  private func redactions(
    _ destination: LogReader?, _ erasures: [MergeRun.OwnErasure]
  ) throws -> (redacted: [MergeRun.Redacted], erasures: [MergeRun.OwnErasure]) {
    var redacted: [MergeRun.Redacted] = []
    var erasures = erasures
    try forEachCandidate(destination) { source, line, erasure, merged in
      let entry = MergeRun.Redacted(
        merged: merged.position, source: source, position: line.position)
      let by = state.earlyErasure(erasure, of: line.position, in: source)
      let isDone = isDone(line.position, erasure, in: source, merged)
      if let own = erasures.firstIndex(where: { $0.merged == by }),
        !isDone || merged.redactedBy == by
      {
        erasures[own].earlier.append(entry)
      }
      if !isDone { redacted.append(entry) }
    }
    redacted.sort { $0.merged < $1.merged }
    return (redacted, erasures)
  }
}
