// The service behind the client API: from an upload to its response.
import AppStore
package import Base
package import HTTPClient
package import Intake
package import Ledger
import Projections
import Synchronization

/// Accepts uploads, records them, asks the App Store, responds; and retries pending receipts.
///
/// Workers decode receipts and check signatures; one completion loop waits for the disk and has the projections caught
/// up; the answer loop responds from them; one thread works through the queue. The owner that starts it must stop it.
package final class UploadWorkflow: ClientService {
  private enum Job: Sendable {
    case upload(ClientUpload<UploadFields>, PendingResponse)
    case transactions(ClientUpload<SignedUploadFields>, PendingResponse)
    case lookup(UUID16, appFamily: UUID16, PendingResponse)
    case question(UserQuestion, PendingResponse)
    case probe(Latch)
  }

  private let options: WorkflowOptions
  private let shared: WorkflowShared
  private let caller: AppStoreCaller
  private let load: AdmissionLimiter
  /// The limit for questions about users, which take no room from uploads.
  private let questionLoad: AdmissionLimiter
  private let notifications: NotificationIntake
  private let erasures: ErasureIntake
  private let jobs = WorkQueue<Job>()
  private let answers = WorkQueue<AnswerItem>()
  private let isStopping = Atomic<Bool>(false)
  private let threads = Monitor<Threads>(Threads())
  private let directory: LedgerDirectory
  private let queueEnd = Latch()

  private struct Threads {
    var workers: [WorkerThread] = []
    var completionLoop: WorkerThread?
    var answerLoop: WorkerThread?
    var queue: WorkerThread?
  }

  /// - Parameters:
  ///   - writer: stays open until the workflow is stopped.
  ///   - isSingleRun: whether it tries each pending receipt once and then ends, without accepting uploads.
  package init(
    writer: LedgerWriter, projections: any WorkflowProjections,
    appStore: any VerifyReceiptService, configuration: Configuration,
    checker: any SignatureChecker & Sendable, metrics: Metrics,
    options: WorkflowOptions = WorkflowOptions(), isSingleRun: Bool = false
  ) {
    self.options = options
    directory = writer.directory
    let clock = options.clock
    let settings = WorkflowSettings(configuration, checker)
    let notes = OperatorNotes(clock, metrics, write: options.log)
    let inbox = WorkQueue<CompletionItem>()
    let scheduler = VerificationScheduler(
      CallSettings(configuration), clock: clock, isSingleRun: isSingleRun)
    shared = WorkflowShared(
      writer: writer, projections: projections, settings: settings, scheduler: scheduler,
      clock: clock,
      metrics: metrics, notes: notes,
      health: AppendHealth(clock, notes, onFatal: options.onFatal), inbox: inbox)
    caller = AppStoreCaller(scheduler, appStore, settings, metrics) { call, result in
      inbox.push(.result(call, result))
    }
    notifications = NotificationIntake(shared, workerCount: options.workerCount)
    erasures = ErasureIntake(directory, notes, confirm: options.confirmRequests)
    load = AdmissionLimiter(countMax: options.uploadsMax, bytesMax: options.uploadBytesMax)
    questionLoad = AdmissionLimiter(
      countMax: options.questionsMax, bytesMax: options.uploadBytesMax)
  }

  /// Starts the threads.
  package func start() throws(LedgerError) {
    let (shared, caller, answers) = (shared, caller, answers)
    let gauges = WorkflowGauges(shared, setMore: options.setGauges)
    let queue = try RetryWorker(
      shared.scheduler, caller, shared.projections, directory, shared.redactions, shared.clock,
      shared.notes,
      onTurn: {
        gauges.update()
        shared.retryWhatFailed()
      })
    let answerLoop = try WorkerThread.start { AnswerLoop(shared, answers).run() }
    threads.withLock { $0.answerLoop = answerLoop }
    let completionLoop = try WorkerThread.start { CompletionLoop(shared, caller, answers).run() }
    threads.withLock { $0.completionLoop = completionLoop }
    let queueThread = try WorkerThread.start { [queueEnd] in
      queue.run()
      queueEnd.open()
    }
    threads.withLock { $0.queue = queueThread }
    for _ in 0..<max(1, options.workerCount) {
      let worker = try WorkerThread.start { [self] in work() }
      threads.withLock { $0.workers.append(worker) }
    }
    try notifications.start()
    try erasures.start()
  }

  // MARK: Client API

  package var canAppend: Bool {
    !isStopping.load(ordering: .acquiring) && shared.health.canAppend
  }

  package var refusal: UploadRefusal? {
    if isStopping.load(ordering: .acquiring) { return .stopping }
    if !shared.health.canAppend { return .appendsFail }
    if !shared.health.canFold { return .foldsFail }
    return load.hasRoom ? nil : .busy
  }

  package func upload(
    _ upload: ClientUpload<UploadFields>, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    // The receipt is held in the request's text, in the file and in the drafts; so is the metadata.
    let bytes =
      2 * upload.fields.receiptText.count + upload.fields.receiptFile.count
      + 2 * (upload.fields.client.metadata?.count ?? 0)
    admit(bytes: bytes, completion) { .upload(upload, $0) }
  }

  package func transactions(
    _ upload: ClientUpload<SignedUploadFields>,
    completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    let fields = upload.fields
    let objects = fields.transactions + (fields.appTransaction.map { [$0] } ?? [])
    // An object is held as text, in its parts, and in the draft; so is the metadata.
    let bytes = objects.reduce(2 * (fields.client.metadata?.count ?? 0)) {
      $0 + 3 * $1.text.count
    }
    admit(bytes: bytes, completion) { .transactions(upload, $0) }
  }

  package func notification(
    _ notification: PostedNotification, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    notifications.receive(notification, completion: completion)
  }

  package func receipt(
    _ id: UUID16, of appFamily: UUID16, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    admit(bytes: 0, completion) { .lookup(id, appFamily: appFamily, $0) }
  }

  package func answer(
    _ question: UserQuestion, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    let metrics = shared.metrics
    admit(
      bytes: question.user.utf8.count, by: questionLoad,
      { answer in
        metrics.count(.questions, label: answer.questionResult.rawValue)
        completion(answer)
      }
    ) { .question(question, $0) }
  }

  package func erase(
    _ order: ErasureOrder, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    erasures.receive(order, completion: completion)
  }

  package func erasure(
    _ id: UUID16, of appFamily: UUID16, completion: @escaping @Sendable (ClientResponse) -> Void
  ) {
    erasures.lookUp(id, of: appFamily, completion: completion)
  }

  private func admit(
    bytes: Int, _ completion: @escaping @Sendable (ClientResponse) -> Void,
    _ job: (PendingResponse) -> Job
  ) {
    admit(bytes: bytes, by: load, completion, job)
  }

  private func admit(
    bytes: Int, by load: AdmissionLimiter,
    _ completion: @escaping @Sendable (ClientResponse) -> Void,
    _ job: (PendingResponse) -> Job
  ) {
    guard !isStopping.load(ordering: .acquiring), !shared.health.isFatal, load.admit(bytes: bytes)
    else { return completion(.unavailable(retryAfterSeconds: 1)) }
    let response = PendingResponse(load, bytes: bytes, completion)
    // A response that is not admitted sends its own error.
    jobs.push(job(response))
  }

  // MARK: Settings

  /// Applies a configuration. What waited for an operator is tried again.
  /// - Parameter checker: the new verifier if trust has changed.
  package func apply(
    _ configuration: Configuration, checker: (any SignatureChecker & Sendable)? = nil
  ) {
    shared.settings.replace(configuration, checker)
    shared.scheduler.apply(CallSettings(configuration))
    notifications.apply(configuration.notifications)
    shared.scheduler.retryNow(alarmsAlone: true)
  }

  /// Tries all pending receipts now.
  package func retryNow() { shared.scheduler.retryNow(alarmsAlone: false) }

  /// Folds what others have appended before it returns, so that the next uploads see an app that was just registered.
  /// Does not wait for a long fold.
  package func foldForeignAppends() {
    let latch = Latch()
    if shared.inbox.push(.foreign(latch)) { latch.wait(limitMs: 10_000) }
  }

  /// Forgets what was read before stored events lost data: the replaced projections show what remains.
  package func forgetRedacted() throws {
    shared.redactions.add()
    try shared.projections.catchUp()
    shared.scheduler.reloadQueue()
    foldForeignAppends()
  }

  /// How often `forgetRedacted` was called.
  package var redactionCount: Int { shared.redactions.now }

  /// Claims a notification that a synchronization is about to append; false if it is being appended, or durable.
  package func claim(notification uuid: String) -> Bool { notifications.claim(uuid: uuid) }

  /// Ends such a claim.
  package func release(notification uuid: String, _ end: NotificationClaimEnd) {
    notifications.release(uuid: uuid, end)
  }

  /// Claims a notification that a command hands over; false if the ledger has it, nil while it is being appended.
  func claim(handedOver uuid: String) throws -> Bool? {
    try notifications.claim(handedOver: uuid)
  }

  /// Ends such claims once the submission is decided.
  func record(handedOver uuids: [(index: Int, uuid: String)], _ ticket: AppendTicket) {
    notifications.record(handedOver: uuids, ticket)
  }

  /// Begins to look whether uploads make progress.
  package func beginProbe() -> LivenessProbe { beginProbe(folds: StepCount(), loops: []) }

  func beginProbe(folds: StepCount, loops: [StepCount]) -> LivenessProbe {
    let latch = Latch()
    let probe = LivenessProbe(latch, folds: folds, loops: loops)
    jobs.push(.probe(latch))
    return probe
  }

  /// Handles the results of appends that commands have handed over.
  /// - Parameter error: the error of a failed one; nil if they succeeded.
  package func recordForeignAppend(_ error: LedgerError?) { shared.recordAppend(error) }

  // MARK: Workers

  private func work() {
    let preparation = UploadPreparation(shared)
    let transactions = TransactionPreparation(shared)
    let lifecycle = UploadLifecycle(shared)
    while let job = jobs.pop() {
      switch job {
      case .probe(let latch):
        // A writer that has ended is no hang: the server ends by itself.
        try? shared.writer.waitForTurn()
        shared.inbox.push(.probe(latch))
      case .lookup(let id, let appFamily, let response): lookUp(id, appFamily, response)
      case .question(let question, let response): answer(question, response)
      case .upload(let upload, let response):
        switch preparation.prepare(upload) {
        case .refused(let problem): response.answer(.refused([problem]))
        case .overBound: response.answer(.overForgeryBound)
        case .prepared(let prepared): lifecycle.begin(prepared, upload, response)
        }
      case .transactions(let upload, let response):
        switch transactions.prepare(upload) {
        case .refused(let problems): response.answer(.refused(problems))
        case .later(let problems, let seconds):
          response.answer(.later(problems, afterSeconds: seconds))
        case .overBound: response.answer(.overForgeryBound)
        case .prepared(let draft, let id):
          lifecycle.begin(draft, id: id, of: upload.appFamily, response)
        }
      }
    }
  }

  private func lookUp(_ id: UUID16, _ appFamily: UUID16, _ response: PendingResponse) {
    do {
      guard let receipt = try shared.projections.answer(receiptID: id, appFamily: appFamily) else {
        return response.answer(.notFound)
      }
      response.answer(receipt.answer)
    } catch {
      shared.notes.fault("read a receipt", error)
      response.answer(.tryLater)
    }
  }

  private func answer(_ question: UserQuestion, _ response: PendingResponse) {
    do {
      let answer = try shared.projections.answer(
        question.question, about: question.user, of: question.appFamily, atMs: shared.clock.nowMs())
      switch answer {
      case .found(let body): response.answer(.ownership(body))
      case .tooManyPurchases:
        response.answer(
          .refused([
            FieldProblem("user_identifier", .tooManyPurchases, "has too many purchases")
          ]))
      }
    } catch {
      shared.notes.fault("answer a question about a user", error)
      response.answer(.tryLater)
    }
  }

  // MARK: Stopping

  /// Accepts no more uploads, and stops asking the App Store. Uploads in progress are still answered.
  package func beginStopping() {
    isStopping.store(true, ordering: .releasing)
    notifications.beginStopping()
    erasures.beginStopping()
    shared.scheduler.beginStopping()
  }

  /// Answers the uploads in progress and stops the threads. Calling it again does nothing.
  /// - Parameters:
  ///   - graceMs: how long calls in progress may take.
  ///   - cancelCalls: cancels the remaining calls; their completions are called.
  package func stop(graceMs: Int64, cancelCalls: () -> Void = {}) {
    beginStopping()
    let workers = threads.withLock { threads in
      defer { threads.workers = [] }
      return threads.workers
    }
    jobs.close()
    for worker in workers { worker.join() }
    notifications.stop()
    erasures.stop()
    // It may have made a call ready meanwhile.
    threads.withLock { $0.queue.take() }?.join()
    caller.makeCalls()
    if !waitUntilQuiet(limitMs: graceMs) {
      cancelCalls()
      _ = waitUntilQuiet(limitMs: 5_000)
    }
    shared.inbox.close()
    threads.withLock { $0.completionLoop.take() }?.join()
    answers.close()
    threads.withLock { $0.answerLoop.take() }?.join()
  }

  private func waitUntilQuiet(limitMs: Int64) -> Bool {
    let nothing = Monitor((), conditionCount: 1)
    let endMs = MonotonicClock.nowMs() + limitMs
    while load.count + questionLoad.count > 0 || !shared.scheduler.isQuiet {
      if MonotonicClock.nowMs() >= endMs { return false }
      _ = nothing.wait(on: 0, limitMs: 5) { _ -> Void? in nil }
    }
    return true
  }

  // MARK: Single run

  /// The state of a single run.
  package struct RunFigures: Sendable, Equatable {
    package let attempted: Int
    /// Those with a final result.
    package let settled: Int
  }

  package var runFigures: RunFigures {
    let figures = shared.scheduler.figures
    return RunFigures(attempted: figures.attempted, settled: figures.answered)
  }

  /// Waits for the end of a single run up to a limit; returns whether it ended.
  package func waitForEnd(limitMs: Int64) -> Bool { queueEnd.wait(limitMs: limitMs) }
}
