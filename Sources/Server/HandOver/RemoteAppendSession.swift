// One command's session with the server: its turn, its submissions, its end.
import Base
import Glibc
import Intake
import Ledger

/// Serves one connection, on one thread.
struct RemoteAppendSession {
  let server: RemoteAppendServer
  let number: Int
  let processID: Int32
  let connection: RemoteAppendConnection

  /// Why a session ends early.
  private enum Ending: Error {
    case connection(ConnectionFailure)
    /// Sent to the client.
    case refused(LedgerError)
  }

  func run() {
    do throws(Ending) {
      try greet()
      try waitForTurn()
      defer { server.releaseTurn(number) }
      let submissions = RemoteAppendSubmissions(server.writer, onOutcome: server.onOutcome)
      // The next session must find all events of this one in the log.
      defer {
        submissions.waitForAll()
        server.onAppended()
      }
      try send(.begun)
      try serve(submissions)
    } catch {
      switch error {
      case .connection(.malformed(let cause)): report(refusal(.invalidInput, cause))
      case .connection: break
      case .refused(let error): report(error)
      }
    }
    connection.shutDown()
  }

  private func report(_ error: LedgerError) {
    try? connection.send(.failure, RemoteAppendWriter.failure(error), timeoutMs: 1000)
  }

  private func refusal(_ kind: LedgerError.Kind, _ cause: String) -> LedgerError {
    LedgerError(kind, operation: "append through the server", object: "ledger.sock", cause: cause)
  }

  private func send(
    _ kind: RemoteAppendProtocol.Kind, _ content: [UInt8] = []
  ) throws(Ending) {
    do throws(ConnectionFailure) {
      try connection.send(kind, content, timeoutMs: server.options.pieceTimeoutMs)
    } catch { throw .connection(error) }
  }

  private func receive(
    startTimeoutMs: Int32
  ) throws(Ending) -> (kind: UInt8, content: [UInt8]) {
    do throws(ConnectionFailure) {
      return try connection.receive(
        startTimeoutMs: startTimeoutMs, pieceTimeoutMs: server.options.pieceTimeoutMs)
    } catch { throw .connection(error) }
  }

  private func parsed<Result>(
    _ body: () throws(RemoteAppendFault) -> Result
  ) throws(Ending) -> Result {
    do throws(RemoteAppendFault) { return try body() } catch {
      throw .connection(.malformed(error.cause))
    }
  }

  // MARK: Beginning

  private func greet() throws(Ending) {
    let frame = try receive(startTimeoutMs: server.options.pieceTimeoutMs)
    guard frame.kind == RemoteAppendProtocol.Kind.begin.rawValue else {
      throw .connection(.malformed("the first frame does not begin a session"))
    }
    var reader = RemoteAppendReader(frame.content)
    let version = try parsed { () throws(RemoteAppendFault) in try reader.number(UInt8.self) }
    guard version == RemoteAppendProtocol.version else {
      throw .refused(
        refusal(
          .invalidInput,
          "the server uses protocol version \(RemoteAppendProtocol.version), this program \(version): run the "
            + "server's ledgerctl"))
    }
    let ledgerID = try parsed { () throws(RemoteAppendFault) in
      let text = try reader.text()
      try reader.expectEnd()
      return text
    }
    guard ledgerID == server.writer.directory.identity.id.description else {
      throw .refused(refusal(.invalidInput, "the server has another ledger"))
    }
  }

  private func waitForTurn() throws(Ending) {
    switch server.acquireTurn(number, processID: processID) {
    case .acquired: return
    case .stopping: throw .refused(refusal(.closed, "the server is stopping"))
    case .held(let holder):
      throw .refused(
        LedgerError(
          .locked, operation: "open for writing", object: server.writer.directory.path,
          cause: "process \(holder) is appending through the server"))
    }
  }

  // MARK: Serving

  private func serve(_ submissions: RemoteAppendSubmissions) throws(Ending) {
    var check = DraftCheck(server.writer.directory)
    while true {
      let frame = try receive(startTimeoutMs: server.options.idleTimeoutMs)
      var reader = RemoteAppendReader(frame.content)
      switch RemoteAppendProtocol.Kind(rawValue: frame.kind) {
      case .submit:
        let drafts = try parsed { () throws(RemoteAppendFault) in try reader.drafts() }
        do throws(DraftCheck.Refusal) { try check.check(drafts) } catch {
          switch error {
          case .fault(let cause): throw .connection(.malformed(cause))
          case .ledger(let error): throw .refused(error)
          }
        }
        if server.isStopping { throw .refused(refusal(.closed, "the server is stopping")) }
        try submit(drafts, submissions)
      case .positions:
        let number = try parsed { () throws(RemoteAppendFault) in
          let number = try reader.number(UInt64.self)
          try reader.expectEnd()
          return number
        }
        try answer(.placed) { () throws(LedgerError) in
          let range = try submissions.positions(of: number)
          server.onAppended()
          var writer = RemoteAppendWriter()
          writer.number(UInt64(range.lowerBound))
          writer.number(UInt64(range.count))
          return writer.bytes
        }
      case .outcomes:
        let (first, count) = try parsed { () throws(RemoteAppendFault) in
          let range = (try reader.number(UInt64.self), Int(try reader.number(UInt32.self)))
          try reader.expectEnd()
          return range
        }
        try answer(.told) { () throws(LedgerError) in
          defer { server.onAppended() }
          var writer = RemoteAppendWriter()
          for range in try submissions.outcomes(from: first, count: count) {
            writer.number(UInt64(range?.lowerBound ?? 0))
            writer.number(UInt64(range?.count ?? 0))
          }
          return writer.bytes
        }
      case .flush:
        try answer(.flushed) { () throws(LedgerError) in
          try submissions.flush()
          server.onAppended()
          return []
        }
      case .retry:
        server.onRetry()
        try send(.retried)
      case .end:
        try answer(.ended) { () throws(LedgerError) in
          try submissions.flush()
          return []
        }
        return
      default: throw .connection(.malformed("a frame of kind \(frame.kind) is not expected here"))
      }
    }
  }

  /// How long to wait for a notification that is being appended another way.
  private static let claimLimitMs: Int64 = 30_000

  /// Submits what the ledger does not have: known notifications are left out.
  private func submit(
    _ drafts: [EventDraft], _ submissions: RemoteAppendSubmissions
  ) throws(Ending) {
    guard let claims = server.claims else {
      _ = submissions.add(drafts)
      return
    }
    var kept: [EventDraft] = []
    var claimed: [(index: Int, uuid: String)] = []
    var known: String?
    do throws(Ending) {
      for draft in drafts {
        if let uuid = Self.notification(draft) {
          // Leaving a draft out would shift the drafts that others name.
          guard drafts.allSatisfy(\.references.isEmpty) else {
            throw Ending.connection(
              .malformed("a submission with a notification names another of its events"))
          }
          guard !claimed.contains(where: { $0.uuid == uuid }), try isNew(uuid, claims) else {
            known = uuid
            continue
          }
          claimed.append((kept.count, uuid))
        }
        kept.append(draft)
      }
      if kept.isEmpty, let known { return submissions.add(at: try position(of: known, claims)) }
    } catch {
      for one in claimed { claims.abandon(one.uuid) }
      throw error
    }
    if let ticket = submissions.add(kept) {
      claims.record(claimed, ticket)
    } else {
      for one in claimed { claims.abandon(one.uuid) }
    }
  }

  /// The UUID of a checked draft of a notification; nil for any other draft.
  private static func notification(_ draft: EventDraft) -> String? {
    guard draft.type == EventType.notificationReceived.rawValue else { return nil }
    return draft.data.withUnsafeBytes { data in
      (try? NotificationReceivedView(data: data))?.notificationUUID?.string
    }
  }

  private func isNew(_ uuid: String, _ claims: HandedOverClaims) throws(Ending) -> Bool {
    try decided(uuid) { () throws in try claims.claim(uuid) }
  }

  /// The position of a notification that the ledger has, after a fold.
  private func position(of uuid: String, _ claims: HandedOverClaims) throws(Ending) -> Position {
    try decided(uuid) { () throws in
      if let position = try claims.position(uuid) { return position }
      server.onAppended()
      return try claims.position(uuid)
    }
  }

  /// Repeats a question until it is decided.
  private func decided<Answer>(
    _ uuid: String, _ ask: () throws -> Answer?
  ) throws(Ending) -> Answer {
    let deadlineMs = MonotonicClock.nowMs() + Self.claimLimitMs
    while true {
      do {
        if let answer = try ask() { return answer }
      } catch { throw .refused(refusal(.inputOutput, "cannot look up a notification: \(error)")) }
      guard !server.isStopping else { throw .refused(refusal(.closed, "the server is stopping")) }
      guard MonotonicClock.nowMs() < deadlineMs else {
        throw .refused(
          refusal(.inputOutput, "a notification that is appended another way stays undecided")
        )
      }
      usleep(10_000)
    }
  }

  private func answer(
    _ kind: RemoteAppendProtocol.Kind, _ body: () throws(LedgerError) -> [UInt8]
  ) throws(Ending) {
    let content: [UInt8]
    do throws(LedgerError) { content = try body() } catch {
      return try send(.failure, RemoteAppendWriter.failure(error))
    }
    try send(kind, content)
  }
}

/// The submissions of a session, in order; their memory is bounded whatever a client sends.
final class RemoteAppendSubmissions {
  private static let waitingCountMax = 1024
  private static let waitingByteCountMax = 16 << 20

  private enum Submission {
    case ticket(AppendTicket)
    /// The ledger already had it.
    case known(Position)
  }

  private let writer: LedgerWriter
  private let onOutcome: (LedgerError?) -> Void
  private var waiting: [(submission: Submission, byteCount: Int)] = []
  private var waitingByteCount = 0
  /// The positions of the latest submissions; nil for a lost one.
  private var finished: [Range<Position>?] = []
  /// The number of the first in `finished`.
  private var firstFinished: UInt64 = 0
  /// The first failure: nothing is accepted after it. What was accepted before may still be appended.
  private var failure: LedgerError?

  /// - Parameter onOutcome: called with the error of a failed append, or nil after appends have succeeded.
  init(_ writer: LedgerWriter, onOutcome: @escaping (LedgerError?) -> Void = { _ in }) {
    self.writer = writer
    self.onOutcome = onOutcome
  }

  private var finishedCount: UInt64 { firstFinished + UInt64(finished.count) }

  /// Submits drafts; nil if they are not accepted.
  func add(_ drafts: [EventDraft]) -> AppendTicket? {
    if failure != nil { return nil }
    do throws(LedgerError) {
      let byteCount = drafts.reduce(0) { $0 + $1.data.count + 128 + $1.references.count * 16 }
      let ticket = try writer.submit(drafts)
      wait(for: .ticket(ticket), byteCount)
      return ticket
    } catch {
      failure = error
      onOutcome(error)
      return nil
    }
  }

  /// Counts an event that the ledger already has as a submission at its position.
  func add(at position: Position) {
    if failure == nil { wait(for: .known(position), 0) }
  }

  private func wait(for submission: Submission, _ byteCount: Int) {
    waiting.append((submission, byteCount))
    waitingByteCount += byteCount
    while waiting.count > Self.waitingCountMax || waitingByteCount > Self.waitingByteCountMax {
      // Half of them at once: removing them singly would move the rest each time.
      waitForFirst((waiting.count + 1) / 2)
    }
  }

  /// The positions of a submission, once it is durable.
  func positions(of number: UInt64) throws(LedgerError) -> Range<Position> {
    if number >= finishedCount, number - finishedCount < UInt64(waiting.count) {
      waitForFirst(Int(number - finishedCount) + 1)
    }
    if number >= firstFinished, number < finishedCount,
      let range = finished[Int(number - firstFinished)]
    {
      return range
    }
    if let failure { throw failure }
    throw unknown(number)
  }

  /// The positions of some submissions, once they are decided; nil for a lost one.
  func outcomes(from first: UInt64, count: Int) throws(LedgerError) -> [Range<Position>?] {
    guard count <= RemoteAppendProtocol.submissionsKept,
      case let (end, overflow) = first.addingReportingOverflow(UInt64(count)), !overflow
    else { throw unknown(first) }
    if end > finishedCount {
      waitForFirst(Int(min(end - finishedCount, UInt64(waiting.count))))
    }
    // Submissions after a failure are not accepted: they are also lost.
    guard first >= firstFinished, end <= finishedCount || failure != nil else {
      throw unknown(first)
    }
    return (first..<end).map { $0 < finishedCount ? finished[Int($0 - firstFinished)] : nil }
  }

  private func unknown(_ number: UInt64) -> LedgerError {
    LedgerError(
      .invalidInput, operation: "append through the server", object: "submission \(number)",
      cause: "it does not exist, or is too old")
  }

  func flush() throws(LedgerError) {
    waitForAll()
    if let failure { throw failure }
  }

  func waitForAll() { waitForFirst(waiting.count) }

  private func waitForFirst(_ count: Int) {
    var isLastKept = false
    for (submission, byteCount) in waiting.prefix(count) {
      waitingByteCount -= byteCount
      do throws(LedgerError) {
        switch submission {
        case .ticket(let ticket): finished.append(try writer.positions(of: ticket))
        case .known(let position): finished.append(position..<position + 1)
        }
        isLastKept = true
      } catch {
        finished.append(nil)
        if failure == nil { failure = error }
        isLastKept = false
        onOutcome(error)
      }
    }
    if isLastKept { onOutcome(nil) }
    waiting.removeFirst(min(count, waiting.count))
    let excess = finished.count - RemoteAppendProtocol.submissionsKept
    if excess > RemoteAppendProtocol.submissionsKept / 4 {
      finished.removeFirst(excess)
      firstFinished += UInt64(excess)
    }
  }
}
