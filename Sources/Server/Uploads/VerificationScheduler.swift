// Decides when the App Store is asked about a receipt, first and again, for all threads behind one lock.
import Base
import Ledger
import Projections

/// Keeps the calls, the circuit breaker and the queue. It performs no calls itself.
final class VerificationScheduler: Sendable {
  private struct State {
    var settings: CallSettings
    var breaker = CircuitBreaker()
    var calls: [UUID16: AppStoreCall] = [:]
    var ready = FIFO<AppStoreCall>()
    var callingCount = 0
    var uploadCalls = 0
    var queueCalls = 0
    var heap = RetryHeap()
    /// Entries that the retry worker holds.
    var heldCount = 0
    /// The number of the receipt after which the next page begins; nil if no page is to be read.
    var scanAfter: Int64?
    var needsScan = true
    var isStopping = false
    var random = SystemRandomNumberGenerator()
    // For a single run.
    var attempted = 0
    var answered = 0
  }

  /// The most receipts that wait in memory; the others stay in the projections until there is room.
  private static let waitingMax = 262_144
  /// The most due receipts that the retry worker receives at once, to read them in the order of the log.
  private static let batchMax = 2048

  private let monitor: Monitor<State>
  private let clock: WorkflowClock
  /// Whether each receipt is tried only once, and no new ones come.
  private let isSingleRun: Bool

  init(_ settings: CallSettings, clock: WorkflowClock, isSingleRun: Bool) {
    monitor = Monitor(State(settings: settings), conditionCount: 1)
    self.clock = clock
    self.isSingleRun = isSingleRun
  }

  // MARK: Uploads

  /// The result of requesting a call for an upload.
  enum CallRequest {
    /// Granted: by this call, or by the one in progress for its receipt.
    case granted(AppStoreCall?)
    case denied(NoCallReason)
  }

  /// Requests a call about a receipt, or joins the one in progress.
  /// - Parameters:
  ///   - waiter: nil before the upload is appended: a new call is then only reserved. Once the upload is durable and
  ///     folded it waits for the call, which may then be made.
  ///   - reservation: the call reserved for the upload before it was appended.
  func requestCall(
    about receiptID: UUID16, of appFamily: UUID16, text: [UInt8], for waiter: Waiter? = nil,
    reservation: AppStoreCall? = nil
  ) -> CallRequest {
    monitor.withLock { state in
      if let call = state.calls[receiptID] {
        guard let waiter else { return .granted(nil) }
        call.waiters.append(waiter)
        if call === reservation { makeReady(call, &state) }
        return .granted(call)
      }
      if state.isStopping { return .denied(.shuttingDown) }
      // A few more than can be made, so that no call is idle while an upload is appended.
      let callsMax = state.settings.callsMax
      if state.uploadCalls >= callsMax + max(1, callsMax / 4) { return .denied(.callsExhausted) }
      let admission = state.breaker.admit(nowMs: clock.monotonicMs())
      if admission == .denied { return .denied(.circuitOpen) }
      let call = AppStoreCall(
        receiptID, of: appFamily, text: text, source: .upload, isProbe: admission == .probe)
      add(call, &state)
      if let waiter {
        call.waiters.append(waiter)
        makeReady(call, &state)
      }
      return .granted(call)
    }
  }

  /// Gives up a reservation whose upload needs no call, or could not be appended.
  func abandon(_ reservation: AppStoreCall) {
    monitor.withLock { state in
      // Another upload of the same receipt may depend on it.
      if reservation.waiters.isEmpty {
        remove(reservation, &state)
      } else {
        makeReady(reservation, &state)
      }
    }
  }

  // MARK: Calls

  /// Removes from the queue the calls that are to be made now, and those that are not to be made.
  func popStartable() -> (start: [AppStoreCall], skip: [(AppStoreCall, NoCallReason)]) {
    monitor.withLock { state in
      var result: (start: [AppStoreCall], skip: [(AppStoreCall, NoCallReason)]) = ([], [])
      while state.callingCount < state.settings.callsMax, let call = state.ready.popFirst() {
        // Its receipt may be redacted; if not, it returns from the projections.
        let isDropped = call.isStale && call.source == .queue && call.waiters.isEmpty
        if state.isStopping || isDropped || !call.isProbe && !state.breaker.isClosed {
          call.stage = .judging
          result.skip.append((call, state.isStopping ? .shuttingDown : .circuitOpen))
          continue
        }
        call.stage = .calling
        state.callingCount += 1
        result.start.append(call)
      }
      return result
    }
  }

  /// Records that a call has ended.
  /// - Parameter isAnswer: whether the App Store replied, with whatever result; nil if the call was cancelled.
  func endCall(_ call: AppStoreCall, isAnswer: Bool?) {
    monitor.withLock { state in
      precondition(call.stage == .calling, "only a call in progress ends")
      state.callingCount -= 1
      call.stage = .judging
      switch isAnswer {
      case true: state.breaker.recordSuccess()
      case false:
        state.breaker.recordFailure(isProbe: call.isProbe, nowMs: clock.monotonicMs())
      case nil: if call.isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
      }
      call.isProbe = false
      monitor.signal(0)
    }
  }

  /// Lets a call be made a second time.
  func askAgain(_ call: AppStoreCall) {
    monitor.withLock { state in
      call.isSecond = true
      makeReady(call, &state)
    }
  }

  /// What was recorded for a call.
  enum Conclusion {
    /// A final reply.
    case answered
    case unanswered(isAlarm: Bool)
  }

  /// Ends a call whose result is durable, and returns the uploads that wait for it.
  func conclude(_ call: AppStoreCall, _ conclusion: Conclusion) -> [Waiter] {
    monitor.withLock { state in
      switch conclusion {
      case .answered: state.answered += 1
      case .unanswered where call.isStale: state.needsScan = true
      case .unanswered(let isAlarm):
        schedule(
          call.receiptID, call.appFamily, attempt: call.earlierAttempts + 1, isAlarm: isAlarm,
          &state)
      }
      if call.source == .queue { state.attempted += 1 }
      remove(call, &state)
      let waiters = call.waiters
      call.waiters = []
      return waiters
    }
  }

  /// The uploads whose clients wait for a call.
  func waiterPositions(of call: AppStoreCall) -> [Position] {
    monitor.withLock { _ in call.waiters.map(\.upload.position) }
  }

  private func add(_ call: AppStoreCall, _ state: inout State) {
    precondition(state.calls[call.receiptID] == nil, "a receipt has one call at a time")
    state.calls[call.receiptID] = call
    if call.source == .upload { state.uploadCalls += 1 } else { state.queueCalls += 1 }
  }

  private func makeReady(_ call: AppStoreCall, _ state: inout State) {
    precondition(call.stage == .reserved || call.stage == .judging, "a call is queued once")
    call.stage = .ready
    state.ready.append(call)
  }

  private func remove(_ call: AppStoreCall, _ state: inout State) {
    precondition(call.stage == .reserved || call.stage == .judging, "the call is not in progress")
    if call.source == .upload { state.uploadCalls -= 1 } else { state.queueCalls -= 1 }
    state.calls.removeValue(forKey: call.receiptID)
    if call.isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
    monitor.signal(0)
  }

  // MARK: Queue of the retry worker

  /// What the retry worker does next.
  enum QueueStep {
    case ask([RetryEntry], isProbe: Bool)
    case scan(after: Int64)
    case idle
    case end
  }

  /// Whether a call for the queue may be made.
  enum Turn {
    case now
    /// Other calls come first.
    case later
    /// No call is to be made at all.
    case never
  }

  /// Queues a receipt that was not asked about, or without success.
  func enqueue(_ receiptID: UUID16, _ appFamily: UUID16) {
    monitor.withLock { schedule(receiptID, appFamily, attempt: 1, isAlarm: false, &$0) }
  }

  private func schedule(
    _ receiptID: UUID16, _ appFamily: UUID16, attempt: Int, isAlarm: Bool,
    _ state: inout State
  ) {
    if isSingleRun { return }
    let pauseMs =
      isAlarm
      ? state.settings.schedule.ceilingMs
      : state.settings.schedule.pauseMs(attempt: attempt, using: &state.random)
    insert(
      RetryEntry(
        dueMs: clock.monotonicMs() + pauseMs, receiptID: receiptID, appFamily: appFamily,
        attempt: Int32(attempt), isAlarm: isAlarm), &state)
  }

  private func insert(_ entry: RetryEntry, _ state: inout State) {
    if state.heap.count < Self.waitingMax {
      state.heap.insert(entry)
      monitor.signal(0)
    } else if !state.heap.contains(entry.receiptID) {
      state.needsScan = true
    }
  }

  /// Adds a page of receipts that are pending according to the projections.
  /// - Parameter next: the number after which the next page begins; nil if this was the last.
  func insertPage(_ page: [WaitingReceipt], next: Int64?) {
    monitor.withLock { state in
      let nowMs = clock.monotonicMs()
      for receipt in page where state.calls[receipt.receiptID] == nil {
        // After a restart they are spread over the first pause.
        let pauseMs =
          isSingleRun ? 0 : state.settings.schedule.pauseMs(attempt: 1, using: &state.random)
        insert(
          RetryEntry(
            dueMs: nowMs + pauseMs, receiptID: receipt.receiptID, appFamily: receipt.appFamily,
            attempt: 0), &state)
      }
      state.scanAfter = next
    }
  }

  /// Makes the queue read the projections again: receipts may wait there that it does not know.
  func rescan() {
    monitor.withLock { state in
      state.needsScan = true
      monitor.signal(0)
    }
  }

  /// Clears the queue and reads it again from the projections: receipts may have been redacted.
  func reloadQueue() {
    monitor.withLock { state in
      state.heap = RetryHeap()
      state.scanAfter = nil
      state.needsScan = true
      for call in state.calls.values { call.isStale = true }
      monitor.signal(0)
    }
  }

  /// Waits a while for something to do.
  func nextStep() -> QueueStep {
    let limitMs = monitor.withLock { state in
      min(max((state.heap.first?.dueMs ?? Int64.max) - clock.monotonicMs(), 1), 500)
    }
    return monitor.wait(on: 0, limitMs: limitMs) { state in step(&state) } ?? .idle
  }

  private func step(_ state: inout State) -> QueueStep? {
    if state.isStopping { return .end }
    if state.scanAfter == nil, state.needsScan {
      state.needsScan = false
      state.scanAfter = -1
    }
    if let after = state.scanAfter, state.heap.count < Self.waitingMax / 2 {
      return .scan(after: after)
    }
    let nowMs = clock.monotonicMs()
    guard let first = state.heap.first, first.dueMs <= nowMs else {
      return isSingleRun && state.heap.count == 0 && state.calls.isEmpty && state.heldCount == 0
        ? .end : nil
    }
    guard hasRoom(state) else { return nil }
    let admission = state.breaker.admit(nowMs: nowMs)
    if admission == .denied {
      // A single run does not wait for the App Store to come back.
      return isSingleRun && state.calls.isEmpty && state.heldCount == 0 ? .end : nil
    }
    var entries: [RetryEntry] = []
    // Some are taken slightly early, so that an inflated block of the log serves many.
    let untilMs = nowMs + state.settings.schedule.firstMs / 10
    while entries.count < (admission == .probe ? 1 : Self.batchMax), let next = state.heap.first,
      next.dueMs <= untilMs, let entry = state.heap.popFirst()
    {
      entries.append(entry)
    }
    state.heldCount += entries.count
    return .ask(entries, isProbe: admission == .probe)
  }

  /// Whether the queue may make a call: uploads never take all of them.
  private func hasRoom(_ state: State) -> Bool {
    let free = state.settings.callsMax - state.ready.count - state.callingCount
    return max(free, max(1, state.settings.callsMax / 4) - state.queueCalls) > 0
  }

  /// Waits a while for the turn of an entry that the retry worker holds.
  func nextTurn() -> Turn {
    monitor.wait(on: 0, limitMs: 500) { state -> Turn? in
      if state.isStopping || !state.breaker.isClosed { return .never }
      return hasRoom(state) ? .now : nil
    } ?? .later
  }

  /// Reinserts entries whose turn did not come.
  func giveBack(_ entries: some Collection<RetryEntry>) {
    monitor.withLock { state in
      state.heldCount -= entries.count
      for entry in entries { insert(entry, &state) }
    }
  }

  /// Turns an entry into a call that waits for its turn. Nil: nothing waits any more.
  func turn(_ entry: RetryEntry, into call: AppStoreCall?, isProbe: Bool) {
    monitor.withLock { state in
      state.heldCount -= 1
      guard let call, state.calls[entry.receiptID] == nil else {
        if isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
        return
      }
      add(call, &state)
      makeReady(call, &state)
    }
  }

  /// Puts back an entry that could not be handled.
  func putBack(_ entry: RetryEntry, isProbe: Bool) {
    monitor.withLock { state in
      state.heldCount -= 1
      if isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
      schedule(
        entry.receiptID, entry.appFamily, attempt: Int(entry.attempt) + 1, isAlarm: entry.isAlarm,
        &state)
    }
  }

  /// Makes all waiting receipts due now.
  func retryNow(alarmsAlone: Bool) {
    monitor.withLock { state in
      let nowMs = clock.monotonicMs()
      state.heap.update { entry in
        if !alarmsAlone || entry.isAlarm { entry.dueMs = min(entry.dueMs, nowMs) }
      }
      if !alarmsAlone { state.breaker.probeNow(nowMs: nowMs) }
      monitor.signal(0)
    }
  }

  // MARK: Settings, stopping, figures

  func apply(_ settings: CallSettings) {
    monitor.withLock { $0.settings = settings }
  }

  /// From now on no call begins.
  func beginStopping() {
    monitor.withLock { state in
      state.isStopping = true
      monitor.broadcast(0)
    }
  }

  /// Whether no call is reserved, waiting, in progress or being recorded.
  var isQuiet: Bool { monitor.withLock { $0.calls.isEmpty } }

  struct Figures {
    var calling: Int
    var isCircuitOpen: Bool
    var attempted: Int
    var answered: Int
  }

  var figures: Figures {
    monitor.withLock { state in
      Figures(
        calling: state.callingCount, isCircuitOpen: !state.breaker.isClosed,
        attempted: state.attempted, answered: state.answered)
    }
  }
}
