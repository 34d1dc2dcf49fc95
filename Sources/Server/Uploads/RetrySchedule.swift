// When the App Store is asked again about a pending receipt, and which receipt is next.
package import Base

/// Exponential backoff with full jitter: many receipts that failed together do not come back together.
package struct RetrySchedule: Sendable {
  /// The first pause at most, in milliseconds.
  package var firstMs: Int64
  /// The longest pause, in milliseconds.
  package var ceilingMs: Int64

  package init(firstMs: Int64, ceilingMs: Int64) {
    self.firstMs = max(firstMs, 1)
    self.ceilingMs = max(ceilingMs, self.firstMs)
  }

  /// The longest possible pause after a number of attempts, from 1.
  package func limitMs(attempt: Int) -> Int64 {
    let doublings = min(max(attempt - 1, 0), 40)
    let (product, overflow) = firstMs.multipliedReportingOverflow(by: 1 << Int64(doublings))
    return overflow ? ceilingMs : min(product, ceilingMs)
  }

  /// A pause from 0 to the limit.
  package func pauseMs(
    attempt: Int, using random: inout some RandomNumberGenerator
  ) -> Int64 {
    Int64.random(in: 0...limitMs(attempt: attempt), using: &random)
  }
}

/// A receipt that waits for its next attempt.
package struct RetryEntry: Sendable, Equatable {
  /// On the queue owner's clock, in milliseconds.
  package var dueMs: Int64
  package var receiptID: UUID16
  package var appFamily: UUID16
  /// How many attempts have failed.
  package var attempt: Int32
  /// Whether another attempt is useless before an operator acts.
  package var isAlarm: Bool

  package init(
    dueMs: Int64, receiptID: UUID16, appFamily: UUID16, attempt: Int32, isAlarm: Bool = false
  ) {
    self.dueMs = dueMs
    self.receiptID = receiptID
    self.appFamily = appFamily
    self.attempt = attempt
    self.isAlarm = isAlarm
  }
}

/// The entries by their time: a binary heap with at most one entry of a receipt.
package struct RetryHeap: Sendable {
  private var entries: [RetryEntry] = []
  private var known: Set<UUID16> = []

  package init() {}

  package var count: Int { entries.count }
  package var first: RetryEntry? { entries.first }

  package func contains(_ receiptID: UUID16) -> Bool { known.contains(receiptID) }

  /// Adds an entry; an existing one of the same receipt is unchanged.
  package mutating func insert(_ entry: RetryEntry) {
    guard known.insert(entry.receiptID).inserted else { return }
    entries.append(entry)
    siftUp(entries.count - 1)
  }

  /// Takes the entry that is due first.
  package mutating func popFirst() -> RetryEntry? {
    guard let first = entries.first else { return nil }
    let last = entries.removeLast()
    if !entries.isEmpty {
      entries[0] = last
      siftDown(0)
    }
    known.remove(first.receiptID)
    return first
  }

  /// Changes every entry.
  package mutating func update(_ change: (inout RetryEntry) -> Void) {
    for index in entries.indices { change(&entries[index]) }
    for index in (0..<entries.count / 2).reversed() { siftDown(index) }
  }

  private mutating func siftUp(_ start: Int) {
    var index = start
    while index > 0 {
      let parent = (index - 1) / 2
      if entries[parent].dueMs <= entries[index].dueMs { return }
      entries.swapAt(parent, index)
      index = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
    var index = start
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
        if entries[child].dueMs < entries[least].dueMs { least = child }
      }
      if least == index { return }
      entries.swapAt(least, index)
      index = least
    }
  }
}
