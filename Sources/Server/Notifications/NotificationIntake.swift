// Accepts notifications of the App Store: checks, appends, responds. It has its own threads and its own limit.
import AppStore
import Base
import Intake
import Ledger
import Projections
import Synchronization

/// Notifications from their request to their response.
///
/// ```
///   posted ─ admit ─► judge ─► claim the UUID ─► known? ─► Sandbox's limit ─► append ─► durable ─► 200
///               │        │          │               │             │              │
///               503   4xx, 503   joins, 200        200           503            503
/// ```
/// A worker handles it up to the append; the recorder waits for the disk and responds. Neither waits for a fold or an
/// upload: a fold is requested once the client has its response.
final class NotificationIntake: Sendable {
  private struct Job: Sendable {
    let posted: PostedNotification
    let response: PendingResponse
  }

  /// A notification that was passed to the writer.
  private struct Submitted: Sendable {
    let key: NotificationRegistry.Key
    let ticket: AppendTicket
    /// Its index in the submission.
    var index = 0
    let submittedAtMs: Int64
    /// Nil if a command handed it over.
    let response: PendingResponse?
  }

  private struct Threads {
    var workers: [WorkerThread] = []
    var recorder: WorkerThread?
  }

  /// The limit on the bytes of all notifications in progress, each counted four times: its text, its parts, its event,
  /// its frame.
  private static let bytesMax = 128 << 20
  /// The most responses that are sent between two folds.
  private static let batchMax = 256

  private let shared: WorkflowShared
  private let workerCount: Int
  private let load: AdmissionLimiter
  private let registry = NotificationRegistry()
  private let sandbox = SandboxLimiter()
  private let jobs = WorkQueue<Job>()
  private let submitted = WorkQueue<Submitted>()
  private let isStopping = Atomic<Bool>(false)
  private let threads = Monitor(Threads())

  init(_ shared: WorkflowShared, workerCount: Int) {
    self.shared = shared
    self.workerCount = workerCount
    load = AdmissionLimiter(
      countMax: shared.settings.notifications.inProgressMax, bytesMax: Self.bytesMax)
  }

  func start() throws(LedgerError) {
    let recorder = try WorkerThread.start { [self] in record() }
    threads.withLock { $0.recorder = recorder }
    for _ in 0..<max(1, workerCount) {
      let worker = try WorkerThread.start { [self] in work() }
      threads.withLock { $0.workers.append(worker) }
    }
  }

  /// Applies a configuration.
  func apply(_ settings: Configuration.Notifications) {
    load.replace(countMax: settings.inProgressMax)
  }

  /// Accepts no further notifications.
  func beginStopping() { isStopping.store(true, ordering: .releasing) }

  /// Answers the requests in progress and stops the threads. Calling it again does nothing.
  func stop() {
    beginStopping()
    jobs.close()
    for worker in threads.withLock({ $0.workers }) { worker.join() }
    submitted.close()
    threads.withLock { threads in
      threads.workers = []
      return threads.recorder.take()
    }?.join()
  }

  /// Accepts a notification; see `ClientService`.
  func receive(
    _ posted: PostedNotification, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    let bytes = 4 * posted.text.count
    guard !isStopping.load(ordering: .acquiring), !shared.health.isFatal, load.admit(bytes: bytes)
    else {
      count(.busy)
      return completion(.notification(.retry(nil, afterSeconds: 1)))
    }
    jobs.push(Job(posted: posted, response: PendingResponse(load, bytes: bytes, completion)))
  }

  // MARK: Claims by other writers

  /// Claims a notification that a synchronization appends; false if it is being appended, or durable.
  func claim(uuid: String) -> Bool {
    switch registry.claim(
      NotificationRegistry.key(of: uuid), nil, foldedTo: shared.projections.position)
    {
    case .joined, .durable: false
    // If there is no room, it is appended all the same: what was fetched is not requested again.
    case .first, .full: true
    }
  }

  /// Ends such a claim, and answers the requests that arrived meanwhile.
  func release(uuid: String, _ end: NotificationClaimEnd) {
    let key = NotificationRegistry.key(of: uuid)
    switch end {
    case .durable(let position):
      for response in registry.recordDurable(key, at: position) { answer(response, .known, .known) }
    case .known:
      for response in registry.abandon(key) { answer(response, .known, .known) }
    case .failed:
      for response in registry.abandon(key) {
        answer(response, .retry(nil, afterSeconds: 5), .failed)
      }
    }
  }

  /// Claims a notification that a command hands over; false if the ledger has it, nil while it is being appended.
  func claim(handedOver uuid: String) throws -> Bool? {
    let key = NotificationRegistry.key(of: uuid)
    switch registry.claim(key, nil, foldedTo: shared.projections.position) {
    case .durable: return false
    case .joined: return nil
    case .first, .full: break
    }
    do {
      guard try shared.projections.containsNotification(uuid: uuid) else { return true }
    } catch {
      release(uuid: uuid, .failed)
      throw error
    }
    release(uuid: uuid, .known)
    return false
  }

  /// Ends such claims once the submission is decided.
  /// - Parameter uuids: each with its index in the submission.
  func record(handedOver uuids: [(index: Int, uuid: String)], _ ticket: AppendTicket) {
    for one in uuids {
      submitted.push(
        Submitted(
          key: NotificationRegistry.key(of: one.uuid), ticket: ticket, index: one.index,
          submittedAtMs: shared.clock.monotonicMs(), response: nil))
    }
  }

  private func count(_ result: NotificationResult) {
    shared.metrics.count(.notifications, label: result.rawValue)
  }

  private func answer(
    _ response: PendingResponse, _ answer: NotificationResponse, _ result: NotificationResult
  ) {
    count(result)
    response.answer(.notification(answer))
  }

  // MARK: Workers

  private func work() {
    let judgement = NotificationVerification(shared)
    while let job = jobs.pop() {
      switch judgement.judge(job.posted.text) {
      case .bad(let bad, let result): answer(job.response, bad, result)
      case .good(let good): append(good, job)
      }
    }
  }

  private func append(_ good: NotificationVerification.Good, _ job: Job) {
    let key = NotificationRegistry.key(of: good.checked.uuid)
    let claim = registry.claim(
      key, job.response, foldedTo: shared.projections.position)
    switch claim {
    case .joined: return
    case .durable: return answer(job.response, .known, .known)
    case .full: return answer(job.response, .retry(nil, afterSeconds: 5), .busy)
    case .first: break
    }
    do {
      if try shared.projections.containsNotification(uuid: good.checked.uuid) {
        return abandon(key, job.response, .known, .known)
      }
    } catch {
      shared.notes.fault("look up a notification", error)
      return abandon(key, job.response, .retry(nil, afterSeconds: 5), .failed)
    }
    if good.isSandbox, let seconds = secondsToWait(good) {
      shared.notes.sandboxLimit(appFamily: good.appFamily)
      return abandon(key, job.response, .retry(nil, afterSeconds: seconds), .sandboxLimit)
    }
    guard let draft = draft(of: good, job.posted), let ticket = shared.submit([draft]) else {
      return abandon(key, job.response, .retry(nil, afterSeconds: 5), .failed)
    }
    submitted.push(
      Submitted(
        key: key, ticket: ticket, submittedAtMs: shared.clock.monotonicMs(),
        response: job.response))
  }

  private func secondsToWait(_ good: NotificationVerification.Good) -> Int? {
    sandbox.consume(
      bundleID: good.bundleID, perSecond: shared.settings.notifications.sandboxPerSecond,
      nowMs: shared.clock.monotonicMs())
  }

  private func draft(
    of good: NotificationVerification.Good, _ posted: PostedNotification
  ) -> EventDraft? {
    do throws(JSONError) {
      return try good.checked.draft(
        appFamily: good.appFamily, occurredAtMs: posted.receivedAtMs, origin: .http)
    } catch {
      // `SignedObject` has validated it.
      shared.notes.fault("store a notification", error)
      return nil
    }
  }

  /// Sends one response to a request and to those that joined it.
  private func abandon(
    _ key: NotificationRegistry.Key, _ response: PendingResponse, _ answer: NotificationResponse,
    _ result: NotificationResult
  ) {
    for response in [response] + registry.abandon(key) { self.answer(response, answer, result) }
  }

  // MARK: Recorder

  /// Waits for appends in order, responds, and then requests a fold.
  private func record() {
    while true {
      let batch = submitted.popAll(atMost: Self.batchMax)
      if batch.isEmpty { return }
      for one in batch { record(one) }
      shared.inbox.push(.notified)
    }
  }

  private func record(_ one: Submitted) {
    let result = shared.wait(for: one.ticket)
    guard let response = one.response else {
      guard let result else {
        for joined in registry.abandon(one.key) {
          answer(joined, .retry(nil, afterSeconds: 5), .failed)
        }
        return
      }
      let joined = registry.recordDurable(one.key, at: result.firstPosition + one.index)
      for response in joined { answer(response, .known, .known) }
      return
    }
    shared.metrics.observe(
      .commitSeconds, seconds: Double(shared.clock.monotonicMs() - one.submittedAtMs) / 1000)
    guard let result else {
      return abandon(one.key, response, .retry(nil, afterSeconds: 5), .failed)
    }
    shared.metrics.count(.appendedEvents, by: result.count)
    let joined = registry.recordDurable(one.key, at: result.firstPosition)
    answer(response, .recorded, .recorded)
    for response in joined { answer(response, .known, .known) }
  }
}
