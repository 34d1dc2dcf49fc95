// What an event has in common with others: the hashes of the receipt, ids and events that it names.
import AppStore
import JSON
import Ledger
import Projections
import Revenue

/// Collects the nodes of an event.
struct EventNodes {
  /// The hashes of the current event, perhaps some of them twice.
  private(set) var hashes: [UInt64] = []
  /// Of the ledger: positions of different ledgers differ.
  private let seed: UInt64
  private var last: UInt64 = 0
  private var prices = MetadataPrices()

  init(_ ledger: LedgerID) {
    var text = ledger.description
    seed = text.withUTF8 { NodeHash.hash(.event, JSONBytes($0)) }
  }

  /// The label of a component: of the ledger and the position of its first event.
  func label(first position: Position) -> Int64 {
    Int64(bitPattern: NodeHash.hash(.component, seed: seed, number: position))
  }

  mutating func collect(_ event: borrowing ScannedEvent) {
    hashes.removeAll(keepingCapacity: true)
    last = 0
    switch event.content {
    case .uploaded(let upload):
      add(event: event.line.position)
      if let id = upload.receiptID {
        hashes.append(id.hasEscapes ? hash(.receipt, id.bytes) : NodeHash.hash(.receipt, id.raw))
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

  /// The transactions that an upload prices: whether a sale has such an id decides what its price counts for.
  private mutating func addPriced(_ metadata: Text?) {
    guard let metadata, !metadata.isEmpty else { return }
    prices.read(metadata)
    prices.forEachTransaction { hashes.append(NodeHash.hash(.transaction, $0)) }
  }

  /// What a page has in common with others once its refused objects count: a later event may name it.
  private mutating func addRefused(of page: FetchedTransactions, at position: Position) {
    let keeper = TextKeeper()
    let refused = page.refused(keeper)
    // Also where nothing of the page can count later: an acceptance of nothing may name it.
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

  /// Sales of one Apple Account have users by each other's uploads (rule R6).
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

  /// Rows of one reply often name the id that the row before named.
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
