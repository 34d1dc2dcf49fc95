// Appends through the process that holds the ledger.
import Base
import Glibc
package import Intake
package import Ledger

/// A session with the server of a ledger. It ends with `close()`, or abruptly when it is released. Used by one thread.
package final class RemoteAppender: EventAppender {
  /// A submission, by its number within the session.
  package struct Ticket: Sendable { let number: UInt64 }

  /// How long the server may take to answer: its disk may be slow, but the server is there.
  private static let answerTimeoutMs: Int32 = 300_000
  private static let beginTimeoutMs: Int32 = 60_000

  private let connection: RemoteAppendConnection
  private let objectPath: String
  private var submissionCount: UInt64 = 0
  private var isEnded = false

  private init(_ connection: RemoteAppendConnection, _ objectPath: String) {
    self.connection = connection
    self.objectPath = objectPath
  }

  deinit { connection.shutDown() }

  /// Begins a session, waiting for the end of the current one. Nil if no server listens.
  ///
  /// Throws `locked` if the server does not answer, or another session takes too long.
  package static func connect(_ directory: LedgerDirectory) throws(LedgerError) -> RemoteAppender? {
    guard try directory.root.status(RemoteAppendProtocol.socketName)?.kind == .other else {
      return nil
    }
    let descriptor = RemoteAppendAddress.makeSocket()
    guard descriptor >= 0 else {
      throw LedgerError(
        .inputOutput, operation: "open for writing", object: directory.path,
        cause: systemErrorText(errno))
    }
    let isConnected = RemoteAppendAddress.with(directory.root) { address, size in
      while Glibc.connect(descriptor, address, size) != 0 {
        if errno != EINTR { return errno == EISCONN }
      }
      return true
    }
    guard isConnected == true else {
      Glibc.close(descriptor)
      return nil
    }
    let appender = RemoteAppender(
      RemoteAppendConnection(descriptor), directory.fullPath(RemoteAppendProtocol.socketName))
    try appender.begin(directory)
    return appender
  }

  private func begin(_ directory: LedgerDirectory) throws(LedgerError) {
    var content = RemoteAppendWriter()
    content.number(RemoteAppendProtocol.version)
    content.text(directory.identity.id.description)
    let holder = connection.peer.map { "process \($0.processID)" } ?? "another process"
    let result: Result<[UInt8], LedgerError>
    do throws(ConnectionFailure) {
      try connection.send(.begin, content.bytes, timeoutMs: Self.beginTimeoutMs)
      result = try answer(.begun, timeoutMs: Self.beginTimeoutMs)
    } catch {
      guard case .timeout = error else { throw lastWord(of: error) }
      throw LedgerError(
        .locked, operation: "open for writing", object: directory.path,
        cause: "locked by \(holder), which does not respond")
    }
    _ = try result.get()
  }

  package func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket {
    let content = RemoteAppendWriter.drafts(drafts)
    guard content.count <= RemoteAppendProtocol.contentByteCountMax else {
      throw LedgerError(
        .invalidInput, operation: "append", object: "event",
        cause: "together the events are larger than \(Format.frameByteCountMax) bytes")
    }
    do throws(ConnectionFailure) {
      try connection.send(.submit, content, timeoutMs: Self.answerTimeoutMs)
    } catch { throw lastWord(of: error) }
    defer { submissionCount += 1 }
    return Ticket(number: submissionCount)
  }

  package func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position> {
    var content = RemoteAppendWriter()
    content.number(ticket.number)
    var reader = RemoteAppendReader(try ask(.positions, content.bytes, .placed))
    do throws(RemoteAppendFault) {
      let range = try Self.range(&reader)
      try reader.expectEnd()
      if range.isEmpty { throw RemoteAppendFault(cause: "impossible positions") }
      return range
    } catch { throw failure(.malformed(error.cause)) }
  }

  package func outcome(of tickets: [Ticket]) -> AppendOutcome {
    var outcome = AppendOutcome()
    guard let first = tickets.first else { return outcome }
    precondition(tickets.enumerated().allSatisfy { $1.number == first.number + UInt64($0) })
    do throws(LedgerError) {
      outcome.positions = try told(from: first.number, count: tickets.count)
      // Throws the server's own error for what is missing.
      if outcome.positions.contains(nil) { try flush() }
    } catch {
      outcome.failure = error
      // If the session has ended, nothing is known about them.
      if outcome.positions.isEmpty {
        outcome.positions = [Range<Position>?](repeating: nil, count: tickets.count)
      }
    }
    return outcome
  }

  private func told(from first: UInt64, count: Int) throws(LedgerError) -> [Range<Position>?] {
    var content = RemoteAppendWriter()
    content.number(first)
    content.number(UInt32(clamping: count))
    var reader = RemoteAppendReader(try ask(.outcomes, content.bytes, .told))
    do throws(RemoteAppendFault) {
      var ranges: [Range<Position>?] = []
      for _ in 0..<count {
        let range = try Self.range(&reader)
        ranges.append(range.isEmpty ? nil : range)
      }
      try reader.expectEnd()
      return ranges
    } catch { throw failure(.malformed(error.cause)) }
  }

  /// A first position and a number of events.
  private static func range(_ reader: inout RemoteAppendReader) throws(RemoteAppendFault) -> Range<
    Position
  > {
    let first = try reader.number(UInt64.self)
    let count = try reader.number(UInt64.self)
    guard let first = Int(exactly: first), let count = Int(exactly: count),
      case let (end, overflow) = first.addingReportingOverflow(count), !overflow
    else { throw RemoteAppendFault(cause: "impossible positions") }
    return first..<end
  }

  package func flush() throws(LedgerError) { _ = try ask(.flush, [], .flushed) }

  /// Makes the server try all pending receipts now; does not wait for the result.
  package func requestRetry() throws(LedgerError) { _ = try ask(.retry, [], .retried) }

  /// Waits until all that was submitted is durable, and ends the session.
  package func close() throws(LedgerError) {
    if isEnded { return }
    isEnded = true
    _ = try ask(.end, [], .ended)
  }

  // MARK: Frames

  private func ask(
    _ kind: RemoteAppendProtocol.Kind, _ content: [UInt8], _ expected: RemoteAppendProtocol.Kind
  ) throws(LedgerError) -> [UInt8] {
    do throws(ConnectionFailure) {
      try connection.send(kind, content, timeoutMs: Self.answerTimeoutMs)
    } catch { throw lastWord(of: error) }
    let result: Result<[UInt8], LedgerError>
    do throws(ConnectionFailure) {
      result = try answer(expected, timeoutMs: Self.answerTimeoutMs)
    } catch { throw failure(error) }
    return try result.get()
  }

  private func answer(
    _ expected: RemoteAppendProtocol.Kind?, timeoutMs: Int32
  ) throws(ConnectionFailure) -> Result<[UInt8], LedgerError> {
    let frame = try connection.receive(startTimeoutMs: timeoutMs, pieceTimeoutMs: timeoutMs)
    if frame.kind == RemoteAppendProtocol.Kind.failure.rawValue {
      var reader = RemoteAppendReader(frame.content)
      do throws(RemoteAppendFault) { return .failure(try reader.failure()) } catch {
        throw .malformed(error.cause)
      }
    }
    guard frame.kind == expected?.rawValue else {
      throw .malformed("a frame of kind \(frame.kind)")
    }
    return .success(frame.content)
  }

  /// Why the server ended the session: its last error, if it sent one.
  private func lastWord(of error: ConnectionFailure) -> LedgerError {
    guard case .closed = error else { return failure(error) }
    do throws(ConnectionFailure) {
      // No other frame is expected, and only a failure contains an error.
      if case .failure(let told) = try answer(nil, timeoutMs: 0) { return told }
    } catch { return failure(.closed) }
    return failure(error)
  }

  private func failure(_ error: ConnectionFailure) -> LedgerError {
    let cause =
      switch error {
      case .closed: "the server ended the session; unconfirmed events may be missing"
      case .timeout: "the server does not respond"
      case .malformed(let cause): "the server broke the protocol: \(cause)"
      case .system(let code): systemErrorText(code)
      }
    return LedgerError(
      .inputOutput, operation: "append through the server", object: objectPath, cause: cause)
  }
}
