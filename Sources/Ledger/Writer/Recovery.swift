// Opening for writing: cuts, removes or copies what a crash left, and reports it.
import Base

/// The result of recovery, for the writer.
struct RecoveredLog {
  let segmentWriter: SegmentWriter
  /// Full tails before the current one, in order.
  let unsealed: [UnsealedTail]
  let current: TailWriter.CurrentTail?
  let nextPosition: Position
  let lastEventAtMs: Int64
  let report: RecoveryReport
}

/// Brings a log into a state in which a writer can continue. The caller holds the lock.
struct Recovery {
  private let directory: LedgerDirectory
  private let options: WriterOptions
  private var report = RecoveryReport()

  init(_ directory: LedgerDirectory, _ options: WriterOptions) {
    self.directory = directory
    self.options = options
  }

  /// Throws `corruption` for anything that a crash cannot cause; nothing is then changed.
  mutating func run() throws(LedgerError) -> RecoveredLog {
    // No tail can disappear meanwhile, because this writer holds the lock.
    let state = try LogState(directory, SHA256(), keptTailCount: 0)
    if let damage = state.damage { throw damage }
    try refuseShorterThanSigned(state.size)
    guard let found = state.newest else {
      throw LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: 0),
        operation: "open for writing", cause: "there is no segment")
    }
    // Done before any change: events in a tail that its block lacks must not be lost.
    let covered = try compareCovered(state)
    let segment = try reopenForWriting(found)
    if state.hasTornMember { try cutTornMember(segment) }
    try repair(covered)
    try removeCovered(state, segment)
    for name in state.temporaryNames {
      try directory.unlink(directory.logPath(name))
      report.temporaryFiles.append(directory.logPath(name))
    }
    let writer = SegmentWriter(directory, options, newest: segment)
    let (unsealed, current) = try recoverTails(state)
    var end = segment.endPosition
    for tail in unsealed {
      precondition(tail.first == end, "recovered tails have a gap")
      end = tail.endPosition
    }
    precondition(
      current.map { $0.first == end } ?? (end == state.size),
      "the tail that is written on does not follow the others")
    try directory.syncLogDirectory()
    return RecoveredLog(
      segmentWriter: writer, unsealed: unsealed, current: current, nextPosition: state.size,
      lastEventAtMs: state.lastEventAtMs, report: report)
  }

  /// Signed positions are never written again: appending to a log whose end is missing would hide the loss.
  private func refuseShorterThanSigned(_ size: Int) throws(LedgerError) {
    let store = CheckpointStore(directory)
    let cause: String
    if let signed = try store.sizes().last, signed > size {
      cause = "\(CheckpointStore.fileName(size: signed)) signs \(signed) events"
    } else if !options.acceptsShorterLog, let heads = try store.signedHeads(), heads.size > size {
      cause = "\(SignedHeads.fileName) names a signed head of \(heads.size) events"
    } else {
      return
    }
    throw LedgerError(
      .init(verdict: .missing, file: Format.logDirectoryName, position: size),
      operation: "open for writing", cause: "\(cause), but the log holds \(size)")
  }

  /// A segment that is no longer writable was closed durably, so its read-only descriptor suffices.
  private func reopenForWriting(_ found: SegmentIndex) throws(LedgerError) -> SegmentIndex {
    if found.isClosed, try found.file.status().permissions & 0o200 == 0 { return found }
    let segment = found.replacingFile(try directory.openFile(found.name, .readWrite))
    if segment.isClosed { try makeClosingDurable(segment) }
    return segment
  }

  /// The last writer ended before its sync of the closing member returned. The next segment must not outlive that
  /// member. Rewriting makes the member's page dirty even if a failed sync has dropped it.
  private func makeClosingDurable(_ segment: SegmentIndex) throws(LedgerError) {
    let closing = ByteBuffer()
    let offsetBytes = segment.endOffsetBytes - Format.closingMemberByteCount
    guard
      try segment.file.readWhole(
        Format.closingMemberByteCount, offsetBytes: offsetBytes, into: closing)
    else {
      throw LedgerError(
        .init(verdict: .corrupt, file: segment.name, position: segment.endPosition),
        operation: "open for writing", cause: "it was truncated")
    }
    try segment.file.write(closing.bytes, offsetBytes: offsetBytes)
    try segment.file.syncData()
  }

  private mutating func cutTornMember(_ segment: SegmentIndex) throws(LedgerError) {
    let sizeBytes = try segment.file.sizeBytes()
    try segment.file.truncate(sizeBytes: segment.endOffsetBytes)
    try segment.file.syncData()
    report.tornMember = RecoveryReport.Cut(
      file: segment.name, offsetBytes: segment.endOffsetBytes,
      byteCount: sizeBytes - segment.endOffsetBytes)
  }

  private func compareCovered(_ state: LogState) throws(LedgerError) -> CoveredTails? {
    if state.coveredTails.isEmpty { return nil }
    var covered = try CoveredTails(directory, state, compressionLevel: options.compressionLevel)
    try covered.inspect()
    return covered
  }

  private mutating func repair(_ covered: CoveredTails?) throws(LedgerError) {
    guard let covered else { return }
    try covered.repair()
    report.repairedBlocks = covered.repairs.map {
      RecoveryReport.RepairedBlock(
        file: $0.segment.name, block: $0.block.ordinal,
        tail: directory.logPath(Format.tailName($0.tailFirst)))
    }
  }

  private mutating func removeCovered(
    _ state: LogState, _ segment: SegmentIndex
  ) throws(LedgerError) {
    guard let oldest = state.coveredTails.first else { return }
    if !segment.isClosed {
      // A tail that still exists after its block was written may indicate a failed sync, after which the page cache
      // treats pages as clean that are not on disk. Rewriting the block makes them dirty, so the sync really writes
      // them.
      let member = ByteBuffer()
      for block in segment.blocks where block.first >= oldest {
        guard
          try segment.file.readWhole(
            block.memberByteCount, offsetBytes: block.offsetBytes, into: member)
        else { continue }
        try segment.file.write(member.bytes, offsetBytes: block.offsetBytes)
      }
    }
    try segment.file.syncData()
    try directory.syncLogDirectory()
    for first in state.coveredTails {
      let name = directory.logPath(Format.tailName(first))
      try directory.unlink(name)
      report.coveredTails.append(name)
    }
  }

  /// Copies the newest tail. A writer never appends to a tail that it did not create, and never begins another after
  /// one whose last frame may not be synced. All others were synced before the next one began.
  private mutating func recoverTails(
    _ state: LogState
  ) throws(LedgerError) -> (unsealed: [UnsealedTail], current: TailWriter.CurrentTail?) {
    var unsealed: [UnsealedTail] = []
    var current: TailWriter.CurrentTail?
    for (index, tail) in state.tails.enumerated() {
      let isNewest = index == state.tails.count - 1
      if isNewest, state.tornTailByteCount > 0 {
        report.tornFrame = RecoveryReport.Cut(
          file: tail.name, offsetBytes: tail.endOffsetBytes, byteCount: state.tornTailByteCount)
      }
      if tail.isEmpty {
        try directory.unlink(tail.name)
        report.emptyTail = tail.name
        continue
      }
      let copied = isNewest ? try copy(tail) : nil
      if let copied, tail.eventByteCount < options.blockByteCount {
        current = TailWriter.CurrentTail(
          file: copied, fileByteCount: tail.endOffsetBytes, first: tail.first,
          eventByteCount: tail.eventByteCount)
        continue
      }
      unsealed.append(
        UnsealedTail(
          first: tail.first, eventCount: tail.endPosition - tail.first,
          byteCount: tail.endOffsetBytes))
      report.unsealedTails.append(tail.name)
    }
    return (unsealed, current)
  }

  private func copy(_ tail: TailView) throws(LedgerError) -> StorageFile {
    let frames = ByteBuffer(capacity: tail.endOffsetBytes)
    guard try tail.file.opened().readWhole(tail.endOffsetBytes, offsetBytes: 0, into: frames)
    else { throw tail.damage("it was truncated") }
    return try directory.replaceFile(tail.name, with: Array(frames.bytes))
  }
}

// MARK: - Unsealed tails

/// A full tail. Its frames are durable; its events are in no other file.
package struct UnsealedTail: Sendable {
  package let first: Position
  let eventCount: Int
  /// The size of its frames.
  let byteCount: Int

  package init(first: Position, eventCount: Int, byteCount: Int) {
    self.first = first
    self.eventCount = eventCount
    self.byteCount = byteCount
  }

  var endPosition: Position { first + eventCount }

  /// Reads its events, without the frame headers.
  ///
  /// Throws `corruption` if the file does not contain exactly what was written to it.
  package func readEvents(
    _ directory: LedgerDirectory, into events: ByteBuffer
  ) throws(LedgerError) {
    func damage(
      _ verdict: LedgerError.Verdict, _ name: String, _ cause: String
    ) -> LedgerError {
      LedgerError(
        .init(verdict: verdict, file: name, position: first), operation: "seal", cause: cause)
    }
    let name = directory.logPath(Format.tailName(first))
    guard let file = try directory.openFileIfPresent(name) else {
      throw damage(.missing, name, "the tail is missing")
    }
    let isThere: Bool
    do throws(LedgerError) {
      isThere = try file.readWhole(byteCount, offsetBytes: 0, into: events)
    } catch { throw error.unreadable(file, at: first) }
    guard isThere, FrameHeader.removeAll(from: events, first: first) == endPosition else {
      throw damage(.corrupt, name, "the tail differs from what was written")
    }
  }
}
