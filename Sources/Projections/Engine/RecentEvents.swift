// Lines of events that are likely to be asked for again, so that no block of the log is inflated for them.
import JSON
import Ledger

/// Keeps the lines of the newest events, and for longer those with replies and those that were read again, each up
/// to a number of bytes.
final class RecentEvents {
  private static let newestBytesMax = 8 << 20
  private static let keptBytesMax = 32 << 20
  private var lines: [[UInt8]] = []
  /// Lines before this index are gone.
  private var startIndex = 0
  private var endPosition = 0
  private var sizeBytes = 0
  private var kept: [Int: [UInt8]] = [:]
  /// The positions of `kept` in order; those before an index are removed.
  private var keptOrder: [Int] = []
  private var keptStartIndex = 0
  private var keptBytes = 0

  /// Adds the line of the next event.
  func add(_ line: EventLine) {
    if line.position != endPosition { removeNewest() }
    lines.append(Array(line.bytes))
    sizeBytes += line.bytes.count
    endPosition = line.position + 1
    while sizeBytes > Self.newestBytesMax, startIndex + 1 < lines.count {
      sizeBytes -= lines[startIndex].count
      lines[startIndex] = []
      startIndex += 1
    }
    if startIndex > 256, startIndex > lines.count / 2 {
      lines.removeFirst(startIndex)
      startIndex = 0
    }
  }

  /// Keeps a line after it is no longer one of the newest.
  func keep(_ line: [UInt8], at position: Int) {
    keptBytes += line.count
    if let earlier = kept.updateValue(line, forKey: position) {
      keptBytes -= earlier.count
      return
    }
    keptOrder.append(position)
    while keptBytes > Self.keptBytesMax, keptStartIndex + 1 < keptOrder.count {
      keptBytes -= kept.removeValue(forKey: keptOrder[keptStartIndex])?.count ?? 0
      keptStartIndex += 1
    }
    if keptStartIndex > 256, keptStartIndex > keptOrder.count / 2 {
      keptOrder.removeFirst(keptStartIndex)
      keptStartIndex = 0
    }
  }

  /// The line of the event at a position, if it is still here.
  func line(at position: Int) -> [UInt8]? {
    let index = lines.count - (endPosition - position)
    if position < endPosition, index >= startIndex { return lines[index] }
    return kept[position]
  }

  /// The line of the event at a position, which `read` fetches where it is not here.
  func line<Failure>(
    at position: Int, _ read: (Int) throws(Failure) -> [UInt8]
  ) throws(Failure) -> [UInt8] {
    if let line = line(at: position) { return line }
    let line = try read(position)
    keep(line, at: position)
    return line
  }

  private func removeNewest() {
    lines.removeAll(keepingCapacity: true)
    (startIndex, sizeBytes) = (0, 0)
  }

  /// Forgets all.
  func removeAll() {
    removeNewest()
    kept.removeAll()
    keptOrder.removeAll()
    (keptStartIndex, keptBytes) = (0, 0)
  }
}
