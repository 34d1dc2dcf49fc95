// Finds the events that show something of some people, wherever it stands: one pass over the log for all of them.
import Base
import Ledger
import Projections
import Revenue

/// The events that were found, by what they were looked for by. Used by one thread.
final class EvidenceIndex {
  private(set) var facts: [Position: [PurchaseFacts]] = [:]
  private var positions: [EvidenceKey: [Position]] = [:]
  private var looked: Set<EvidenceKey> = []
  private let reader: LogReader
  private let end: Position
  private let isCancelled: () -> Bool

  /// - Parameter end: later events are not looked at.
  init(_ reader: LogReader, before end: Position, isCancelled: @escaping () -> Bool) {
    self.reader = reader
    self.end = end
    self.isCancelled = isCancelled
  }

  /// Whether all events were looked through for this.
  func knows(_ key: EvidenceKey) -> Bool { looked.contains(key) }

  /// The events that show one of these, in order.
  func positions(of keys: Set<EvidenceKey>) -> [Position] {
    Set(keys.flatMap { positions[$0] ?? [] }).sorted()
  }

  /// Looks through the log for what was not looked for yet; returns whether there was any.
  func look(for keys: Set<EvidenceKey>) throws -> Bool {
    let new = keys.subtracting(looked)
    if new.isEmpty { return false }
    looked.formUnion(new)
    if end == 0 { return true }
    let search = EvidenceSearch(wanted: Set(new.map(\.textHash)))
    try reader.read(
      from: 0, to: end, prepare: { search.found(in: $0, first: $1, count: $2) }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      let found =
        chunk.prepared as? FoundEvidence
        ?? search.found(in: chunk.bytes, first: chunk.firstPosition, count: chunk.count)
      for (position, facts) in found.events where position < end { add(facts, at: position) }
      return true
    }
    return true
  }

  /// Reads events of which other facts are needed than those they were found by.
  func read(_ wanted: some Sequence<Position>) throws {
    let new = Set(wanted).filter { facts[$0] == nil && $0 < end }.sorted()
    try reader.readEvents(at: new, isCancelled: isCancelled) { event in
      add(PurchaseFacts.all(of: event), at: event.position)
    }
  }

  private func add(_ found: [PurchaseFacts], at position: Position) {
    guard facts.updateValue(found, forKey: position) == nil else { return }
    for key in Set(found.flatMap(\.keys)) { positions[key, default: []].append(position) }
  }
}

private final class FoundEvidence {
  var events: [(position: Position, facts: [PurchaseFacts])] = []
}

/// Looks for hashes of ids. What has one by chance shows nothing of anybody: its facts are compared as they are.
private struct EvidenceSearch: Sendable {
  let wanted: Set<UInt64>

  func found(in bytes: UnsafeRawBufferPointer, first: Position, count: Int) -> FoundEvidence {
    let found = FoundEvidence()
    // A damaged block is found by whoever folds it.
    guard let scan = EventScan(bytes, firstPosition: first, count: count) else { return found }
    withExtendedLifetime(scan) {
      for event in scan.events {
        var isWanted = false
        event.forEachPurchase { purchase in
          if !isWanted, shows(purchase) { isWanted = true }
        }
        guard isWanted else { continue }
        var facts: [PurchaseFacts] = []
        event.forEachPurchase { facts.append(PurchaseFacts($0)) }
        found.events.append((event.line.position, facts))
      }
    }
    return found
  }

  private func shows(_ purchase: ShownPurchase) -> Bool {
    if let id = purchase.transactionID, wanted.contains(EvidenceKey.hash(transaction: id)) {
      return true
    }
    if let id = purchase.originalTransactionID,
      wanted.contains(EvidenceKey.hash(transaction: id))
    {
      return true
    }
    if let id = purchase.appTransactionID, wanted.contains(EvidenceKey.hash(account: id)) {
      return true
    }
    guard let token = purchase.appAccountToken.flatMap({ TokenUser.canonical($0) }) else {
      return false
    }
    return token.withUnsafeBytes { wanted.contains(EvidenceKey.hash(token: $0)) }
  }
}

extension LogReader {
  /// Passes on the events at some positions, in order; blocks without any are not read.
  /// - Parameter wanted: sorted.
  func readEvents(
    at wanted: [Position], isCancelled: () -> Bool, _ body: (EventLine) throws -> Void
  ) throws {
    guard let first = wanted.first, let last = wanted.last else { return }
    var next = 0
    try read(
      from: first, to: last + 1,
      isWanted: { range in
        let index = lowerBound(0..<wanted.count) { wanted[$0] < range.lowerBound }
        return index < wanted.count && wanted[index] < range.upperBound
      }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      try chunk.forEachEvent(where: { position in
        while next < wanted.count, wanted[next] < position { next += 1 }
        return next < wanted.count && wanted[next] == position
      }) { try body($0) }
      return true
    }
  }
}
