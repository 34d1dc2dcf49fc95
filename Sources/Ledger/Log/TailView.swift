// One tail, frame by frame.
import Base

/// Where a run of frames begins in its tail.
package struct TailPlace {
  /// The position of its first event.
  package let first: Position
  let offsetBytes: Int
}

/// What is known about a tail: its valid frames from the beginning.
package struct TailView {
  private(set) var file: TailFile
  let first: Position
  /// The frames are spaced so that reading one event reads little, and thousands of tails need little memory.
  package private(set) var places: [TailPlace] = []
  private static let placeDistanceBytes = 16 << 10
  /// The offset of the next frame.
  package private(set) var endOffsetBytes = 0
  /// The total size of the frames' events.
  private(set) var eventByteCount = 0
  /// The tree after the last valid frame.
  private(set) var frontierAfter: Frontier
  private(set) var lastEventAtMs: Int64

  var name: String { file.name }
  package var endPosition: Position { frontierAfter.size }
  /// Whether the tail has no whole frame.
  var isEmpty: Bool { endOffsetBytes == 0 }

  /// Why reading the frames ended.
  enum Stop {
    /// At the end of the file.
    case end
    /// More bytes follow, beyond the limit.
    case limited
    /// The last `byteCount` bytes are not a valid frame, and no valid frame follows.
    case torn(byteCount: Int)
    /// A frame is damaged in a way that a crash cannot cause.
    case damaged(LedgerError)
  }

  /// A tail that has not been read yet, given the tree and the time before it.
  init(_ file: TailFile, frontierBefore: Frontier, lastEventAtMsBefore: Int64) {
    self.file = file
    first = frontierBefore.size
    frontierAfter = frontierBefore
    lastEventAtMs = lastEventAtMsBefore
  }

  /// The same state with another descriptor of the same file.
  func with(_ file: TailFile) -> TailView {
    var copy = self
    copy.file = file
    return copy
  }

  /// Stops keeping the file open.
  mutating func closeFile() { file = file.closed }

  /// Reads the frames from `endOffsetBytes` on.
  /// - Parameter limit: frames that extend beyond this position are not read.
  mutating func extend(
    _ hasher: SHA256, _ buffer: ByteBuffer, limit: Position = .max
  ) throws(LedgerError) -> Stop {
    try extend(try file.opened(), hasher, buffer, limit: limit)
  }

  /// As above, for a file that is already open.
  mutating func extend(
    _ file: StorageFile, _ hasher: SHA256, _ buffer: ByteBuffer, limit: Position = .max
  ) throws(LedgerError) -> Stop {
    do throws(LedgerError) { return try walk(file, hasher, buffer, limit) } catch {
      throw error.unreadable(file, at: endPosition)
    }
  }

  private mutating func walk(
    _ file: StorageFile, _ hasher: SHA256, _ buffer: ByteBuffer, _ limit: Position
  ) throws(LedgerError) -> Stop {
    var windowByteCount = 256 << 10
    while true {
      // A read that returns less than requested has reached the end of the file.
      let isWhole = try file.readWhole(
        windowByteCount, offsetBytes: endOffsetBytes, into: buffer)
      let window = buffer.bytes
      var offset = 0
      while offset < window.count {
        if endPosition >= limit { return .limited }
        let rest = UnsafeRawBufferPointer(rebasing: window[offset...])
        guard let header = FrameHeader(rest) else { break }
        if header.endPosition > limit { return .limited }
        guard header.isWhole(in: rest) else { break }
        if let fault = addFrame(header, rest, hasher) { return .damaged(fault) }
        offset += header.frameByteCount
      }
      if offset == window.count && !isWhole { return .end }
      if offset == 0 {
        guard isWhole else { return classify(window) }
        // No valid frame at the start: it may be larger than the window.
        let limit = Format.frameByteCountMax + Format.frameHeaderByteCountMax
        if windowByteCount > limit {
          return .damaged(damage("more bytes follow than one frame can have"))
        }
        windowByteCount = limit + 1
      }
    }
  }

  private mutating func addFrame(
    _ header: FrameHeader, _ frame: UnsafeRawBufferPointer, _ hasher: SHA256
  ) -> LedgerError? {
    guard header.first == endPosition else {
      return damage(
        "a frame of position \(header.first) is here",
        header.first > endPosition ? .missing : .tampered)
    }
    let events = UnsafeRawBufferPointer(
      rebasing: frame[header.headerByteCount..<header.frameByteCount])
    var run = EventRun(next: endPosition, lastEventAtMs: lastEventAtMs)
    var frontier = frontierAfter
    let fault = run.fault(events, eventCount: header.eventCount) { line in
      frontier.append(leafHash: line.leafHash(hasher), hasher)
    }
    if let fault { return damage(fault, .tampered) }
    if places.last.map({ endOffsetBytes - $0.offsetBytes >= Self.placeDistanceBytes }) ?? true {
      places.append(TailPlace(first: endPosition, offsetBytes: endOffsetBytes))
    }
    frontierAfter = frontier
    lastEventAtMs = run.lastEventAtMs
    endOffsetBytes += header.frameByteCount
    eventByteCount += header.eventByteCount
    return nil
  }

  /// Whether invalid bytes are a torn write: nothing valid follows them.
  private func classify(_ rest: UnsafeRawBufferPointer) -> Stop {
    var search = ValidPartSearch(rest, start: 0x23)
    while let candidate = search.next() {
      guard let header = FrameHeader(candidate), header.frameByteCount <= candidate.count
      else { continue }
      if !search.spend(header.frameByteCount) || header.isWhole(in: candidate) {
        return .damaged(damage("a frame is damaged and what follows it is not"))
      }
    }
    return .torn(byteCount: rest.count)
  }

  func damage(_ cause: String, _ verdict: LedgerError.Verdict = .corrupt) -> LedgerError {
    LedgerError(
      .init(verdict: verdict, file: name, position: endPosition), operation: "walk tail",
      cause: cause)
  }

  /// Reads the lines from an index of `places` on, or only those of that one, into a buffer, without the frame headers.
  func readEvents(
    from index: Int, alone isAlone: Bool = false, into buffer: ByteBuffer
  ) throws(LedgerError) {
    buffer.count = 0
    guard index < places.count else { return }
    let (first, start) = (places[index].first, places[index].offsetBytes)
    var (endPosition, end) = (endPosition, endOffsetBytes)
    if isAlone, index + 1 < places.count {
      (endPosition, end) = (places[index + 1].first, places[index + 1].offsetBytes)
    }
    let file = try file.opened()
    let isThere: Bool
    do throws(LedgerError) {
      isThere = try file.readWhole(end - start, offsetBytes: start, into: buffer)
    } catch { throw error.unreadable(file, at: first) }
    guard isThere else { throw damage("it was truncated") }
    guard FrameHeader.removeAll(from: buffer, first: first) == endPosition
    else { throw damage("a frame changed") }
  }

  /// The index of the last place that begins at or before a position.
  package func index(holding position: Position) -> Int {
    var low = 0
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if places[middle].first <= position { low = middle + 1 } else { high = middle }
    }
    return max(0, low - 1)
  }

  /// The end position of a tail's frames, judged by their checksums alone, for a tail whose events are already in
  /// blocks.
  static func coveredEnd(
    _ file: StorageFile, first: Position, _ buffer: ByteBuffer
  ) throws(LedgerError) -> Position {
    var end = first
    var offset = 0
    let headerByteCount = Format.frameHeaderByteCountMax
    while true {
      _ = try file.readWhole(headerByteCount, offsetBytes: offset, into: buffer)
      guard let header = FrameHeader(buffer.bytes), header.first == end else { return end }
      let isThere = try file.readWhole(header.frameByteCount, offsetBytes: offset, into: buffer)
      guard isThere, header.isWhole(in: buffer.bytes) else { return end }
      end = header.endPosition
      offset += header.frameByteCount
    }
  }
}

// MARK: - Tail files

/// A tail's file, which a writer removes once a block holds its events. A file that is kept open stays readable after
/// its name is removed; others are opened for each read. Keeping all tails open would need as many descriptors as there
/// are tails.
final class TailFile: Sendable {
  /// The path inside the ledger.
  let name: String
  /// The number of the file that was found under the name.
  let fileNumber: UInt64
  private let first: Position
  private let directory: LedgerDirectory
  private let kept: StorageFile?

  private init(
    _ directory: LedgerDirectory, name: String, first: Position, fileNumber: UInt64,
    kept: StorageFile?
  ) {
    self.directory = directory
    self.name = name
    self.first = first
    self.fileNumber = fileNumber
    self.kept = kept
  }

  /// - Parameter isKept: whether the file stays open as long as this object lives.
  convenience init(
    _ file: StorageFile, _ directory: LedgerDirectory, first: Position, isKept: Bool
  ) throws(LedgerError) {
    self.init(
      directory, name: file.name, first: first, fileNumber: try file.status().fileNumber,
      kept: isKept ? file : nil)
  }

  /// The same file, no longer kept open.
  var closed: TailFile {
    TailFile(directory, name: name, first: first, fileNumber: fileNumber, kept: nil)
  }

  /// The file, open for reading.
  ///
  /// Throws an error with `isOfVanishedTail` if the name now refers to another file or to none.
  func opened() throws(LedgerError) -> StorageFile {
    if let kept { return kept }
    guard let file = try directory.openFileIfPresent(name),
      try file.status().fileNumber == fileNumber
    else {
      throw LedgerError(
        .init(verdict: .missing, file: name, position: first),
        operation: LedgerError.tailOperation, cause: "the tail is missing")
    }
    return file
  }
}

extension LedgerError {
  fileprivate static let tailOperation = "open tail"

  /// Whether a tail was removed after it was found: its events are now in a block or in a new file with that name.
  var isOfVanishedTail: Bool { operation == Self.tailOperation && damage != nil }
}
