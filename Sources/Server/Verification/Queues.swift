// Queues between threads, bounded by whoever fills them.
import Base
import Ledger

/// First in, first out, in an array that gives up its front now and then.
struct FIFO<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { count == 0 }

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

  /// Takes at most so many from the front.
  mutating func popFirst(atMost limit: Int) -> [Element] {
    var result: [Element] = []
    result.reserveCapacity(min(limit, count))
    while result.count < limit, let element = popFirst() { result.append(element) }
    return result
  }
}

/// A queue that threads wait for. After it was closed it gives out what it holds, and then nothing.
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

  /// The next element, waited for; nil at the end.
  func pop() -> Element? {
    monitor.wait(on: 0) { state -> Element?? in
      if let element = state.elements.popFirst() { return .some(element) }
      return state.isClosed ? .some(nil) : nil
    }
  }

  /// At least one element, waited for, and more that are there; none at the end.
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
