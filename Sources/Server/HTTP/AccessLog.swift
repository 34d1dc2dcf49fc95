// Writes one line of JSON for each answered request, without receipts, tokens and users.
package import Base
import Glibc
import Ledger

/// The entry of one request.
package struct AccessLogEntry: Sendable {
  /// When the request line had arrived, in epoch milliseconds.
  package var timeMs: Int64
  package var requestID: String
  /// One of the methods of HTTP; "other" for any other word.
  package var method: String
  /// The path's template; nil for an unknown path.
  package var route: String?
  package var status: Int
  package var bodyBytesIn: Int
  package var bodyBytesOut: Int
  package var durationMicroseconds: Int64
  /// The client's address; nil if the upload asked that it not be stored.
  package var peer: String?
  package var appFamily: UUID16?

  package init(
    timeMs: Int64, requestID: String, method: String, route: String?, status: Int,
    bodyBytesIn: Int, bodyBytesOut: Int, durationMicroseconds: Int64, peer: String?,
    appFamily: UUID16?
  ) {
    self.timeMs = timeMs
    self.requestID = requestID
    self.method = method
    self.route = route
    self.status = status
    self.bodyBytesIn = bodyBytesIn
    self.bodyBytesOut = bodyBytesOut
    self.durationMicroseconds = durationMicroseconds
    self.peer = peer
    self.appFamily = appFamily
  }

  /// With three decimals.
  private static func milliseconds(_ microseconds: Int64) -> [UInt8] {
    let (whole, rest) = max(0, microseconds).quotientAndRemainder(dividingBy: 1000)
    return Array("\(whole).".utf8) + String(1000 + rest).utf8.dropFirst()
  }

  func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("time")
    writer.string(Timestamp.text(ms: timeMs))
    writer.key("request_id")
    writer.string(requestID)
    writer.key("method")
    writer.string(method)
    writer.key("route")
    if let route { writer.string(route) } else { writer.null() }
    writer.key("status")
    writer.integer(status)
    writer.key("bytes_in")
    writer.integer(bodyBytesIn)
    writer.key("bytes_out")
    writer.integer(bodyBytesOut)
    writer.key("duration_ms")
    Self.milliseconds(durationMicroseconds).withUnsafeBytes { writer.raw($0) }
    writer.key("peer")
    if let peer { writer.string(peer) } else { writer.null() }
    writer.key("app_family_id")
    if let appFamily { writer.string(appFamily.description) } else { writer.null() }
    writer.endObject()
  }
}

/// Writes lines from any thread; its own thread passes them to the descriptor each second. A log that accepts nothing,
/// or whose reader has disappeared, loses lines and never delays a request.
package final class AccessLog: Sendable {
  private let lines: AccessLogLines
  private let thread: Monitor<WorkerThread?>
  /// A byte wakes the thread.
  private let wakeWrite: Int32
  /// The most bytes of lines that wait for a slow reader; further lines are dropped and counted.
  static let waitingBytesMax = 4 << 20

  /// - Parameter descriptor: where the lines go; it stays open, and the caller owns it.
  package init(descriptor: Int32) throws(Failure) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw Failure("open", "the access log", errno: errno)
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    wakeWrite = ends[1]
    let lines = AccessLogLines(descriptor: descriptor, wakeRead: ends[0])
    self.lines = lines
    do throws(LedgerError) {
      thread = Monitor(try WorkerThread.start { lines.run() })
    } catch {
      for end in ends { close(end) }
      throw Failure(
        operation: "open", object: "the access log", cause: String(describing: error))
    }
  }

  deinit { finish() }

  package func append(_ entry: AccessLogEntry) {
    var writer = JSONWriter()
    writer.reserve(320)
    entry.write(to: &writer)
    lines.append(writer.bytes, byteCountMax: Self.waitingBytesMax)
  }

  /// Writes the waiting lines and stops. Later lines are dropped.
  package func finish() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    lines.close()
    var byte: UInt8 = 1
    _ = write(wakeWrite, &byte, 1)
    running.join()
    close(lines.wakeRead)
    close(wakeWrite)
  }
}

/// The waiting lines, and the work of the thread that writes them. The thread keeps it alive.
private final class AccessLogLines: Sendable {
  private struct State {
    var lines: [UInt8] = []
    var droppedLines = 0
    var isClosed = false
  }

  private let descriptor: Int32
  let wakeRead: Int32
  private let state = Monitor(State())

  init(descriptor: Int32, wakeRead: Int32) {
    (self.descriptor, self.wakeRead) = (descriptor, wakeRead)
  }

  func append(_ line: [UInt8], byteCountMax: Int) {
    state.withLock { state in
      guard state.lines.count + line.count < byteCountMax else {
        state.droppedLines += 1
        return
      }
      state.lines.append(contentsOf: line)
      state.lines.append(UInt8(ascii: "\n"))
    }
  }

  func close() { state.withLock { $0.isClosed = true } }

  func run() {
    var isClosed = false
    // Dropped lines that were not reported yet.
    var lost = 0
    var isCut = false
    while !isClosed {
      var waiting = pollfd(fd: wakeRead, events: Int16(POLLIN), revents: 0)
      _ = poll(&waiting, 1, 1000)
      let (lines, dropped) = state.withLock { state in
        isClosed = state.isClosed
        defer { (state.lines, state.droppedLines) = ([], 0) }
        return (state.lines, state.droppedLines)
      }
      lost += dropped + put(lines, &isCut)
      if lost > 0 {
        let now = Timestamp.text(ms: Timestamp.now())
        let line = Array("{\"time\":\"\(now)\",\"dropped_lines\":\(lost)}\n".utf8)
        if put(line, &isCut) == 0 { lost = 0 }
      }
    }
  }

  /// Writes lines; returns how many were not written completely. A reader that accepts nothing delays only this thread;
  /// on closing, it is abandoned after a second.
  /// - Parameter isCut: whether the last written line is incomplete.
  private func put(_ lines: [UInt8], _ isCut: inout Bool) -> Int {
    if lines.isEmpty { return 0 }
    var rest = (isCut ? [0x0A] + lines : lines)[...]
    func lost() -> Int { rest.count { $0 == 0x0A } }
    while !rest.isEmpty {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let ready = poll(&waiting, 1, 1000)
      if ready == 0 {
        if state.withLock({ $0.isClosed }) { return lost() }
        continue
      }
      // At most as much as a pipe accepts without blocking once it is writable.
      let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, min($0.count, 4096)) }
      if written > 0 {
        isCut = rest[rest.startIndex + written - 1] != 0x0A
        rest = rest.dropFirst(written)
      } else if written < 0, errno != EINTR, errno != EAGAIN {
        return lost()
      }
    }
    return 0
  }
}
