// Audits a copy: compares it with the ledger, and its objects with its steps.
import Base
package import Ledger

/// Compares a copy with the ledger; the ledger's writer may keep running. Changes nothing.
package struct CopyAudit {
  /// Whether the chain of steps is followed from step 0, rather than from the newest complete step.
  package var followsAllSteps = false
  package var threadCount = 4
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}
  package var progress: @Sendable (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in }

  package init() {}

  /// The result of an audit.
  package struct Report: Sendable {
    package var newest: Step
    /// How many steps were followed.
    package var stepCount = 0
    /// Objects, and frames of steps, that were read.
    package var objectCount = 0
    package var byteCount = 0
    /// Events that the ledger holds.
    package var localSize = 0
    /// Faults of the copy, and differences from the ledger.
    package var faults: [CopyFault] = []
    /// Missing steps that nothing needs because a complete step follows.
    package var lostSteps: [CopyFault] = []
    /// Objects that hold data which the ledger has erased; the next steps replace them.
    package var outdated: [String] = []

    package var isWhole: Bool { faults.isEmpty }
    /// How many events the copy lacks.
    package var lag: Int { max(0, localSize - newest.size) }
  }

  /// Audits a copy; nil if there is none.
  ///
  /// Throws `CopyError` and `LedgerError` for what prevents the audit.
  package func run(_ directory: LedgerDirectory, _ store: RetryingStore) throws -> Report? {
    guard let source = try CopySource(store) else { return nil }
    let start = source.state
    var report = Report(newest: start.newest)
    report.stepCount = start.stepsSinceComplete + 1
    if followsAllSteps {
      try follow(source.sequence, upTo: start, &report)
    } else {
      let end = start.newest.number - start.stepsSinceComplete
      try addGaps(source.sequence, max(0, end - Self.listedStepCountMax)..<end, &report)
    }
    if start.newest.ledger.description != directory.identity.id.description {
      report.faults.append(
        CopyFault(object: start.newest.key, cause: "it is of another ledger"))
      return report
    }
    let checked = try check(source)
    report.newest = checked.state.newest
    report.objectCount = checked.objects
    report.byteCount = checked.bytes
    report.faults += checked.faults
    try compare(directory, checked.state, &report)
    return report
  }

  // MARK: Steps

  /// How many steps before the newest complete one are listed when not all steps are followed.
  private static let listedStepCountMax = 100_000

  /// Reports steps that are missing from the store's list.
  private func addGaps(
    _ sequence: StepSequence, _ range: Range<Int>, _ report: inout Report,
    _ body: (Int) throws -> Void = { _ in }
  ) throws {
    var next = range.lowerBound
    var gaps: [CopyFault] = []
    func add(upTo end: Int) {
      guard next < end, gaps.count < Self.faultCountMax else { return }
      gaps.append(StepSequence.fault(ofMissing: next...(end - 1)))
    }
    try sequence.forEachListed(range) { number in
      try checkCancelled()
      add(upTo: number)
      next = number + 1
      try body(number)
    }
    add(upTo: range.upperBound)
    report.lostSteps += gaps
  }

  /// Follows the chain from step 0.
  private func follow(
    _ sequence: StepSequence, upTo state: CopyState, _ report: inout Report
  ) throws {
    var previous: CopyState?
    var (faults, count) = ([CopyFault](), 0)
    try addGaps(sequence, 0..<(state.newest.number + 1), &report) { number in
      // Every step may have a fault; a longer list adds nothing.
      if faults.count >= Self.faultCountMax { return }
      do {
        guard let stored = try sequence.step(number) else { return }
        count += 1
        if let known = previous, known.newest.number + 1 < number { previous = nil }
        if previous != nil {
          _ = try previous?.apply(stored.step, sha256: stored.sha256)
        } else if stored.step.isComplete {
          previous = try CopyState(complete: stored.step, sha256: stored.sha256)
        }
      } catch CopyError.faults(let found) {
        faults += found
        previous = nil
      } catch let fault as CopyFault {
        faults.append(fault)
        previous = nil
      }
    }
    report.faults += faults
    report.stepCount = count
  }

  private static let faultCountMax = 1_000

  // MARK: Objects

  struct Checked {
    var state: CopyState
    var objects: Int
    var bytes: Int
    var faults: [CopyFault]
  }

  /// Reads every object that the newest state names.
  func check(_ source: CopySource) throws -> Checked {
    var known: Set<String> = []
    var total = (objects: 0, bytes: 0)
    while true {
      try checkCancelled()
      let plan = try source.plan(size: nil)
      let pieces = plan.files.flatMap(\.pieces).filter { !known.contains(Self.name($0)) }
      let totalBytes = pieces.reduce(0) { $0 + ($1.byteCount ?? 0) }
      let reader = CopyReader(source.store)
      let wrong = Monitor([(piece: CopyPiece, fault: CopyFault)]())
      let (done, progress) = (Monitor(0), progress)
      try ParallelWork.run(pieces.count, threads: threadCount) { index throws(CopyError) in
        let piece = pieces[index]
        let fault = try reader.read(piece) { _, _ throws(LedgerError) in }
        if let fault { wrong.withLock { $0.append((piece, fault)) } }
        progress(
          done.withLock { done in
            done += piece.byteCount ?? 0
            return done
          }, totalBytes)
      }
      let faults = wrong.withLock { $0 }
      let wrongNames = Set(faults.map { Self.name($0.piece) })
      for piece in pieces where !wrongNames.contains(Self.name(piece)) {
        known.insert(Self.name(piece))
        total.objects += 1
        total.bytes += piece.byteCount ?? 0
      }
      var found = faults.map(\.fault)
      do throws(CopyError) { _ = try source.identity() } catch {
        guard case .faults(let faults) = error else { throw error }
        found += faults
      }
      do throws(CopyError) { _ = try source.work() } catch {
        guard case .faults(let faults) = error else { throw error }
        found += faults
      }
      let isNewest = found.isEmpty ? true : try !source.catchUp()
      if isNewest {
        found.sort { $0.object < $1.object }
        return Checked(
          state: source.state, objects: total.objects + (source.state.work == nil ? 1 : 2),
          bytes: total.bytes, faults: found)
      }
    }
  }

  /// Names a step's frames apart from the step itself.
  private static func name(_ piece: CopyPiece) -> String {
    "\(piece.key) \(Hex.text(piece.sha256))"
  }

  // MARK: Ledger

  /// Frames are never redacted: a tail is sealed before its lines are redacted.
  private func addOutdatedFrames(
    _ state: CopyState, _ reader: LogReader, _ report: inout Report
  ) throws {
    for entry in state.frames {
      try checkCancelled()
      var isOutdated = false
      try reader.read(from: entry.frames.first, to: entry.frames.end, workers: 0) { chunk in
        try chunk.forEachEvent { if $0.isRedacted { isOutdated = true } }
        return !isOutdated
      }
      if isOutdated { report.outdated.append(CopyLayout.stepKey(entry.step)) }
    }
  }

  private func compare(
    _ directory: LedgerDirectory, _ state: CopyState, _ report: inout Report
  ) throws {
    let reader = try LogReader(directory)
    report.localSize = reader.head.size
    func fault(_ cause: String) {
      report.faults.append(CopyFault(object: state.newest.key, cause: cause))
    }
    guard reader.head.size >= state.size else {
      if let damage = reader.damage { throw damage }
      // A ledger on standby may be behind.
      if try Standby(of: directory) == nil {
        fault("it holds \(state.size) events, but the ledger holds \(reader.head.size)")
      }
      return
    }
    guard try reader.frontier(at: state.size).root == state.root else {
      return fault("its \(state.size) events are not the ledger's first \(state.size)")
    }
    // Equal trees mean equal events. Different bytes come from an erasure, or are wrong.
    let allowsRedactions =
      try directory.reread().identity.formatVersion >= Format.versionWithRedactions
    if allowsRedactions { try addOutdatedFrames(state, reader, &report) }
    guard let log = try directory.folderIfPresent(Format.logDirectoryName) else { return }
    for file in try CopyPlan(state, size: state.size).logFiles where file.kind != .tail {
      guard try log.status(file.name) != nil else { continue }
      let handle = try log.openFile(file.name, .readOnly)
      for piece in file.pieces {
        try checkCancelled()
        let end = piece.offsetBytes + (piece.byteCount ?? 0)
        if try FileHash.sha256(handle, piece.offsetBytes..<end) == piece.sha256 { continue }
        // The segment may have been rewritten under the reader.
        if allowsRedactions {
          report.outdated.append(piece.key)
        } else {
          report.faults.append(
            CopyFault(object: piece.key, cause: "its bytes are not those of log/\(file.name)"))
        }
      }
    }
  }
}
