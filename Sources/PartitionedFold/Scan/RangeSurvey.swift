// The first reading of a range: every event checked, what belongs together, which receipts are needed.
import AppStore
import Base
import JSON
import Ledger
import Projections

/// What a scan must know before it can write the first event. Some 9 bytes an event, 20 a node.
struct RangeSurvey {
  /// The node of a declaration: it belongs to no component.
  static let noNode = UInt32.max

  private struct Flags: OptionSet {
    let rawValue: UInt8
    /// The upload has a final reply, so its receipt is not pending.
    static let isFinal = Flags(rawValue: 1)
    /// A verification of the upload can only be judged with its receipt.
    static let isNeeded = Flags(rawValue: 2)
    /// A verification, whose reply others may use.
    static let isVerification = Flags(rawValue: 4)
  }

  let range: Range<Position>
  private(set) var check: RangeCheck
  private(set) var components = ComponentFinder()
  private(set) var declarationCount = 0
  private var nodes: EventNodes
  private var nodeOfEvent: [UInt32] = []
  /// Where in an upload's line its receipt begins.
  private var receiptOffsets: [UInt32] = []
  private var flags: [Flags] = []

  init(_ range: Range<Position>, of ledger: LedgerID, _ frontier: Frontier) {
    self.range = range
    check = RangeCheck(frontier)
    nodes = EventNodes(ledger)
    nodeOfEvent.reserveCapacity(range.count)
    receiptOffsets.reserveCapacity(range.count)
    flags.reserveCapacity(range.count)
  }

  /// Takes the next event.
  mutating func add(_ event: borrowing ScannedEvent) throws {
    try check.check(event.line)
    let index = nodeOfEvent.count
    var offset = 0
    var flag: Flags = []
    switch event.content {
    case .other:
      if case .declaration = try EventClass(event.line) {
        declarationCount += 1
        return append(Self.noNode, 0, [])
      }
      return append(UInt32(components.loneNode(ofEvent: index)), 0, [])
    case .uploaded(let upload):
      if let start = upload.receipt?.raw.baseAddress, let line = event.line.bytes.baseAddress {
        offset = start - line
      }
    case .verified(let result, let reply):
      note(result, hasReply: reply != nil, at: event.line.position)
      flag = .isVerification
    case .received, .notified, .fetched: break
    }
    nodes.collect(event)
    append(UInt32(join(nodes.hashes, ofEvent: index)), UInt32(offset), flag)
  }

  private mutating func append(_ node: UInt32, _ offset: UInt32, _ flag: Flags) {
    nodeOfEvent.append(node)
    receiptOffsets.append(offset)
    flags.append(flag)
  }

  private mutating func join(_ hashes: [UInt64], ofEvent index: Int) -> Int {
    guard let first = hashes.first else { return components.loneNode(ofEvent: index) }
    let node = components.node(first, ofEvent: index)
    for hash in hashes.dropFirst() {
      components.join(node, components.node(hash, ofEvent: index))
    }
    return node
  }

  /// Notes what a verification means for the receipt of its upload. What the fold may refuse does not count.
  private mutating func note(
    _ result: ReceiptVerifiedView, hasReply: Bool, at position: Position
  ) {
    let known = range.lowerBound..<position
    guard result.authority == .appStore, known ~= result.upload else { return }
    let upload = result.upload - range.lowerBound
    guard receiptOffsets[upload] > 0 else { return }
    // The fold compares such a reply with the receipt.
    if result.mismatch == nil, result.outcome == .valid, hasReply {
      flags[upload].insert(.isNeeded)
    }
    if let earlier = result.replyOf {
      guard known ~= Int(earlier),
        flags[Int(earlier) - range.lowerBound].contains(.isVerification)
      else { return }
    }
    if result.outcome != .unreachable, ReplyStatus.isFinal(result.status) {
      flags[upload].insert(.isFinal)
    }
  }

  /// The uploads that may be pending, in order.
  var openUploads: [Position] {
    receiptOffsets.indices
      .filter { receiptOffsets[$0] > 0 && !flags[$0].contains(.isFinal) }
      .map { $0 + range.lowerBound }
  }

  /// Joins an upload with the purchases in its receipt: a pending receipt shows them (rule R1).
  mutating func join(_ receipt: Receipt, ofUploadAt position: Position) {
    let index = position - range.lowerBound
    nodes.collect(receipt)
    for hash in nodes.hashes {
      components.join(Int(nodeOfEvent[index]), components.node(hash, ofEvent: index))
    }
  }

  // MARK: Results

  func isDeclaration(_ position: Position) -> Bool {
    nodeOfEvent[position - range.lowerBound] == Self.noNode
  }

  /// The label of an event's component.
  mutating func label(ofEventAt position: Position) -> Int64 {
    label(ofNode: Int(nodeOfEvent[position - range.lowerBound]))
  }

  mutating func label(ofNode node: Int) -> Int64 {
    nodes.label(first: range.lowerBound + components.firstEvent(of: node))
  }

  /// Where the receipt begins that is left out of an event's line; nil if none is.
  func receiptOffset(leftOutAt position: Position) -> Int? {
    let index = position - range.lowerBound
    guard receiptOffsets[index] > 0, flags[index].contains(.isFinal),
      !flags[index].contains(.isNeeded)
    else { return nil }
    return Int(receiptOffsets[index])
  }
}
