// Scans a range of events into tables: checked events, their links, declarations, receipts.
import AppStore
import Base
package import Ledger
import Merge
import Projections

/// Reads a range once, and writes its events some time after reading them.
package final class RangeScan {
  package static let eventsTable = 0
  package static let edgesTable = 1
  package static let declarationsTable = 2
  /// The ids and digests of receipts, for uploads of another range that have lost the digest.
  package static let receiptsTable = 3

  /// How many bytes of events wait: an upload's verification follows within seconds.
  package static let waitingByteCount = 16 << 20

  private let reader: LogReader
  private let range: Range<Position>
  private let beforeMs: Int64?
  private let hasRedactions: Bool
  private let keepsReceipts: Bool
  private let waitingByteCount: Int
  private let writer: RowOutput
  private let events: RowTable
  private let declarations: RowTable
  private let receipts: RowTable
  private var check: RangeCheck
  private var links: EventLinks
  private var waiting: [WaitingChunk] = []
  private var waitingCount = 0
  private var counts = (events: 0, declarations: 0, withoutDigest: 0)
  /// When the last event was recorded, and the last that cannot be a copy of another ledger's.
  private var lastAtMs: (any: Int64, unique: Int64) = (0, 0)

  /// Throws if the range is not in the log.
  /// - Parameters:
  ///   - beforeMs: for a fold with events of other ledgers: those recorded at this time or later are checked, but not
  ///     written.
  ///   - keepsReceipts: whether every receipt is written.
  package init(
    _ directory: LedgerDirectory, _ range: Range<Position>, before beforeMs: Int64? = nil,
    to output: DescriptorOutput, keepsReceipts: Bool = false,
    waitingByteCount: Int = RangeScan.waitingByteCount
  ) throws {
    reader = try LogReader(directory, part: range)
    self.range = range
    self.beforeMs = beforeMs
    hasRedactions = directory.identity.formatVersion >= Format.versionWithRedactions
    self.keepsReceipts = keepsReceipts
    self.waitingByteCount = waitingByteCount
    guard reader.head.size >= range.upperBound else {
      throw reader.damage
        ?? LedgerError(
          .invalidInput, operation: "scan", object: "positions to \(range.upperBound)",
          cause: "the log ends at \(reader.head.size)")
    }
    check = RangeCheck(try reader.frontier(at: range.lowerBound))
    links = EventLinks(range, of: directory.identity.id, isOfFleet: beforeMs != nil)
    writer = RowOutput(output)
    events = writer.table(Self.eventsTable)
    declarations = writer.table(Self.declarationsTable)
    receipts = writer.table(Self.receiptsTable)
  }

  package func run() throws {
    if !range.isEmpty {
      try reader.read(
        from: range.lowerBound, to: range.upperBound, workers: 1,
        prepare: { EventScan($0, firstPosition: $1, count: $2) }
      ) { chunk in
        try add(chunk)
        return true
      }
    }
    while !waiting.isEmpty { try writeOldest() }
    let edges = writer.table(Self.edgesTable)
    try links.forEachEdge { label, node in
      edges.append(label)
      edges.append(node)
      try edges.endRow()
    }
    try writer.finish(summary)
  }

  // MARK: Reading

  private func add(_ chunk: borrowing EventChunk) throws {
    let scan =
      chunk.prepared as? EventScan
      ?? EventScan(chunk.bytes, firstPosition: chunk.firstPosition, count: chunk.count)
    guard let scan, scan.events.count == chunk.count, let base = chunk.bytes.baseAddress else {
      // Finds the line and throws what is wrong with it.
      try chunk.forEachEvent { _ in }
      throw RangeCheck.tampered(chunk.firstPosition, "a line is not an event")
    }
    var events: [WaitingEvent] = []
    events.reserveCapacity(chunk.count)
    for event in scan.events {
      try check.check(event.line)
      try addReceipt(of: event)
      // Times do not decrease: all further events are left out too.
      if let beforeMs, event.line.recordedAtMs >= beforeMs { continue }
      events.append(try add(event, base))
    }
    try check.compare(with: chunk.frontierAfter)
    waiting.append(
      WaitingChunk(
        bytes: Array(chunk.bytes), firstPosition: chunk.firstPosition, events: events))
    waitingCount += chunk.bytes.count
    while waitingCount > waitingByteCount { try writeOldest() }
  }

  /// - Parameter base: where the chunk's bytes begin.
  private func add(
    _ event: borrowing ScannedEvent, _ base: UnsafeRawPointer
  ) throws -> WaitingEvent {
    let line = event.line.bytes
    var waiting = WaitingEvent(
      offset: (line.baseAddress ?? base) - base, byteCount: line.count,
      recordedAtMs: event.line.recordedAtMs)
    lastAtMs.any = event.line.recordedAtMs
    if case .other = event.content, case .declaration = try EventClass(event.line) {
      links.addDeclaration()
      counts.declarations += 1
      return waiting
    }
    if beforeMs != nil, event.line.hasType("notification.received") {
      waiting.uuid = CopiedOnce.notification(event.line)
    }
    if waiting.uuid == nil { lastAtMs.unique = event.line.recordedAtMs }
    waiting.node = links.add(event, uuid: waiting.uuid)
    counts.events += 1
    if case .uploaded(let upload) = event.content {
      waiting.hasReceipt = upload.receipt != nil || upload.receiptFacts != nil
      if let receipt = upload.receipt?.raw.baseAddress, let start = line.baseAddress {
        waiting.receiptOffset = receipt - start
      }
      if beforeMs != nil, event.line.isRedacted, upload.receiptSHA256Hex == nil,
        let id = upload.receiptID?.string, Self.followsFromContent(id)
      {
        waiting.receiptID = id
        counts.withoutDigest += 1
      }
    }
    return waiting
  }

  /// Whether an id is not one of those that erasures draw at random.
  private static func followsFromContent(_ id: String) -> Bool {
    id.utf8.dropFirst(14).first == UInt8(ascii: "5")
  }

  private func addReceipt(of event: borrowing ScannedEvent) throws {
    guard hasRedactions, beforeMs != nil, case .uploaded(let upload) = event.content,
      let id = upload.receiptID, let digest = upload.receiptSHA256Hex
    else { return }
    receipts.append(id.bytes)
    receipts.append(digest.bytes)
    try receipts.endRow()
  }

  // MARK: Writing

  private func writeOldest() throws {
    let chunk = waiting.removeFirst()
    waitingCount -= chunk.bytes.count
    try chunk.bytes.withUnsafeBytes { bytes in
      for (index, event) in chunk.events.enumerated() {
        let line = UnsafeRawBufferPointer(
          rebasing: bytes[event.offset..<event.offset + event.byteCount])
        try write(event, line, at: chunk.firstPosition + index)
      }
    }
  }

  private func write(
    _ event: WaitingEvent, _ line: UnsafeRawBufferPointer, at position: Position
  ) throws {
    guard let node = event.node else {
      declarations.append(Int64(position))
      declarations.append(event.recordedAtMs)
      declarations.append(line)
      return try declarations.endRow()
    }
    if event.hasReceipt, links.isOpen(uploadAt: position) {
      joinPurchases(line, node, position)
    }
    events.append(Int64(position))
    events.append(event.recordedAtMs)
    events.append(links.label(ofNode: node, writtenAt: position))
    events.append((event.uuid.map { String($0, radix: 16) } ?? "").utf8)
    events.append((event.receiptID ?? "").utf8)
    guard event.receiptOffset > 0, !keepsReceipts, links.leaveOutReceipt(ofUploadAt: position)
    else {
      events.append(line)
      return try events.endRow()
    }
    // The receipt is the data's last member: after it come its quote and the closing braces.
    let braceCount = EventLine(line)?.isRedacted == true ? 3 : 2
    events.append(
      UnsafeRawBufferPointer(rebasing: line[..<event.receiptOffset]),
      UnsafeRawBufferPointer(rebasing: line[(line.count - 1 - braceCount)...]))
    try events.endRow()
  }

  private func joinPurchases(
    _ line: UnsafeRawBufferPointer, _ node: Int, _ position: Position
  ) {
    guard let event = EventLine(line),
      let upload = try? ReceiptUploadedView(
        data: event.data, isRedacted: event.isRedacted, version: event.version),
      let receipt = PendingReceipts.file(of: upload)
    else { return }
    links.join(receipt, node: node, position: position)
  }

  private var summary: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("first", range.lowerBound)
    writer.member("end", range.upperBound)
    writer.member("frontier_before", check.frontierBefore.roots.map(\.hex))
    writer.member("frontier_after", check.frontier.roots.map(\.hex))
    writer.member("root_before", check.frontierBefore.root.hex)
    writer.member("root_after", check.frontier.root.hex)
    writer.member("events", counts.events)
    writer.member("declarations", counts.declarations)
    writer.member("without_digest", counts.withoutDigest)
    writer.member("inflated_bytes", check.byteCount)
    writer.member("last_event_at_ms", lastAtMs.any)
    writer.member("last_unique_at_ms", lastAtMs.unique)
    writer.key("receipts_needed")
    writer.beginArray()
    for position in links.receiptsNeeded.sorted() { writer.integer(position) }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }
}

// MARK: - Checks

/// Checks events as they are read (digests, times, the tree): the tree and the time up to the last event.
struct RangeCheck {
  private let hasher = SHA256()
  let frontierBefore: Frontier
  private(set) var frontier: Frontier
  private(set) var lastEventAtMs: Int64 = 0
  private(set) var byteCount = 0

  /// - Parameter frontier: the tree before the first event.
  init(_ frontier: Frontier) {
    frontierBefore = frontier
    self.frontier = frontier
  }

  /// Checks the next event. Its position was checked when its line was read.
  mutating func check(_ line: EventLine) throws(LedgerError) {
    // The events that list redacted lines are elsewhere in the log: only an audit compares the two.
    guard line.isRedacted || line.verifyDigest(hasher) else {
      throw Self.tampered(line.position, "its digest is not that of its salt and data")
    }
    guard line.recordedAtMs >= lastEventAtMs else {
      throw Self.tampered(line.position, "event times decrease")
    }
    frontier.append(leafHash: line.leafHash(hasher), hasher)
    lastEventAtMs = line.recordedAtMs
    byteCount += line.bytes.count + 1
  }

  /// Compares the tree with the log's tree after a chunk.
  func compare(with expected: Frontier) throws(LedgerError) {
    guard frontier == expected else {
      throw Self.tampered(frontier.size - 1, "the tree of the events is not that of the log")
    }
  }

  static func tampered(_ position: Position, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: "log", position: position), operation: "scan", cause: cause)
  }
}

// MARK: - Waiting events

/// One event of a chunk that waits to be written: later events may join its component.
struct WaitingEvent {
  /// The event's line in its chunk.
  let offset: Int
  let byteCount: Int
  let recordedAtMs: Int64
  /// Nil for a declaration.
  var node: Int?
  /// The offset of an upload's receipt in base64 in its line; 0 for other events, and if a redaction removed it.
  var receiptOffset = 0
  /// Whether it is an upload with a receipt, or with its redacted remains.
  var hasReceipt = false
  /// Of a notification that may come from several ledgers.
  var uuid: UInt128?
  /// Of an upload that has lost the receipt's digest, from which the id follows.
  var receiptID: String?
}

/// A chunk's lines, copied.
struct WaitingChunk {
  let bytes: [UInt8]
  let firstPosition: Position
  let events: [WaitingEvent]
}
