// Synchronization: fetches notifications and histories from the App Store Server API, and appends them.
package import AppStore
import Base
package import HTTPClient
package import Intake
import Projections

/// One synchronization, on the calling thread. Each page is durable before the customer's next page is requested, so
/// the next run continues a run that ended early.
package final class AppStoreSync {
  private let apps: [SyncApp]
  private let service: any ServerAPIService
  private let ledger: any SyncLedger
  private let options: SyncOptions
  private let stop: StopFlag
  private let onProgress: (SyncSummary) -> Void
  private let onAnswer: (ServerAPIResponse) -> Void
  private let onPause: (_ host: String, _ pauseMs: Int64) -> Void
  private let recorder: SyncRecorder
  private let results = Monitor<[SyncResult]>([], conditionCount: 1)

  private var queries: SyncQueries
  private var customers: SyncCustomers
  private var summary = SyncSummary()
  /// Follow-up pages, which come before other customers.
  private var ready: [SyncJob] = []
  /// Jobs that are retried, with their times.
  private var waiting: [(dueMs: Int64, job: SyncJob)] = []
  private var runningCount = 0
  private var lanes: [AppStoreEndpoint: Lane]
  /// How many jobs in a row the App Store has rejected, by bundle id and key.
  private var refusals: [String: Int] = [:]
  private var random = SystemRandomNumberGenerator()

  /// The state of each environment.
  private struct Lane {
    var pacer: CallPacer
    var breaker = CircuitBreaker()
    var failuresInARow = 0
    var isGivenUp = false
    /// The time until which the App Store wants no calls.
    var heldUntilMs: Int64 = 0

    /// When a call may be made; nil while a probe decides.
    var freeAtMs: Int64? {
      if breaker.isClosed { return pacer.nextMs }
      return breaker.probeAtMs.map { max($0, pacer.nextMs) }
    }
  }

  /// How long to wait for a result before checking the stop flag again.
  private static let waitMs: Int64 = 100
  /// While more jobs than this wait for another attempt, no further customer is asked about.
  private static let waitingMax = 64
  /// The number of appended events after which they are folded.
  private static let foldAfter = 4_096

  /// - Parameters:
  ///   - verifier: checks the signatures of what is fetched.
  ///   - stop: checked between replies.
  ///   - onProgress: called at intervals.
  ///   - onAnswer: called with each reply.
  ///   - onPause: called when a host wants no calls for a time.
  package init(
    _ apps: [SyncApp], service: any ServerAPIService, ledger: any SyncLedger,
    verifier: SignedObjectVerifier, options: SyncOptions, stop: StopFlag,
    onProgress: @escaping (SyncSummary) -> Void = { _ in },
    onAnswer: @escaping (ServerAPIResponse) -> Void = { _ in },
    onPause: @escaping (_ host: String, _ pauseMs: Int64) -> Void = { _, _ in }
  ) throws {
    self.apps = apps
    self.service = service
    self.ledger = ledger
    self.options = options
    self.stop = stop
    self.onProgress = onProgress
    self.onAnswer = onAnswer
    self.onPause = onPause
    queries = try ledger.folded()
    customers = SyncCustomers(apps, options)
    recorder = SyncRecorder(
      ledger, verifier, clock: options.clock, newestSale: try queries.fetches.newestSale())
    lanes = Dictionary(
      uniqueKeysWithValues: AppStoreEndpoint.allCases.map {
        ($0, Lane(pacer: CallPacer(callsPerSecond: options.callsPerSecond)))
      })
  }

  /// Runs once. Throws the errors of appending and folding; what was already appended remains.
  package func run() throws -> SyncSummary {
    if options.isAgain {
      // Done first: a customer is asked about only once a sale of theirs counts.
      let bundleIDs = Set(apps.flatMap { $0.accounts.map(\.bundleID) })
      try recorder.acceptRefusedObjects(ofBundles: bundleIDs, queries, stop, &summary)
      if recorder.unfoldedCount > 0 { try fold() }
    }
    if options.fetchesNotifications {
      // Continue what an earlier run left first: each app's newest page must show how far its history was fetched.
      for isLeft in [true, false] {
        var jobs = try notificationJobs(isLeft: isLeft)
        if jobs.isEmpty { continue }
        try work { _ in jobs.popLast() }
        // The next reader folds what was appended.
        if summary.isInterrupted { return summary }
        try fold()
      }
    }
    try work { queries in
      let job = try customers.next(queries)
      summary.knownHistories = customers.knownHistories
      return job
    }
    summary.newestSale = customers.sale
    if !summary.isInterrupted { try fold() }
    return summary
  }

  // MARK: Questions

  private static let hourMs: Int64 = 3_600_000
  private static let dayMs: Int64 = 24 * hourMs
  /// How long rejected objects are not requested again; less than a day, because a daily run does not begin to the
  /// second.
  private static let askAgainMs: Int64 = 23 * hourMs

  /// - Parameter isLeft: whether to continue ranges that were not fetched to their end; otherwise from the last fetched
  ///   moment, less an hour for late notifications, and at first as far back as the App Store goes. Once a day from
  ///   before the first rejected notification.
  private func notificationJobs(isLeft: Bool) throws -> [SyncJob] {
    let nowMs = options.clock.nowMs()
    var jobs: [SyncJob] = []
    for app in apps {
      for account in app.accounts {
        for endpoint in AppStoreEndpoint.allCases {
          // A little less than what is allowed, because the request takes time.
          let oldestMs = nowMs - (endpoint == .production ? 180 : 30) * Self.dayMs + Self.hourMs
          var job = SyncJob(
            app: app, account: account, endpoint: endpoint,
            subject: .notifications(fromMs: oldestMs, toMs: nowMs, token: nil))
          let known = try queries.fetches.notifications(
            ofBundle: account.bundleID, environment: job.environment)
          if isLeft {
            guard let known, !known.isComplete, known.fromMs >= oldestMs, !options.isAgain else {
              continue
            }
            job.subject = .notifications(
              fromMs: known.fromMs, toMs: known.toMs, token: known.paginationToken)
          } else if let known, !options.isAgain {
            var fromMs = known.isComplete ? known.toMs - Self.hourMs : known.fromMs
            let gap = try queries.fetches.notificationGap(
              ofBundle: account.bundleID, environment: job.environment, afterMs: oldestMs)
            if let gap, nowMs - gap.askedAtMs >= Self.askAgainMs {
              fromMs = min(fromMs, gap.fromMs)
            }
            if let sinceMs = options.sinceMs { fromMs = min(fromMs, sinceMs) }
            guard fromMs < nowMs else { continue }
            job.subject = .notifications(fromMs: max(fromMs, oldestMs), toMs: nowMs, token: nil)
          }
          jobs.append(job)
        }
      }
    }
    return jobs
  }

  // MARK: Loop

  /// Makes the calls of a source, and those that follow from their replies, until none remain.
  private func work(_ source: (SyncQueries) throws -> SyncJob?) throws {
    var hasEnded = false
    while !stop.isSet {
      while runningCount < options.callsMax, startOne() {}
      while !hasEnded, runningCount < options.callsMax, ready.isEmpty,
        waiting.count < Self.waitingMax
      {
        guard let job = try source(queries) else {
          hasEnded = true
          break
        }
        ready.append(job)
        if !startOne() { break }
      }
      if hasEnded, runningCount == 0, ready.isEmpty, waiting.isEmpty { return }
      try handleResults()
      onProgress(summary)
      if recorder.unfoldedCount >= Self.foldAfter || ledger.isOutdated { try fold() }
    }
    summary.isInterrupted = true
  }

  /// Starts one job that may start now; false if there is none.
  private func startOne() -> Bool {
    let nowMs = options.clock.monotonicMs()
    if let index = ready.firstIndex(where: { mayStart($0, nowMs) }) {
      let job = ready.remove(at: index)
      start(job, nowMs)
      return true
    }
    guard
      let index = waiting.firstIndex(where: { $0.dueMs <= nowMs && mayStart($0.job, nowMs) })
    else { return false }
    start(waiting.remove(at: index).job, nowMs)
    return true
  }

  private func mayStart(_ job: SyncJob, _ nowMs: Int64) -> Bool {
    guard let lane = lanes[job.endpoint] else { return false }
    // Such a job ends at once.
    if lane.isGivenUp || isRefused(job) { return true }
    return lane.freeAtMs.map { $0 <= nowMs } ?? false
  }

  private func account(of job: SyncJob) -> String {
    "\(job.account.keyID) \(job.account.bundleID)"
  }

  private func isRefused(_ job: SyncJob) -> Bool {
    refusals[account(of: job), default: 0] >= options.failuresMax
  }

  private func start(_ job: SyncJob, _ nowMs: Int64) {
    guard var lane = lanes[job.endpoint], !lane.isGivenUp, !isRefused(job) else {
      summary.failures += 1
      return
    }
    let admission = lane.breaker.admit(nowMs: nowMs)
    guard admission != .denied else { return ready.append(job) }
    _ = lane.pacer.consume(nowMs: nowMs)
    lanes[job.endpoint] = lane
    runningCount += 1
    summary.calls += 1
    service.send(job.call, as: job.account, to: job.endpoint) { [results] answer in
      let result = SyncResult(job: job, isProbe: admission == .probe, answer: answer)
      results.withLock { $0.append(result) }
      results.signal(0)
    }
  }

  private func handleResults() throws {
    let limitMs = min(Self.waitMs, pauseMs())
    let ended = results.wait(on: 0, limitMs: limitMs) { results -> [SyncResult]? in
      if results.isEmpty { return nil }
      defer { results = [] }
      return results
    }
    for result in ended ?? [] {
      runningCount -= 1
      onAnswer(result.answer)
      try handle(result.job, isProbe: result.isProbe, result.answer)
    }
  }

  /// How long only a reply can change anything.
  private func pauseMs() -> Int64 {
    if runningCount >= options.callsMax { return Self.waitMs }
    let nowMs = options.clock.monotonicMs()
    let next =
      ready.compactMap { lanes[$0.endpoint]?.freeAtMs }
      + waiting.compactMap { entry in
        lanes[entry.job.endpoint]?.freeAtMs.map { max($0, entry.dueMs) }
      }
    return max(1, (next.min() ?? nowMs + Self.waitMs) - nowMs)
  }

  // MARK: Replies

  private func handle(_ job: SyncJob, isProbe: Bool, _ answer: ServerAPIResponse) throws {
    let nowMs = options.clock.monotonicMs()
    switch answer {
    case .failure(let failure) where failure.isRetryable:
      lanes[job.endpoint]?.breaker.recordFailure(isProbe: isProbe, nowMs: nowMs)
      lanes[job.endpoint]?.failuresInARow += 1
      return retry(job, failure, nowMs)
    case .rateLimited(let pauseMs):
      lanes[job.endpoint]?.breaker.recordSuccess()
      lanes[job.endpoint]?.pacer.hold(untilMs: nowMs + pauseMs)
      // Calls that were in progress return the same.
      if let lane = lanes[job.endpoint], lane.heldUntilMs <= nowMs {
        lanes[job.endpoint]?.heldUntilMs = nowMs + pauseMs
        onPause(service.host(of: job.endpoint), pauseMs)
      }
      return ready.insert(job, at: 0)
    default:
      lanes[job.endpoint]?.breaker.recordSuccess()
      lanes[job.endpoint]?.failuresInARow = 0
    }
    if case .unauthorized = answer {} else { refusals[account(of: job)] = nil }
    switch answer {
    case .page(let page): try receive(page, of: job)
    case .settled(let code): try finish(job, code)
    case .unauthorized: refuse(job)
    case .failure(.status(_, let code)) where isStale(code) && job.revision != nil:
      // The revision that it was requested with is too old.
      ready.append(job.asked(with: nil))
    case .failure(let failure): fail(job, failure.description)
    case .testToken, .testResult, .rateLimited: fail(job, "the reply is of another call")
    }
  }

  /// One rejection may not be the key's fault: the call is made once more with a fresh token.
  private func refuse(_ job: SyncJob) {
    job.account.discardToken()
    if !job.wasUnauthorized {
      var again = job
      again.wasUnauthorized = true
      return ready.insert(again, at: 0)
    }
    refusals[account(of: job), default: 0] += 1
    summary.failures += 1
    problem(
      "the App Store does not accept key \(job.account.keyID) for \(job.account.bundleID): "
        + "check server_api in config.json")
  }

  /// Whether an error means that a revision or a pagination token is not accepted.
  private func isStale(_ code: Int64?) -> Bool { code == 4_000_005 || code == 4_000_014 }

  private func retry(_ job: SyncJob, _ failure: ServerAPIFailure, _ nowMs: Int64) {
    var job = job
    job.failures += 1
    if let lane = lanes[job.endpoint], lane.failuresInARow >= options.failuresMax, !lane.isGivenUp {
      lanes[job.endpoint]?.isGivenUp = true
      problem("\(service.host(of: job.endpoint)) does not reply: \(failure)")
    }
    guard job.failures < options.attemptsMax else { return fail(job, failure.description) }
    let pauseMs = options.retry.pauseMs(attempt: job.failures, using: &random)
    waiting.append((nowMs + pauseMs, job))
  }

  private func fail(_ job: SyncJob, _ cause: String) {
    summary.failures += 1
    problem("\(job.account.bundleID), \(job.environment), \(name(job)): \(cause)")
  }

  private func name(_ job: SyncJob) -> String {
    if case .history = job.subject { "a history" } else { "the notification history" }
  }

  /// Records each problem once, up to a limit.
  private func problem(_ text: String) {
    if summary.problems.count < 20, !summary.problems.contains(text) {
      summary.problems.append(text)
    }
  }

  private func receive(_ page: ServerAPIPage, of job: SyncJob) throws {
    guard !page.hasMore || (page.revision != job.revision && job.pages < SyncJob.pagesMax) else {
      return fail(job, "its pages have no end")
    }
    guard page.bundleID.map({ $0 == job.account.bundleID }) ?? true,
      page.environment.map({ $0 == job.environment }) ?? true
    else { return fail(job, "a page is of another app or environment") }
    let host = service.host(of: job.endpoint)
    let recorded: RecordedPage
    switch job.subject {
    case .history:
      guard let taken = try recorder.record(page, of: job, host: host, queries, &summary) else {
        return fail(job, "a page is too large for an event")
      }
      recorded = taken
      customers.record(
        shown: taken.originals, environment: job.environment, bundleID: job.account.bundleID)
    case .notifications:
      recorded = try recorder.recordNotifications(page, of: job, host: host, queries, &summary)
    }
    for reason in recorded.refusals {
      problem("\(job.account.bundleID), \(job.environment), \(name(job)): refused: \(reason)")
    }
    guard page.hasMore else {
      guard case .history = job.subject else { return }
      if recorded.hold == nil { summary.histories += 1 } else { summary.failures += 1 }
      return
    }
    var next = job.asked(with: page.revision)
    next.hold = recorded.hold
    next.record(shown: recorded.ids)
    guard next.pagesWithoutNews < SyncJob.pagesWithoutNewsMax else {
      return fail(job, "its pages have no end")
    }
    ready.insert(next, at: 0)
  }

  private func finish(_ job: SyncJob, _ code: Int64) throws {
    guard case .history(let id, _, let isFallback) = job.subject else {
      return fail(job, "error \(code)")
    }
    if isFallback { return }
    try recorder.record(errorCode: code, of: job, host: service.host(of: job.endpoint), &summary)
    summary.unknownTransactions += 1
    guard job.endpoint == .production else { return }
    ready.append(
      SyncJob(
        app: job.app, account: job.account, endpoint: .sandbox,
        subject: .history(transactionID: id, revision: nil, isFallback: true)))
  }

  /// Folds what was appended, and counts the new sales.
  private func fold() throws {
    queries = try ledger.folded()
    try recorder.countSales(queries, &summary)
  }
}

/// The reply to a job.
private struct SyncResult: Sendable {
  let job: SyncJob
  /// Whether it was the circuit breaker's probe.
  let isProbe: Bool
  let answer: ServerAPIResponse
}
