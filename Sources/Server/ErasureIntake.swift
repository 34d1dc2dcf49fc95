// Accepts erasure requests over HTTP and reports their state, on its own thread because it reads and writes files.
package import Base
import Erasure
package import Ledger
import Projections
import Synchronization

/// Puts erasure requests from HTTP into the queue on disk. It does not carry them out.
package final class ErasureIntake: Sendable {
  private enum Job: Sendable {
    case add(ErasureOrder, PendingResponse)
    case lookUp(UUID16, appFamily: UUID16, PendingResponse)
  }

  /// The most requests and lookups that are accepted and not yet answered.
  private static let inProgressMax = 256
  /// A full queue has room after the next pass; clients need not ask every second until then.
  private static let fullPauseSeconds = 600

  private let queue: ErasureQueue
  private let notes: OperatorNotes
  private let confirm: @Sendable () throws(LedgerError) -> Void
  private let load = AdmissionLimiter(countMax: inProgressMax, bytesMax: 16 << 20)
  private let jobs = WorkQueue<Job>()
  private let isStopping = Atomic<Bool>(false)
  private let thread = Monitor<WorkerThread?>(nil)

  /// - Parameter confirm: returns once requests that are on disk may be acknowledged.
  package init(
    _ directory: LedgerDirectory, _ notes: OperatorNotes,
    confirm: @escaping @Sendable () throws(LedgerError) -> Void
  ) {
    queue = ErasureQueue(directory)
    self.notes = notes
    self.confirm = confirm
  }

  package func start() throws(LedgerError) {
    let started = try WorkerThread.start { [self] in work() }
    thread.withLock { $0 = started }
  }

  /// Accepts no further requests.
  func beginStopping() { isStopping.store(true, ordering: .releasing) }

  /// Answers the requests in progress and stops the thread. Calling it again does nothing.
  package func stop() {
    beginStopping()
    jobs.close()
    thread.withLock { $0.take() }?.join()
  }

  /// Accepts a request, and answers once it is durable; with `sync`, once it is also in the copy.
  package func receive(
    _ order: ErasureOrder, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    admit(bytes: order.user.utf8.count, completion) { .add(order, $0) }
  }

  /// Looks up a request of an app family.
  func lookUp(
    _ id: UUID16, of appFamily: UUID16, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    admit(bytes: 0, completion) { .lookUp(id, appFamily: appFamily, $0) }
  }

  private func admit(
    bytes: Int, _ completion: @escaping @Sendable (ClientResponse) -> Void,
    _ job: (PendingResponse) -> Job
  ) {
    guard !isStopping.load(ordering: .acquiring), load.admit(bytes: bytes) else {
      return completion(.unavailable(retryAfterSeconds: 1))
    }
    // A response that is not admitted sends its own error.
    jobs.push(job(PendingResponse(load, bytes: bytes, completion)))
  }

  private func work() {
    while true {
      let jobs = jobs.popAll(atMost: Self.inProgressMax)
      if jobs.isEmpty { return }
      var added: [(ErasureRecord, PendingResponse)] = []
      for job in jobs {
        switch job {
        case .add(let order, let response):
          if let record = add(order, response) { added.append((record, response)) }
        case .lookUp(let id, let appFamily, let response): response.answer(lookUp(id, appFamily))
        }
      }
      // Requests that were added together wait together.
      if !added.isEmpty { acknowledge(added) }
    }
  }

  /// Puts a request on disk; if that fails, answers it and returns nil.
  private func add(_ order: ErasureOrder, _ response: PendingResponse) -> ErasureRecord? {
    let record = order.record
    do throws(ErasureError) {
      try queue.add(record)
      return record
    } catch {
      notes.fault("accept a request to erase", error)
      if case .refused = error {
        response.answer(.unavailable(retryAfterSeconds: Self.fullPauseSeconds))
      } else {
        response.answer(.tryLater)
      }
      return nil
    }
  }

  private func acknowledge(_ added: [(record: ErasureRecord, response: PendingResponse)]) {
    do throws(LedgerError) { try confirm() } catch {
      notes.fault("accept a request to erase", error)
      for (_, response) in added { response.answer(.tryLater) }
      return
    }
    for (record, response) in added {
      response.answer(.erasureAccepted(id: record.id, ErasureResource.accepted(record)))
    }
  }

  /// Another app family's request is not found, like one that never existed.
  private func lookUp(_ id: UUID16, _ appFamily: UUID16) -> ClientResponse {
    do throws(ErasureError) {
      guard let record = try queue.record(id), record.appFamily == appFamily else {
        return .erasureNotFound
      }
      return .erasure(ErasureResource.current(record))
    } catch {
      notes.fault("look up a request to erase", error)
      return .tryLater
    }
  }
}

// MARK: - Requests and resources

/// A request over HTTP to erase a user of an app family.
package struct ErasureOrder: Sendable {
  /// In the form in which uploads name the user, or `token:` and an `appAccountToken`. No message contains it.
  package let user: String
  /// A code, in the form of events.
  package let reason: String
  package let isUrgent: Bool
  /// The app family of the token: only its events are erased.
  package let appFamily: UUID16
  /// Epoch milliseconds.
  package let receivedAtMs: Int64

  package init(
    user: String, reason: String, isUrgent: Bool, appFamily: UUID16, receivedAtMs: Int64
  ) {
    self.user = user
    self.reason = reason
    self.isUrgent = isUrgent
    self.appFamily = appFamily
    self.receivedAtMs = receivedAtMs
  }

  /// The request in the form in which the ledger queues it.
  var record: ErasureRecord {
    ErasureRecord(
      .user(user, appFamily: appFamily), reason: reason, requestedAtMs: receivedAtMs,
      isUrgent: isUrgent)
  }
}

/// An erasure in HTTP responses, without anything that names its subject.
enum ErasureResource {
  /// Of a request that was accepted.
  static func accepted(_ record: ErasureRecord) -> ResponseBody {
    ResponseBody(
      JSONValue.object([
        .init("id", .string(record.id.description)), .init("state", .string(record.state.rawValue)),
        .init("requested_at", .string(Timestamp.text(ms: record.requestedAtMs))),
      ]).bytes)
  }

  /// Of a request that is looked up.
  static func current(_ record: ErasureRecord) -> ResponseBody {
    ResponseBody(
      JSONValue.object([
        .init("id", .string(record.id.description)), .init("state", .string(record.state.rawValue)),
        .init("reason", .string(record.reason)),
        .init("requested_at", .string(Timestamp.text(ms: record.requestedAtMs))),
        .init("certificate", record.certificate.map { .object($0.members) } ?? .null),
        .init("failure", record.failure.map { .string($0) } ?? .null),
      ]).bytes)
  }
}
