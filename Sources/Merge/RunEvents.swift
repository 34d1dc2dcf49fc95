// The events of a run, in order: its first, the merged ones, and those of erasures that it repeats early.
import Base
import Ledger

/// Makes the events of a run. Used once.
struct RunEvents {
  private let state: MergeState
  private let run: MergeRun
  private var mapping: EventMapping
  /// For each of the run's own erasures, the events that it redacts: their positions in its source.
  private var listed: [[Position]]

  init(_ state: MergeState, _ run: MergeRun, _ mapping: EventMapping) {
    (self.state, self.run, self.mapping) = (state, run, mapping)
    listed = run.erasures.map { $0.earlier.map(\.position) }
  }

  /// The run's first event.
  var first: EventDraft { own(.mergedFrom, run.header.data, atMs: run.firstAtMs) }

  /// Passes on the other events. Returns the mapping as it is at the run's end.
  mutating func forEach(_ body: (EventDraft) throws -> Void) throws -> EventMapping {
    let cursors = try state.sources.enumerated().map { index, source in
      try EventCursor(source.reader, run.header.sources[index].first..<run.end(of: index))
    }
    var order = MergeOrder(cursors, before: run.header.beforeMs)
    while let (index, line) = try order.next() {
      guard state.position(of: line.position, in: index) != nil else { continue }
      try body(try draft(line, of: index))
    }
    for erasure in run.erasures { try body(try opening(erasure)) }
    for (index, erasure) in run.erasures.enumerated() {
      try list(erasure, listed[index].sorted(), body)
    }
    return mapping
  }

  private mutating func draft(_ line: EventLine, of index: Int) throws -> EventDraft {
    let source = state.sources[index]
    let type = try source.type(of: line)
    var erasure: Position?
    if let named = line.redactedBy {
      erasure = state.erasure(named, of: line.position, in: index)
      guard let erasure else {
        throw MergeError.unprovenRedaction(origin: source.origin, position: line.position)
      }
      if let own = run.erasures.firstIndex(where: { $0.merged == erasure }) {
        listed[own].append(line.position)
      }
    }
    var draft = EventDraft(
      type: type.rawValue, version: line.version,
      data: try mapping.mapped(line, type, of: index))
    draft.stored = StoredForm(line, redactedBy: erasure)
    if draft.isTooLarge {
      throw MergeError.tooLarge(origin: source.origin, position: line.position)
    }
    return draft
  }

  // MARK: Events of the merged ledger itself

  private func own(_ type: EventType, _ data: [UInt8], atMs: Int64) -> EventDraft {
    var draft = EventDraft(type, data)
    draft.stored = StoredForm(recordedAtMs: atMs, saltFrom: data)
    return draft
  }

  private func opening(_ erasure: MergeRun.OwnErasure) throws -> EventDraft {
    let source = state.sources[erasure.source]
    var opening = try opening(of: erasure)
    // The source's own opening is merged later, with its request.
    let name = Array("merge \(opening.request)".utf8).withUnsafeBytes { SHA256.hash($0) }
    opening.request = UUID16(random: Array(name.bytes.prefix(UUID16.byteCount))) ?? opening.request
    let data = MergedEvent.data(
      DataRedacted.opening(opening).data, from: source.origin, at: erasure.position)
    return own(.dataRedacted, data, atMs: run.lastAtMs)
  }

  private func opening(of erasure: MergeRun.OwnErasure) throws -> DataRedacted.Opening {
    let source = state.sources[erasure.source]
    let event = try source.event(at: erasure.position) { try? DataRedacted(data: $0.data) }
    guard case .opening(let opening)? = event else {
      throw MergeError.unprovenRedaction(origin: source.origin, position: erasure.position)
    }
    return opening
  }

  private func list(
    _ erasure: MergeRun.OwnErasure, _ positions: [Position], _ body: (EventDraft) throws -> Void
  ) throws {
    let reason = try opening(of: erasure).reason
    let max = DataRedacted.lineCountMax
    let partCount = Swift.max(1, (positions.count + max - 1) / max)
    for part in 0..<partCount {
      let range = part * max..<Swift.min(positions.count, (part + 1) * max)
      let lines = try mapping.mappedLines(
        of: erasure.position, at: Array(positions[range]), in: erasure.source
      ) { _ in true }
      let listing = DataRedacted.Listing(
        erasure: erasure.merged, part: part + 1, partCount: partCount, reason: reason,
        lines: lines)
      try body(own(.dataRedacted, DataRedacted.listing(listing).data, atMs: run.lastAtMs))
    }
  }
}

// MARK: - Writing

/// Appends the events of a run, or compares those that an interrupted run has appended.
struct RunWriter {
  private static let batchByteCount = 4 << 20
  private static let batchCountMax = 4096

  private let writer: LedgerWriter
  /// The events that are there already.
  private let written: EventCursor?
  private var batch: [EventDraft] = []
  private var batchByteCount = 0

  /// - Parameter start: the position of the run's first event.
  init(_ writer: LedgerWriter, start: Position, _ reader: LogReader) throws {
    self.writer = writer
    written = start < reader.head.size ? try EventCursor(reader, start..<reader.head.size) : nil
  }

  mutating func append(_ draft: EventDraft) throws {
    if let line = written?.current {
      let isSame =
        draft.data.elementsEqual(line.data) && draft.type.utf8.elementsEqual(line.type)
        && draft.stored?.recordedAtMs == line.recordedAtMs
        && draft.stored?.redaction?.erasure == line.redactedBy
      guard isSame else { throw MergeError.otherRun(position: line.position) }
      try written?.advance()
      return
    }
    if batch.count == Self.batchCountMax || batchByteCount + draft.data.count > Self.batchByteCount
    {
      try flush()
    }
    batch.append(draft)
    batchByteCount += draft.data.count
  }

  /// Makes everything durable.
  mutating func flush() throws {
    guard !batch.isEmpty else { return }
    _ = try writer.append(batch)
    batch.removeAll(keepingCapacity: true)
    batchByteCount = 0
  }
}
