// One segment, member by member: opening, blocks, closing.
import Base

/// What is known about a segment after reading its members' headers.
package struct SegmentIndex {
  private(set) var file: StorageFile
  private let fileStatus: FileStatus
  let first: Position
  let frontierBefore: Frontier
  /// The time of the last event before the segment.
  let lastEventAtMsBefore: Int64
  package private(set) var blocks: [BlockLocation] = []
  /// The offset of the next member.
  private(set) var endOffsetBytes: Int
  /// The tree after the last block.
  private(set) var frontierAfter: Frontier
  private(set) var lastEventAtMs: Int64
  package private(set) var isClosed = false
  /// The size of the file when it was last read.
  private(set) var walkedByteCount = 0

  var name: String { file.name }
  package var endPosition: Position { frontierAfter.size }

  /// Whether the name now refers to another file: the segment was rewritten with redacted lines.
  func isReplaced(_ directory: LedgerDirectory) throws(LedgerError) -> Bool {
    guard let named = try directory.statusIfPresent(name) else { return false }
    return !named.isOfSameFile(as: fileStatus)
  }

  /// Whether both were read from the same file.
  func isSameFile(as other: SegmentIndex) -> Bool { fileStatus.isOfSameFile(as: other.fileStatus) }

  /// Why reading the members ended.
  package enum Stop {
    /// At the end of the file.
    case end
    /// No valid member is at `endOffsetBytes`, and none follows.
    case torn
    /// At `endOffsetBytes` the format is violated in a way that a crash cannot cause.
    case damaged(LedgerError)
  }

  /// Opens a segment for reading and checks its opening member.
  package init(_ directory: LedgerDirectory, first: Position) throws(LedgerError) {
    let name = directory.logPath(Format.segmentName(first))
    guard let file = try directory.openFileIfPresent(name) else {
      throw LedgerError(
        .init(verdict: .missing, file: name, position: first), operation: "open segment",
        cause: "the segment is missing")
    }
    try self.init(file, directory.identity.id, first: first)
  }

  /// Checks the opening member of a file that should be the segment at a position.
  init(_ file: StorageFile, _ expectedID: LedgerID, first: Position) throws(LedgerError) {
    func damage(_ verdict: LedgerError.Verdict, _ cause: String) -> LedgerError {
      LedgerError(
        .init(verdict: verdict, file: file.name, position: first), operation: "open segment",
        cause: cause)
    }
    let bytes = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
    let found: MemberHeader?
    do throws(LedgerError) {
      found = try file.memberHeader(at: 0, bytes)
      if let found, case .opening = found.detail {
        _ = try file.readWhole(found.memberByteCount, offsetBytes: 0, into: bytes)
      }
    } catch { throw error.unreadable(file, at: first) }
    guard let header = found, case .opening(let ledgerID, let frontierBefore) = header.detail,
      header.isWhole(in: bytes.bytes)
    else { throw damage(.corrupt, "its opening member is damaged") }
    guard ledgerID == expectedID
    else { throw damage(.tampered, "it belongs to another ledger") }
    guard header.first == first
    else { throw damage(.tampered, "its opening member has position \(header.first)") }
    self.file = file
    fileStatus = try file.status()
    self.first = first
    self.frontierBefore = frontierBefore
    lastEventAtMsBefore = header.lastEventAtMs
    endOffsetBytes = header.memberByteCount
    frontierAfter = frontierBefore
    lastEventAtMs = header.lastEventAtMs
  }

  /// Reads the members from `endOffsetBytes` on. Only a block at the very end of the file is read whole: each block
  /// was synced before the next began.
  package mutating func extend() throws(LedgerError) -> Stop {
    // Keeps the members that were read before an error: they are intact.
    do throws(LedgerError) { return try walk() } catch {
      throw error.unreadable(file, block: blocks.count, at: endPosition)
    }
  }

  private mutating func walk() throws(LedgerError) -> Stop {
    let sizeBytes = try file.sizeBytes()
    walkedByteCount = sizeBytes
    let buffer = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
    while endOffsetBytes < sizeBytes {
      if isClosed { return .damaged(damage("bytes follow its closing member")) }
      guard let header = try file.memberHeader(at: endOffsetBytes, buffer),
        header.memberByteCount <= sizeBytes - endOffsetBytes
      else { return try classify(sizeBytes: sizeBytes) }
      if endOffsetBytes + header.memberByteCount == sizeBytes {
        let whole = ByteBuffer(capacity: header.memberByteCount)
        let isThere = try file.readWhole(
          header.memberByteCount, offsetBytes: endOffsetBytes, into: whole)
        guard isThere, header.isWhole(in: whole.bytes)
        else { return try classify(sizeBytes: sizeBytes) }
      }
      if let fault = addMember(header) { return .damaged(fault) }
    }
    return endOffsetBytes == sizeBytes
      ? .end : .damaged(damage("it was truncated"))
  }

  /// Adds one member; returns the damage if it does not continue the segment.
  private mutating func addMember(_ header: MemberHeader) -> LedgerError? {
    func damage(_ verdict: LedgerError.Verdict, _ cause: String) -> LedgerError {
      LedgerError(
        .init(verdict: verdict, file: name, block: blocks.count, position: endPosition),
        operation: "walk segment", cause: cause)
    }
    func tampered(_ cause: String) -> LedgerError { damage(.tampered, cause) }
    guard header.lastEventAtMs >= lastEventAtMs else { return tampered("event times decrease") }
    switch header.detail {
    case .opening:
      return tampered("a second opening member")
    case .block(let frontier):
      guard header.first == endPosition
      else {
        return damage(
          header.first > endPosition ? .missing : .tampered,
          "a block of position \(header.first) is here")
      }
      blocks.append(
        BlockLocation(
          first: header.first, eventCount: header.eventCount, ordinal: blocks.count,
          offsetBytes: endOffsetBytes, memberByteCount: header.memberByteCount,
          contentByteCount: header.contentByteCount))
      frontierAfter = frontier
      lastEventAtMs = header.lastEventAtMs
    case .closing(let blockCount, let segmentByteCount, let root):
      guard header.first == first, header.endPosition == endPosition,
        blockCount == blocks.count, segmentByteCount == endOffsetBytes, root == frontierAfter.root
      else {
        return damage(
          header.first == first && header.endPosition > endPosition ? .missing : .tampered,
          "its closing member does not match its blocks")
      }
      isClosed = true
    }
    endOffsetBytes += header.memberByteCount
    return nil
  }

  /// The same state with another descriptor of the same file.
  func replacingFile(_ file: StorageFile) -> SegmentIndex {
    var copy = self
    copy.file = file
    return copy
  }

  /// Adds a block that this process has just written.
  mutating func addWritten(_ header: MemberHeader) throws(LedgerError) {
    if let fault = addMember(header) { throw fault }
  }

  /// Whether the invalid bytes at `endOffsetBytes` are a torn write: nothing valid follows them.
  private func classify(sizeBytes: Int) throws(LedgerError) -> Stop {
    let restByteCount = sizeBytes - endOffsetBytes
    guard restByteCount <= Format.memberByteCountMax
    else { return .damaged(damage("more bytes follow than one block can have")) }
    let rest = ByteBuffer(capacity: restByteCount)
    guard try file.readWhole(restByteCount, offsetBytes: endOffsetBytes, into: rest)
    else { return .damaged(damage("it was truncated")) }
    var search = ValidPartSearch(rest.bytes, start: 0x1F)
    while let candidate = search.next() {
      guard let header = MemberHeader(candidate), header.memberByteCount <= candidate.count
      else { continue }
      let member = UnsafeRawBufferPointer(rebasing: candidate[..<header.memberByteCount])
      if !search.spend(member.count) || header.isWhole(in: member) {
        return .damaged(damage("it is damaged and what follows it is not"))
      }
    }
    return .torn
  }

  private func damage(_ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .corrupt, file: name, block: blocks.count, position: endPosition),
      operation: "walk segment", cause: cause)
  }

  /// The block that contains a position; nil if none does.
  func block(holding position: Position) -> BlockLocation? {
    var low = 0
    var high = blocks.count
    while low < high {
      let middle = (low + high) / 2
      if blocks[middle].endPosition <= position { low = middle + 1 } else { high = middle }
    }
    guard low < blocks.count, blocks[low].first <= position else { return nil }
    return blocks[low]
  }

  /// The tree before a block, from the member before it.
  func frontier(before block: BlockLocation) throws(LedgerError) -> Frontier {
    if block.ordinal == 0 { return frontierBefore }
    let previous = blocks[block.ordinal - 1]
    let buffer = ByteBuffer(capacity: Format.memberHeaderByteCountMax)
    let found: MemberHeader?
    do throws(LedgerError) {
      found = try file.memberHeader(at: previous.offsetBytes, buffer)
    } catch { throw error.unreadable(file, block: previous.ordinal, at: previous.first) }
    guard let header = found, header.endPosition == block.first,
      case .block(let frontier) = header.detail
    else {
      throw LedgerError(
        .init(
          verdict: .corrupt, file: name, block: previous.ordinal, position: previous.first),
        operation: "read block header", cause: "it is not the block that was read before")
    }
    return frontier
  }
}

/// The content of the closing member at the end of a segment.
struct SegmentClosing {
  let endPosition: Position
  let root: SHA256Digest
  let lastEventAtMs: Int64
}

extension SegmentIndex {
  /// Reads the closing member from the end of the file; nil if there is no valid one.
  func closing() throws(LedgerError) -> SegmentClosing? {
    if isClosed {
      return SegmentClosing(
        endPosition: endPosition, root: frontierAfter.root, lastEventAtMs: lastEventAtMs)
    }
    let offsetBytes = try file.sizeBytes() - Format.closingMemberByteCount
    let buffer = ByteBuffer(capacity: Format.closingMemberByteCount)
    // It may directly follow the last block that was read.
    guard offsetBytes >= endOffsetBytes,
      try file.readWhole(Format.closingMemberByteCount, offsetBytes: offsetBytes, into: buffer),
      let header = MemberHeader(buffer.bytes), header.isWhole(in: buffer.bytes),
      case .closing(_, let segmentByteCount, let root) = header.detail,
      segmentByteCount == offsetBytes, header.first == first
    else { return nil }
    return SegmentClosing(
      endPosition: header.endPosition, root: root, lastEventAtMs: header.lastEventAtMs)
  }
}
