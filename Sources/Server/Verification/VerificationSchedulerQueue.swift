// The scheduler's side towards the queue's thread: receipts that wait, and when each is asked about again.
import Base
import Projections

extension VerificationScheduler {
  /// What the queue's thread does next.
  enum QueueStep {
    case ask([RetryEntry], isProbe: Bool)
    case scan(after: Int64)
    case idle
    case end
  }

  /// Whether a call for the queue may be made.
  enum Turn {
    case now
    /// Others have to be made first.
    case later
    /// No call is to be made at all.
    case never
  }

  /// The most receipts that wait in memory; the others stay in the projections until there is room.
  static let waitingMax = 262_144
  /// The queue's thread takes this many due receipts at once, to read them in the order of the log.
  private static let batchMax = 2048

  /// Lets a receipt wait that was not asked about, or without success.
  func enqueue(_ receiptID: UUID16, _ appFamily: UUID16) {
    monitor.withLock { schedule(receiptID, appFamily, attempt: 1, isAlarm: false, &$0) }
  }

  func schedule(
    _ receiptID: UUID16, _ appFamily: UUID16, attempt: Int, isAlarm: Bool,
    _ state: inout State
  ) {
    if isSingleRun { return }
    let pauseMs =
      isAlarm
      ? state.schedule.ceilingMs
      : state.schedule.pauseMs(attempt: attempt, using: &state.random)
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
  /// - Parameter next: the number after which the next page begins; nil where this was the last.
  func takeIn(_ page: [WaitingReceipt], next: Int64?) {
    monitor.withLock { state in
      let nowMs = clock.monotonicMs()
      for receipt in page where state.calls[receipt.receiptID] == nil {
        // After a restart they come back spread over the first pause.
        let pauseMs =
          isSingleRun ? 0 : state.schedule.pauseMs(attempt: 1, using: &state.random)
        insert(
          RetryEntry(
            dueMs: nowMs + pauseMs, receiptID: receipt.receiptID, appFamily: receipt.appFamily,
            attempt: 0), &state)
      }
      state.scanAfter = next
    }
  }

  /// Makes the queue read again from the projections: something may wait there that is not known here.
  func rescan() {
    monitor.withLock { state in
      state.needsScan = true
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
    // Some come a little early, so that a block of the log that is inflated serves many.
    let untilMs = nowMs + state.schedule.firstMs / 10
    while entries.count < (admission == .probe ? 1 : Self.batchMax), let next = state.heap.first,
      next.dueMs <= untilMs, let entry = state.heap.popFirst()
    {
      entries.append(entry)
    }
    state.heldCount += entries.count
    return .ask(entries, isProbe: admission == .probe)
  }

  /// Uploads never crowd the queue out altogether.
  private func hasRoom(_ state: State) -> Bool {
    let free = state.callsMax - state.ready.count - state.callingCount
    return max(free, max(1, state.callsMax / 4) - state.queueCalls) > 0
  }

  /// Waits a while for the turn of an entry that the queue's thread holds.
  func nextTurn() -> Turn {
    monitor.wait(on: 0, limitMs: 500) { state -> Turn? in
      if state.isStopping || !state.breaker.isClosed { return .never }
      return hasRoom(state) ? .now : nil
    } ?? .later
  }

  /// Takes back entries whose turn did not come.
  func giveBack(_ entries: some Collection<RetryEntry>) {
    monitor.withLock { state in
      state.heldCount -= entries.count
      for entry in entries { insert(entry, &state) }
    }
  }

  /// Turns an entry into a call that waits for its turn. Nil text: nothing waits any more.
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

  /// Puts an entry back that could not be looked at.
  func putBack(_ entry: RetryEntry, isProbe: Bool) {
    monitor.withLock { state in
      state.heldCount -= 1
      if isProbe { state.breaker.giveBackProbe(nowMs: clock.monotonicMs()) }
      schedule(
        entry.receiptID, entry.appFamily, attempt: Int(entry.attempt) + 1, isAlarm: entry.isAlarm,
        &state)
    }
  }

  /// Lets everything that waits be tried now.
  func hurry(alarmsAlone: Bool) {
    monitor.withLock { state in
      let nowMs = clock.monotonicMs()
      state.heap.update { entry in
        if !alarmsAlone || entry.isAlarm { entry.dueMs = min(entry.dueMs, nowMs) }
      }
      if !alarmsAlone { state.breaker.hurry(nowMs: nowMs) }
      monitor.signal(0)
    }
  }
}
