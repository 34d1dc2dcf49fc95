// The retry worker, which asks the App Store again about pending receipts, and its schedule.
package import Base
import Ledger
import Projections

/// Turns entries of the queue into calls.
final class RetryWorker {
  /// The number of receipts in a page.
  private static let pageSize = 1000

  private let scheduler: VerificationScheduler
  private let caller: AppStoreCaller
  private let projections: any WorkflowProjections
  private let directory: LedgerDirectory
  private var reader: LogReader
  private let redactions: RedactionCount
  /// The number of redactions that `reader` reflects.
  private var knownRedactions: Int
  private let clock: WorkflowClock
  private let notes: OperatorNotes
  private let onTurn: () -> Void

  /// - Parameter onTurn: called between steps, at least every half second.
  init(
    _ scheduler: VerificationScheduler, _ caller: AppStoreCaller,
    _ projections: any WorkflowProjections,
    _ directory: LedgerDirectory, _ redactions: RedactionCount, _ clock: WorkflowClock,
    _ notes: OperatorNotes, onTurn: @escaping () -> Void
  ) throws(LedgerError) {
    self.scheduler = scheduler
    self.caller = caller
    self.projections = projections
    self.directory = directory
    self.redactions = redactions
    knownRedactions = redactions.now
    reader = try LogReader(directory)
    self.clock = clock
    self.notes = notes
    self.onTurn = onTurn
  }

  func run() {
    while true {
      switch scheduler.nextStep() {
      case .end: return
      case .idle: break
      case .scan(let after): scan(after: after)
      case .ask(let entries, let isProbe): ask(entries, isProbe: isProbe)
      }
      closeSealedTails()
      onTurn()
    }
  }

  /// After a burst no other thread may read the log for a long time.
  private func closeSealedTails() {
    do { try renewReader() } catch { notes.fault("open the log", error) }
    do { try reader.closeSealedTails() } catch { notes.fault("check the log's tails", error) }
    do { try projections.closeSealedTails() } catch { notes.fault("check the log's tails", error) }
  }

  /// Releases a reader that may show what was redacted.
  private func renewReader() throws(LedgerError) {
    let now = redactions.now
    if now == knownRedactions { return }
    reader = try LogReader(directory)
    knownRedactions = now
  }

  private func scan(after: Int64) {
    do {
      let page = try projections.waiting(afterReceipt: after, limit: Self.pageSize)
      scheduler.insertPage(
        page, next: page.count < Self.pageSize ? nil : page.last?.number)
    } catch {
      notes.fault("read the queue", error)
      scheduler.insertPage([], next: after)
      // The same page again, but not at once.
      pause(ms: 500)
    }
  }

  private struct Due {
    var entry: RetryEntry
    var position: Position
  }

  /// Reads the receipts' uploads in the order of the log, so that each block is inflated once.
  private func ask(_ entries: [RetryEntry], isProbe: Bool) {
    var due: [Due] = []
    for entry in entries {
      do {
        if let position = try firstPosition(entry) {
          due.append(Due(entry: entry, position: position))
        } else {
          scheduler.turn(entry, into: nil, isProbe: isProbe)
        }
      } catch {
        notes.fault("read the queue", error)
        scheduler.putBack(entry, isProbe: isProbe)
      }
    }
    due.sort { $0.position < $1.position }
    for (index, item) in due.enumerated() {
      if !isProbe, !waitForTurn() { return scheduler.giveBack(due[index...].map(\.entry)) }
      do {
        let call = try call(for: item, isProbe: isProbe)
        scheduler.turn(item.entry, into: call, isProbe: isProbe)
        caller.makeCalls()
      } catch {
        notes.fault("read a receipt", error)
        scheduler.putBack(item.entry, isProbe: isProbe)
      }
    }
  }

  /// Waits until a call is allowed and returns true, or false if none is to be made.
  private func waitForTurn() -> Bool {
    while true {
      switch scheduler.nextTurn() {
      case .now: return true
      case .never: return false
      case .later: onTurn()
      }
    }
  }

  /// The first waiting upload of a receipt; nil if none waits any more.
  private func firstPosition(_ entry: RetryEntry) throws -> Position? {
    try projections.waitingUploads(
      ofReceipt: entry.receiptID, appFamily: entry.appFamily, WaitingPart(limit: 1)
    ).first?.position
  }

  /// How many uploads of a receipt are searched for one that still has it.
  private static let redactedMax = 100

  /// Nil if a reply came while the entry was held, or the receipt was redacted: then the App Store is not asked about
  /// it.
  private func call(for due: Due, isProbe: Bool) throws -> AppStoreCall? {
    let uploads = try projections.waitingUploads(
      ofReceipt: due.entry.receiptID, appFamily: due.entry.appFamily,
      WaitingPart(limit: Self.redactedMax))
    try renewReader()
    for upload in uploads {
      guard let text = try receiptText(ofUpload: upload.position) else { continue }
      return AppStoreCall(
        due.entry.receiptID, of: due.entry.appFamily, text: text, source: .queue,
        earlierAttempts: Int(due.entry.attempt), isProbe: isProbe)
    }
    return nil
  }

  /// Nil if the upload was redacted.
  private func receiptText(ofUpload position: Position) throws -> [UInt8]? {
    if position >= reader.head.size { try reader.refresh() }
    let line = try reader.event(at: position)
    return try line.withUnsafeBytes { bytes in
      guard let event = EventLine(bytes) else { return nil }
      let upload = try ReceiptUploadedView(data: event.data, isRedacted: event.isRedacted)
      guard let text = upload.receipt else {
        // It was redacted after it was found waiting.
        if event.isRedacted { return nil }
        throw EventError.badField(.receiptUploaded, field: "receipt")
      }
      return Array(text.raw)
    }
  }

  private func pause(ms: Int64) {
    let nothing = Monitor((), conditionCount: 1)
    _ = nothing.wait(on: 0, limitMs: ms) { _ -> Void? in nil }
  }
}

// MARK: - Retry schedule

/// Exponential backoff with full jitter: many receipts that failed together do not come back together.
package struct RetrySchedule: Sendable {
  /// The longest first pause, in milliseconds.
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

/// The entries by due time: a binary heap with at most one entry per receipt.
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
