// Communication between threads: queues, which the producers bound, and a latch.
import Base
import Ledger

/// First in, first out, in an array whose front is removed occasionally.
struct FIFO<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { count == 0 }

  var first: Element? { head < elements.count ? elements[head] : nil }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head].take()
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: elements.capacity <= 4096)
      head = 0
    } else if head >= 1024, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Removes elements from the front, up to a limit.
  mutating func popFirst(atMost limit: Int) -> [Element] {
    var result: [Element] = []
    result.reserveCapacity(min(limit, count))
    while result.count < limit, let element = popFirst() { result.append(element) }
    return result
  }
}

/// A queue that threads can wait on. After it is closed it returns its remaining elements, then none.
final class WorkQueue<Element: Sendable>: Sendable {
  private struct State {
    var elements = FIFO<Element>()
    var isClosed = false
  }

  private let monitor = Monitor(State(), conditionCount: 1)

  /// Adds an element; false once it is closed.
  @discardableResult
  func push(_ element: Element) -> Bool {
    monitor.withLock { state in
      if state.isClosed { return false }
      state.elements.append(element)
      monitor.signal(0)
      return true
    }
  }

  /// Waits for the next element; nil at the end.
  func pop() -> Element? {
    monitor.wait(on: 0) { state -> Element?? in
      if let element = state.elements.popFirst() { return .some(element) }
      return state.isClosed ? .some(nil) : nil
    }
  }

  /// Waits for at least one element and returns all available up to a limit; none at the end.
  func popAll(atMost limit: Int) -> [Element] {
    monitor.wait(on: 0) { state -> [Element]? in
      if !state.elements.isEmpty { return state.elements.popFirst(atMost: limit) }
      return state.isClosed ? [] : nil
    }
  }

  func close() {
    monitor.withLock { state in
      state.isClosed = true
      monitor.broadcast(0)
    }
  }
}

/// Opens once.
final class Latch: Sendable {
  private let isOpen = Monitor(false, conditionCount: 1)

  func open() {
    isOpen.withLock { state in
      state = true
      isOpen.broadcast(0)
    }
  }

  /// Waits until it is open or the time is over; returns whether it is open.
  @discardableResult
  func wait(limitMs: Int64) -> Bool {
    isOpen.wait(on: 0, limitMs: limitMs) { state -> Void? in state ? () : nil } != nil
  }
}
