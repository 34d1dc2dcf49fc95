// The chains of rule R7.4, each with its sales.

extension Sale {
  /// R7.4: only regular sales with an original transaction belong to chains.
  package var isOfChain: Bool { kind == .regular && !originalTransactionID.isEmpty }

  /// R7.4: what the latest earlier sale of the chain must have in common with this one.
  fileprivate func isOfSameChain(as other: Sale) -> Bool {
    environment == other.environment && bundle == other.bundle && product == other.product
      && originalTransactionID.equals(other.originalTransactionID)
  }
}

/// Groups sales by chain without sorting all of them: most chains have one sale.
final class ChainTable {
  private struct Chain {
    /// One sale of the chain, against which other sales are compared.
    let example: Int
    /// The most recently added member, or −1.
    var last: Int32 = -1
  }

  private let store: SaleStore
  private let places = HashIndex()
  private var chains: [Chain] = []
  /// For each member, the one added before it, or −1.
  private var previous: [Int32]

  init(_ store: SaleStore) {
    self.store = store
    previous = []
  }

  private func hash(_ sale: Sale) -> UInt64 {
    sale.originalTransactionID.placeHash(UInt64(UInt32(bitPattern: sale.product)))
  }

  private func find(_ sale: Sale, _ hash: UInt64) -> Int? {
    places.find(hash) { store.sales[chains[$0].example].isOfSameChain(as: sale) }
  }

  /// Adds the chain of a sale; returns whether it was new.
  func add(chainOf place: Int) -> Bool {
    let sale = store.sales[place]
    let hash = hash(sale)
    if find(sale, hash) != nil { return false }
    places.insert(hash, chains.count)
    chains.append(Chain(example: place))
    return true
  }

  /// Adds a sale to its chain, if that chain has been added.
  func addMember(_ place: Int) {
    if previous.count < store.sales.count {
      previous += Array(repeating: -1, count: store.sales.count - previous.count)
    }
    let sale = store.sales[place]
    guard let chain = find(sale, hash(sale)) else { return }
    previous[place] = chains[chain].last
    chains[chain].last = Int32(place)
  }

  /// Calls `body` with the indexes of each chain's sales.
  func forEachChain(_ body: (inout [Int]) -> Void) {
    var members: [Int] = []
    for chain in chains {
      members.removeAll(keepingCapacity: true)
      var place = chain.last
      while place >= 0 {
        members.append(Int(place))
        place = previous[Int(place)]
      }
      body(&members)
    }
  }
}
