// Promotes a ledger to writer of a copy: first it holds all that the copy holds, then it creates the next step.
package import Base
package import Ledger

/// Takes over a copy for a ledger. After an interruption at any point it can be repeated.
package struct Promotion {
  package var threadCount = 4
  package var progress: @Sendable (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in }
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}
  /// Adjusts a webhook's file to a log of this many events.
  package var boundedWebhook: ([UInt8], Int) -> [UInt8] = { bytes, _ in bytes }
  package var newWriter: () -> UUID16 = { .random() }
  package var nowMs: () -> Int64 = { Timestamp.now() }

  package init() {}

  /// The result of a promotion.
  package struct Report: Sendable {
    /// Whether this ledger was already the copy's writer; nothing was done.
    package var wasOwner = false
    /// The step that began the epoch.
    package var step: Step
    /// The last step before it.
    package var previous: Step
    /// How many events the ledger held before.
    package var localSize: Int
    package var fetched = FetchCounts()
    /// The erasures that the former writer began and did not finish.
    package var unfinishedErasures: [UnfinishedErasure] = []
  }

  /// Takes over.
  ///
  /// Throws `CopyError` and `LedgerError`; the ledger is
  /// then unchanged, or on standby.
  package func run(_ directory: LedgerDirectory, _ store: RetryingStore) throws -> Report {
    let turn = try ReplicationTurn(directory)
    defer { turn.end() }
    return try PromotionRun(self, directory, store).run()
  }
}

/// The lock for replicating a ledger: one process at a time holds it.
struct ReplicationTurn {
  private static let fileName = "lock"
  private let file: StorageFile

  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let isNew = try directory.folderIfPresent(ReplicationRecord.folderName) == nil
    let folder = try directory.root.madeFolder(ReplicationRecord.folderName)
    if isNew {
      try directory.root.giveNewFolderToOwner(folder)
      try directory.root.sync()
    }
    let (file, isNewFile) = try folder.openLock(Self.fileName)
    if isNewFile { try folder.giveNewFileToOwner(file) }
    guard try file.lock() else {
      throw LedgerError(
        .locked, operation: "replicate", object: directory.path,
        cause: "another process replicates this ledger")
    }
    self.file = file
  }

  func end() { file.unlock() }
}

// MARK: - Record of a promotion under way

/// The file `replication/promoting`: the ledger's log was found to be the beginning of the copy's. While files are
/// being installed, `log/` need not contain a valid log.
struct PromotionMarker: Equatable {
  private static let fileName = "promoting"
  private static let byteCountMax = 4096

  /// How many events the ledger held.
  let localSize: Int
  /// The step with whose state it was compared, and the SHA-256 of its header.
  let step: Int
  let sha256: SHA256Digest

  init(localSize: Int, step: Int, sha256: SHA256Digest) {
    (self.localSize, self.step, self.sha256) = (localSize, step, sha256)
  }

  /// Nil if it is missing or unreadable: then everything is compared again.
  init?(of folder: Folder) throws(LedgerError) {
    guard try folder.status(Self.fileName) != nil else { return nil }
    let bytes = try folder.openFile(Self.fileName, .readOnly).readSmall(
      byteCountMax: Self.byteCountMax)
    guard let value = try? JSONValue(bytes), let localSize = value.count("local_size"),
      let step = value.count("step"), let sha256 = value.digest("sha256")
    else { return nil }
    self.init(localSize: localSize, step: step, sha256: sha256)
  }

  func write(to folder: Folder) throws(LedgerError) {
    var lines = JSONLines()
    lines.add("local_size") { $0.integer(localSize) }
    lines.add("step") { $0.integer(step) }
    lines.add("sha256") { $0.string(Hex.text(sha256)) }
    try folder.replaceFile(Self.fileName, with: lines.bytes)
  }

  static func remove(from folder: Folder) throws(LedgerError) {
    try folder.unlink(fileName)
    try folder.sync()
  }

  /// Whether the copy continues the history with which the ledger was compared.
  func isOfHistory(_ source: CopySource) throws(CopyError) -> Bool {
    guard step <= source.state.newest.number else { return false }
    return try source.sequence.step(step)?.sha256 == sha256
  }
}

// MARK: - One promotion

/// The state of a promotion: compare, fetch, install, take over, in this order, so that each part can be repeated.
final class PromotionRun {
  /// The first attempts fetch everything before they try to create the step. Later ones create the step first;
  /// otherwise a busy writer could delay the promotion forever.
  private static let attemptsWithFetch = 5

  private let options: Promotion
  let directory: LedgerDirectory
  private let store: RetryingStore
  let source: CopySource
  let fetch: CopyFetch
  let log: Folder
  private let checkpoints: Folder
  let replication: Folder
  /// The mark of the copy's directory.
  private let mark: UUID16?
  var localSize = 0
  var isCompared = false
  /// The installed files.
  private var installed: CopyPlan?
  /// Called when the files of a plan are fetched and compared, before they are installed.
  var willInstall: (CopyPlan) throws -> Void = { _ in }

  init(
    _ options: Promotion, _ directory: LedgerDirectory, _ store: RetryingStore
  ) throws {
    (self.options, self.directory, self.store) = (options, directory, store)
    do throws(ObjectStoreError) { mark = try store.marked?.mark() } catch {
      throw CopyError.store(error)
    }
    if let mark { store.marked?.require(mark: mark) }
    guard let source = try CopySource(store) else {
      throw CopyError.noCopy(store: store.name)
    }
    guard source.state.newest.ledger.description == directory.identity.id.description else {
      throw CopyError.otherLedger(store: store.name)
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
      try fenceOthers(newest)
    }
    try installContents()
    let (step, previous) =
      isOwner
      ? (newest, try source.sequence.step(newest.number - 1)?.step ?? newest) : try takeOver(record)
    try installContents()
    // Everything is on disk; the published durable size is the one from before.
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
  private func fenceOthers(_ newest: Step) throws {
    try whileWriting {
      if try Standby(of: directory) == nil {
        try Standby(
          reason: .fenced, step: newest.number, epoch: newest.epoch, atMs: options.nowMs()
        ).write(to: directory)
      }
    }
  }

  /// Opens the log for writing, which recovers it and publishes its durable size, and closes it again.
  func whileWriting(_ body: () throws -> Void = {}) throws {
    var options = WriterOptions()
    options.ignoresStandby = true
    // Sealing would create blocks that the copy does not have.
    (options.closingLimitMs, options.closingInheritedLimitMs) = (0, 0)
    let writer = try LedgerWriter.open(directory, options: options)
    do { try body() } catch {
      try? writer.close()
      throw error
    }
    try writer.close()
  }

  /// Reads everything that is needed from the copy before anything is changed on either side. What this ledger already
  /// has may be missing from the copy: its writer stores it again.
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
      guard try source.catchUp() else { throw CopyError.faults(faults) }
    }
  }

  // MARK: Contents

  /// Replaces the log by that of the copy, after comparing what is there.
  func installContents() throws {
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
    guard faults.isEmpty else { throw CopyError.faults(faults.map(\.fault)) }
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
      throw CopyError.faults([
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

  private func diverged() -> CopyError {
    .diverged(store: store.name, local: localSize, copied: source.state.size)
  }

  private func refuseIfDiverged(_ head: LogHead) throws(CopyError) {
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

  /// The copy's identity may allow redacted lines, and name keys that this ledger lacks.
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
    // The writer that an interrupted run chose may be creating a step.
    let writer =
      known.flatMap { $0.epoch == epoch ? $0.writer : nil } ?? options.newWriter()
    var attempt = 0
    while true {
      try options.checkCancelled()
      let state = source.state
      guard state.newest.epoch < epoch else {
        throw CopyError.overtaken(step: state.newest.number, epoch: state.newest.epoch)
      }
      var record = ReplicationRecord(state.newest, sha256: state.newestSHA256)
      (record.writer, record.epoch, record.copy) = (writer, epoch, mark)
      // Recorded before the first put: whatever its outcome, this ledger knows its own writer.
      try record.write(to: directory)
      let step = state.completeStep(epoch: epoch, writer: writer, atMs: options.nowMs())
      let outcome: PutOutcome
      do throws(ObjectStoreError) {
        outcome = try store.create(step.key, .bytes(step.header))
      } catch { throw CopyError.store(error) }
      try source.catchUp()
      if outcome == .stored { return (step, state.newest) }
      // The put succeeded in a retry, or in an earlier run whose put arrived late.
      if let first = try firstStep(of: writer, after: state.newest.number) {
        return (first, state.newest)
      }
      attempt += 1
      if attempt < Self.attemptsWithFetch { try installContents() }
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
  /// A step that names everything that the copy holds, and changes none of it.
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
