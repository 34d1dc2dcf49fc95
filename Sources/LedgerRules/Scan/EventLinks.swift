// Links the events of a range that belong together, and finds the receipts that the fold needs.
import AppStore
import Base
import Ledger
import Projections

/// Receives the events of a range in order. Takes some 20 bytes per node, and one per event.
struct EventLinks: ~Copyable {
  private struct Flags: OptionSet {
    let rawValue: UInt8
    static let isUpload = Flags(rawValue: 1)
    /// The upload has a final reply, so its receipt is not pending.
    static let isFinal = Flags(rawValue: 2)
    /// A verification of the upload can only be judged with its receipt.
    static let isNeeded = Flags(rawValue: 4)
    /// A verification, whose reply others may use.
    static let isVerification = Flags(rawValue: 8)
    /// The upload was written without its receipt.
    static let isLeftOut = Flags(rawValue: 16)
    /// A verification whose reply names no bundle: the receipt does (rule R2).
    static let isNameless = Flags(rawValue: 32)
  }

  private let first: Position
  private var nodes: EventNodes
  private var flags: [Flags] = []
  private(set) var components = ComponentFinder()
  /// Uploads whose receipts are needed by events of the range but not written by it: they lie before it, or were
  /// written before the need was known. Replies that name no bundle need them, and events of programs that recorded no
  /// `mismatch`.
  private(set) var receiptsNeeded: Set<Position> = []

  /// - Parameter isOfFleet: whether the events are folded with those of other ledgers.
  init(_ range: Range<Position>, of ledger: LedgerID, isOfFleet: Bool) {
    first = range.lowerBound
    nodes = EventNodes(ledger, isOfFleet: isOfFleet)
  }

  /// Adds the next event; returns its node.
  mutating func add(_ event: borrowing ScannedEvent, uuid: UInt128?) -> Int {
    var flag: Flags = []
    switch event.content {
    case .uploaded: flag = .isUpload
    case .verified(let result, let reply):
      let isNameless = isNameless(result, reply, at: event.line.position)
      record(result, hasReply: reply != nil, isNameless, at: event.line.position)
      flag = isNameless ? [.isVerification, .isNameless] : .isVerification
    case .received, .notified, .fetched, .other: break
    }
    let index = flags.count
    flags.append(flag)
    nodes.collect(event, uuid: uuid)
    guard let hash = nodes.hashes.first else { return components.loneNode(ofEvent: index) }
    let node = components.node(hash, ofEvent: index)
    for other in nodes.hashes.dropFirst() {
      components.join(node, components.node(other, ofEvent: index))
    }
    return node
  }

  /// Adds a declaration, which belongs to no component.
  mutating func addDeclaration() { flags.append([]) }

  /// Whether the reply of a verification, possibly an earlier one's, names no bundle. True for a reply before the
  /// range.
  private func isNameless(
    _ result: ReceiptVerifiedView, _ reply: Reply?, at position: Position
  ) -> Bool {
    if let reply { return reply.bundleID == nil && !reply.rows.isEmpty }
    guard let earlier = result.replyOf, earlier < position else { return false }
    return Int(earlier) < first || flags[Int(earlier) - first].contains(.isNameless)
  }

  /// Records what a verification means for the receipt of its upload. What the fold may reject does not count.
  private mutating func record(
    _ result: ReceiptVerifiedView, hasReply: Bool, _ isNameless: Bool, at position: Position
  ) {
    guard result.authority == .appStore, result.upload < position else { return }
    // The fold compares such a reply with the receipt.
    let isNeeded =
      result.outcome == .valid && (isNameless || result.mismatch == nil && hasReply)
    guard result.upload >= first else {
      if isNeeded { receiptsNeeded.insert(result.upload) }
      return
    }
    let upload = result.upload - first
    guard flags[upload].contains(.isUpload) else { return }
    if isNeeded {
      flags[upload].insert(.isNeeded)
      if flags[upload].contains(.isLeftOut) { receiptsNeeded.insert(result.upload) }
    }
    if let earlier = result.replyOf {
      guard first..<position ~= Int(earlier),
        flags[Int(earlier) - first].contains(.isVerification)
      else { return }
    }
    if result.outcome != .unreachable, ReplyStatus.isFinal(result.status) {
      flags[upload].insert(.isFinal)
    }
  }

  /// Whether an upload may be pending.
  func isOpen(uploadAt position: Position) -> Bool {
    !flags[position - first].contains(.isFinal)
  }

  /// Leaves an upload's receipt out if the fold can't need it according to the events read so far; returns whether it
  /// did.
  mutating func leaveOutReceipt(ofUploadAt position: Position) -> Bool {
    let index = position - first
    guard flags[index].contains(.isFinal), !flags[index].contains(.isNeeded) else { return false }
    flags[index].insert(.isLeftOut)
    return true
  }

  /// Joins an upload with the purchases in its receipt: a pending receipt shows them (rule R1).
  mutating func join(_ receipt: Receipt, node: Int, position: Position) {
    nodes.collect(receipt)
    for hash in nodes.hashes {
      components.join(node, components.node(hash, ofEvent: position - first))
    }
  }

  /// The label of a node's component, for an event that is written now. Components that are joined later have several
  /// labels, which edges connect.
  mutating func label(ofNode node: Int, writtenAt position: Position) -> Int64 {
    components.writtenCount = position - first + 1
    let firstEvent = components.firstEvent(of: node)
    return label(firstEvent: firstEvent)
  }

  private func label(firstEvent: Int) -> Int64 { nodes.label(first: first + firstEvent) }

  /// Passes on every label of a component with every node of it, or enough pairs to connect its labels.
  mutating func forEachEdge(_ body: (_ label: Int64, _ node: Int64) throws -> Void) rethrows {
    for node in 0..<components.count where components.hashes[node] != 0 {
      // Computed before its use: a call of a method of this value inside the loop would copy the tables first.
      let firstEvent = components.firstEvent(of: node)
      try body(label(firstEvent: firstEvent), Int64(bitPattern: components.hashes[node]))
    }
    for absorbed in components.absorbed {
      try body(
        label(firstEvent: Int(absorbed.firstEvent)),
        Int64(bitPattern: components.hashes[Int(absorbed.node)]))
    }
  }
}

// MARK: - Events without links

/// The events that `EventScan` leaves to the fold, because a scan does not need their content: declarations, and
/// unreadable events.
enum EventClass {
  /// It concerns every partition.
  case declaration
  /// It belongs to an upload, but cannot be decoded; the fold reports it and uses nothing of it.
  case malformed

  /// Throws if a later program wrote the event.
  init(_ line: EventLine) throws(Failure) {
    do throws(EventError) {
      self = try Self.read(line)
    } catch {
      throw Failure(
        error.isOfLaterProgram ? .newerFormat : .failed, operation: "scan",
        object: "position \(line.position)", cause: error.description)
    }
  }

  private static func read(_ line: EventLine) throws(EventError) -> EventClass {
    guard let type = EventType(line.type) else { throw .unknownType }
    try type.checkVersion(line.version)
    if type.role == .purchases { return .malformed }
    do throws(EventError) {
      try type.validate(line.data, version: line.version)
      return .declaration
    } catch { return .malformed }
  }
}
