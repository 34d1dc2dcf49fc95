// What replication reads of a log: closed segments, parts of the newest one, and frames of tails, as they are on disk.
import Base

/// Detects that a file was replaced or changed.
package struct FileStamp: Sendable, Equatable {
  package let byteCount: Int
  package let fileNumber: UInt64
  package let changedAtNs: Int64

  package init(byteCount: Int, fileNumber: UInt64, changedAtNs: Int64) {
    (self.byteCount, self.fileNumber, self.changedAtNs) = (byteCount, fileNumber, changedAtNs)
  }

  package init(_ status: FileStatus) {
    self.init(
      byteCount: status.sizeBytes, fileNumber: status.fileNumber, changedAtNs: status.changedAtNs)
  }
}

/// The newest segment, block by block.
package struct NewestSegment: Sendable {
  /// A block with its offset in the file. The first part begins at offset 0, with the opening member.
  package struct Part: Sendable, Equatable {
    package let first: Position
    package let end: Position
    package let offsetBytes: Int
    package let byteCount: Int
  }

  package let first: Position
  /// The file that contains the parts, even if its name now refers to another one.
  package let file: StorageFile
  package let fileNumber: UInt64
  package let parts: [Part]
}

/// Consecutive whole frames of one tail, as they are on disk.
package struct CopyableFrames: Sendable, Equatable {
  /// The tail's first position.
  package let tail: Position
  package let first: Position
  package let end: Position
  package let bytes: [UInt8]
}

extension LogReader {
  /// The segments that are followed by another one, as ranges of positions without gaps from 0.
  package var closedSegments: [Range<Position>] { state.sealed.map { $0.first..<$0.endPosition } }

  /// The end of the last block.
  package var blocksEnd: Position { state.newest?.endPosition ?? 0 }

  /// The segment that blocks are appended to; nil if there is none or it is unreadable.
  package func newestSegment() throws(LedgerError) -> NewestSegment? {
    guard let newest = state.newest else { return nil }
    let parts = newest.blocks.map { block in
      let start = block.ordinal == 0 ? 0 : block.offsetBytes
      return NewestSegment.Part(
        first: block.first, end: block.endPosition, offsetBytes: start,
        byteCount: block.endOffsetBytes - start)
    }
    return NewestSegment(
      first: newest.first, file: newest.file, fileNumber: try newest.file.status().fileNumber,
      parts: parts)
  }

  /// Whole frames of one tail from a position on: as many as the limit allows, at least one. Nil if the position is in
  /// a block, or at the head.
  package func frames(
    from position: Position, byteCountMax: Int
  ) throws(LedgerError) -> CopyableFrames? {
    try withTails { () throws(LedgerError) -> CopyableFrames? in
      guard
        let tail = state.tails.first(where: { position < $0.endPosition }),
        tail.first <= position
      else { return nil }
      return try tail.frames(from: position, byteCountMax: byteCountMax)
    }
  }

  /// Roughly how many bytes of the log hold the events from a position on: whole blocks and frames count.
  package func byteCount(from position: Position) throws(LedgerError) -> Int {
    var byteCount = 0
    for segment in state.sealed where segment.endPosition > position {
      let name = directory.logPath(Format.segmentName(segment.first))
      byteCount += try directory.statusIfPresent(name)?.sizeBytes ?? 0
    }
    for block in state.newest?.blocks ?? [] where block.endPosition > position {
      byteCount += block.memberByteCount
    }
    for tail in state.tails where tail.endPosition > position {
      byteCount += tail.endOffsetBytes
      guard position > tail.first, !tail.places.isEmpty else { continue }
      byteCount -= tail.places[tail.index(holding: position)].offsetBytes
    }
    return byteCount
  }

  /// When an event was recorded, in epoch milliseconds.
  package func recordedAtMs(of position: Position) throws(LedgerError) -> Int64 {
    try event(at: position).withUnsafeBytes { EventLine($0)?.recordedAtMs ?? 0 }
  }

  /// Whether an erasure has redacted lines that their segments still hold.
  package func hasUnwrittenRedactions() throws(LedgerError) -> Bool {
    try RedactionFile.exists(in: directory)
  }
}

extension LedgerDirectory {
  /// A segment's file and its stamp, which detects changes; nil if there is none.
  package func segmentFile(
    _ first: Position
  ) throws(LedgerError) -> (file: StorageFile, stamp: FileStamp)? {
    guard let file = try openFileIfPresent(logPath(Format.segmentName(first))) else { return nil }
    return (file, FileStamp(try file.status()))
  }

  /// The stamp of a segment's file, which detects changes; nil if there is none.
  package func segmentStamp(_ first: Position) throws(LedgerError) -> FileStamp? {
    try statusIfPresent(logPath(Format.segmentName(first))).map { FileStamp($0) }
  }
}

extension TailView {
  private static let windowByteCount = 64 << 10

  /// The frames from a position on; nil if there are none.
  fileprivate func frames(
    from position: Position, byteCountMax: Int
  ) throws(LedgerError) -> CopyableFrames? {
    guard !places.isEmpty else { return nil }
    let file = try self.file.opened()
    let start = places[index(holding: position)]
    let available = endOffsetBytes - start.offsetBytes
    var windowByteCount = min(available, byteCountMax + Self.windowByteCount)
    let buffer = ByteBuffer(capacity: windowByteCount)
    while true {
      guard
        try file.readWhole(windowByteCount, offsetBytes: start.offsetBytes, into: buffer)
      else { throw damage("it was truncated") }
      if let frames = try copyableFrames(
        buffer.bytes, first: start.first, from: position, byteCountMax: byteCountMax)
      {
        return frames
      }
      // One frame is larger than the window.
      guard windowByteCount < available else { throw damage("a frame changed") }
      windowByteCount = available
    }
  }

  /// - Parameter first: the position of the frame at the start of the bytes.
  /// - Returns: nil if the bytes hold no whole frame from the position on.
  private func copyableFrames(
    _ bytes: UnsafeRawBufferPointer, first: Position, from position: Position, byteCountMax: Int
  ) throws(LedgerError) -> CopyableFrames? {
    var next = first
    var taken: [UInt8] = []
    var takenFirst = position
    var offset = 0
    while offset < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      guard let header = FrameHeader(rest), header.first == next, header.isWhole(in: rest) else {
        break
      }
      offset += header.frameByteCount
      next = header.endPosition
      if next <= position { continue }
      if taken.isEmpty {
        takenFirst = max(header.first, position)
      } else if taken.count + header.frameByteCount > byteCountMax {
        next = header.first
        break
      }
      if header.first < position {
        taken += try part(of: header, rest, from: position)
      } else {
        taken += rest[..<header.frameByteCount]
      }
    }
    if taken.isEmpty { return nil }
    return CopyableFrames(tail: self.first, first: takenFirst, end: next, bytes: taken)
  }

  /// A frame of the lines from a position on, taken from a frame that begins before it: the log was framed differently
  /// when the preceding events were copied.
  private func part(
    of header: FrameHeader, _ frame: UnsafeRawBufferPointer, from position: Position
  ) throws(LedgerError) -> [UInt8] {
    let events = UnsafeRawBufferPointer(
      rebasing: frame[header.headerByteCount..<header.frameByteCount])
    guard
      let lines = LineRange.part(events, first: header.first, position..<header.endPosition)
    else { throw damage("a frame does not hold its events") }
    let buffer = ByteBuffer(capacity: lines.count + Format.frameHeaderByteCountMax)
    FrameHeader.append(
      first: position, eventCount: header.endPosition - position, events: lines, to: buffer)
    return Array(buffer.bytes)
  }
}
