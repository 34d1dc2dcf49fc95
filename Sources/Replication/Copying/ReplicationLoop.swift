// The replication thread: reads the log, decides what the next step holds, and creates it.
import Base
import Ledger

/// The state of the replication thread. Sendable because only that thread uses it; shared state is in the mailbox.
///
/// It keeps one step in memory and nothing that grows while the store is unavailable: the backlog is the log.
final class ReplicationLoop: @unchecked Sendable {
  private let directory: LedgerDirectory
  private let publisher: StepPublisher
  private let options: ReplicatorOptions
  private let exchange: ReplicationMailbox
  private let content: UploadedFiles
  private var reader: LogReader?
  private var hasProbed = false

  private var isOpen = false
  private var record: ReplicationRecord?
  private var state: CopyState?
  /// Faults of the steps: the state is incomplete, and the next step must name everything that the copy holds.
  private var lostSteps: [CopyFault] = []
  private var pending: PendingStep?
  /// Whether the copy was found to belong to this writer.
  private var hasOpened = false
  private var schedule: StepSchedule
  private var lookedAtMs: Int64 = 0
  private var lagBytes = 0
  private var lagPosition: Position?

  private var housekeeping: CopyHousekeeping
  /// Whether the copy has lost something that was not found again yet.
  private var hasLost = false

  init(
    _ directory: LedgerDirectory, _ store: any ObjectStore, _ options: ReplicatorOptions,
    _ exchange: ReplicationMailbox
  ) {
    self.directory = directory
    publisher = StepPublisher(store: store, directory: directory)
    self.options = options
    self.exchange = exchange
    content = UploadedFiles(directory)
    schedule = StepSchedule(
      StepSchedule.Limits(
        delayMs: options.delayMs, pollMs: options.pollMs,
        waitingByteCount: options.waitingByteCount, retryMsMax: options.retryMsMax))
    housekeeping = CopyHousekeeping(
      deletionPauseMs: options.deletionPauseMs, sweepMs: options.sweepMs,
      replacedPauseMs: options.workMs)
  }

  func run() {
    while let waitMs = turn() {
      if waitMs <= 0 { continue }
      _ = exchange.monitor.wait(on: ReplicationMailbox.Condition.wake, limitMs: waitMs) {
        state -> Void? in
        guard state.isWoken else { return nil }
        state.isWoken = false
        return ()
      }
    }
    writeRecord()
    try? content.saveDigests()
    exchange.monitor.withLock { state in
      state.hasEnded = true
      if state.status.ending == nil { state.status.mode = .stopped }
      state.tasks = []
    }
    for condition in [
      ReplicationMailbox.Condition.progress, ReplicationMailbox.Condition.work,
    ] { exchange.monitor.broadcast(condition) }
  }

  // MARK: Turn

  private struct PendingRequests {
    var demand: Position
    var wantsAll: Bool
    var stopAtMs: Int64?
    var lookCount: Int
    var workDemand: Int
    var confirmedWorkDemand: Int
  }

  /// Does all work that is possible now. Returns how long to wait before the next turn; nil to stop.
  private func turn() -> Int64? {
    let (wishes, results, sample) = exchange.monitor.withLock { state in
      state.lookCount += 1
      defer { (state.results, state.sample) = ([], nil) }
      return (
        PendingRequests(
          demand: state.demand, wantsAll: state.wantsAll, stopAtMs: state.stopAtMs,
          lookCount: state.lookCount, workDemand: state.workDemand,
          confirmedWorkDemand: state.confirmedWorkDemand),
        state.results, state.sample
      )
    }
    let nowMs = MonotonicClock.nowMs()
    if let stopAtMs = wishes.stopAtMs, nowMs >= stopAtMs { return nil }
    if let sample { housekeeping.verify(sample: sample) }
    for result in results { apply(result, nowMs) }
    recordMissing()
    do throws(CopyError) {
      try refresh(nowMs, wishes)
      if try open(nowMs) {
        try startUploads()
        startHousekeeping(nowMs)
        try publish(nowMs, wishes)
      }
    } catch {
      if case .store(let error) = error, error.kind == .cancelled { return nil }
      failed(error, nowMs)
    }
    if exchange.monitor.withLock({ $0.status.ending != nil }) { return nil }
    if schedule.mustWriteRecord(isAwaited: wishes.wantsAll, nowMs) { writeRecord() }
    updateStatus(wishes, nowMs)
    if wishes.stopAtMs != nil, let state, let reader, state.size >= reader.head.size { return nil }
    return schedule.pauseMs(nowMs)
  }

  private func failed(_ failure: CopyError, _ nowMs: Int64) {
    var retryAfterMs: Int?
    switch failure {
    case .store(let error):
      retryAfterMs = error.retryAfterMs
      // The store's mark may be what is lost. Opening the copy detects that.
      if publisher.store is any MarkedStore, isOpen {
        isOpen = false
        pending = nil
      }
      exchange.failed(.steps, error.description, error.kind)
    default: exchange.failed(.steps, failure.description, nil)
    }
    schedule.failed(retryAfterMs: retryAfterMs, nowMs)
  }

  private func ledger<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .ledger(error) }
  }

  private func store<Result>(
    _ body: () throws(ObjectStoreError) -> Result
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .store(error) }
  }

  /// Reads what was appended, and other changes on disk.
  private func refresh(_ nowMs: Int64, _ wishes: PendingRequests) throws(CopyError) {
    if !schedule.mayTry(nowMs), reader == nil { return }
    try ledger { () throws(LedgerError) in
      let reader: LogReader
      if let known = self.reader {
        reader = known
        try reader.refresh()
      } else {
        reader = try LogReader(directory, .durable)
        self.reader = reader
      }
      if let damage = reader.damage { throw damage }
      if wishes.wantsAll { content.checkSoon() }
      try content.observe(reader, nowMs: nowMs, checkMs: options.checkMs)
      try content.observeWork(
        nowMs: nowMs, pauseMs: options.workMs, demand: wishes.workDemand,
        wantsAll: wishes.wantsAll)
    }
    lookedAtMs = nowMs
    schedule.observed(waitingEvents: hasWaitingEvents, atMs: nowMs)
  }

  private var hasWaitingEvents: Bool { reader.map { $0.head.size > state?.size ?? 0 } ?? false }

  // MARK: Opening

  /// False until the copy can be read.
  private func open(_ nowMs: Int64) throws(CopyError) -> Bool {
    if isOpen { return true }
    guard schedule.mayTry(nowMs), let reader else { return false }
    let known = try ledger { () throws(LedgerError) in try ReplicationRecord(of: directory) }
    let mark = try store { () throws(ObjectStoreError) in
      try CopyMark.require(of: publisher.store, for: known)
    }
    if !hasProbed {
      do throws(StoreProbe.Failure) { try options.probe(publisher.store) } catch {
        switch error {
        case .unanswered(let error): throw .store(error)
        case .unfit:
          end(.refused("\(publisher.store.name): \(error)"))
          return false
        }
      }
      hasProbed = true
    }
    switch try publisher.open(reader, isOwner: hasOpened) {
    case .ended(let ending):
      end(ending)
      return false
    case .opened(let record, let state, let lost):
      self.record = record
      self.record?.copy = mark
      self.state = state
      lostSteps = lost
      if !lost.isEmpty { report(lostSteps: lost) }
      if let state {
        content.recordState(state)
        self.record?.advance(to: state.newest, sha256: state.newestSHA256)
        schedule.recordChanged()
      }
      pending = nil
      isOpen = true
      hasOpened = true
      recordMissing()
      succeeded()
      housekeeping.opened(nowMs)
      exchange.change { status in
        status.mode = .copying
        status.epoch = record.epoch
        status.step = state?.newest.number
        status.confirmedSize = state?.size ?? 0
      }
      return true
    }
  }

  private func succeeded() {
    schedule.succeeded()
    exchange.succeeded(.steps)
  }

  /// Ends replication permanently.
  private func end(_ ending: ReplicationEnding) {
    exchange.change { status in
      status.ending = ending
      if case .fenced = ending { status.mode = .fenced } else { status.mode = .refused }
    }
    options.notice("replication has ended: \(ending)")
    guard case .fenced(let step) = ending else { return }
    do throws(LedgerError) {
      try Standby(reason: .fenced, step: step.number, epoch: step.epoch).write(to: directory)
    } catch {
      options.notice("the note that another writer has taken over can't be written: \(error)")
    }
    options.onFenced(ending.ledgerError(operation: "append", object: directory.path))
  }

  // MARK: Steps

  private func publish(_ nowMs: Int64, _ wishes: PendingRequests) throws(CopyError) {
    schedule.hasMore = false
    guard schedule.mayTry(nowMs), let record else { return }
    if pending == nil { pending = try ledger { () throws(LedgerError) in try step(nowMs, wishes) } }
    guard let pending else { return }
    let publication = try store { () throws(ObjectStoreError) in
      try publisher.publish(pending, as: record)
    }
    switch publication {
    case .confirmed: confirmed(pending)
    case .ended(let ending): end(ending)
    case .mustReopen:
      isOpen = false
      self.pending = nil
      schedule.hasMore = true
    }
  }

  private func confirmed(_ step: PendingStep) {
    pending = nil
    let before = state?.frames ?? []
    var replaced = CopyState.Replaced()
    do throws(CopyFault) {
      if var next = state {
        state = nil
        replaced = try next.apply(step.step, sha256: step.sha256)
        state = next
      } else {
        state = try CopyState(complete: step.step, sha256: step.sha256)
      }
    } catch {
      return end(.refused("a step was made that does not follow from the one before: \(error)"))
    }
    guard let state else { return }
    if step.step.isComplete || step.step.namesObjects { content.recordState(state) }
    housekeeping.confirmed(step.step, replaced, framesBefore: before, state, lookedAtMs)
    if !lostSteps.isEmpty {
      lostSteps = []
      housekeeping.sweepSoon()
    }
    record?.advance(to: step.step, sha256: step.sha256)
    schedule.recordChanged()
    schedule.confirmed(waitingEvents: hasWaitingEvents, seenAtMs: lookedAtMs)
    exchange.succeeded(.steps)
    exchange.change { status in
      status.step = step.step.number
      status.confirmedSize = step.step.size
      status.stepCount += 1
      status.storedObjectCount += 1
      status.storedByteCount += step.bytes.count
    }
  }

  /// The next step, if one is due.
  private func step(_ nowMs: Int64, _ wishes: PendingRequests) throws(LedgerError) -> PendingStep? {
    guard let reader, let record else { return nil }
    guard let state else { return try firstStep(record) }
    if lostSteps.isEmpty { lostSteps = content.unrecoverable }
    guard lostSteps.isEmpty else { return try wholeStep(state, reader, record) }
    let current = ContentLayout(state)
    let layout = content.layout(after: state)
    let identity = content.newIdentity
    let work = content.newWork
    let checkpoints = content.newCheckpoints(upTo: max(state.size, layout.end))
    let hasContent = layout != current || identity != nil || work != nil || !checkpoints.isEmpty
    let hasWaited = schedule.contentIsDue(hasContent: hasContent, nowMs)
    let framesAreDue = try areFramesDue(state, reader, nowMs, wishes)
    let contentIsDue =
      hasContent
      && (layout.end > state.size || wishes.wantsAll || framesAreDue
        || wishes.workDemand > wishes.confirmedWorkDemand
        || hasWaited)
    let isNeeded = housekeeping.needsStep(isAwaited: wishes.wantsAll, nowMs)
    guard framesAreDue || contentIsDue || isNeeded else { return nil }
    // A layout that the frames do not continue yet is named later.
    for candidate in layout == current ? [nil] : [layout, nil] {
      let end = max(state.size, candidate?.end ?? 0)
      var frames: CopyableFrames?
      if framesAreDue {
        try reader.syncTails()
        frames = try reader.frames(from: end, byteCountMax: options.stepByteCount)
      }
      var step = Step(
        number: state.newest.number + 1, epoch: record.epoch, writer: record.writer,
        ledger: state.newest.ledger, atMs: Timestamp.now(), previous: state.newestSHA256,
        size: frames?.end ?? end, root: state.root)
      if step.size > state.size { step.root = try reader.frontier(at: step.size).root }
      step.identity = identity
      step.work = work
      step.checkpoints = checkpoints.filter { $0.size <= step.size }
      step.isComplete =
        state.stepsSinceComplete + 1 >= options.stepsBetweenComplete
        || state.objectsSinceComplete >= CopyLayout.objectCountMax / 2
      step.frames = frames.map { state.description(of: $0, behind: candidate ?? current) }
      if candidate != nil || step.isComplete {
        guard step.lead(from: state, to: candidate ?? current) else { continue }
      }
      guard step.namesObjects || step.isComplete || step.frames != nil || isNeeded else {
        return nil
      }
      return try pending(step, frames?.bytes ?? [])
    }
    return nil
  }

  private func wholeStep(
    _ state: CopyState, _ reader: LogReader, _ record: ReplicationRecord
  ) throws(LedgerError) -> PendingStep? {
    guard
      let (step, frames) = try content.stored(after: state)?.wholeStep(
        after: state, reader, as: record, frameByteCount: options.stepByteCount)
    else { return nil }
    return try pending(step, frames)
  }

  private func pending(_ step: Step, _ frames: [UInt8]) throws(LedgerError) -> PendingStep? {
    let pending = PendingStep(step, frames: frames)
    guard pending.header.count <= CopyLayout.stepHeaderByteCountMax else {
      end(.refused("the copy has more objects than a step can name"))
      return nil
    }
    return pending
  }

  /// Holds nothing but the identity: the writer owns the sequence before it stores a large log, and a start that is
  /// interrupted continues with what is named by then.
  private func firstStep(_ record: ReplicationRecord) throws(LedgerError) -> PendingStep? {
    guard let identity = content.newIdentity,
      let ledger = UUID16(directory.identity.id.description)
    else { return nil }
    var step = Step(
      number: 0, epoch: record.epoch, writer: record.writer, ledger: ledger,
      atMs: Timestamp.now(), previous: Step.noDigest, size: 0, root: Frontier().root)
    step.isComplete = true
    step.identity = identity
    return PendingStep(step, frames: [])
  }

  private func areFramesDue(
    _ state: CopyState, _ reader: LogReader, _ nowMs: Int64, _ wishes: PendingRequests
  ) throws(LedgerError) -> Bool {
    let waiting = reader.head.size - state.size
    lagBytes = waiting > 0 ? try reader.byteCount(from: state.size) : 0
    guard waiting > 0 else { return false }
    if wishes.demand > state.size || wishes.wantsAll || wishes.stopAtMs != nil { return true }
    return schedule.framesAreDue(lagByteCount: lagBytes, nowMs)
  }

  // MARK: Content and deletions

  private func startUploads() throws(CopyError) {
    let uploads = try ledger { () throws(LedgerError) in
      try content.uploads(isOwner: state != nil, isBroken: !lostSteps.isEmpty)
    }
    for upload in uploads { exchange.add(.upload(upload)) }
  }

  private func apply(_ result: CopyResult, _ nowMs: Int64) {
    switch result {
    case .uploaded(let upload, let outcome):
      if case .failure(let error) = outcome, error.kind != .inputOutput {
        exchange.failed(.content, error.description, nil)
      }
      content.apply(upload, outcome, deleting: housekeeping.cleanup?.keys ?? [])
    case .cleaned(let left):
      guard let begun = housekeeping.finishCleanup(left, nowMs) else { return }
      content.apply(begun, left)
      if !left.damaged.isEmpty { report(lost: left.damaged) }
    case .swept(let sweep, let found): apply(sweep, found, nowMs)
    }
  }

  /// Stores again what a sweep has found missing or wrong and is still needed.
  private func apply(_ sweep: Sweep, _ found: SweepFinding?, _ nowMs: Int64) {
    guard let state else { return }
    let lost = content.markLost(found?.lost ?? [])
    let needed = Set(state.frames.map(\.step))
    let complete = state.newest.number - state.stepsSinceComplete
    let steps = (found?.lostSteps ?? []).filter { fault in
      guard let number = CopyLayout.stepNumber(fault.object) else { return false }
      return number >= complete || needed.contains(number)
    }
    housekeeping.finishSweep(
      sweep, found, hasLosses: !lost.isEmpty || !steps.isEmpty, newest: state.newest.number, nowMs)
    if !lost.isEmpty { report(lost: lost) }
    if let found, case .sample = sweep.reading {
      exchange.change { status in
        status.verifiedCount += found.readCount
        status.verifiedByteCount += found.readByteCount
      }
    }
    if !steps.isEmpty { mend(steps, from: complete) }
    guard found != nil, lost.isEmpty, steps.isEmpty, lostSteps.isEmpty, content.lost.isEmpty else {
      return
    }
    record?.wholeAtMs = sweep.startedAtMs
    schedule.recordChanged()
    exchange.change { $0.wholeAtMs = sweep.startedAtMs }
    exchange.succeeded(.loss)
    if hasLost { options.notice("the copy was found whole again") }
    hasLost = false
  }

  /// Makes the next step a complete one.
  private func mend(_ steps: [CopyFault], from complete: Int) {
    if steps.contains(where: { CopyLayout.stepNumber($0.object) ?? 0 >= complete }) {
      // The newest step may be among them; then its number is free.
      writeRecord()
      isOpen = false
      pending = nil
    } else {
      lostSteps = steps
      report(lostSteps: steps)
    }
  }

  private func report(lost: [ExpectedObject]) {
    hasLost = true
    exchange.change { $0.lostCount += lost.count }
    let names = lost.prefix(3).map(\.key).joined(separator: ", ")
    let further = lost.count > 3 ? " and \(lost.count - 3) more" : ""
    let cause = "the store does not have what was stored: \(names)\(further)"
    options.notice("\(cause); it is stored again from this disk")
    // A store that repeatedly loses the same object can't be trusted with more.
    if housekeeping.isHopeless { exchange.failed(.loss, cause, .unexpected) }
  }

  private func report(lostSteps: [CopyFault]) {
    hasLost = true
    exchange.change { $0.lostCount += lostSteps.count }
    options.notice(
      "steps of the copy are lost or damaged; a complete one takes their place: "
        + lostSteps.prefix(3).map(\.description).joined(separator: "; "))
  }

  /// Nothing is acknowledged while something is known to be missing.
  private func recordMissing() {
    let count = content.lost.count + lostSteps.count
    exchange.monitor.withLock { $0.status.missingCount = count }
  }

  private func startHousekeeping(_ nowMs: Int64) {
    // A step with an unknown outcome may name what would be deleted; so may lost steps.
    guard pending == nil, lostSteps.isEmpty, let state else { return }
    let mended = content.removeMended()
    if !mended.isEmpty { housekeeping.mended(mended) }
    let sizes = content.sizes
    if let sweep = housekeeping.nextSweep(
      state, emptiedBefore: record?.emptiedBefore, sizes: sizes, nowMs)
    {
      exchange.add(.sweep(sweep))
    }
    guard
      var cleanup = housekeeping.nextCleanup(
        state, orphans: content.removeOrphans(), nowMs, mayDelete: content.mayDelete)
    else { return }
    cleanup.expected = content.expected(
      replacing: cleanup.keys, frames: cleanup.steps.map(\.positions), in: state)
    housekeeping.started(cleanup)
    exchange.add(.clean(cleanup))
  }

  // MARK: Record and status

  private func writeRecord() {
    guard schedule.recordIsDue, var record, let state else { return }
    if let first = housekeeping.emptiedBefore(state) { record.emptiedBefore = first }
    schedule.recordBegins(MonotonicClock.nowMs())
    do throws(LedgerError) {
      try record.write(to: directory)
      try content.saveDigests()
      self.record = record
      schedule.recordIsWritten()
      exchange.succeeded(.record)
    } catch { exchange.failed(.record, error.description, nil) }
  }

  private func updateStatus(_ wishes: PendingRequests, _ nowMs: Int64) {
    recordMissing()
    guard let reader else { return }
    let size = reader.head.size
    let known = state?.size ?? exchange.monitor.withLock { $0.status.confirmedSize }
    var oldest: Int64?
    if size > known {
      oldest =
        lagPosition == known
        ? exchange.monitor.withLock { $0.status.oldestUnconfirmedAtMs }
        : try? reader.recordedAtMs(of: known)
      // No step is planned while another is being created, however long that takes.
      if lagPosition != known || state == nil || pending != nil {
        lagBytes = (try? reader.byteCount(from: known)) ?? lagBytes
      }
      lagPosition = known
    } else {
      lagPosition = nil
    }
    var isSettled = wishes.wantsAll && isOpen && pending == nil && housekeeping.isIdle(nowMs)
    isSettled = isSettled && lostSteps.isEmpty && size == known && !schedule.recordIsDue
    isSettled = isSettled && state.map { content.isSettled($0) } ?? false
    let confirmedWork = state == nil || pending != nil ? 0 : content.confirmedWorkDemand
    let replacedCount = housekeeping.replacedCount
    exchange.monitor.withLock { shared in
      shared.status.size = size
      shared.status.lagBytes = size > known ? lagBytes : 0
      shared.status.oldestUnconfirmedAtMs = oldest
      shared.status.replacedCount = replacedCount
      shared.confirmedWorkDemand = max(shared.confirmedWorkDemand, confirmedWork)
      // Do not wait for what can't be deleted now.
      if isSettled, shared.failures[.loss] == nil,
        replacedCount == 0 || shared.failures[.deletions] != nil
      {
        shared.settledLook = wishes.lookCount
      }
    }
    exchange.monitor.broadcast(ReplicationMailbox.Condition.progress)
  }
}
