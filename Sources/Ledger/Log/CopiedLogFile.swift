// Files of a log that are not in place yet: the tree up to a position in them, and cutting them there.
import Base

/// A segment or tail that was copied from elsewhere, under any name.
package struct CopiedLogFile {
  package enum Kind: Sendable, Equatable {
    case segment
    case tail
  }

  package let kind: Kind
  package let file: StorageFile
  package let first: Position
  private let ledger: LedgerID

  package init(_ kind: Kind, _ file: StorageFile, first: Position, of ledger: LedgerID) {
    (self.kind, self.file, self.first, self.ledger) = (kind, file, first, ledger)
  }

  /// The bytes of the first segment of a log without blocks: its opening member.
  package static func emptyLog(of ledger: LedgerID) -> [UInt8] {
    let buffer = ByteBuffer()
    MemberWriter(buffer).opening(
      ledgerID: ledger, frontierBefore: Frontier(), lastEventAtMs: 0)
    return Array(buffer.bytes)
  }

  // MARK: Tree

  /// The tree up to a position, or up to the file's end if it ends before.
  /// - Parameter before: the tree before a tail; a segment contains its own.
  package func frontier(
    upTo position: Position, after before: Frontier?
  ) throws(LedgerError) -> Frontier {
    switch kind {
    case .segment:
      let segment = try wholeSegment()
      if position >= segment.endPosition { return segment.frontierAfter }
      guard let block = segment.block(holding: position) else { return segment.frontierBefore }
      let events = ByteBuffer()
      _ = try BlockInflater().inflate(block, of: file, into: events)
      var frontier = try segment.frontier(before: block)
      try extend(&frontier, events.bytes, upTo: position)
      return frontier
    case .tail:
      guard var frontier = before, frontier.size == first else {
        throw damage("the events before it are not known", at: first)
      }
      try forEachFrame { header, _, events throws(LedgerError) in
        guard header.first == frontier.size else {
          throw damage("a frame of position \(header.first) is here", at: frontier.size)
        }
        try extend(&frontier, events, upTo: position)
        return header.endPosition < position
      }
      return frontier
    }
  }

  private func extend(
    _ frontier: inout Frontier, _ events: UnsafeRawBufferPointer, upTo position: Position
  ) throws(LedgerError) {
    let hasher = SHA256()
    var lines = EventLines(events)
    while frontier.size < position, let text = lines.next() {
      guard let line = EventLine(text), line.position == frontier.size else {
        throw damage("a line is not the event that should be there", at: frontier.size)
      }
      frontier.append(leafHash: line.leafHash(hasher), hasher)
    }
  }

  // MARK: Cutting

  /// Removes the events from a position on.
  /// - Returns: of a segment whose cut goes through a block, the frames of its last events and their first position;
  ///   the block is removed. Nil if nothing follows the file.
  package func cut(
    before position: Position
  ) throws(LedgerError) -> (first: Position, frames: [UInt8])? {
    switch kind {
    case .segment: try cutSegment(before: position)
    case .tail:
      try cutTail(before: position)
    }
  }

  private func cutSegment(
    before position: Position
  ) throws(LedgerError) -> (first: Position, frames: [UInt8])? {
    let segment = try wholeSegment()
    guard position < segment.endPosition else { return nil }
    guard let block = segment.block(holding: position) else {
      throw damage("no block holds this position", at: position)
    }
    let events = ByteBuffer()
    _ = try BlockInflater().inflate(block, of: file, into: events)
    try file.truncate(sizeBytes: block.offsetBytes)
    if position == block.first { return nil }
    guard
      let part = LineRange.part(events.bytes, first: block.first, block.first..<position)
    else { throw damage("it holds fewer lines than its header says", at: block.first) }
    return (block.first, Self.frames(part, first: block.first))
  }

  private func cutTail(
    before position: Position
  ) throws(LedgerError) -> (first: Position, frames: [UInt8])? {
    var end: (offset: Int, frames: [UInt8])?
    try forEachFrame { header, offset, events throws(LedgerError) in
      if header.endPosition <= position { return true }
      guard header.first < position else {
        end = (offset, [])
        return false
      }
      guard
        let part = LineRange.part(events, first: header.first, header.first..<position)
      else { throw damage("a frame holds fewer lines than its header says", at: header.first) }
      end = (offset, Self.frames(part, first: header.first))
      return false
    }
    guard let end else { return nil }
    try file.truncate(sizeBytes: end.offset)
    try file.write(end.frames, offsetBytes: end.offset)
    return nil
  }

  /// Frames of whole lines, as few as can hold them.
  private static func frames(_ bytes: UnsafeRawBufferPointer, first: Position) -> [UInt8] {
    let buffer = ByteBuffer(capacity: bytes.count + 128)
    var (start, end, count, position) = (0, 0, 0, first)
    func add() {
      if count == 0 { return }
      FrameHeader.append(
        first: position, eventCount: count,
        events: UnsafeRawBufferPointer(rebasing: bytes[start..<end]), to: buffer)
      position += count
      (start, count) = (end, 0)
    }
    var lines = EventLines(bytes)
    while let line = lines.next() {
      if end + line.count + 1 - start > Format.frameByteCountMax { add() }
      end += line.count + 1
      count += 1
    }
    add()
    return Array(buffer.bytes)
  }

  // MARK: Reading

  private func wholeSegment() throws(LedgerError) -> SegmentIndex {
    var segment = try SegmentIndex(file, ledger, first: first)
    switch try segment.extend() {
    case .end: return segment
    case .damaged(let error): throw error
    case .torn: throw damage("its last member is damaged", at: segment.endPosition)
    }
  }

  /// The body returns false to stop.
  private func forEachFrame(
    _ body: (FrameHeader, _ offset: Int, _ events: UnsafeRawBufferPointer) throws(LedgerError) ->
      Bool
  ) throws(LedgerError) {
    let size = try file.sizeBytes()
    let buffer = ByteBuffer()
    var offset = 0
    while offset < size {
      _ = try file.readWhole(
        min(Format.frameHeaderByteCountMax, size - offset), offsetBytes: offset, into: buffer)
      guard let header = FrameHeader(buffer.bytes), header.frameByteCount <= size - offset,
        try file.readWhole(header.frameByteCount, offsetBytes: offset, into: buffer),
        header.isWhole(in: buffer.bytes)
      else { throw damage("the bytes at offset \(offset) are not a frame", at: nil) }
      let events = UnsafeRawBufferPointer(rebasing: buffer.bytes[header.headerByteCount...])
      guard try body(header, offset, events) else { return }
      offset += header.frameByteCount
    }
  }

  private func damage(_ cause: String, at position: Position?) -> LedgerError {
    LedgerError(
      .init(verdict: .corrupt, file: file.name, position: position), operation: "read copied log",
      cause: cause)
  }
}
