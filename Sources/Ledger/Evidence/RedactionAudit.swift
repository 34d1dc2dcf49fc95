// Compares redacted lines with the events that list them.
import Base

/// The audit's result for one erasure.
package struct AuditedErasure: Sendable, Equatable {
  /// The position of the event that opened it.
  package let position: Position
  package let scope: DataRedacted.Scope
  package let reason: String
  /// How many lines it lists.
  package internal(set) var listedCount = 0
  /// How many of them are redacted as it lists them.
  package internal(set) var redactedCount = 0
  /// How many a later erasure redacted again.
  package internal(set) var supersededCount = 0
  /// How many still hold what it lists as redacted, although it is not in progress.
  package internal(set) var unredactedCount = 0
}

/// A line that lost its data.
struct AuditedRedaction {
  let position: Position
  /// The position of its erasure.
  let erasure: Position
  /// The digest of what was kept.
  let digest: SHA256Digest
}

/// Collects redacted lines, and matches them with the events that list them, which come later in the log.
///
/// Lines wait in packed arrays, about 50 bytes each, because a log may have millions of them.
struct RedactionAudit {
  private var positions: [Position] = []
  private var erasures: [Position] = []
  private var digests: [SHA256Digest] = []
  private var isListed: [Bool] = []
  /// Where lines are stored, by the first redacted one of a run.
  private var places: [(first: Position, file: String, block: Int?)] = []
  private var openings: [Position] = []
  private var records: [AuditedErasure] = []
  private var furtherRecordCount = 0
  private var progress = ErasureProgress()
  /// Lines that are listed and hold their data, and the erasures that list them.
  private var unredacted: [(position: Position, erasure: Position)] = []
  /// Lines of an erasure in progress: the log may hold them or not.
  private var pending: [RedactedLines] = []

  // MARK: Collecting

  /// Adds the lines of `erasures/lines`; nil adds nothing.
  mutating func addPending(_ lines: RedactedLines?) {
    guard let lines, !pending.contains(where: { $0 === lines }) else { return }
    pending.append(lines)
  }

  /// Adds a run of intact lines.
  mutating func add(_ lines: AuditedLines, file: String, block: Int? = nil) {
    if let first = lines.redactions.first {
      // Only a damaged log repeats positions.
      while let last = positions.last, last >= first.position { removeLast() }
      while let last = places.last, last.first >= first.position { places.removeLast() }
      places.append((first.position, file, block))
    }
    for line in lines.redactions {
      positions.append(line.position)
      erasures.append(line.erasure)
      digests.append(line.digest)
      isListed.append(false)
    }
    for (position, event) in lines.erasureEvents { add(event, at: position) }
  }

  private mutating func removeLast() {
    positions.removeLast()
    erasures.removeLast()
    digests.removeLast()
    isListed.removeLast()
  }

  private mutating func add(_ event: DataRedacted, at position: Position, isLate: Bool = false) {
    progress.add(event, at: position)
    switch event {
    case .opening(let opening):
      if let last = openings.last, last >= position { return }
      openings.append(position)
      records.append(
        AuditedErasure(position: position, scope: opening.scope, reason: opening.reason))
      if records.count >= 2 * AuditReport.erasureCountMax {
        records.removeFirst(AuditReport.erasureCountMax)
        furtherRecordCount += AuditReport.erasureCountMax
      }
    case .listing(let listing):
      guard listing.erasure < position, isOpening(listing.erasure) else { return }
      match(listing, isLate: isLate)
    }
  }

  private func isOpening(_ position: Position) -> Bool {
    let index = lowerBound(openings.indices) { openings[$0] < position }
    return index < openings.count && openings[index] == position
  }

  /// - Parameter isLate: whether the event came after the log was read: other lines of its erasure were read before
  ///   they were redacted.
  private mutating func match(_ listing: DataRedacted.Listing, isLate: Bool) {
    let found = lowerBound(records.indices) { records[$0].position < listing.erasure }
    let record =
      found < records.count && records[found].position == listing.erasure ? found : nil
    func count(_ member: WritableKeyPath<AuditedErasure, Int>, _ number: Int = 1) {
      if let record { records[record][keyPath: member] += number }
    }
    count(\.listedCount, listing.lines.count)
    for line in listing.lines where line.position < listing.erasure {
      let index = lowerBound(positions.indices) { positions[$0] < line.position }
      let isRedacted = index < positions.count && positions[index] == line.position
      if isRedacted, erasures[index] == listing.erasure {
        if digests[index] == line.digest, !isListed[index] {
          isListed[index] = true
          count(\.redactedCount)
        }
      } else if isRedacted, erasures[index] > listing.erasure {
        count(\.supersededCount)
      } else if !isLate {
        unredacted.append((line.position, listing.erasure))
      }
    }
  }

  // MARK: Verdict

  /// The position of the first line whose lost data no event lists; nil if every line is listed.
  /// - Parameter size: how far the log was read; events after it may list lines.
  mutating func firstUnlisted(_ directory: LedgerDirectory, readTo size: Int) -> Position? {
    if !positions.indices.allSatisfy(isRight) { readLateEvents(directory, from: size) }
    return positions.indices.first { index in
      !isRight(index) && !pending.contains { $0.contains(positions[index]) }
    }.map { positions[$0] }
  }

  private func isRight(_ index: Int) -> Bool { isListed[index] && isOpening(erasures[index]) }

  /// Adds its findings to a report of all other findings.
  mutating func finish(_ report: inout AuditReport, _ directory: LedgerDirectory) {
    if !positions.indices.allSatisfy(isRight) { readLateEvents(directory, from: report.size) }
    // Damage elsewhere may hide the event that lists a line.
    let damage = report.findings.filter { $0.damage.verdict != .tampered }
    let hiddenEnd = damage.map { $0.endPosition ?? .max }.max() ?? 0
    for index in positions.indices {
      if isRight(index) {
        report.redactedCount += 1
      } else {
        report.add(finding(index, isHidden: hiddenEnd > erasures[index]))
      }
    }
    let unredacted = confirmedUnredacted(directory, damage)
    for (_, erasure) in unredacted {
      let index = lowerBound(records.indices) { records[$0].position < erasure }
      if index < records.count, records[index].position == erasure {
        records[index].unredactedCount += 1
      }
    }
    let newest = records.suffix(AuditReport.erasureCountMax)
    report.erasures = Array(newest)
    report.furtherErasureCount = furtherRecordCount + records.count - newest.count
    report.unfinishedErasures = progress.unfinished
    report.unredactedCount = Set(unredacted.map(\.position)).count
    report.firstUnredacted = unredacted.map(\.position).min()
    addNotes(&report)
  }

  private func finding(_ index: Int, isHidden: Bool) -> AuditFinding {
    let position = positions[index]
    let found = lowerBound(places.indices) { places[$0].first <= position }
    let place = places[max(0, found - 1)]
    return AuditFinding(
      isHidden ? .unreadable : .tampered, place.file, block: place.block, at: position,
      to: position + 1,
      isHidden
        ? "the event's data is missing, and damage hides whether a data.redacted event lists it so"
        : "the event's data is missing, and no data.redacted event lists it so")
  }

  /// The lines that still hold their data when they are read again, because an erasure may have continued while the log
  /// was read. Damaged lines do not count: they may be redacted.
  private mutating func confirmedUnredacted(
    _ directory: LedgerDirectory, _ damage: [AuditFinding]
  ) -> [(position: Position, erasure: Position)] {
    if unredacted.isEmpty { return [] }
    addPending((try? directory.redactions.current(directory)) ?? nil)
    let redacted = nowRedacted(directory)
    return unredacted.filter { line in
      !redacted.contains(line.position)
        && !damage.contains { $0.touches(line.position..<line.position + 1) }
    }
  }

  /// Which of the lines that held their data are redacted now, in the log or by an erasure in progress.
  private func nowRedacted(_ directory: LedgerDirectory) -> Set<Position> {
    let held = Set(unredacted.map(\.position))
    var redacted: Set<Position> = []
    // A line that cannot be read stays as it was found.
    guard let first = held.min(), let last = held.max(), let reader = try? LogReader(directory)
    else { return [] }
    try? reader.read(from: first, workers: 0) { chunk in
      try chunk.forEachEvent { line in
        if line.isRedacted, held.contains(line.position) { redacted.insert(line.position) }
      }
      return chunk.endPosition <= last
    }
    return redacted
  }

  private func addNotes(_ report: inout AuditReport) {
    for erasure in report.erasures where erasure.unredactedCount > 0 {
      let count = erasure.unredactedCount
      report.addNote(
        "\(count) event\(count == 1 ? " still holds" : "s still hold") data that the erasure at "
          + "\(erasure.position) took out; run 'ledgerctl redact --again'")
    }
    if let count = pending.last?.count {
      report.addNote(
        "\(RedactionFile.name) holds \(count) redacted line\(count == 1 ? "" : "s") "
          + "of an erasure in progress: they are shown instead of those in the log")
    }
  }

  /// Reads events that were appended while the log was read: an erasure may have rewritten segments before they were
  /// opened, and only those events list its lines.
  private mutating func readLateEvents(_ directory: LedgerDirectory, from position: Position) {
    // Unreadable events list nothing.
    guard let reader = try? LogReader(directory), reader.head.size > position else { return }
    try? reader.read(from: position, workers: 0) { chunk in
      try chunk.forEachEvent { line in
        guard EventType(line.type) == .dataRedacted,
          let event = try? DataRedacted(data: line.data)
        else { return }
        add(event, at: line.position, isLate: true)
      }
      return true
    }
  }
}
