// What is to be sent and when: threads that take what is due, and put back what must come again.
package import Base

/// Messages by the time at which they are due.
package final class Outbox<Message: Sendable>: Sendable {
  /// One try.
  package struct Try: Sendable {
    package let message: Message
    /// From 1.
    package let attempt: Int
    fileprivate let dueMs: Int64
    /// Keeps the order of what is due at the same time.
    fileprivate let number: Int
  }

  private struct State {
    /// A binary heap: the first to be due stands first.
    var heap: [Try] = []
    var number = 0
    var inFlight = 0
    var isClosed = false
    var threads: [WorkerThread] = []
  }

  private let state = Monitor(State(), conditionCount: 2)
  /// Signalled when something is put in, and when something has been done.
  private static var arrival: Int { 0 }
  private static var progress: Int { 1 }
  private let pendingMax: Int

  /// - Parameter pendingMax: how much may wait before `put` does.
  package init(pendingMax: Int = 100_000) { self.pendingMax = pendingMax }

  /// Starts threads that send. `makeSender` is called on each of them, once; what it gives returns after how many
  /// milliseconds the message is to come again, or nil.
  package func start(
    threads: Int, _ makeSender: @escaping @Sendable () -> (Try) -> Int64?
  ) throws(SystemError) {
    for _ in 0..<threads {
      let thread = try WorkerThread { [self] in
        let send = makeSender()
        while let next = take() {
          let againMs = send(next)
          finish(next, againMs: againMs)
        }
      }
      state.withLock { $0.threads.append(thread) }
    }
  }

  /// Puts a message in; waits while too much is waiting.
  /// - Parameter dueMs: on the monotonic clock.
  package func put(_ message: Message, dueMs: Int64) {
    state.wait(on: Self.progress) { state -> Void? in
      guard state.heap.count < pendingMax || state.isClosed else { return nil }
      state.number += 1
      Self.push(
        Try(message: message, attempt: 1, dueMs: dueMs, number: state.number), to: &state.heap)
      return ()
    }
    state.signal(Self.arrival)
  }

  /// Waits until nothing is left; false if that takes longer.
  package func drain(limitMs: Int64) -> Bool {
    state.wait(on: Self.progress, limitMs: limitMs) { state in
      state.heap.isEmpty && state.inFlight == 0 ? true : nil
    } ?? false
  }

  /// Ends the threads after what they are sending. What waits is given up.
  /// - Returns: how many were.
  @discardableResult
  package func close() -> Int {
    let (threads, left) = state.withLock { state in
      state.isClosed = true
      defer { state.threads = [] }
      return (state.threads, state.heap.count)
    }
    state.broadcast(Self.arrival)
    state.broadcast(Self.progress)
    for thread in threads { thread.join() }
    return left
  }

  private func take() -> Try? {
    while true {
      let limitMs = state.withLock { state in
        state.heap.first.map { max(1, $0.dueMs - MonotonicClock.nowMs()) } ?? 1_000
      }
      let taken: Try?? = state.wait(on: Self.arrival, limitMs: min(limitMs, 1_000)) { state in
        if state.isClosed { return .some(nil) }
        guard let first = state.heap.first, first.dueMs <= MonotonicClock.nowMs() else {
          return nil
        }
        Self.pop(&state.heap)
        state.inFlight += 1
        return .some(first)
      }
      if let taken { return taken }
    }
  }

  private func finish(_ done: Try, againMs: Int64?) {
    state.withLock { state in
      state.inFlight -= 1
      guard let againMs else { return }
      state.number += 1
      Self.push(
        Try(
          message: done.message, attempt: done.attempt + 1, dueMs: MonotonicClock.nowMs() + againMs,
          number: state.number), to: &state.heap)
    }
    state.broadcast(Self.progress)
    if againMs != nil { state.signal(Self.arrival) }
  }

  // MARK: The heap

  private static func isBefore(_ first: Try, _ second: Try) -> Bool {
    (first.dueMs, first.number) < (second.dueMs, second.number)
  }

  private static func push(_ element: Try, to heap: inout [Try]) {
    heap.append(element)
    var child = heap.count - 1
    while child > 0, isBefore(heap[child], heap[(child - 1) / 2]) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private static func pop(_ heap: inout [Try]) {
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && isBefore(heap[child], heap[least]) { least = child }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}

/// When the App Store sends a notification again.
package enum SendSchedule {
  private static let hours: [Int64] = [1, 12, 24, 48, 72]

  /// How long after a failed attempt, counted from 1, the next one comes; nil where none does: the Sandbox is told
  /// once, and a 400 is not repeated.
  package static func againMs(
    after result: PostResult, attempt: Int, isSandbox: Bool, scale: Double
  ) -> Int64? {
    guard !result.isSuccess, result != .status(400), !isSandbox, (1...hours.count).contains(attempt)
    else { return nil }
    return Int64(Double(hours[attempt - 1] * 3_600_000) * scale)
  }
}
