// The hashes of what an event has in common with others: the receipt, ids and events that it names.
import AppStore
package import Base
import Ledger
import Projections
import Revenue

/// Collects the nodes of an event.
struct EventNodes {
  /// The hashes of the current event, possibly with duplicates.
  private(set) var hashes: [UInt64] = []
  /// Of the ledger: equal positions of different ledgers get different hashes.
  private let seed: UInt64
  /// Whether the events are folded with those of other ledgers, whose receipts have other ids.
  private let isOfFleet: Bool
  private var last: UInt64 = 0
  private var prices = MetadataPrices()

  init(_ ledger: LedgerID, isOfFleet: Bool) {
    self.isOfFleet = isOfFleet
    var text = ledger.description
    seed = text.withUTF8 { NodeHash.hash(.event, JSONBytes($0)) }
  }

  /// The label of a component, from the ledger and the position of its first event.
  func label(first position: Position) -> Int64 {
    Int64(bitPattern: NodeHash.hash(.component, seed: seed, number: position))
  }

  /// - Parameter uuid: of a notification, what `CopiedOnce` tells it by.
  mutating func collect(_ event: borrowing ScannedEvent, uuid: UInt128?) {
    hashes.removeAll(keepingCapacity: true)
    last = 0
    if let uuid { hashes.append(withUnsafeBytes(of: uuid) { NodeHash.hash(.notification, $0) }) }
    switch event.content {
    case .uploaded(let upload):
      add(event: event.line.position)
      if let id = upload.receiptID {
        hashes.append(id.hasEscapes ? hash(.receipt, id.bytes) : NodeHash.hash(.receipt, id.raw))
      }
      if isOfFleet, let digest = upload.receiptSHA256Hex {
        hashes.append(hash(.digest, digest.bytes))
      }
      addPriced(upload.metadata)
    case .verified(let result, let reply):
      add(event: event.line.position)
      add(event: result.upload)
      if let position = result.replyOf { add(event: Int(position)) }
      guard let reply else { return }
      for row in reply.rows { add(row) }
      for renewal in reply.renewals { add(id: renewal.originalTransactionID) }
    case .received(let upload):
      add(event: event.line.position)
      for transaction in upload.transactions { add(transaction) }
      addPriced(upload.view.metadata)
    case .notified(let notification):
      add(notification.transaction)
      add(id: notification.originalTransactionID)
      add(id: notification.renewal?.info.originalTransactionID)
    case .fetched(let page):
      addRefused(of: page, at: event.line.position)
      if let id = page.view.transactionID { addText(id) }
      for transaction in page.transactions { add(transaction) }
      for renewal in page.renewals { add(id: renewal.info.originalTransactionID) }
    case .other:
      guard EventType(event.line.type) == .signaturesAccepted,
        let accepted = try? SignaturesAccepted(data: event.line.data)
      else { return }
      add(event: event.line.position)
      add(event: accepted.page)
    }
  }

  /// The transactions that an upload prices: whether a sale has such an id decides where its price applies.
  private mutating func addPriced(_ metadata: Text?) {
    guard let metadata, !metadata.isEmpty else { return }
    prices.read(metadata)
    prices.forEachTransaction { hashes.append(NodeHash.hash(.transaction, $0)) }
  }

  /// What a page has in common with others once its rejected objects count: a later event may name it.
  private mutating func addRefused(of page: FetchedTransactions, at position: Position) {
    let keeper = TextKeeper()
    let refused = page.refused(keeper)
    // Also if nothing of the page can count later: an empty acceptance may name it.
    add(event: position)
    for transaction in refused.transactions { add(transaction) }
    for renewal in refused.renewals { add(id: renewal.info.originalTransactionID) }
  }

  /// The purchases of a receipt's file.
  mutating func collect(_ receipt: Receipt) {
    hashes.removeAll(keepingCapacity: true)
    for purchase in receipt.purchases {
      for id in [
        purchase.transactionID, purchase.originalTransactionID, purchase.webOrderLineItemID,
      ] {
        guard let id else { continue }
        hashes.append(hash(.transaction, Array(id.utf8)))
      }
    }
  }

  /// Sales of one Apple Account get their users from each other's uploads (rule R6).
  private mutating func add(_ transaction: SignedTransaction?) {
    guard let transaction else { return }
    add(transaction.row)
    if let account = transaction.appTransactionID {
      hashes.append(NodeHash.hash(.account, account))
    }
  }

  private mutating func add(_ row: ReplyRow) {
    add(id: row.transactionID)
    add(id: row.originalTransactionID)
    add(id: row.webOrderLineItemID)
  }

  /// Rows of one reply often name the same id as the previous row.
  private mutating func add(id: JSONBytes?) {
    guard let id else { return }
    let hash = NodeHash.hash(.transaction, id)
    if hash != last { hashes.append(hash) }
    last = hash
  }

  private mutating func addText(_ text: JSONString) {
    hashes.append(hash(.transaction, text.bytes))
  }

  private mutating func add(event position: Position) {
    hashes.append(NodeHash.hash(.event, seed: seed, number: position))
  }

  private func hash(_ kind: NodeHash.Kind, _ bytes: [UInt8]) -> UInt64 {
    bytes.withUnsafeBytes { NodeHash.hash(kind, $0) }
  }

  /// The hash of an event of the ledger, as its verifications name it.
  func hash(ofEvent position: Position) -> UInt64 {
    NodeHash.hash(.event, seed: seed, number: position)
  }
}

// MARK: - Hashes

/// SipHash-2-4 with a fixed key: the same value in every run and every ledger. Equal hashes of different texts are
/// harmless, because they only fold together what could be folded separately.
package struct NodeHash {
  /// The kind of a text.
  enum Kind: UInt8 {
    case receipt = 0x72
    case digest = 0x64
    case notification = 0x6E
    case transaction = 0x74
    case account = 0x61
    case event = 0x65
    case component = 0x63
  }

  private var v0: UInt64
  private var v1: UInt64
  private var v2: UInt64
  private var v3: UInt64

  private init(_ key0: UInt64, _ key1: UInt64) {
    v0 = key0 ^ 0x736F_6D65_7073_6575
    v1 = key1 ^ 0x646F_7261_6E64_6F6D
    v2 = key0 ^ 0x6C79_6765_6E65_7261
    v3 = key1 ^ 0x7465_6462_7974_6573
  }

  /// The hash of a text; never 0.
  static func hash(_ kind: Kind, _ text: JSONBytes) -> UInt64 {
    let hash = sip(UInt64(kind.rawValue), 0x7265_6365_6970_7473, text)
    return hash == 0 ? 1 : hash
  }

  /// The hash of a text of this kind with a number, as an event's position in a ledger.
  static func hash(_ kind: Kind, seed: UInt64, number: Int) -> UInt64 {
    let hash = withUnsafeBytes(of: UInt64(number).littleEndian) {
      sip(UInt64(kind.rawValue), seed, $0)
    }
    return hash == 0 ? 1 : hash
  }

  package static func sip(_ key0: UInt64, _ key1: UInt64, _ text: JSONBytes) -> UInt64 {
    var state = NodeHash(key0, key1)
    var index = 0
    while index + 8 <= text.count {
      state.add(UInt64(littleEndian: text.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
      index += 8
    }
    var last = UInt64(text.count & 0xFF) << 56
    for offset in index..<text.count {
      last |= UInt64(text[offset]) << (8 * UInt64(offset - index))
    }
    state.add(last)
    state.v2 ^= 0xFF
    for _ in 0..<4 { state.round() }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3
  }

  @inline(__always)
  private mutating func add(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  @inline(__always)
  private mutating func round() {
    func turned(_ value: UInt64, _ count: UInt64) -> UInt64 {
      value << count | value >> (64 - count)
    }
    v0 &+= v1
    v1 = turned(v1, 13) ^ v0
    v0 = turned(v0, 32)
    v2 &+= v3
    v3 = turned(v3, 16) ^ v2
    v0 &+= v3
    v3 = turned(v3, 21) ^ v0
    v2 &+= v1
    v1 = turned(v1, 17) ^ v2
    v2 = turned(v2, 32)
  }
}
