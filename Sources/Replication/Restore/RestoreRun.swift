// One restore: what is fetched, installed and checked, in this order.
import Base
import Ledger

/// The state of a restore.
final class RestoreRun {
  private let options: CopyRestore
  private let source: CopySource
  private let target: UnfinishedLedger
  private let checkpoints: Folder
  private let fetch: CopyFetch
  private let heads: [GivenHead]
  private let work: OpenWork?
  /// What was left out because it is missing or damaged.
  private var missing: [CopyFault] = []
  /// The sizes of checkpoints that are left out.
  private var excluded: Set<Int> = []
  private var unlistedCount = 0

  init(_ options: CopyRestore, _ store: RetryingStore, _ path: String) throws {
    self.options = options
    var missing: [CopyFault] = []
    source = try Self.newestReadable(store, options, &missing)
    if let size = options.size, size > source.state.size {
      throw CopyError.refused(
        object: "position \(size)", cause: "the copy holds \(source.state.size) events")
    }
    target = try UnfinishedLedger(
      path: path, identity: try Self.identity(source, options, &missing),
      note: Self.standbyNote(source.state.newest, options), storage: options.storage)
    work = try Self.work(source, options, &missing)
    self.missing = missing
    heads = try options.givenHeads(target.directory)
    checkpoints = try target.folder(CheckpointStore.directoryName)
    let progress = options.progress
    fetch = CopyFetch(store, threadCount: options.threadCount) { progress(.fetching, $0, $1) }
  }

  private static func identity(
    _ source: CopySource, _ options: CopyRestore, _ missing: inout [CopyFault]
  ) throws -> [UInt8] {
    do throws(CopyError) { return try source.identity() } catch {
      guard case .faults(let faults) = error else { throw error }
      guard options.isPartial else { throw try allFaults(source, options, faults) }
      missing += faults
      guard let bytes = try source.anyIdentity() else { throw CopyError.faults(missing) }
      return bytes
    }
  }

  private static func work(
    _ source: CopySource, _ options: CopyRestore, _ missing: inout [CopyFault]
  ) throws -> OpenWork? {
    do throws(CopyError) { return try source.work() } catch {
      guard case .faults(let faults) = error else { throw error }
      guard options.isPartial else { throw try allFaults(source, options, faults) }
      missing += faults
      return nil
    }
  }

  /// All that is missing or damaged, where nothing more can be fetched.
  private static func allFaults(
    _ source: CopySource, _ options: CopyRestore, _ known: [CopyFault]
  ) throws -> CopyError {
    var audit = CopyAudit()
    (audit.threadCount, audit.checkCancelled) = (options.threadCount, options.checkCancelled)
    let faults = try audit.check(source).faults
    return .faults(faults.isEmpty ? known : faults)
  }

  private static func standbyNote(_ step: Step, _ options: CopyRestore) -> Standby {
    Standby(reason: .restored, step: step.number, epoch: step.epoch, atMs: options.nowMs())
  }

  /// The newest state; for a partial restore, the newest whose steps can be read.
  private static func newestReadable(
    _ store: RetryingStore, _ options: CopyRestore, _ missing: inout [CopyFault]
  ) throws -> CopySource {
    let sequence = StepSequence(store)
    var last: Int?
    while let survey = try sequence.survey(at: last) {
      missing += survey.faults
      if let state = survey.state, missing.isEmpty { return CopySource(store, state) }
      guard options.isPartial else { throw CopyError.faults(missing) }
      if let state = survey.state { return CopySource(store, state, isFrozen: true) }
      // No state follows from these steps; an earlier complete step may be sound.
      guard survey.first > 0 else { throw CopyError.faults(missing) }
      last = survey.first - 1
      try options.checkCancelled()
    }
    throw CopyError.noCopy(store: store.name)
  }

  // MARK: Phases

  func finish() throws -> CopyRestore.Report {
    var plan = try fetched(size: try options.untilMs.map { try size(until: $0) } ?? options.size)
    try install(plan)
    if plan.size < source.state.size { plan = try vouchedFor(plan) }
    let report = try audited(plan)
    let sizes = plan.checkpointSizes.filter { !excluded.contains($0) }
    if let last = sizes.last, let root = report.roots[last] {
      try SignedHeads(count: sizes.count, size: last, root: root).write(to: target.directory)
    }
    try work?.write(
      to: target.directory.root, size: plan.size, bounded: options.boundedWebhook)
    let step = source.state.newest
    _ = try target.finish(note: Self.standbyNote(step, options))
    return CopyRestore.Report(
      step: step, size: plan.size, root: report.frontier?.root ?? step.root,
      checkpointCount: sizes.count, fetched: fetch.total, missing: missing, notes: report.notes,
      unredactedCount: report.unredactedCount, unlistedCount: unlistedCount,
      unfinishedErasures: report.unfinishedErasures)
  }

  /// Fetches the first events, or as many of them as the copy has.
  private func fetched(size wanted: Int?) throws -> CopyPlan {
    var size = wanted
    while true {
      try options.checkCancelled()
      let (plan, faults) = try source.fetch(size: size, without: excluded, fetch) {
        file throws(LedgerError) in
        file.kind == .checkpoint ? checkpoints : target.log
      }
      if faults.isEmpty { return plan }
      guard options.isPartial else {
        throw CopyError.faults(missing + faults.map(\.fault))
      }
      missing += faults.map(\.fault).filter { !missing.contains($0) }
      let sizes = Set(plan.checkpointSizes.map { CheckpointStore.leafName(size: $0) })
      for fault in faults {
        if sizes.contains(fault.file) {
          excluded.insert(fault.position)
        } else {
          size = min(size ?? plan.size, fault.position)
        }
      }
    }
  }

  /// How many events were recorded until a time. What is fetched to find that out is used afterwards.
  private func size(until timeMs: Int64) throws -> Int {
    var wanted = min(source.state.size, Self.firstDistance)
    while true {
      let plan = try fetched(size: wanted)
      try install(plan)
      let reader = try reader()
      if plan.size < wanted || wanted >= source.state.size || reader.head.lastEventAtMs > timeMs {
        return try reader.firstPosition(recordedFromMs: timeMs + 1)
      }
      wanted = min(source.state.size, wanted * 4)
    }
  }

  /// How many events are fetched first to search among them.
  private static let firstDistance = 1 << 20

  private func install(_ plan: CopyPlan) throws(LedgerError) {
    let install = CopyInstall(
      log: target.log, checkpoints: checkpoints, ledger: target.directory.identity.id)
    try install.install(plan, without: excluded)
  }

  // MARK: Redacted lines

  /// A redacted line is proven by a later event. Rejects an end before that event.
  private func vouchedFor(_ plan: CopyPlan) throws -> CopyPlan {
    guard target.directory.identity.formatVersion >= Format.versionWithRedactions else {
      return plan
    }
    var scan = RedactionScan(wanted: plan.size)
    try scan.read(try reader())
    if scan.soundEnd == plan.size { return plan }
    if options.isPartial, !missing.isEmpty {
      unlistedCount = scan.unlistedCount
      return plan
    }
    // What is fetched to find the answer is used by the next run.
    var size = plan.size
    var distance = Self.firstDistance
    while scan.soundEnd == nil, size < source.state.size {
      size = min(source.state.size, size + distance)
      distance *= 4
      let further = try fetched(size: size)
      try install(further)
      try scan.read(try reader())
    }
    guard let end = scan.soundEnd else {
      throw CopyError.refused(
        object: "position \(plan.size)",
        cause: "the copy holds redacted events that no event of an erasure lists")
    }
    throw CopyError.refused(
      object: "position \(plan.size)",
      cause:
        "earlier events were redacted, and the events that prove it come later; the next position "
        + "that can be restored is \(end)")
  }

  private func reader() throws(LedgerError) -> LogReader {
    let reader = try LogReader(target.directory)
    if let damage = reader.damage { throw damage }
    return reader
  }

  // MARK: Check

  private func audited(_ plan: CopyPlan) throws -> AuditReport {
    let sizes = plan.checkpointSizes.filter { !excluded.contains($0) }
    let progress = options.progress
    let audit = LogAudit(
      target.directory, rootsAt: sizes + heads.map(\.checkpoint.size) + [plan.size])
    var report = try audit.run { done, total in
      try options.checkCancelled()
      progress(.checking, done, total)
    }
    report.check(CheckpointStore(target.directory), sizes: sizes)
    for head in heads { report.check(head.checkpoint, name: head.name) }
    // In a partial restore, redacted lines may be all that is unproven.
    let findingCount = report.findings.count + report.furtherFindingCount
    guard findingCount == unlistedCount else { throw CopyError.audit(report.findings) }
    guard report.size == plan.size else {
      throw CopyError.faults([
        CopyFault(
          object: source.state.newest.key,
          cause: "its objects hold \(report.size) events instead of \(plan.size)")
      ])
    }
    if plan.size == source.state.size, report.roots[plan.size] != source.state.root {
      throw CopyError.faults([
        CopyFault(
          object: source.state.newest.key,
          cause: "the root of its \(plan.size) events is not that of the events in its objects")
      ])
    }
    return report
  }
}
