// One promotion: compare, fetch, put in place, take over; in this order, so that each can be repeated.
package import Base
import Ledger
import ObjectStore

/// The state of a promotion.
final class PromotionRun {
  /// In the first attempts everything is fetched before the step is tried. In later ones the step comes first, or a busy
  /// writer could go on for ever.
  private static let attemptsWithFetch = 5

  private let options: Promotion
  let directory: LedgerDirectory
  private let store: PatientStore
  let source: CopySource
  let fetch: CopyFetch
  let log: Folder
  private let checkpoints: Folder
  let replication: Folder
  /// The mark of the copy's directory.
  private let mark: UUID16?
  var localSize = 0
  var isCompared = false
  /// What is in place.
  private var installed: CopyPlan?
  /// Called when the files of a plan are fetched and compared, before they take their places.
  var willInstall: (CopyPlan) throws -> Void = { _ in }

  init(
    _ options: Promotion, _ directory: LedgerDirectory, _ store: PatientStore
  ) throws {
    (self.options, self.directory, self.store) = (options, directory, store)
    do throws(ObjectStoreError) { mark = try store.marked?.mark() } catch {
      throw CopyError.store(error)
    }
    if let mark { store.marked?.require(mark: mark) }
    guard let source = try CopySource(store) else {
      throw PromotionError.noCopy(store: store.name)
    }
    guard source.state.newest.ledger.description == directory.identity.id.description else {
      throw PromotionError.otherLedger(store: store.name)
    }
    self.source = source
    let progress = options.progress
    fetch = CopyFetch(store, threadCount: options.threadCount) { progress($0, $1) }
    guard let log = try directory.folderIfPresent(Format.logDirectoryName) else {
      throw LedgerError(
        .init(verdict: .missing, file: Format.logDirectoryName, position: 0),
        operation: "promote", cause: "there is no such directory")
    }
    self.log = log
    checkpoints = try directory.root.madeFolder(CheckpointStore.directoryName)
    replication = try directory.root.folder(ReplicationRecord.folderName)
  }

  func run() throws -> Promotion.Report {
    let record = try ReplicationRecord(of: directory)
    let newest = source.state.newest
    let isOwner = record.map { $0.writer == newest.writer && $0.epoch == newest.epoch } ?? false
    if isOwner, try Standby(of: directory) == nil {
      return Promotion.Report(
        wasOwner: true, step: newest, previous: newest, localSize: newest.size)
    }
    try refuseIfDamaged()
    let marker = try PromotionMarker(of: replication)
    if let marker, try marker.isOfHistory(source) {
      // What an interrupted run left need not be a log, but was compared.
      (localSize, isCompared) = (marker.localSize, true)
    } else {
      try keepOthersOut(newest)
    }
    try takeContents()
    let (step, previous) =
      isOwner
      ? (newest, try source.sequence.step(newest.number - 1)?.step ?? newest) : try takeOver(record)
    try takeContents()
    // Everything is on disk; what was published is how far it was before.
    try whileWriting()
    try adoptIdentity()
    try adoptHeads()
    try source.work()?.write(
      to: directory.root, size: source.state.size, bounded: options.boundedWebhook)
    var confirmed = ReplicationRecord(source.state.newest, sha256: source.state.newestSHA256)
    confirmed.copy = mark
    try confirmed.write(to: directory)
    try replication.unlink("segments")
    try PromotionMarker.remove(from: replication)
    var erasures = ErasureProgress()
    try erasures.read(try LogReader(directory))
    try Standby.remove(from: directory)
    return Promotion.Report(
      step: step, previous: previous, localSize: localSize, fetched: fetch.total,
      unfinishedErasures: erasures.unfinished)
  }

  /// Recovers the log, and writes `standby.json`, so that no other process appends to it.
  private func keepOthersOut(_ newest: Step) throws {
    try whileWriting {
      if try Standby(of: directory) == nil {
        try Standby(
          reason: .fenced, step: newest.number, epoch: newest.epoch, atMs: options.nowMs()
        ).write(to: directory)
      }
    }
  }

  /// Opens the log for writing, which recovers it and publishes how far it is on disk, and closes it again.
  func whileWriting(_ body: () throws -> Void = {}) throws {
    var options = WriterOptions()
    options.ignoresStandby = true
    // Sealing would make blocks that the copy has not.
    (options.closingLimitMs, options.closingInheritedLimitMs) = (0, 0)
    let writer = try LedgerWriter.open(directory, options: options)
    do { try body() } catch {
      try? writer.close()
      throw error
    }
    try writer.close()
  }

  /// Reads all that is needed of the copy, before anything is changed here or there. What this ledger has as well need
  /// not be in the copy: whoever writes it stores it again.
  private func refuseIfDamaged() throws {
    while true {
      try options.checkCancelled()
      let kept = Set(try CheckpointStore(directory).sizes())
      let files = try source.plan(size: nil).files.filter {
        $0.kind != .checkpoint || !kept.contains($0.first)
      }
      var faults = try fetch.faults(files) { $0.kind == .checkpoint ? checkpoints : log }
      for check in [{ _ = try self.source.identity() }, { _ = try self.source.work() }] {
        do { try check() } catch CopyError.faults(let found) { faults += found }
      }
      if faults.isEmpty { return }
      // The writer may have replaced them meanwhile.
      guard try source.catchUp() else { throw RestoreError.faults(faults) }
    }
  }

  // MARK: Contents

  /// Makes the log that of the copy, after comparing what is there.
  func takeContents() throws {
    // A step that names nothing new changes no file.
    if let installed, try installed == source.plan(size: nil) { return }
    let local = isCompared ? nil : try wholeReader()
    if let local {
      localSize = local.head.size
      try refuseIfDiverged(local.head)
    }
    let kept = Set(try CheckpointStore(directory).sizes())
    let (plan, faults) = try source.fetch(size: nil, without: kept, fetch) {
      file throws(LedgerError) in
      file.kind == .checkpoint ? checkpoints : log
    }
    guard faults.isEmpty else { throw RestoreError.faults(faults.map(\.fault)) }
    if let local {
      let tree = try CopiedTree(plan, log, directory.identity.id).frontier(upTo: localSize)
      guard tree.size == localSize, tree.root == local.head.root else {
        for name in try log.names() where name.hasSuffix(Format.temporarySuffix) {
          try log.unlink(name)
        }
        throw diverged()
      }
      try PromotionMarker(
        localSize: localSize, step: source.state.newest.number, sha256: source.state.newestSHA256
      ).write(to: replication)
      isCompared = true
    }
    try willInstall(plan)
    let install = CopyInstall(
      log: log, checkpoints: checkpoints, ledger: directory.identity.id)
    try install.install(plan, without: kept)
    let head = try wholeReader().head
    guard head.size == source.state.size, head.root == source.state.root else {
      throw RestoreError.faults([
        CopyFault(
          object: source.state.newest.key,
          cause: "its root is not that of the events in its objects")
      ])
    }
    installed = plan
  }

  func wholeReader() throws(LedgerError) -> LogReader {
    let reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    return reader
  }

  private func diverged() -> PromotionError {
    .diverged(store: store.name, local: localSize, copied: source.state.size)
  }

  private func refuseIfDiverged(_ head: LogHead) throws(PromotionError) {
    guard head.size <= source.state.size,
      head.size < source.state.size || head.root == source.state.root
    else { throw diverged() }
  }

  func adoptHeads() throws(LedgerError) {
    // The newest checkpoint may be signed by a key that came with the copy.
    let checkpoints = CheckpointStore(try directory.reread())
    let sizes = try checkpoints.sizes()
    guard let last = sizes.last, let checkpoint = try? checkpoints.checkpoint(size: last) else {
      return
    }
    let known = try SignedHeads(of: directory)
    let heads = SignedHeads(count: sizes.count, size: last, root: checkpoint.root)
      .merged(with: known)
    if heads != known { try heads.write(to: directory) }
  }

  /// The copy's identity may allow redacted lines, and name keys that this ledger has not.
  func adoptIdentity() throws {
    let copied = try LedgerIdentity(copied: try source.identity(), path: store.name)
    var own = try directory.reread()
    if copied.formatVersion > own.identity.formatVersion { own = try own.allowingRedactions() }
    let further = copied.publicKeys.filter { !own.identity.publicKeys.contains($0) }
    if !further.isEmpty { _ = try own.withPublicKeys(own.identity.publicKeys + further) }
  }

  // MARK: Taking over

  /// Creates the next step, of a new epoch.
  private func takeOver(
    _ known: ReplicationRecord?
  ) throws -> (step: Step, previous: Step) {
    let epoch = source.state.newest.epoch + 1
    // A writer that an interrupted run chose may have a step under way.
    let writer =
      known.flatMap { $0.epoch == epoch ? $0.writer : nil } ?? options.newWriter()
    var attempt = 0
    while true {
      try options.checkCancelled()
      let state = source.state
      guard state.newest.epoch < epoch else {
        throw PromotionError.overtaken(step: state.newest.number, epoch: state.newest.epoch)
      }
      var record = ReplicationRecord(state.newest, sha256: state.newestSHA256)
      (record.writer, record.epoch, record.copy) = (writer, epoch, mark)
      // Before the first put: whatever comes of it, this ledger knows its own writer.
      try record.write(to: directory)
      let step = state.completeStep(epoch: epoch, writer: writer, atMs: options.nowMs())
      let outcome: PutOutcome
      do throws(ObjectStoreError) {
        outcome = try store.create(step.key, .bytes(step.header))
      } catch { throw CopyError.store(error) }
      try source.catchUp()
      if outcome == .stored { return (step, state.newest) }
      // A retry, or an earlier run whose put arrived late.
      if let first = try firstStep(of: writer, after: state.newest.number) {
        return (first, state.newest)
      }
      attempt += 1
      if attempt < Self.attemptsWithFetch { try takeContents() }
    }
  }

  private func firstStep(of writer: UUID16, after number: Int) throws -> Step? {
    guard source.state.newest.writer == writer else { return nil }
    var next = number + 1
    while next <= source.state.newest.number {
      if let step = try source.sequence.step(next)?.step, step.writer == writer { return step }
      next += 1
    }
    return source.state.newest
  }
}

extension CopyState {
  /// A step that says all that the copy holds, and changes nothing of it.
  package func completeStep(epoch: Int, writer: UUID16, atMs: Int64) -> Step {
    var step = Step(
      number: newest.number + 1, epoch: epoch, writer: writer, ledger: newest.ledger, atMs: atMs,
      previous: newestSHA256, size: size, root: root)
    step.isComplete = true
    step.identity = identity
    step.work = work
    (step.segments, step.blocks, step.checkpoints) = (segments, blocks, checkpoints)
    step.earlierFrames = frames
    return step
  }
}
