// The parts of a log that can be read apart from each other, and how to tell that one has not changed.
package import Base

/// A segment, or a run of tails.
package struct LogPart: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case segment
    case tail
  }

  package let kind: Kind
  /// The name in `log/` of its first file.
  package let name: String
  package let first: Position
  package let end: Position
  /// The size of its files.
  package let byteCount: Int
  /// The root of the tree of all events up to its end.
  package let root: SHA256Digest

  /// The same for the same events of one ledger, and for no others: SHA-256 of both positions and the root.
  package var identity: SHA256Digest {
    var bytes: [UInt8] = []
    for number in [first, end] {
      withUnsafeBytes(of: UInt64(number).littleEndian) { bytes.append(contentsOf: $0) }
    }
    bytes += root.bytes
    return bytes.withUnsafeBytes { SHA256.hash($0) }
  }
}

extension LogReader {
  /// The parts of the first events, in order, without gaps.
  /// - Parameters:
  ///   - size: the number of events, at most the head's size.
  ///   - tailsByteCount: how many bytes of tails make a part.
  package func parts(
    size: Int, tailsByteCount: Int = 64 << 20
  ) throws(LedgerError) -> [LogPart] {
    var parts: [LogPart] = []
    for segment in state.sealed where segment.first < size {
      let name = Format.segmentName(segment.first)
      let end = min(segment.endPosition, size)
      parts.append(
        LogPart(
          kind: .segment, name: name, first: segment.first, end: end,
          byteCount: try directory.statusIfPresent(directory.logPath(name))?.sizeBytes ?? 0,
          root: end == segment.endPosition ? segment.root : try frontier(at: end).root))
    }
    if let newest = state.newest, newest.first < min(newest.endPosition, size) {
      let end = min(newest.endPosition, size)
      parts.append(
        LogPart(
          kind: .segment, name: Format.segmentName(newest.first), first: newest.first, end: end,
          byteCount: newest.walkedByteCount, root: try frontier(at: end).root))
    }
    var run: (first: Position, byteCount: Int)?
    for tail in state.tails where tail.first < min(tail.endPosition, size) {
      let end = min(tail.endPosition, size)
      let byteCount = (run?.byteCount ?? 0) + tail.endOffsetBytes
      let first = run?.first ?? tail.first
      run = (first, byteCount)
      guard byteCount >= tailsByteCount || end == size else { continue }
      parts.append(
        LogPart(
          kind: .tail, name: Format.tailName(first), first: first, end: end, byteCount: byteCount,
          root: try frontier(at: end).root))
      run = nil
    }
    return parts
  }
}
