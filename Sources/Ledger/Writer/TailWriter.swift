// The append path: submissions become one frame of the current tail, synced.
import Glibc
import Time

/// Writes frames; one thread at a time.
final class TailWriter {
  private let directory: LedgerDirectory
  private let options: WriterOptions
  private let sealer: Sealer
  private let encoder = EventEncoder()
  private let frame = ByteBuffer(capacity: 64 << 10)
  private let salts = ByteBuffer(capacity: 256 * SaltText.byteCount)
  private var saltsUsed = 0

  /// The tail that frames go to; nil until the next append begins one.
  private var file: StorageFile?
  private var fileByteCount = 0
  /// The event lines of the current tail, as they will be sealed.
  private var events: ByteBuffer
  private var tailFirst: Position
  private(set) var nextPosition: Position
  private var lastEventAtMs: Int64
  /// How far the clock stood before the last event at most, in milliseconds, and how many events got that
  /// event's time for it.
  private(set) var clockSetBack = ClockSetBack()

  /// A tail to go on with, made by this writer, or nil.
  struct CurrentTail {
    let file: StorageFile
    let fileByteCount: Int
    let first: Position
    let events: ByteBuffer
  }

  init(
    _ directory: LedgerDirectory, _ options: WriterOptions, _ sealer: Sealer,
    current: CurrentTail?, nextPosition: Position, lastEventAtMs: Int64
  ) {
    self.directory = directory
    self.options = options
    self.sealer = sealer
    self.nextPosition = nextPosition
    self.lastEventAtMs = lastEventAtMs
    file = current?.file
    fileByteCount = current?.fileByteCount ?? 0
    events = current?.events ?? ByteBuffer(capacity: 1 << 20)
    tailFirst = current?.first ?? nextPosition
  }

  /// Whether the writer can go on after a failed commit.
  enum Failure: Error {
    /// Nothing was kept, and the tail is as it was.
    case refused(LedgerError)
    /// What is on disk is not known: nothing may be appended any more.
    case fatal(LedgerError)

    var error: LedgerError {
      switch self {
      case .refused(let error), .fatal(let error): error
      }
    }
  }

  /// Appends submissions as one frame; durable when it returns. The results are in order.
  func commit(_ tickets: [AppendTicket]) throws(Failure) -> [AppendResult] {
    // What is on disk of the blocks is not known then, though each frame is in its tail.
    if let failure = sealer.failure { throw .fatal(failure) }
    do throws(LedgerError) { try rotateIfFull() } catch {
      throw sealer.failure == nil ? .refused(error) : .fatal(error)
    }
    let first = nextPosition
    let eventsStart = events.count
    let timeBefore = (lastEventAtMs, clockSetBack)
    let results: [AppendResult]
    do throws(LedgerError) {
      results = try encode(tickets)
    } catch {
      undo(to: first, eventsStart, timeBefore)
      throw .refused(error)
    }
    frame.count = 0
    FrameHeader.append(
      first: first, eventCount: nextPosition - first,
      events: UnsafeRawBufferPointer(rebasing: events.bytes[eventsStart...]), to: frame)
    do throws(Failure) {
      if let file { try append(to: file) } else { try begin(first) }
    } catch {
      undo(to: first, eventsStart, timeBefore)
      throw error
    }
    if frame.capacity > 8 << 20 { frame.shrink() }
    return results
  }

  private func rotateIfFull() throws(LedgerError) {
    guard file != nil, events.count >= options.blockByteCount else { return }
    events = try sealer.handOver(
      SealableTail(first: tailFirst, eventCount: nextPosition - tailFirst, events: events))
    file = nil
  }

  private func encode(_ tickets: [AppendTicket]) throws(LedgerError) -> [AppendResult] {
    let nowMs = options.clock()
    let timeMs = min(max(nowMs, lastEventAtMs), Timestamp.fixedRangeMs.upperBound)
    let firstOfAll = nextPosition
    var results: [AppendResult] = []
    results.reserveCapacity(tickets.count)
    for ticket in tickets {
      let first = nextPosition
      for draft in ticket.drafts {
        let salt = try nextSalt()
        encoder.append(
          draft, position: nextPosition, firstPosition: first, timeMs: timeMs, salt: salt,
          to: events)
        nextPosition += 1
      }
      results.append(
        AppendResult(firstPosition: first, count: ticket.drafts.count, recordedAtMs: timeMs))
    }
    if nowMs < lastEventAtMs {
      clockSetBack.distanceMsMax = max(clockSetBack.distanceMsMax, lastEventAtMs &- nowMs)
      clockSetBack.eventCount += nextPosition - firstOfAll
    }
    lastEventAtMs = timeMs
    return results
  }

  private func nextSalt() throws(LedgerError) -> UnsafeRawBufferPointer {
    if saltsUsed == salts.count {
      guard options.random(salts.storage) else {
        throw LedgerError(
          .inputOutput, operation: "draw random bytes", object: "salt", cause: "it failed")
      }
      salts.count = salts.capacity
      saltsUsed = 0
    }
    defer { saltsUsed += SaltText.byteCount }
    return UnsafeRawBufferPointer(
      rebasing: salts.bytes[saltsUsed..<saltsUsed + SaltText.byteCount])
  }

  private func undo(
    to position: Position, _ eventsStart: Int, _ time: (lastEventAtMs: Int64, ClockSetBack)
  ) {
    nextPosition = position
    events.count = eventsStart
    (lastEventAtMs, clockSetBack) = time
  }

  private func append(to file: StorageFile) throws(Failure) {
    do throws(LedgerError) {
      try file.write(frame.bytes, offsetBytes: fileByteCount)
    } catch {
      if error.isOfDevice { throw .fatal(error) }
      // A full disk: what was written of the frame goes, and later appends may succeed.
      do throws(LedgerError) { try file.truncate(sizeBytes: fileByteCount) } catch {
        throw .fatal(error)
      }
      throw .refused(error)
    }
    do throws(LedgerError) { try file.syncData() } catch { throw .fatal(error) }
    fileByteCount += frame.count
  }

  /// A tail comes into being with its first frame in it.
  private func begin(_ first: Position) throws(Failure) {
    let name = directory.logPath(Format.tailName(first))
    let temporary = name + Format.temporarySuffix
    let newFile: StorageFile
    do throws(LedgerError) {
      newFile = try directory.openFile(temporary, .replace, errorName: name)
      try newFile.write(frame.bytes, offsetBytes: 0)
    } catch {
      if error.isOfDevice { throw .fatal(error) }
      do throws(LedgerError) { try directory.unlink(temporary) } catch { throw .fatal(error) }
      throw .refused(error)
    }
    do throws(LedgerError) {
      try newFile.syncData()
      try directory.rename(temporary, to: name)
      try directory.syncLogDirectory()
    } catch { throw .fatal(error) }
    file = newFile
    fileByteCount = frame.count
    tailFirst = first
  }
}
