// Merges ledgers into one: opens and checks them, finishes an interrupted run, and carries out the next one.
package import Base
package import Ledger

/// Merges ledgers into one, again and again.
package struct Merge {
  /// Takes the events recorded before this time, in epoch milliseconds; nil: before the smallest of the ledgers' newest
  /// times.
  package var untilMs: Int64?
  /// What precedes the user identifiers of a ledger, by origin.
  package var userPrefixes: [String: String] = [:]
  package var checkCancelled: () throws -> Void = {}
  /// Removes all that was derived from events, because some of them have lost their data.
  package var forgetProjections: (LedgerDirectory) throws -> Void = { _ in }
  /// Called at intervals with the number of events that are merged, and of all that the run takes.
  package var progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }

  package init() {}

  /// What a merge did.
  package struct Report {
    /// Nil if there was nothing new.
    package var run: MergedFrom?
    /// What was recorded before this time was merged or is new, in epoch milliseconds.
    package var beforeMs: Int64 = 0
    /// The ledger whose newest event has that time; nil if the time was given, or an earlier run went further.
    package var limitedBy: String?
    /// How many events the merged ledger holds, and their root.
    package var size = 0
    package var root: SHA256Digest
    /// Whether the merged ledger is new.
    package var isNew = false
    /// Whether an interrupted run was completed first.
    package var hasCompletedRun = false
    /// How many events of earlier runs lost data that their ledgers have erased since.
    package var redactedCount = 0
    /// Where identifiers that were erased in one ledger stay in others.
    package var held: [HeldIdentifier] = []
  }

  /// Merges.
  ///
  /// Throws `MergeError`, `LedgerError`, and what the closures throw. The merged ledger is then as it was, or refuses
  /// all other commands until a merge completes the run.
  package func run(_ sources: [LedgerDirectory], into path: String) throws -> Report {
    let sources = try Self.opened(sources)
    for origin in userPrefixes.keys.sorted() where !sources.contains(where: { $0.origin == origin })
    {
      throw MergeError.unknownOrigin(origin)
    }
    let directory = try destination(path, sources)
    var options = WriterOptions()
    options.closingLimitMs = 3_600_000
    let writer = try LedgerWriter.open(directory, options: options)
    defer { try? writer.close() }
    let destination = MergeDestination(writer, self)
    var report = try merge(sources, destination)
    try writer.close()
    let head = try LogReader(directory).head
    (report.size, report.root) = (head.size, head.root)
    return report
  }

  /// The ledgers in the order of their origins, by which their events are ordered.
  static func opened(_ directories: [LedgerDirectory]) throws -> [SourceLedger] {
    let sources = try directories.map { try SourceLedger($0) }
      .sorted { $0.origin.utf8.lexicographicallyPrecedes($1.origin.utf8) }
    for (index, source) in sources.enumerated() {
      for other in sources[..<index] where other.origin == source.origin || other.id == source.id {
        throw MergeError.sameLedger(other.directory.path, source.directory.path)
      }
    }
    return sources
  }

  /// The ledger to merge into: a merged one, an empty one, or a new one.
  private func destination(
    _ path: String, _ sources: [SourceLedger]
  ) throws -> LedgerDirectory {
    let known: LedgerDirectory?
    do throws(LedgerError) {
      known = try LedgerDirectory.open(path: path, isForMerge: true)
    } catch {
      guard error.kind == .noLedger else { throw error }
      known = nil
    }
    if let known {
      for source in sources where source.id == known.identity.id.description {
        throw MergeError.sameLedger(path, source.directory.path)
      }
      return known
    }
    let first = (sources.first?.origin ?? "") + "/merged"
    let origin = LedgerIdentity.isNewOrigin(first) ? first : "merged"
    return try LedgerDirectory.create(path: path, origin: origin)
  }

  // MARK: Runs

  private func merge(
    _ sources: [SourceLedger], _ destination: MergeDestination
  ) throws -> Report {
    let reader = try destination.reader()
    if let damage = reader.damage { throw damage }
    var runs = try MergedRuns(reader).runs[...]
    let isUnfinished = try MergedLedger.isMarked(destination.directory)
    let unfinished = isUnfinished ? runs.popLast() : nil
    let state = MergeState(sources)
    if let known = unfinished ?? runs.last { try Self.check(known.header, sources) }
    state.prefixes = try prefixes((unfinished ?? runs.last)?.header, sources)
    var mapping = try state.load(runs, reader, checkCancelled: checkCancelled)
    var report = Report(root: reader.head.root)
    if let unfinished {
      var planner = try planner(
        state, reader, start: unfinished.start, before: unfinished.header.beforeMs,
        unfinished.header)
      guard
        let run = try planner.plan(reader, isByOperator: unfinished.header.isByOperator)
      else { throw MergeError.otherRun(position: unfinished.start) }
      mapping = try destination.carryOut(run, state, mapping, &report)
      report.hasCompletedRun = true
      runs.append(unfinished)
    }
    let current = try destination.reader()
    let earlierMs = runs.last?.header.beforeMs
    if let earlierMs { try refuseLateEvents(state, before: earlierMs) }
    let (newestMs, limit) = try newestCommonTime(sources)
    let beforeMs = max(newestMs, earlierMs ?? 0)
    report.beforeMs = beforeMs
    report.limitedBy = beforeMs == newestMs ? limit : nil
    report.isNew = runs.isEmpty
    var planner = try planner(
      state, current, start: current.head.size, before: beforeMs, nil)
    if let run = try planner.plan(current, isByOperator: untilMs != nil) {
      _ = try destination.carryOut(run, state, mapping, &report)
      report.run = run.header
    } else {
      // Of a run that was interrupted before it wrote anything.
      try MergedLedger.unmark(destination.directory)
    }
    return report
  }

  private func planner(
    _ state: MergeState, _ reader: LogReader, start: Position, before beforeMs: Int64,
    _ recorded: MergedFrom?
  ) throws -> RunPlanner {
    let lastAtMs =
      start == 0
      ? 0
      : try reader.event(at: start - 1).withUnsafeBytes { EventLine($0)?.recordedAtMs ?? 0 }
    return RunPlanner(
      state, start: start, before: beforeMs, lastAtMs: lastAtMs, recorded: recorded,
      checkCancelled: checkCancelled)
  }

  /// The time before which everything is known, and the ledger whose newest event has it.
  private func newestCommonTime(
    _ sources: [SourceLedger]
  ) throws(MergeError) -> (timeMs: Int64, ledger: String?) {
    if let untilMs { return (untilMs, nil) }
    var least: (Int64, String?) = (.max, nil)
    for source in sources {
      guard let newest = source.newestAtMs else { throw .emptySource(source.origin) }
      if newest < least.0 { least = (newest, source.origin) }
    }
    return least
  }

  // MARK: What earlier runs say

  static func check(_ header: MergedFrom, _ sources: [SourceLedger]) throws {
    let known = header.sources.map(\.origin)
    let given = sources.map(\.origin)
    guard known == given else {
      throw MergeError.otherSources(
        missing: known.filter { !given.contains($0) },
        joined: given.filter { !known.contains($0) })
    }
    for (source, recorded) in zip(sources, header.sources) {
      guard source.id == recorded.id, source.size >= recorded.size,
        try source.root(of: recorded.size) == recorded.root
      else { throw MergeError.otherHistory(origin: source.origin, size: recorded.size) }
    }
  }

  private func prefixes(
    _ header: MergedFrom?, _ sources: [SourceLedger]
  ) throws(MergeError) -> [String?] {
    guard let header else { return sources.map { userPrefixes[$0.origin] } }
    for source in header.sources {
      guard let given = userPrefixes[source.origin] else { continue }
      if given != source.userPrefix { throw .otherPrefix(origin: source.origin) }
    }
    return header.sources.map(\.userPrefix)
  }

  private func refuseLateEvents(_ state: MergeState, before beforeMs: Int64) throws {
    for (index, source) in state.sources.enumerated() {
      let next = state.count(of: index)
      guard next < source.size else { continue }
      let atMs = try source.event(at: next) { $0.recordedAtMs }
      if atMs < beforeMs {
        throw MergeError.lateEvent(origin: source.origin, position: next, beforeMs: beforeMs)
      }
    }
  }
}

// MARK: - Carrying out a run

/// The merged ledger while its writer is open.
struct MergeDestination {
  private let writer: LedgerWriter
  private let merge: Merge

  init(_ writer: LedgerWriter, _ merge: Merge) { (self.writer, self.merge) = (writer, merge) }

  var directory: LedgerDirectory { writer.directory }

  func reader() throws -> LogReader { try LogReader(directory) }

  /// Carries out a run, or what is left of it. Returns the mapping as it is at the run's end.
  func carryOut(
    _ run: MergeRun, _ state: MergeState, _ mapping: EventMapping, _ report: inout Merge.Report
  ) throws -> EventMapping {
    try MergedLedger.mark(directory)
    if run.hasRedactions { _ = try directory.allowingRedactions() }
    var events = RunEvents(state, run, mapping)
    var output = try RunWriter(writer, start: run.start, try reader())
    try output.append(events.first)
    try output.flush()
    try redact(run.redacted, state, mapping, &report)
    let total = run.header.eventCount
    var done = 0
    let end = try events.forEach { draft in
      if done % 4096 == 0 {
        try merge.checkCancelled()
        merge.progress(min(done, total), total)
      }
      try output.append(draft)
      done += 1
    }
    try output.flush()
    try MergedLedger.unmark(directory)
    return end
  }

  /// Redacts events of earlier runs. Durable when it returns; it can be repeated after any failure.
  private func redact(
    _ redacted: [MergeRun.Redacted], _ state: MergeState, _ mapping: EventMapping,
    _ report: inout Merge.Report
  ) throws {
    // An interrupted run may have left it.
    let hasFile = try RedactionFile.exists(in: directory)
    if redacted.isEmpty, !hasFile { return }
    try merge.forgetProjections(directory)
    var search = HeldIdentifierSearch()
    if !hasFile {
      _ = try writer.sealAll()
      let reader = try reader()
      let file = try RedactionFileWriter(directory, pass: .random())
      do {
        for event in redacted {
          try merge.checkCancelled()
          let line = try line(of: event, state, mapping, reader, &search)
          try line.withUnsafeBytes { try file.append(line: $0) }
        }
        try file.finish()
        try file.commit()
      } catch {
        try? file.discard()
        throw error
      }
    }
    if let lines = try RedactedLines.ifPresent(directory) {
      try writer.rewriteSegments(lines)
      try RedactionFile.remove(from: directory)
    }
    report.redactedCount += redacted.count
    report.held += try search.run(try reader(), checkCancelled: merge.checkCancelled)
  }

  private func line(
    of event: MergeRun.Redacted, _ state: MergeState, _ mapping: EventMapping,
    _ reader: LogReader, _ search: inout HeldIdentifierSearch
  ) throws -> [UInt8] {
    let source = state.sources[event.source]
    return try source.event(at: event.position) { line in
      let kept = try mapping.kept(of: line, in: event.source)
      guard let named = line.redactedBy,
        let erasure = state.erasure(named, of: event.position, in: event.source)
      else {
        throw MergeError.unprovenRedaction(origin: source.origin, position: event.position)
      }
      return try reader.event(at: event.merged).withUnsafeBytes { bytes in
        guard let merged = EventLine(bytes) else {
          preconditionFailure("a reader returns events")
        }
        search.note(Array(merged.data), kept, of: source.origin)
        return merged.redacted(by: erasure, kept: kept, as: line)
      }
    }
  }
}
