// Finds which events of a range belong together: union-find over what they have in common.

/// Nodes, each a hash or a single event without a hash, joined into components.
struct ComponentFinder: ~Copyable {
  /// The hash of each node; 0 for an event without one.
  private(set) var hashes: [UInt64] = []
  private var parents: [UInt32] = []
  /// The lowest event of each node that is a root.
  private var firsts: [UInt32] = []
  /// Open addressing: a node's index + 1, or 0.
  private var slots = [UInt32](repeating: 0, count: 1 << 12)

  /// How many events were written with the label of their component.
  var writtenCount = 0
  /// The components that were absorbed after events were written with their labels.
  private(set) var absorbed: [(firstEvent: UInt32, node: UInt32)] = []

  var count: Int { hashes.count }

  /// The node of a hash, added if it is new.
  mutating func node(_ hash: UInt64, ofEvent event: Int) -> Int {
    var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
    while slots[slot] != 0 {
      let known = Int(slots[slot]) - 1
      if hashes[known] == hash { return known }
      slot = (slot + 1) & (slots.count - 1)
    }
    slots[slot] = UInt32(hashes.count + 1)
    let node = add(hash, event)
    if 2 * hashes.count > slots.count { grow() }
    return node
  }

  /// A node of a single event.
  mutating func loneNode(ofEvent event: Int) -> Int { add(0, event) }

  private mutating func add(_ hash: UInt64, _ event: Int) -> Int {
    hashes.append(hash)
    parents.append(UInt32(parents.count))
    firsts.append(UInt32(event))
    return hashes.count - 1
  }

  private mutating func grow() {
    slots = [UInt32](repeating: 0, count: 2 * slots.count)
    for (node, hash) in hashes.enumerated() where hash != 0 {
      var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
      while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = UInt32(node + 1)
    }
  }

  /// The root of a node's component.
  mutating func root(of node: Int) -> Int {
    var root = node
    while Int(parents[root]) != root {
      let above = Int(parents[root])
      parents[root] = parents[above]
      root = Int(parents[root])
    }
    return root
  }

  /// Joins two components. The one with the lower first event remains.
  mutating func join(_ left: Int, _ right: Int) {
    let (left, right) = (root(of: left), root(of: right))
    if left == right { return }
    let isLeftFirst = firsts[left] <= firsts[right]
    let (above, below) = isLeftFirst ? (left, right) : (right, left)
    parents[below] = UInt32(above)
    if Int(firsts[below]) < writtenCount { absorbed.append((firsts[below], UInt32(below))) }
  }

  /// The lowest event of a node's component.
  mutating func firstEvent(of node: Int) -> Int { Int(firsts[root(of: node)]) }
}
