// Caches lines of events that are likely to be read again; and starts writes of a growing file.
import Base
import CLinux
import Glibc
import Ledger

/// Keeps the lines of the newest events, and lines that were read again for longer. Each group has a limit in bytes.
/// One thread adds lines; any reads them.
package final class RecentEvents: Sendable {
  private static let newestBytesMax = 8 << 20
  private static let keptBytesMax = 8 << 20
  private let held = Monitor(Held())

  package init() {}

  /// Adds the line of the next event.
  func add(_ line: EventLine) {
    held.withLock { $0.add(Array(line.bytes), at: line.position) }
  }

  /// Keeps a line after it leaves the newest.
  package func keep(_ line: [UInt8], at position: Int) {
    held.withLock { $0.keep(line, at: position) }
  }

  /// The line of the event at a position; nil if it is no longer kept.
  package func line(at position: Int) -> [UInt8]? { held.withLock { $0.line(at: position) } }

  /// The line of the event at a position; `read` fetches it if it is not kept.
  package func line<Failure>(
    at position: Int, _ read: (Int) throws(Failure) -> [UInt8]
  ) throws(Failure) -> [UInt8] {
    if let line = line(at: position) { return line }
    let line = try read(position)
    keep(line, at: position)
    return line
  }

  private struct Held {
    private var lines: [[UInt8]] = []
    /// Lines before this index were removed.
    private var startIndex = 0
    private var endPosition = 0
    private var sizeBytes = 0
    private var kept: [Int: [UInt8]] = [:]
    /// The positions of `kept`, in order. Those before `keptStartIndex` were removed.
    private var keptOrder: [Int] = []
    private var keptStartIndex = 0
    private var keptBytes = 0

    mutating func add(_ line: [UInt8], at position: Int) {
      if position != endPosition {
        lines.removeAll(keepingCapacity: true)
        (startIndex, sizeBytes) = (0, 0)
      }
      lines.append(line)
      sizeBytes += line.count
      endPosition = position + 1
      while sizeBytes > RecentEvents.newestBytesMax, startIndex + 1 < lines.count {
        sizeBytes -= lines[startIndex].count
        lines[startIndex] = []
        startIndex += 1
      }
      if startIndex > 256, startIndex > lines.count / 2 {
        lines.removeFirst(startIndex)
        startIndex = 0
      }
    }

    mutating func keep(_ line: [UInt8], at position: Int) {
      keptBytes += line.count
      if let earlier = kept.updateValue(line, forKey: position) {
        keptBytes -= earlier.count
        return
      }
      keptOrder.append(position)
      while keptBytes > RecentEvents.keptBytesMax, keptStartIndex + 1 < keptOrder.count {
        keptBytes -= kept.removeValue(forKey: keptOrder[keptStartIndex])?.count ?? 0
        keptStartIndex += 1
      }
      if keptStartIndex > 256, keptStartIndex > keptOrder.count / 2 {
        keptOrder.removeFirst(keptStartIndex)
        keptStartIndex = 0
      }
    }

    func line(at position: Int) -> [UInt8]? {
      let index = lines.count - (endPosition - position)
      if position < endPosition, index >= startIndex { return lines[index] }
      return kept[position]
    }
  }
}

// MARK: - Early writing of a growing file

/// Starts writing a file's content to disk at intervals, without waiting, so that the final sync has little left to
/// write.
final class DeferredWrites {
  /// How many times it starts, over the whole work.
  private static let partCount = 16

  private let descriptor: Int32
  private var partsDone = 0

  /// Nil if the file cannot be opened; the final sync then writes everything.
  init?(_ path: String) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }

  /// Records how much of the work on the file is done.
  func advance(to doneCount: Int, of totalCount: Int) {
    let parts = totalCount > 0 ? doneCount * Self.partCount / totalCount : 0
    guard parts > partsDone else { return }
    partsDone = parts
    // It does not report failed writes; the final sync does.
    clinux_start_writing(descriptor)
  }
}
