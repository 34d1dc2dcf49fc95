// The thread that makes steps: looks at the log, decides what the next step holds, and creates it.
import Base
import Ledger
import ObjectStore

/// What the copying thread knows. Used by that thread alone; what it shares is in the exchange.
///
/// It keeps one step in memory, and nothing that grows while the store is away: what waits is the log.
final class CopyingThread: @unchecked Sendable {
  private enum Limit {
    /// How often the record is written at most: it may lag, since what it says stays true.
    static let recordMs: Int64 = 1_000
    /// Content waits for more to be named with it for this part of the delay.
    static let contentDelayDivisor: Int64 = 2
    static let cleanupCount = 200
    /// More than this is left to the sweep.
    static let wasteCount = 20_000
    /// How soon something is tried again that needed something else first.
    static let damagePauseMs: Int64 = 1_000
  }

  private let directory: LedgerDirectory
  private let publisher: StepPublisher
  private let options: ReplicatorOptions
  private let exchange: ReplicationExchange
  private let content: CopyContent
  private var reader: LogReader?
  private var hasProbed = false

  private var isOpen = false
  private var record: ReplicationRecord?
  private var state: CopyState?
  private var pending: PendingStep?
  /// Whether the copy was found to be this writer's.
  private var hasOpened = false
  private var backoff = Backoff()
  private var retryAtMs: Int64 = 0

  /// Since when events wait, and since when content could be named; nil if none does.
  private var waitingSinceMs: Int64?
  private var contentSinceMs: Int64?
  private var lookedAtMs: Int64 = 0
  private var lagBytes = 0
  private var lagPosition: Position?

  private var recordIsDue = false
  private var recordWrittenMs: Int64 = 0

  private var wasteKeys: Set<String> = []
  private var wasteSteps: [Int: SupersededStep] = [:]
  private var cleanup: Cleanup?
  private var cleanupAtMs: Int64 = 0
  /// The short headers of steps whose frames are still needed.
  private var headers: [Int: [UInt8]] = [:]

  private var sweep: Sweep?
  private var sweepAtMs: Int64 = 0
  private var hasSwept = false
  /// What a sweep found. It may be deleted once a later step was created: no other writer has stored it then.
  private var finding: (SweepFinding, newest: Int)?

  init(
    _ directory: LedgerDirectory, _ store: any ObjectStore, _ options: ReplicatorOptions,
    _ exchange: ReplicationExchange
  ) {
    self.directory = directory
    publisher = StepPublisher(store: store, directory: directory)
    self.options = options
    self.exchange = exchange
    content = CopyContent(directory)
  }

  func run() {
    while let waitMs = turn() {
      if waitMs <= 0 { continue }
      _ = exchange.monitor.wait(on: ReplicationExchange.Condition.wake, limitMs: waitMs) {
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
      ReplicationExchange.Condition.progress, ReplicationExchange.Condition.work,
    ] { exchange.monitor.broadcast(condition) }
  }

  // MARK: A turn

  private struct Wishes {
    var demand: Position
    var wantsAll: Bool
    var stopAtMs: Int64?
    var lookCount: Int
    var workDemand: Int
    var confirmedWorkDemand: Int
  }

  /// Does what can be done now. Returns how long to wait before the next turn; nil to end.
  private func turn() -> Int64? {
    let (wishes, results) = exchange.monitor.withLock { state in
      state.lookCount += 1
      defer { state.results = [] }
      return (
        Wishes(
          demand: state.demand, wantsAll: state.wantsAll, stopAtMs: state.stopAtMs,
          lookCount: state.lookCount, workDemand: state.workDemand,
          confirmedWorkDemand: state.confirmedWorkDemand),
        state.results
      )
    }
    let nowMs = MonotonicClock.nowMs()
    if let stopAtMs = wishes.stopAtMs, nowMs >= stopAtMs { return nil }
    for result in results { take(result, nowMs) }
    do throws(StepPublisher.Failure) {
      try look(nowMs, wishes)
      if try open(nowMs) {
        try startUploads()
        startDeletions(nowMs)
        try publish(nowMs, wishes)
      }
    } catch {
      if case .store(let error) = error, error.kind == .cancelled { return nil }
      failed(error, nowMs)
    }
    if exchange.monitor.withLock({ $0.status.ending != nil }) { return nil }
    if recordIsDue, wishes.wantsAll || nowMs - recordWrittenMs >= Limit.recordMs {
      writeRecord()
    }
    tell(wishes, nowMs)
    if wishes.stopAtMs != nil, let state, let reader, state.size >= reader.head.size { return nil }
    return pauseMs(nowMs, wishes)
  }

  private func pauseMs(_ nowMs: Int64, _ wishes: Wishes) -> Int64 {
    if retryAtMs > nowMs { return max(1, min(options.pollMs, retryAtMs - nowMs)) }
    // A step that was just made may be followed by the next at once.
    if hasMore { return 0 }
    return options.pollMs
  }

  private var hasMore = false

  private func failed(_ failure: StepPublisher.Failure, _ nowMs: Int64) {
    hasMore = false
    var retryAfterMs: Int?
    switch failure {
    case .store(let error):
      retryAfterMs = error.retryAfterMs
      exchange.failed(.steps, error.description, error.kind)
    case .ledger(let error): exchange.failed(.steps, error.description, nil)
    }
    retryAtMs = nowMs + Int64(min(backoff.next(retryAfterMs: retryAfterMs), options.retryMsMax))
  }

  private func ledger<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(StepPublisher.Failure) -> Result {
    do { return try body() } catch { throw .ledger(error) }
  }

  private func store<Result>(
    _ body: () throws(ObjectStoreError) -> Result
  ) throws(StepPublisher.Failure) -> Result {
    do { return try body() } catch { throw .store(error) }
  }

  /// Reads what was appended, and what else has changed on disk.
  private func look(_ nowMs: Int64, _ wishes: Wishes) throws(StepPublisher.Failure) {
    if retryAtMs > nowMs && reader == nil { return }
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
    noteWaiting()
  }

  private func noteWaiting() {
    guard let reader, reader.head.size > state?.size ?? 0 else {
      waitingSinceMs = nil
      return
    }
    if waitingSinceMs == nil { waitingSinceMs = lookedAtMs }
  }

  // MARK: Opening

  /// False as long as the copy could not be read.
  private func open(_ nowMs: Int64) throws(StepPublisher.Failure) -> Bool {
    if isOpen { return true }
    guard nowMs >= retryAtMs, let reader else { return false }
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
    case .opened(let record, let state):
      self.record = record
      self.state = state
      if let state {
        content.takeState(state)
        self.record = ReplicationRecord(state.newest, sha256: state.newestSHA256)
        self.record?.emptiedBefore = record.emptiedBefore
        recordIsDue = true
      }
      pending = nil
      isOpen = true
      hasOpened = true
      succeeded()
      // What steps have replaced that this process has not made is not known.
      hasSwept = false
      sweepAtMs = nowMs
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
    backoff.reset()
    retryAtMs = 0
    exchange.succeeded(.steps)
  }

  /// Ends replication for good.
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

  private func publish(_ nowMs: Int64, _ wishes: Wishes) throws(StepPublisher.Failure) {
    hasMore = false
    guard nowMs >= retryAtMs, let record else { return }
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
      hasMore = true
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
    if step.step.frames != nil, let header = step.step.shortHeader {
      headers[step.step.number] = header
    }
    if step.step.isComplete || step.step.namesObjects { content.takeState(state) }
    wasteKeys.formUnion(replaced.keys)
    let dropped = Set(replaced.steps)
    for frames in before where dropped.contains(frames.step) {
      wasteSteps[frames.step] = SupersededStep(
        number: frames.step, positions: frames.frames.first..<frames.frames.end,
        header: headers.removeValue(forKey: frames.step))
    }
    takeFinding(after: step.step.number)
    let emptiedBefore = record?.emptiedBefore
    record = ReplicationRecord(step.step, sha256: step.sha256)
    record?.emptiedBefore = emptiedBefore
    recordIsDue = true
    waitingSinceMs = nil
    contentSinceMs = nil
    noteWaiting()
    hasMore = true
    succeeded()
    exchange.change { status in
      status.step = step.step.number
      status.confirmedSize = step.step.size
      status.stepCount += 1
      status.storedObjectCount += 1
      status.storedByteCount += step.bytes.count
    }
  }

  /// The next step, if one is due.
  private func step(_ nowMs: Int64, _ wishes: Wishes) throws(LedgerError) -> PendingStep? {
    guard let reader, let record else { return nil }
    guard let state else { return try firstStep(record) }
    let current = ContentLayout(state)
    let layout = content.layout(after: state)
    let identity = content.newIdentity
    let work = content.newWork
    let checkpoints = content.newCheckpoints(upTo: max(state.size, layout.end))
    let hasContent = layout != current || identity != nil || work != nil || !checkpoints.isEmpty
    if hasContent, contentSinceMs == nil { contentSinceMs = nowMs }
    if !hasContent { contentSinceMs = nil }
    let framesAreDue = try areFramesDue(state, reader, nowMs, wishes)
    let contentIsDue =
      hasContent
      && (layout.end > state.size || wishes.wantsAll || framesAreDue
        || wishes.workDemand > wishes.confirmedWorkDemand
        || nowMs - (contentSinceMs ?? nowMs) >= options.delayMs / Limit.contentDelayDivisor)
    guard framesAreDue || contentIsDue || finding != nil else { return nil }
    // A layout that frames do not continue yet is named later.
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
      step.frames = frames.map { copied($0, after: state, candidate ?? current) }
      if candidate != nil || step.isComplete {
        guard step.lead(from: state, to: candidate ?? current) else { continue }
      }
      guard step.namesObjects || step.isComplete || step.frames != nil || finding != nil else {
        return nil
      }
      return try pending(step, frames?.bytes ?? [])
    }
    return nil
  }

  private func pending(_ step: Step, _ frames: [UInt8]) throws(LedgerError) -> PendingStep? {
    let pending = PendingStep(step, frames: frames)
    guard pending.header.count <= CopyLayout.stepHeaderByteCountMax else {
      end(.refused("the copy has more objects than a step can name"))
      return nil
    }
    return pending
  }

  /// Holds nothing but the identity: whoever creates it owns the sequence before it stores a large log, and a start
  /// that is interrupted goes on with what is named by then.
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
    _ state: CopyState, _ reader: LogReader, _ nowMs: Int64, _ wishes: Wishes
  ) throws(LedgerError) -> Bool {
    let waiting = reader.head.size - state.size
    lagBytes = waiting > 0 ? try reader.byteCount(from: state.size) : 0
    guard waiting > 0 else { return false }
    if wishes.demand > state.size || wishes.wantsAll || wishes.stopAtMs != nil { return true }
    if lagBytes >= options.waitingByteCount { return true }
    return nowMs - (waitingSinceMs ?? nowMs) >= options.delayMs - options.pollMs
  }

  /// The frames as a step describes them. They join the tail of those before them: a copy's tails need not be those of
  /// this disk, where the log was laid out anew after another writer's.
  private func copied(
    _ frames: CopyableFrames, after state: CopyState, _ layout: ContentLayout
  ) -> CopiedFrames {
    let last = state.frames.last { $0.frames.end > layout.end }?.frames
    var tail = frames.tail == frames.first ? frames.tail : frames.first
    if let last, last.tail >= frames.tail || frames.tail < frames.first {
      tail = max(last.tail, frames.tail)
    }
    return CopiedFrames(
      tail: tail, first: frames.first, end: frames.end, byteCount: frames.bytes.count,
      sha256: frames.bytes.withUnsafeBytes { SHA256.hash($0) })
  }

  // MARK: Content and deletions

  private func startUploads() throws(StepPublisher.Failure) {
    let uploads = try ledger { () throws(LedgerError) in try content.uploads(isOwner: state != nil)
    }
    for upload in uploads { exchange.add(.upload(upload)) }
  }

  private func take(_ result: CopyResult, _ nowMs: Int64) {
    switch result {
    case .uploaded(let upload, let outcome):
      if case .failure(let error) = outcome, error.kind != .inputOutput {
        exchange.failed(.content, error.description, nil)
      }
      content.take(upload, outcome, deleting: cleanup?.keys ?? [])
    case .cleaned(let left):
      guard let cleanup else { return }
      content.take(cleanup, left)
      self.cleanup = nil
      wasteKeys.formUnion(left.keys)
      for step in left.steps { wasteSteps[step.number] = step }
      if !left.damaged.isEmpty {
        cleanupAtMs = nowMs + Limit.damagePauseMs
        let names = left.damaged.map(\.key).joined(separator: ", ")
        options.notice("the store does not return what was stored; it is stored again: \(names)")
      } else if !left.isDone {
        cleanupAtMs = nowMs + options.deletionPauseMs
      }
    case .swept(_, let found):
      sweep = nil
      guard let found, let state else {
        sweepAtMs = nowMs + options.deletionPauseMs
        return
      }
      sweepAtMs = nowMs + (found.isPartial ? options.deletionPauseMs : options.sweepMs)
      if found.keys.isEmpty, found.steps.isEmpty { hasSwept = hasSwept || !found.isPartial }
      if !found.keys.isEmpty || !found.steps.isEmpty { finding = (found, state.newest.number) }
    }
  }

  /// What a sweep found may go once a step was created after it: another writer that had taken over before, and had
  /// stored some of it, would have fenced this one.
  private func takeFinding(after number: Int) {
    guard let (found, newest) = finding, number > newest else { return }
    finding = nil
    hasSwept = hasSwept || !found.isPartial
    let needed = Set(state?.frames.map(\.step) ?? [])
    wasteKeys.formUnion(found.keys)
    for step in found.steps where !needed.contains(step.number) {
      wasteSteps[step.number] = step
    }
  }

  private func startDeletions(_ nowMs: Int64) {
    // A step whose fate is not known may name what would be deleted.
    guard pending == nil else { return }
    wasteKeys.formUnion(content.takeOrphans())
    guard let state else { return }
    if wasteKeys.count + wasteSteps.count > Limit.wasteCount {
      wasteKeys = []
      wasteSteps = [:]
      headers = [:]
      sweepAtMs = nowMs + options.deletionPauseMs
      hasSwept = false
    }
    if sweep == nil, finding == nil, nowMs >= sweepAtMs {
      let next = Sweep(state: state, firstStep: firstUnemptied(state))
      sweep = next
      exchange.add(.sweep(next))
    }
    guard cleanup == nil, nowMs >= cleanupAtMs, !wasteKeys.isEmpty || !wasteSteps.isEmpty else {
      return
    }
    var next = Cleanup()
    for key in wasteKeys.sorted().prefix(Limit.cleanupCount) {
      wasteKeys.remove(key)
      if content.mayDelete(key) { next.keys.append(key) }
    }
    let needed = Set(state.frames.map(\.step))
    for number in wasteSteps.keys.sorted().prefix(Limit.cleanupCount) {
      guard let step = wasteSteps.removeValue(forKey: number), !needed.contains(number) else {
        continue
      }
      next.steps.append(step)
    }
    if next.isDone { return }
    next.expected = content.expected(
      replacing: next.keys, frames: next.steps.map(\.positions), in: state)
    cleanup = next
    exchange.add(.clean(next))
  }

  /// The step from which on superseded frames may be left.
  private func firstUnemptied(_ state: CopyState) -> Int {
    record?.emptiedBefore
      ?? max(
        0,
        state.newest.number - state.stepsSinceComplete - CopyLayout.stepsBetweenCompleteMax)
  }

  // MARK: Record and status

  private func writeRecord() {
    guard recordIsDue, var record, let state else { return }
    if hasSwept {
      var first = state.frames.first?.step ?? state.newest.number + 1
      first = min(first, wasteSteps.keys.min() ?? first)
      first = min(first, cleanup?.steps.map(\.number).min() ?? first)
      record.emptiedBefore = first
    }
    recordWrittenMs = MonotonicClock.nowMs()
    do throws(LedgerError) {
      try record.write(to: directory)
      try content.saveDigests()
      self.record = record
      recordIsDue = false
      exchange.succeeded(.record)
    } catch { exchange.failed(.record, error.description, nil) }
  }

  private func tell(_ wishes: Wishes, _ nowMs: Int64) {
    guard let reader else { return }
    let size = reader.head.size
    let known = state?.size ?? exchange.monitor.withLock { $0.status.confirmedSize }
    var oldest: Int64?
    if size > known {
      oldest =
        lagPosition == known
        ? exchange.monitor.withLock { $0.status.oldestUnconfirmedAtMs }
        : try? reader.recordedAtMs(of: known)
      // No step is planned while one is under way, however long that takes.
      if lagPosition != known || state == nil || pending != nil {
        lagBytes = (try? reader.byteCount(from: known)) ?? lagBytes
      }
      lagPosition = known
    } else {
      lagPosition = nil
    }
    var isSettled = wishes.wantsAll && pending == nil && sweep == nil && finding == nil
    isSettled = isSettled && cleanup == nil && size == known && !recordIsDue
    isSettled = isSettled && state.map { content.isSettled($0) } ?? false
    let confirmedWork = state == nil || pending != nil ? 0 : content.confirmedWorkDemand
    let replacedCount = wasteKeys.count + wasteSteps.count + (cleanup?.count ?? 0)
    exchange.monitor.withLock { shared in
      shared.status.size = size
      shared.status.lagBytes = size > known ? lagBytes : 0
      shared.status.oldestUnconfirmedAtMs = oldest
      shared.status.replacedCount = replacedCount
      shared.confirmedWorkDemand = max(shared.confirmedWorkDemand, confirmedWork)
      // What can't be deleted now is not waited for.
      if isSettled, replacedCount == 0 || shared.failures[.deletions] != nil {
        shared.settledLook = wishes.lookCount
      }
    }
    exchange.monitor.broadcast(ReplicationExchange.Condition.progress)
  }
}
