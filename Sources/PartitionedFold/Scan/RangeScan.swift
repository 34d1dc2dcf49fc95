// Scans a range of events into tables: events, what they have in common, declarations.
import AppStore
import Base
import JSON
import Ledger
import Projections

/// Reads a range twice: first all that belongs together must be known.
struct RangeScan {
  /// The tables that it writes.
  package static let eventsTable: UInt16 = 0
  package static let edgesTable: UInt16 = 1
  package static let declarationsTable: UInt16 = 2

  private let reader: LogReader
  private let range: Range<Position>
  /// Whether every receipt is written.
  private let keepsReceipts: Bool

  /// Throws if the range is not in the log.
  init(
    _ directory: LedgerDirectory, _ range: Range<Position>, keepsReceipts: Bool = false
  ) throws {
    reader = try LogReader(directory, part: range)
    self.range = range
    self.keepsReceipts = keepsReceipts
    guard reader.head.size >= range.upperBound else {
      throw reader.damage
        ?? LedgerError(
          .invalidInput, operation: "scan", object: "positions to \(range.upperBound)",
          cause: "the log ends at \(reader.head.size)")
    }
  }

  func run(_ output: DescriptorOutput) throws {
    var survey = RangeSurvey(
      range, of: reader.directory.identity.id, try reader.frontier(at: range.lowerBound))
    try read(prepared: true) { chunk in
      try Self.forEachEvent(of: chunk) { try survey.add($0) }
      try survey.check.compare(with: chunk.frontierAfter)
    }
    try joinPurchases(&survey)
    let writer = ExchangeWriter(output)
    try writeEvents(&survey, writer)
    try writeEdges(&survey, writer)
    try writer.finish(summary(of: survey))
  }

  private func read(
    prepared isPrepared: Bool, isWanted: BlockFilter? = nil,
    _ body: (borrowing EventChunk) throws -> Void
  ) throws {
    if range.isEmpty { return }
    let prepare: BlockPreparation = { EventScan($0, firstPosition: $1, count: $2) }
    try reader.read(
      from: range.lowerBound, to: range.upperBound, workers: 1, isWanted: isWanted,
      prepare: isPrepared ? prepare : nil
    ) { chunk in
      try body(chunk)
      return true
    }
  }

  private static func forEachEvent(
    of chunk: borrowing EventChunk, _ body: (borrowing ScannedEvent) throws -> Void
  ) throws {
    let scan =
      chunk.prepared as? EventScan
      ?? EventScan(chunk.bytes, firstPosition: chunk.firstPosition, count: chunk.count)
    guard let scan, scan.events.count == chunk.count else {
      // Finds the line and says what is wrong with it.
      try chunk.forEachEvent { _ in }
      throw RangeCheck.tampered(chunk.firstPosition, "a line is not an event")
    }
    for event in scan.events { try body(event) }
  }

  /// Reads the receipts of uploads that may be pending.
  private func joinPurchases(_ survey: inout RangeSurvey) throws {
    let uploads = survey.openUploads
    if uploads.isEmpty { return }
    var next = 0
    try read(
      prepared: false,
      isWanted: { block in
        let place = lowerBound(0..<uploads.count) { uploads[$0] < block.lowerBound }
        return place < uploads.count && uploads[place] < block.upperBound
      }
    ) { chunk in
      while next < uploads.count, uploads[next] < chunk.firstPosition { next += 1 }
      guard next < uploads.count, uploads[next] < chunk.endPosition else { return }
      try chunk.forEachEvent { line in
        guard next < uploads.count, line.position == uploads[next] else { return }
        next += 1
        guard let text = try? ReceiptUploadedView(data: line.data).receipt,
          let content = try? Base64.decode(text.raw), let receipt = try? ReceiptFile.decode(content)
        else { return }
        survey.join(receipt, ofUploadAt: line.position)
      }
    }
  }

  // MARK: Tables

  private func writeEvents(_ survey: inout RangeSurvey, _ writer: ExchangeWriter) throws {
    let events = writer.table(Self.eventsTable, [.integer, .integer, .integer, .bytes])
    let declarations = writer.table(Self.declarationsTable, [.integer, .integer, .bytes])
    try read(prepared: false) { chunk in
      try chunk.forEachEvent { line in
        if survey.isDeclaration(line.position) {
          try declarations.append(Int64(line.position))
          try declarations.append(line.recordedAtMs)
          return try declarations.append(line.bytes)
        }
        try events.append(Int64(line.position))
        try events.append(line.recordedAtMs)
        try events.append(survey.label(ofEventAt: line.position))
        guard !keepsReceipts, let offset = survey.receiptOffset(leftOutAt: line.position) else {
          return try events.append(line.bytes)
        }
        // The receipt is the data's last member: after it come its quote and two braces.
        try events.append(
          UnsafeRawBufferPointer(rebasing: line.bytes[..<offset]),
          UnsafeRawBufferPointer(rebasing: line.bytes[(line.bytes.count - 3)...]))
      }
    }
  }

  private func writeEdges(_ survey: inout RangeSurvey, _ writer: ExchangeWriter) throws {
    let edges = writer.table(Self.edgesTable, [.integer, .integer])
    for node in 0..<survey.components.count where survey.components.hashes[node] != 0 {
      try edges.append(survey.label(ofNode: node))
      try edges.append(Int64(bitPattern: survey.components.hashes[node]))
    }
  }

  private func summary(of survey: RangeSurvey) -> [UInt8] {
    let check = survey.check
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("first", range.lowerBound)
    writer.member("end", range.upperBound)
    writer.member("frontier_before", check.frontierBefore.roots.map(\.hex))
    writer.member("frontier_after", check.frontier.roots.map(\.hex))
    writer.member("root_before", check.frontierBefore.root.hex)
    writer.member("root_after", check.frontier.root.hex)
    writer.member("events", range.count - survey.declarationCount)
    writer.member("declarations", survey.declarationCount)
    writer.member("inflated_bytes", check.byteCount)
    writer.member("last_event_at_ms", check.lastEventAtMs)
    writer.endObject()
    return writer.bytes
  }
}
