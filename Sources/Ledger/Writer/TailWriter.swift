// The append path: writes submissions as one frame of the current tail and syncs it.
import Base
import Glibc

/// Writes frames. Not thread-safe.
final class TailWriter {
  private let directory: LedgerDirectory
  private let options: WriterOptions
  private let sealer: Sealer
  private let mark: DurableMark
  private let encoder = EventEncoder()
  private let frame = ByteBuffer(capacity: 64 << 10)

  /// The tail that frames are appended to; nil until the next append begins one.
  private var file: StorageFile?
  private var fileByteCount = 0
  /// The size of the current tail's event lines.
  private var tailEventByteCount: Int
  /// The event lines of the frame under construction.
  private let events = ByteBuffer(capacity: 64 << 10)
  private var tailFirst: Position
  private(set) var nextPosition: Position
  private var lastEventAtMs: Int64
  /// How far the clock was behind the last event at most, in milliseconds, and how many events got that event's time
  /// because of it.
  private(set) var clockSetBack = ClockSetBack()

  /// A tail to continue, created by this writer.
  struct CurrentTail {
    let file: StorageFile
    let fileByteCount: Int
    let first: Position
    let eventByteCount: Int
  }

  init(
    _ directory: LedgerDirectory, _ options: WriterOptions, _ sealer: Sealer, _ mark: DurableMark,
    current: CurrentTail?, nextPosition: Position, lastEventAtMs: Int64
  ) {
    self.directory = directory
    self.options = options
    self.sealer = sealer
    self.mark = mark
    self.nextPosition = nextPosition
    self.lastEventAtMs = lastEventAtMs
    file = current?.file
    fileByteCount = current?.fileByteCount ?? 0
    tailEventByteCount = current?.eventByteCount ?? 0
    tailFirst = current?.first ?? nextPosition
  }

  /// Whether the writer can continue after a failed commit.
  enum Failure: Error {
    /// Nothing was kept, and the tail is unchanged.
    case refused(LedgerError)
    /// The content on disk is unknown: nothing may be appended any more.
    case fatal(LedgerError)

    var error: LedgerError {
      switch self {
      case .refused(let error), .fatal(let error): error
      }
    }
  }

  /// Appends submissions as one frame, which is durable when it returns. The results are in order.
  /// - Parameter latecomers: called once, after the others are encoded, for further submissions for the frame.
  func commit(
    _ tickets: [AppendTicket], latecomers: () -> [AppendTicket]
  ) throws(Failure) -> [AppendResult] {
    // The blocks' content on disk is then unknown, although each frame is in its tail.
    if let failure = sealer.failure { throw .fatal(failure) }
    do throws(LedgerError) { try rotateIfFull() } catch {
      throw sealer.failure == nil ? .refused(error) : .fatal(error)
    }
    let first = nextPosition
    events.count = 0
    let timeBefore = (lastEventAtMs, clockSetBack)
    var results = encode(tickets)
    let late = latecomers()
    if !late.isEmpty { results += encode(late) }
    precondition(
      results.count == tickets.count + late.count && results.first?.firstPosition == first
        && results.last.map { $0.firstPosition + $0.count } == nextPosition,
      "a frame's positions have a gap")
    frame.count = 0
    FrameHeader.append(
      first: first, eventCount: nextPosition - first, events: events.bytes, to: frame)
    do throws(Failure) {
      if let file { try append(to: file) } else { try begin(first) }
    } catch {
      undo(to: first, timeBefore)
      throw error
    }
    tailEventByteCount += events.count
    if frame.capacity > 8 << 20 { frame.shrink() }
    if events.capacity > 8 << 20 { events.shrink() }
    return results
  }

  private func rotateIfFull() throws(LedgerError) {
    if tailEventByteCount >= options.blockByteCount { try rollOver() }
  }

  /// Passes the current tail on to be sealed, however small it is; the next append begins another. Does nothing if
  /// there is none.
  func rollOver() throws(LedgerError) {
    if file == nil { return }
    precondition(tailFirst < nextPosition, "a tail without events is handed over")
    try sealer.handOver(
      UnsealedTail(
        first: tailFirst, eventCount: nextPosition - tailFirst, byteCount: fileByteCount))
    file = nil
    tailEventByteCount = 0
  }

  private func encode(_ tickets: [AppendTicket]) -> [AppendResult] {
    let nowMs = options.clock()
    var timeMs = min(max(nowMs, lastEventAtMs), Timestamp.fixedRangeMs.upperBound)
    let firstOfAll = nextPosition
    var results: [AppendResult] = []
    results.reserveCapacity(tickets.count)
    for ticket in tickets {
      let first = nextPosition
      for draft in ticket.drafts {
        if let stored = draft.draft.stored {
          precondition(stored.recordedAtMs >= lastEventAtMs, "times of copied events never fall")
          timeMs = stored.recordedAtMs
          lastEventAtMs = timeMs
        }
        encoder.append(
          draft, position: nextPosition, firstPosition: first, timeMs: timeMs, to: events)
        nextPosition += 1
      }
      results.append(
        AppendResult(firstPosition: first, count: ticket.drafts.count, recordedAtMs: timeMs))
    }
    let areCopied = tickets.contains { $0.drafts.contains { $0.draft.stored != nil } }
    if nowMs < lastEventAtMs, !areCopied {
      clockSetBack.distanceMsMax = max(clockSetBack.distanceMsMax, lastEventAtMs &- nowMs)
      clockSetBack.eventCount += nextPosition - firstOfAll
    }
    lastEventAtMs = timeMs
    return results
  }

  private func undo(
    to position: Position, _ time: (lastEventAtMs: Int64, ClockSetBack)
  ) {
    nextPosition = position
    (lastEventAtMs, clockSetBack) = time
  }

  private func append(to file: StorageFile) throws(Failure) {
    do throws(LedgerError) {
      try file.write(frame.bytes, offsetBytes: fileByteCount)
    } catch {
      if error.leavesDiskUnknown { throw .fatal(error) }
      // On a full disk the partial frame is removed, and later appends may succeed.
      do throws(LedgerError) { try file.truncate(sizeBytes: fileByteCount) } catch {
        throw .fatal(error)
      }
      throw .refused(error)
    }
    do throws(LedgerError) { try file.syncData() } catch { throw .fatal(error) }
    mark.publish(nextPosition)
    fileByteCount += frame.count
  }

  /// Begins a tail with its first frame. The tail has its final name from the start, so the file and its name reach
  /// the disk together; a second sync would take as long as the first.
  private func begin(_ first: Position) throws(Failure) {
    let name = directory.logPath(Format.tailName(first))
    let newFile: StorageFile
    do throws(LedgerError) {
      newFile = try directory.makeFile(name)
      try newFile.write(frame.bytes, offsetBytes: 0)
    } catch {
      if error.leavesDiskUnknown { throw .fatal(error) }
      // If it cannot be removed either, the next attempt replaces it: it contains no whole frame.
      try? directory.unlink(name)
      throw .refused(error)
    }
    do throws(LedgerError) {
      try newFile.syncData()
      try directory.syncLogDirectory()
    } catch { throw .fatal(error) }
    mark.publish(nextPosition)
    file = newFile
    fileByteCount = frame.count
    tailFirst = first
  }
}
