// The submission queue of a writer, and the thread that commits what is queued in groups.
import Base

/// Submitters whose events are durable but who are not notified yet.
private struct Acknowledgement {
  var tickets: [AppendTicket] = []
  var results: [AppendResult] = []

  func resolve() {
    for (ticket, result) in zip(tickets, results) { ticket.resolve(.success(result)) }
  }
}

/// Commits submissions in order, by the caller's thread or by the writing thread, which keeps it alive.
///
/// Sendable because only the thread that set `isCommitting` uses the tail writer; the rest is guarded by the monitor
/// or does not change.
final class GroupCommit: @unchecked Sendable {
  private struct State {
    var queue: [AppendTicket] = []
    var queueByteCount = 0
    /// Turns issued to submitters, and turns used. Submitters enter the queue in order of arrival, so that faster ones
    /// cannot block another forever.
    var givenTurnCount = 0
    var usedTurnCount = 0
    /// Whether some thread is using `tailWriter`.
    var isCommitting = false
    /// The number of submissions in the last commit. Above 1, waiting for more pays off.
    var lastGroupCount = 0
    /// When the writing thread began its last commit, in milliseconds of the monotonic clock.
    var groupBeganMs: Int64 = 0
    /// Whether the writing thread is letting a group grow before it commits the group.
    var isPausing = false
    var nextPosition: Position
    var clockSetBack = ClockSetBack()
    var failure: LedgerError?
    /// How many threads wait for their turn to use `tailWriter` between two commits.
    var pauseCount = 0
    /// How many threads use the writer in other ways than appending; it closes after them.
    var userCount = 0
    var isClosing = false
  }

  private enum Condition {
    static let work = 0
    static let room = 1
    static let idle = 2
    static let pause = 3
  }

  private let monitor: Monitor<State>
  private let options: WriterOptions
  private let tailWriter: TailWriter
  private let mark: DurableMark
  /// Nil if the disk alone decides what may be acknowledged.
  private let confirmations: ConfirmationQueue?
  private let ledgerPath: String
  private let thread = Monitor<WorkerThread?>(nil)

  init(
    _ tailWriter: TailWriter, _ mark: DurableMark, _ options: WriterOptions, ledgerPath: String
  ) {
    self.tailWriter = tailWriter
    self.mark = mark
    self.options = options
    self.ledgerPath = ledgerPath
    monitor = Monitor(State(nextPosition: tailWriter.nextPosition), conditionCount: 4)
    confirmations = options.confirmation.map {
      ConfirmationQueue($0, byteCountMax: options.queueByteCount)
    }
  }

  func start() throws(LedgerError) {
    do throws(LedgerError) {
      try confirmations?.start { [monitor] in monitor.withLock { $0.failure } }
      let started = try WorkerThread.start { [self] in run() }
      thread.withLock { $0 = started }
    } catch {
      confirmations?.close()
      throw error
    }
  }

  var nextPosition: Position { monitor.withLock { $0.nextPosition } }
  var clockSetBack: ClockSetBack { monitor.withLock { $0.clockSetBack } }
  var failure: LedgerError? { monitor.withLock { $0.failure } }
  var isClosing: Bool { monitor.withLock { $0.isClosing } }

  /// Commits a submission on the caller's thread if nothing else waits, otherwise queues it.
  func append(_ ticket: AppendTicket) throws(LedgerError) {
    let mayCommit = try monitor.withLock { state throws(LedgerError) in
      try refuseIfEnded(state)
      // A lone caller commits on its own thread: two thread switches would cost as much as the disk.
      guard !state.isCommitting, state.pauseCount == 0, state.queue.isEmpty,
        state.lastGroupCount <= 1
      else { return false }
      state.isCommitting = true
      return true
    }
    if mayCommit {
      commit([ticket]).resolve()
    } else {
      try enqueue(ticket)
    }
  }

  /// Waits until everything queued so far is durable.
  func flush() throws(LedgerError) {
    try monitor.wait(on: Condition.idle) { state throws(LedgerError) -> Void? in
      if let failure = state.failure { throw failure }
      return state.queue.isEmpty && !state.isCommitting ? () : nil
    }
  }

  /// Commits what is queued, and stops the threads.
  /// - Returns: whether this is the first call.
  func close() -> Bool {
    let isFirst = monitor.withLock { state in
      defer { state.isClosing = true }
      monitor.broadcast(Condition.work)
      monitor.broadcast(Condition.room)
      monitor.broadcast(Condition.pause)
      return !state.isClosing
    }
    guard isFirst else { return false }
    thread.withLock { $0.take() }?.join()
    confirmations?.close()
    return true
  }

  /// Waits until no thread uses the closed writer for anything but appends.
  func waitForUsers() {
    monitor.wait(on: Condition.idle) { state in state.userCount == 0 ? () : nil }
  }

  /// Forbids further appends: queued and later submissions fail with the error. Events that are being written may still
  /// reach the disk.
  func refuseAppends(_ error: LedgerError) {
    let abandoned = monitor.withLock { state -> [AppendTicket] in
      if state.failure == nil { state.failure = error }
      defer {
        state.queue = []
        state.queueByteCount = 0
      }
      monitor.broadcast(Condition.room)
      monitor.broadcast(Condition.idle)
      monitor.signal(Condition.work)
      return state.queue
    }
    for ticket in abandoned { ticket.resolve(.failure(error)) }
  }

  /// Runs a closure while the writer, and with it the lock, stays open.
  func whileOpen<Result>(
    _ body: () throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    try monitor.withLock { state throws(LedgerError) in
      try refuseIfEnded(state)
      state.userCount += 1
    }
    defer {
      monitor.withLock { $0.userCount -= 1 }
      monitor.broadcast(Condition.idle)
    }
    return try body()
  }

  /// Lets a closure use the tail writer between two commits. Appends wait meanwhile, so it must be short.
  func betweenCommits<Result>(
    _ body: (TailWriter) throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    monitor.withLock { $0.pauseCount += 1 }
    var hasTurn = false
    defer {
      monitor.withLock { state in
        state.pauseCount -= 1
        if hasTurn { state.isCommitting = false }
      }
      monitor.signal(Condition.work)
      monitor.broadcast(Condition.idle)
    }
    try monitor.wait(on: Condition.idle) { state throws(LedgerError) -> Void? in
      try refuseIfEnded(state)
      if state.isCommitting { return nil }
      state.isCommitting = true
      hasTurn = true
      return ()
    }
    return try body(tailWriter)
  }

  func enqueue(_ ticket: AppendTicket) throws(LedgerError) {
    var turn: Int?
    try monitor.wait(on: Condition.room) { state throws(LedgerError) -> Void? in
      try refuseIfEnded(state)
      if turn == nil {
        turn = state.givenTurnCount
        state.givenTurnCount += 1
      }
      guard turn == state.usedTurnCount else { return nil }
      let isFull =
        !state.queue.isEmpty
        && state.queueByteCount + ticket.byteCountLimit > options.queueByteCount
      if isFull { return nil }
      state.usedTurnCount += 1
      if state.usedTurnCount < state.givenTurnCount { monitor.broadcast(Condition.room) }
      state.queue.append(ticket)
      state.queueByteCount += ticket.byteCountLimit
      if state.isPausing {
        if isGroupFull(state) { monitor.signal(Condition.pause) }
      } else if !state.isCommitting {
        monitor.signal(Condition.work)
      }
      return ()
    }
  }

  private func refuseIfEnded(_ state: State) throws(LedgerError) {
    if let failure = state.failure { throw failure }
    if state.isClosing {
      throw LedgerError(
        .closed, operation: "append", object: ledgerPath, cause: "the writer is closed")
    }
  }

  private func run() {
    var durable = Acknowledgement()
    while true {
      // Waiting submissions are collected before the others are notified: those submit again while the frame is made.
      var group = options.groupPauseMs > 0 ? nil : monitor.withLock { dequeueGroup(&$0) }
      durable.resolve()
      if group == nil {
        pauseForCompany()
        group = nextGroup()
      }
      guard let group else { return }
      durable = commit(group, waits: false)
    }
  }

  private func isGroupFull(_ state: State) -> Bool {
    state.isClosing || state.queueByteCount >= options.groupByteCount
  }

  /// If the last group had several submissions, lets the next one grow for a moment.
  private func pauseForCompany() {
    if options.groupPauseMs <= 0 { return }
    let restMs = monitor.withLock { state -> Int64 in
      let restMs = state.groupBeganMs + options.groupPauseMs - MonotonicClock.nowMs()
      state.isPausing = state.lastGroupCount > 1 && restMs > 0
      return restMs
    }
    _ = monitor.wait(on: Condition.pause, limitMs: restMs) { state -> Void? in
      !state.isPausing || isGroupFull(state) ? () : nil
    }
    monitor.withLock { $0.isPausing = false }
  }

  private enum Step {
    case group([AppendTicket])
    /// Publish again how far the log is durable.
    case publish
    case end
  }

  /// The pause before the next attempt to publish, in milliseconds.
  private static let publishingPauseMs: Int64 = 1_000

  /// Waits for the next group; nil when the writer is closing.
  private func nextGroup() -> [AppendTicket]? {
    while true {
      switch nextStep() {
      case .group(let group): return group
      case .end: return nil
      case .publish:
        mark.publishAgain()
        monitor.withLock { $0.isCommitting = false }
        monitor.broadcast(Condition.idle)
      }
    }
  }

  private func nextStep() -> Step {
    func decide(_ state: inout State) -> Step? {
      if let group = dequeueGroup(&state) { return .group(group) }
      return state.isClosing && state.queue.isEmpty && !state.isCommitting ? .end : nil
    }
    while true {
      let step = monitor.wait(on: Condition.work) { state -> Step?? in
        if let step = decide(&state) { return .some(step) }
        return mark.isBehind ? .some(nil) : nil
      }
      if let step { return step }
      let later = monitor.wait(on: Condition.work, limitMs: Self.publishingPauseMs) { decide(&$0) }
      if let later { return later }
      let hasTurn = monitor.withLock { state in
        if state.isCommitting { return false }
        state.isCommitting = true
        return true
      }
      if hasTurn { return .publish }
    }
  }

  /// Removes queued submissions, up to the size of a group, for a commit; nil if none can be committed now.
  private func dequeueGroup(_ state: inout State) -> [AppendTicket]? {
    if state.isCommitting || state.pauseCount > 0 || state.queue.isEmpty { return nil }
    state.isCommitting = true
    if options.groupPauseMs > 0 { state.groupBeganMs = MonotonicClock.nowMs() }
    return dequeue(&state, byteCount: 0)
  }

  /// Removes queued submissions while they fit into a group that has this many bytes; at least one if the group is
  /// empty.
  private func dequeue(_ state: inout State, byteCount: Int) -> [AppendTicket] {
    if state.queue.isEmpty { return [] }
    var total = byteCount
    var count = 0
    while count < state.queue.count {
      let next = state.queue[count].byteCountLimit
      if total > 0, total + next > options.groupByteCount { break }
      total += next
      count += 1
    }
    let taken = Array(state.queue.prefix(count))
    state.queue.removeFirst(count)
    state.queueByteCount -= total - byteCount
    monitor.broadcast(Condition.room)
    return taken
  }

  /// Commits a group, and submissions that arrive while its frame is made. The caller, which has set `isCommitting`,
  /// must then notify the submitters, except those that have received a failure.
  /// - Parameter waits: whether the caller waits for a confirmation; otherwise the submitters are notified by another
  ///   thread, and the next commit is made meanwhile.
  private func commit(_ tickets: [AppendTicket], waits: Bool = true) -> Acknowledgement {
    var group = tickets
    let outcome: Result<[AppendResult], TailWriter.Failure>
    do throws(TailWriter.Failure) {
      let byteCount = tickets.reduce(0) { $0 + $1.byteCountLimit }
      outcome = .success(
        try tailWriter.commit(tickets) {
          let latecomers = monitor.withLock { dequeue(&$0, byteCount: byteCount) }
          group += latecomers
          return latecomers
        })
    } catch { outcome = .failure(error) }
    let abandoned = monitor.withLock { state -> [AppendTicket] in
      state.isCommitting = false
      state.lastGroupCount = group.count
      state.nextPosition = tailWriter.nextPosition
      state.clockSetBack = tailWriter.clockSetBack
      var abandoned: [AppendTicket] = []
      if case .failure(.fatal(let error)) = outcome {
        state.failure = error
        abandoned = state.queue
        state.queue = []
        state.queueByteCount = 0
        monitor.broadcast(Condition.room)
      }
      // The writing thread may be waiting for `isCommitting` to end so that it can work or close.
      if !state.queue.isEmpty || state.isClosing || mark.isBehind {
        monitor.signal(Condition.work)
      }
      monitor.broadcast(Condition.idle)
      return abandoned
    }
    switch outcome {
    case .success(let results):
      if !waits, let confirmations {
        confirmations.add(group, results)
        return Acknowledgement()
      }
      do throws(LedgerError) { try confirm(results) } catch {
        for ticket in group { ticket.resolve(.failure(error)) }
        return Acknowledgement()
      }
      return Acknowledgement(tickets: group, results: results)
    case .failure(let failure):
      for ticket in group + abandoned { ticket.resolve(.failure(failure.error)) }
      return Acknowledgement()
    }
  }

  /// Waits until events that are on disk may be acknowledged. The next commit need not wait for that.
  private func confirm(_ results: [AppendResult]) throws(LedgerError) {
    guard let confirmation = options.confirmation, let last = results.last else { return }
    try confirmation.waitUntilConfirmed(last.firstPosition + last.count)
    // If another writer has taken over meanwhile, it lacks these events if they came after its first step.
    if let failure { throw failure }
  }
}
