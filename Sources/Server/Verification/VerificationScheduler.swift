// What the App Store is asked and when again: all that threads decide together, behind one lock.
import Base
import Ledger
import Projections

/// Keeps the calls, the circuit breaker and the queue. It does no work itself.
final class VerificationScheduler: Sendable {
  struct State {
    var callsMax: Int
    var schedule: RetrySchedule
    var reuseReplyMs: Int64
    var breaker = CircuitBreaker()
    var calls: [UUID16: AppStoreCall] = [:]
    var ready = FIFO<AppStoreCall>()
    var callingCount = 0
    var uploadCalls = 0
    var queueCalls = 0
    var heap = RetryHeap()
    /// Entries that the queue's thread holds.
    var heldCount = 0
    var recent = RecentReplies()
    /// The number of the receipt after which the page comes that is read next; nil while none is.
    var scanAfter: Int64?
    var needsScan = true
    var isStopping = false
    var random = SystemRandomNumberGenerator()
    // Of a run that works the queue off once.
    var attempted = 0
    var settled = 0
  }

  let monitor: Monitor<State>
  let clock: WorkflowClock
  /// Whether each receipt is tried only once, and no new ones come.
  let isSingleRun: Bool

  init(_ settings: CallSettings, clock: WorkflowClock, isSingleRun: Bool) {
    monitor = Monitor(
      State(
        callsMax: settings.callsMax, schedule: settings.schedule,
        reuseReplyMs: settings.reuseReplyMs),
      conditionCount: 1)
    self.clock = clock
    self.isSingleRun = isSingleRun
  }

  // MARK: Uploads

  /// Decides before an upload is appended, so that what is known already goes into the same frame.
  func plan(_ receiptID: UUID16, of appFamily: UUID16, text: [UInt8]) -> CallDecision {
    monitor.withLock { state in
      if let recent = recentReply(receiptID, state) { return .takeOver(recent) }
      if state.calls[receiptID] != nil { return .ask(nil) }
      switch reserve(receiptID, of: appFamily, text: text, &state) {
      case .success(let call): return .ask(call)
      case .failure(let refusal): return .goWithout(refusal.reason)
      }
    }
  }

  /// Decides again once an upload is durable and folded; it then waits for the call that is to be asked.
  func settle(
    _ waiter: Waiter, _ receiptID: UUID16, of appFamily: UUID16, text: [UInt8],
    reservation: AppStoreCall?
  ) -> CallDecision {
    monitor.withLock { state in
      if let recent = recentReply(receiptID, state) {
        if let reservation { giveUp(reservation, &state) }
        return .takeOver(recent)
      }
      if let call = state.calls[receiptID] {
        call.waiters.append(waiter)
        if call === reservation { makeReady(call, &state) }
        return .ask(call)
      }
      switch reserve(receiptID, of: appFamily, text: text, &state) {
      case .success(let call):
        call.waiters.append(waiter)
        makeReady(call, &state)
        return .ask(call)
      case .failure(let refusal): return .goWithout(refusal.reason)
      }
    }
  }

  /// Gives up a reservation whose upload could not be appended.
  func abandon(_ reservation: AppStoreCall) {
    monitor.withLock { giveUp(reservation, &$0) }
  }

  private func giveUp(_ reservation: AppStoreCall, _ state: inout State) {
    // Another upload of the same receipt may count on it.
    if reservation.waiters.isEmpty {
      drop(reservation, &state)
    } else {
      makeReady(reservation, &state)
    }
  }

  private struct Refusal: Error { let reason: NoCallReason }

  private func reserve(
    _ receiptID: UUID16, of appFamily: UUID16, text: [UInt8], _ state: inout State
  ) -> Result<AppStoreCall, Refusal> {
    if state.isStopping { return .failure(Refusal(reason: .shuttingDown)) }
    // A few more than can be made, so that none of the calls is idle while an upload is appended.
    if state.uploadCalls >= state.callsMax + max(1, state.callsMax / 4) {
      return .failure(Refusal(reason: .callsExhausted))
    }
    let admission = state.breaker.admit(nowMs: clock.monotonicMs())
    if admission == .denied { return .failure(Refusal(reason: .circuitOpen)) }
    let call = AppStoreCall(
      receiptID, of: appFamily, text: text, source: .upload, stage: .reserved,
      isProbe: admission == .probe)
    add(call, &state)
    return .success(call)
  }

  private func recentReply(_ receiptID: UUID16, _ state: State) -> RecentReply? {
    let nowMs = clock.nowMs()
    // One of the future was given while the clock ran ahead: how old it is cannot be told.
    guard let reply = state.recent[receiptID],
      (nowMs - state.reuseReplyMs...nowMs).contains(reply.occurredAtMs)
    else { return nil }
    return reply
  }

  // MARK: Calls

  /// Takes the calls that may be made now, and those that have to go without.
  func takeStartable() -> (start: [AppStoreCall], skip: [(AppStoreCall, NoCallReason)]) {
    monitor.withLock { state in
      var result: (start: [AppStoreCall], skip: [(AppStoreCall, NoCallReason)]) = ([], [])
      while state.callingCount < state.callsMax, let call = state.ready.popFirst() {
        if state.isStopping || !call.isProbe && !state.breaker.isClosed {
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

  /// Notes that a call is over.
  /// - Parameter isAnswer: whether the App Store answered, whatever it said; nil where the call was given up.
  func land(_ call: AppStoreCall, isAnswer: Bool?) {
    monitor.withLock { state in
      state.callingCount -= 1
      call.stage = .judging
      switch isAnswer {
      case true: state.breaker.noteSuccess()
      case false:
        state.breaker.noteFailure(isProbe: call.isProbe, nowMs: clock.monotonicMs())
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

  /// What has been recorded of a call.
  enum Conclusion {
    /// An answer for good; later uploads may take it over.
    case settled(RecentReply?)
    case unanswered(isAlarm: Bool)
  }

  /// Ends a call whose result is durable, and returns the uploads that wait for it.
  func conclude(_ call: AppStoreCall, _ conclusion: Conclusion) -> [Waiter] {
    monitor.withLock { state in
      switch conclusion {
      case .settled(let reply):
        state.settled += 1
        if let reply { state.recent.insert(reply, for: call.receiptID) }
      case .unanswered(let isAlarm):
        schedule(
          call.receiptID, call.appFamily, attempt: call.earlierAttempts + 1, isAlarm: isAlarm,
          &state)
      }
      if call.source == .queue { state.attempted += 1 }
      drop(call, &state)
      let waiters = call.waiters
      call.waiters = []
      return waiters
    }
  }

  /// The uploads whose clients wait for a call.
  func waiterPositions(of call: AppStoreCall) -> [Position] {
    monitor.withLock { _ in call.waiters.map(\.position) }
  }

  func add(_ call: AppStoreCall, _ state: inout State) {
    state.calls[call.receiptID] = call
    if call.source == .upload { state.uploadCalls += 1 } else { state.queueCalls += 1 }
  }

  func makeReady(_ call: AppStoreCall, _ state: inout State) {
    call.stage = .ready
    state.ready.append(call)
  }

  private func drop(_ call: AppStoreCall, _ state: inout State) {
    if call.source == .upload { state.uploadCalls -= 1 } else { state.queueCalls -= 1 }
    state.calls.removeValue(forKey: call.receiptID)
    if call.isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
    monitor.signal(0)
  }

  // MARK: Settings, end, figures

  func apply(_ settings: CallSettings) {
    monitor.withLock { state in
      state.callsMax = settings.callsMax
      state.schedule = settings.schedule
      state.reuseReplyMs = settings.reuseReplyMs
    }
  }

  /// From now on no call is begun.
  func beginStopping() {
    monitor.withLock { state in
      state.isStopping = true
      monitor.broadcast(0)
    }
  }

  /// Whether no call is reserved, waits, is under way or is being recorded.
  var isQuiet: Bool { monitor.withLock { $0.calls.isEmpty } }

  struct Figures {
    var waiting: Int
    var calling: Int
    var isCircuitOpen: Bool
    var attempted: Int
    var settled: Int
  }

  var figures: Figures {
    monitor.withLock { state in
      Figures(
        waiting: state.heap.count + state.heldCount, calling: state.callingCount,
        isCircuitOpen: !state.breaker.isClosed, attempted: state.attempted,
        settled: state.settled)
    }
  }

  /// When an answer must have been given to be taken over, in epoch milliseconds; nil where none may.
  var reusableTimes: ClosedRange<Int64>? {
    let reuseReplyMs = monitor.withLock { $0.reuseReplyMs }
    let nowMs = clock.nowMs()
    return reuseReplyMs > 0 ? nowMs - reuseReplyMs...nowMs : nil
  }
}
