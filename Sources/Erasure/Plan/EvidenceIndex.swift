// Finds the events that show purchases, tokens or accounts of several users, in one pass over the log.
import AppStore
import Base
package import Ledger
import Projections
import Revenue

/// The events that were found, by search key. Used by one thread.
final class EvidenceIndex {
  private(set) var facts: [Position: [PurchaseFacts]] = [:]
  private var positions: [EvidenceKey: [Position]] = [:]
  private var searched: Set<EvidenceKey> = []
  private let reader: LogReader
  private let end: Position
  private let isCancelled: () -> Bool

  /// - Parameter end: later events are not read.
  init(_ reader: LogReader, before end: Position, isCancelled: @escaping () -> Bool) {
    self.reader = reader
    self.end = end
    self.isCancelled = isCancelled
  }

  /// Whether all events were searched for this key.
  func hasSearched(_ key: EvidenceKey) -> Bool { searched.contains(key) }

  /// The events that show one of these keys, in order.
  func positions(of keys: Set<EvidenceKey>) -> [Position] {
    Set(keys.flatMap { positions[$0] ?? [] }).sorted()
  }

  /// Searches the log for keys that were not searched for yet; returns whether there were any.
  func search(for keys: Set<EvidenceKey>) throws -> Bool {
    let new = keys.subtracting(searched)
    if new.isEmpty { return false }
    searched.formUnion(new)
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

  /// Reads the facts of events that were found by other facts.
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

/// Searches for hashes of ids. A chance match does no harm: the facts themselves are compared later.
private struct EvidenceSearch: Sendable {
  let wanted: Set<UInt64>

  func found(in bytes: UnsafeRawBufferPointer, first: Position, count: Int) -> FoundEvidence {
    let found = FoundEvidence()
    // The fold reports a damaged block.
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

// MARK: - Facts of purchases

/// A purchase, or the renewal of a subscription, as an event shows it, with the facts that tell its owner. Its bytes
/// belong to the event.
struct ShownPurchase {
  var transactionID: JSONBytes?
  var originalTransactionID: JSONBytes?
  var lineItemID: JSONBytes?
  /// As sent.
  var appAccountToken: JSONBytes?
  /// The id of the Apple Account in the app.
  var appTransactionID: JSONBytes?
  /// Renewal information is about a subscription, not about a sale.
  var isRenewal = false
  /// The JSON object as sent; nil if the event has none.
  var object: JSONBytes?

  init(_ row: ReplyRow) {
    transactionID = row.transactionID
    originalTransactionID = row.originalTransactionID
    lineItemID = row.webOrderLineItemID
    appAccountToken = row.appAccountToken
    object = row.object
  }

  init(_ transaction: SignedTransaction) {
    self.init(transaction.row)
    appAccountToken = transaction.appAccountToken
    appTransactionID = transaction.appTransactionID
  }

  init(_ renewal: RenewalInfo) {
    originalTransactionID = renewal.originalTransactionID
    appAccountToken = renewal.appAccountToken
    isRenewal = true
  }

  init(_ renewal: SignedRenewal) {
    self.init(renewal.info)
    appTransactionID = renewal.appTransactionID
  }
}

/// The same facts, copied from the event.
package struct PurchaseFacts: Sendable {
  package let transactionID: [UInt8]?
  let originalTransactionID: [UInt8]?
  let lineItemID: [UInt8]?
  /// In the form in which rule R6 compares it; nil for text that is not a token.
  let appAccountToken: [UInt8]?
  package let appTransactionID: [UInt8]?
  package let isRenewal: Bool

  init(_ purchase: ShownPurchase) {
    transactionID = purchase.transactionID.map { Array($0) }
    originalTransactionID = purchase.originalTransactionID.map { Array($0) }
    lineItemID = purchase.lineItemID.map { Array($0) }
    appAccountToken = purchase.appAccountToken.flatMap { TokenUser.canonical($0) }
    appTransactionID = purchase.appTransactionID.map { Array($0) }
    isRenewal = purchase.isRenewal
  }

  /// The keys by which an event can be found.
  var keys: [EvidenceKey] {
    var keys: [EvidenceKey] = []
    if let transactionID { keys.append(.transaction(transactionID)) }
    if let originalTransactionID, originalTransactionID != transactionID {
      keys.append(.transaction(originalTransactionID))
    }
    if let appAccountToken { keys.append(.token(appAccountToken)) }
    if let appTransactionID { keys.append(.account(appTransactionID)) }
    return keys
  }
}

/// What links events to a person.
enum EvidenceKey: Hashable, Sendable {
  /// The id of a transaction, or an original one.
  case transaction([UInt8])
  /// As rule R6 compares it.
  case token([UInt8])
  case account([UInt8])

  static func hash(transaction: JSONBytes) -> UInt64 { transaction.placeHash(1) }
  static func hash(token: JSONBytes) -> UInt64 { token.placeHash(2) }
  static func hash(account: JSONBytes) -> UInt64 { account.placeHash(3) }

  /// Equal for equal texts of one kind.
  var textHash: UInt64 {
    switch self {
    case .transaction(let text): text.withUnsafeBytes { Self.hash(transaction: $0) }
    case .token(let text): text.withUnsafeBytes { Self.hash(token: $0) }
    case .account(let text): text.withUnsafeBytes { Self.hash(account: $0) }
    }
  }
}

extension ScannedEvent {
  /// Visits the purchases that an event shows: rows of replies, signed transactions, renewal information; in a fetched
  /// page also rejected ones.
  func forEachPurchase(_ body: (ShownPurchase) throws -> Void) rethrows {
    switch content {
    case .verified(_, let reply):
      guard let reply else { return }
      for row in reply.rows { try body(ShownPurchase(row)) }
      for renewal in reply.renewals { try body(ShownPurchase(renewal)) }
    case .received(let upload):
      for case let transaction? in upload.transactions { try body(ShownPurchase(transaction)) }
    case .notified(let notification):
      if let transaction = notification.transaction { try body(ShownPurchase(transaction)) }
      if let renewal = notification.renewal {
        try body(ShownPurchase(renewal))
      } else if let original = notification.originalTransactionID {
        var info = RenewalInfo()
        info.originalTransactionID = original
        try body(ShownPurchase(info))
      }
    case .fetched(let page):
      for case let transaction? in page.transactions { try body(ShownPurchase(transaction)) }
      for renewal in page.renewals { try body(ShownPurchase(renewal)) }
      let keeper = TextKeeper()
      let refused = page.refused(keeper)
      for transaction in refused.transactions { try body(ShownPurchase(transaction)) }
      for renewal in refused.renewals { try body(ShownPurchase(renewal)) }
    case .uploaded, .other: return
    }
  }
}

extension PurchaseFacts {
  /// The facts of an event's purchases.
  package static func all(of event: EventLine) -> [PurchaseFacts] {
    var facts: [PurchaseFacts] = []
    let scan = EventScan()
    withExtendedLifetime(scan) {
      scan.scan(event).forEachPurchase { facts.append(PurchaseFacts($0)) }
    }
    return facts
  }

  /// The objects of an event's purchases that `isWanted` chooses, as JSON.
  static func objects(
    of event: EventLine, where isWanted: (PurchaseFacts) -> Bool
  ) -> [[UInt8]] {
    var objects: [[UInt8]] = []
    let scan = EventScan()
    withExtendedLifetime(scan) {
      scan.scan(event).forEachPurchase { purchase in
        guard let object = purchase.object, isWanted(PurchaseFacts(purchase)) else { return }
        objects.append(Array(object))
      }
    }
    return objects
  }

  /// The facts of a receipt that waits for the App Store, from its purchases in the projections.
  static func all(ofReply bytes: [UInt8]) -> [PurchaseFacts] {
    let keeper = TextKeeper()
    return bytes.withUnsafeBytes { bytes in
      (try? Reply(bytes, keeper))?.rows.map { PurchaseFacts(ShownPurchase($0)) } ?? []
    }
  }
}
