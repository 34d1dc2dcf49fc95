// Caches lines of events that are likely to be read again; and starts writes of a growing file.
import Base
import CLinux
import Glibc
import Ledger

/// Keeps the lines of the newest events, lines that were read again for longer, and the replies that the newest uploads
/// use again. Each group has a limit in bytes. One thread adds lines; any reads them.
package final class RecentEvents: Sendable {
  private static let newestBytesMax = 8 << 20
  private static let keptBytesMax = 8 << 20
  private static let replyBytesMax = 4 << 20
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

  /// Keeps what `RecentReplies` holds of the reply of the event at a position.
  func keep(reply: [UInt8], at position: Int) {
    held.withLock { $0.replies.keep(reply, at: position) }
  }

  /// What `RecentReplies` holds of the reply of the event at a position; nil if no upload has just used it again.
  func reply(at position: Int) -> [UInt8]? { held.withLock { $0.replies.texts[position] } }

  private struct Held {
    private var lines: [[UInt8]] = []
    /// Lines before this index were removed.
    private var startIndex = 0
    private var endPosition = 0
    private var sizeBytes = 0
    private var kept = KeptTexts(bytesMax: RecentEvents.keptBytesMax)
    var replies = KeptTexts(bytesMax: RecentEvents.replyBytesMax)

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

    mutating func keep(_ line: [UInt8], at position: Int) { kept.keep(line, at: position) }

    func line(at position: Int) -> [UInt8]? {
      let index = lines.count - (endPosition - position)
      if position < endPosition, index >= startIndex { return lines[index] }
      return kept.texts[position]
    }
  }
}

/// Texts by position, within a number of bytes: those that were added first are removed first.
private struct KeptTexts {
  let bytesMax: Int
  private(set) var texts: [Int: [UInt8]] = [:]
  /// The positions of the texts, in the order of their arrival. Those before `startIndex` were removed.
  private var order: [Int] = []
  private var startIndex = 0
  private var sizeBytes = 0

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  mutating func keep(_ text: [UInt8], at position: Int) {
    sizeBytes += text.count
    if let earlier = texts.updateValue(text, forKey: position) {
      sizeBytes -= earlier.count
      return
    }
    order.append(position)
    while sizeBytes > bytesMax, startIndex + 1 < order.count {
      sizeBytes -= texts.removeValue(forKey: order[startIndex])?.count ?? 0
      startIndex += 1
    }
    if startIndex > 256, startIndex > order.count / 2 {
      order.removeFirst(startIndex)
      startIndex = 0
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
