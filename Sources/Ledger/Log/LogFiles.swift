// The files of a log, as `status` lists them.

/// A segment or a tail.
package struct LogFile: Sendable, Equatable {
  package enum Kind: String, Sendable {
    /// Closed by a newer segment.
    case sealed
    /// The segment that blocks are appended to.
    case open
    case tail
  }

  package let kind: Kind
  /// The path inside the ledger.
  package let name: String
  package let firstPosition: Position
  /// The number of whole events in it.
  package let eventCount: Int
  package let sizeBytes: Int
}

extension LogReader {
  /// The segments and tails of this view, in order.
  package func files() throws(LedgerError) -> [LogFile] {
    var files: [LogFile] = []
    for segment in state.sealed {
      let name = directory.logPath(Format.segmentName(segment.first))
      files.append(
        LogFile(
          kind: .sealed, name: name, firstPosition: segment.first,
          eventCount: segment.endPosition - segment.first,
          sizeBytes: try directory.statusIfPresent(name)?.sizeBytes ?? 0))
    }
    if let newest = state.newest {
      files.append(
        LogFile(
          kind: .open, name: newest.name, firstPosition: newest.first,
          eventCount: newest.endPosition - newest.first, sizeBytes: try newest.file.sizeBytes()))
    }
    for tail in state.tails {
      let status = try directory.statusIfPresent(tail.name)
      files.append(
        LogFile(
          kind: .tail, name: tail.name, firstPosition: tail.first,
          eventCount: tail.endPosition - tail.first,
          sizeBytes: status?.sizeBytes ?? tail.endOffsetBytes))
    }
    return files
  }

  /// The size of the incomplete write at the end of the last tail. The next writer removes it.
  package var tornTailByteCount: Int { state.tornTailByteCount }

  /// The first position recorded at this time or later; the log's size if there is none.
  package func firstPosition(recordedFromMs timeMs: Int64) throws(LedgerError) -> Position {
    if timeMs > head.lastEventAtMs { return head.size }
    var (low, high) = (0, head.size)
    while low < high {
      let middle = (low + high) / 2
      let line = try event(at: middle)
      let isBefore = line.withUnsafeBytes {
        EventLine($0).map { $0.recordedAtMs < timeMs } ?? false
      }
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// The largest event line, including its line feed.
package let ledgerLineByteCountMax = Format.lineByteCountMax
