// The lines of the events folded last: what is asked for right after the fold need not be read again.
import JSON
import Ledger

/// Keeps the newest events' lines, up to a number of bytes.
final class RecentEvents {
  private static let sizeBytesMax = 8 << 20
  private var lines: [[UInt8]] = []
  /// Lines before this index are gone.
  private var startIndex = 0
  private var endPosition = 0
  private var sizeBytes = 0

  /// Takes in the line of the next event.
  func add(_ line: EventLine) {
    if line.position != endPosition { removeAll() }
    lines.append(Array(line.bytes))
    sizeBytes += line.bytes.count
    endPosition = line.position + 1
    while sizeBytes > Self.sizeBytesMax, startIndex + 1 < lines.count {
      sizeBytes -= lines[startIndex].count
      lines[startIndex] = []
      startIndex += 1
    }
    if startIndex > 256, startIndex > lines.count / 2 {
      lines.removeFirst(startIndex)
      startIndex = 0
    }
  }

  /// The line of the event at a position, if it is still here.
  func line(at position: Int) -> [UInt8]? {
    let index = lines.count - (endPosition - position)
    return position < endPosition && index >= startIndex ? lines[index] : nil
  }

  /// Forgets all.
  func removeAll() {
    lines.removeAll(keepingCapacity: true)
    (startIndex, sizeBytes) = (0, 0)
  }
}
