// Synchronizations of a running server: after a pause, once a day, and for new customers; and their pace.
import AppStore
import Base
import HTTPClient
import Intake
import Ledger
import Projections

/// Calls the App Store Server API in the background, a few calls at a time. Does nothing while no app has a key.
final class SyncWorker: Sendable {
  /// What the worker depends on.
  struct Parts: Sendable {
    let directory: LedgerDirectory
    let writer: LedgerWriter
    let projections: LiveProjections
    /// The configuration in effect.
    let configuration: @Sendable () -> Configuration
    /// Folds what was appended.
    let fold: @Sendable () -> Void
    /// How often stored events have lost data.
    let redactionCount: @Sendable () -> Int
    /// Claims a notification before it is appended, because the same one may arrive over HTTP.
    let claim: @Sendable (_ uuid: String) -> Bool
    let release: @Sendable (_ uuid: String, NotificationClaimEnd) -> Void
    /// Called with the outcome of each append.
    let onAppend: @Sendable (LedgerError?) -> Void
    let metrics: Metrics
    let log: OperatorLog
    var clock = WorkflowClock()
  }

  /// Few calls at once: uploads and notifications come first.
  private static let callsMax = 4
  /// How often new customers are searched for.
  private static let pauseMs: Int64 = 5_000
  /// The pause after a failed synchronization.
  private static let longPauseMs: Int64 = 60_000
  private static let hourMs: Int64 = 3_600_000

  private let parts: Parts
  private let stopFlag = StopFlag()
  private let stopped = Latch()
  private let service = Monitor<(options: ServerAPIOptions, client: ServerAPIClient)?>(nil)
  private let thread = Monitor<WorkerThread?>(nil)

  init(_ parts: Parts) { self.parts = parts }

  /// Starts the thread.
  func start() throws(LedgerError) {
    let started = try WorkerThread.start { [self] in run() }
    thread.withLock { $0 = started }
  }

  /// Ends calls in progress and waits for the thread. What was appended remains. Calling it again does nothing.
  func stop() {
    stopFlag.set()
    stopped.open()
    service.withLock { $0 }?.client.shutDown()
    thread.withLock { $0.take() }?.join()
    service.withLock { $0.take() }?.client.shutDown()
  }

  // MARK: Thread

  /// The thread's state between its turns.
  private struct Memory {
    /// The keys whose customers were visited; with other keys, visits begin from the first customer.
    var keys: [String] = []
    var afterSale: Int64 = -1
    /// How many events were folded when new customers were last searched for.
    var position = -1
    /// When the last whole synchronization began, on a monotonic clock; nil before the first.
    var wholeAtMs: Int64?
    var problems: Set<String> = []
  }

  private func run() {
    var memory = Memory()
    while !stopFlag.isSet {
      var pauseMs = Self.pauseMs
      do { try step(&memory) } catch {
        if !stopFlag.isSet { report("\(error)", &memory) }
        pauseMs = Self.longPauseMs
      }
      stopped.wait(limitMs: pauseMs)
    }
  }

  private func step(_ memory: inout Memory) throws {
    let configuration = parts.configuration()
    guard configuration.appStore.dailySync else { return }
    let apps = parts.projections.appFamilies.compactMap { SyncApp($0, configuration) }
    if apps.isEmpty { return }
    let keys = apps.flatMap(\.accounts).map { "\($0.keyID) \($0.bundleID)" }
    if keys != memory.keys {
      (memory.keys, memory.afterSale, memory.position) = (keys, -1, -1)
      memory.wholeAtMs = nil
    }
    let nowMs = parts.clock.monotonicMs()
    let ledger = ServerSyncLedger(parts)
    var options = SyncOptions()
    options.callsMax = Self.callsMax
    options.callsPerSecond = configuration.appStore.serverAPICallsPerSecond
    options.clock = parts.clock
    if let wholeAtMs = memory.wholeAtMs {
      options.fetchesNotifications = nowMs - wholeAtMs >= 24 * Self.hourMs
    } else {
      options.fetchesNotifications = try isDue(apps, ledger)
      memory.wholeAtMs = nowMs
    }
    if options.fetchesNotifications {
      memory.wholeAtMs = nowMs
    } else {
      let position = parts.projections.position
      if position == memory.position { return }
      memory.position = position
      options.afterSale = memory.afterSale
    }
    let summary = try synchronize(apps, ledger, options, configuration)
    if summary.refusedNotifications + summary.refusedTransactions > 0 {
      parts.metrics.count(.alarms, label: OperatorAlarm.syncRefused.metricLabel)
      report(OperatorAlarm.syncRefused.text, &memory)
    }
    memory.afterSale = summary.newestSale
    if options.fetchesNotifications { memory.problems = [] }
    for problem in summary.problems { report(problem, &memory) }
    for gap in summary.gaps where gap.notifications > 0 {
      parts.log(
        .information,
        "app-store sync: \(gap.bundleID), \(gap.environment): \(gap.notifications) missing notifications appended"
      )
    }
  }

  /// Whether an app's notification history was last fetched more than an hour ago, or never.
  private func isDue(_ apps: [SyncApp], _ ledger: ServerSyncLedger) throws -> Bool {
    let queries = try ledger.folded()
    let limitMs = parts.clock.nowMs() - Self.hourMs
    for account in apps.flatMap(\.accounts) {
      let known = try queries.fetches.notifications(
        ofBundle: account.bundleID, environment: "Production")
      guard let known, known.isComplete, known.toMs >= limitMs else { return true }
    }
    return false
  }

  private func synchronize(
    _ apps: [SyncApp], _ ledger: ServerSyncLedger, _ options: SyncOptions,
    _ configuration: Configuration
  ) throws -> SyncSummary {
    let client = try client(configuration.appStore.serverAPIOptions)
    let metrics = parts.metrics
    let summary = try AppStoreSync(
      apps, service: client, ledger: ledger,
      verifier: configuration.trust.signedObjectVerifier(), options: options, stop: stopFlag,
      onAnswer: { metrics.count(.syncCalls, label: $0.metricLabel) },
      onPause: { [parts] host, pauseMs in
        guard pauseMs >= Self.longPauseMs else { return }
        parts.log(.warning, "app-store sync: \(host) accepts no calls for \(pauseMs / 1000) s")
      }
    ).run()
    metrics.count(.syncNotifications, by: summary.newNotifications)
    metrics.count(.syncHistories, by: summary.histories)
    if options.fetchesNotifications, !summary.isInterrupted, summary.failures == 0 {
      metrics.set(.syncEndSeconds, Double(parts.clock.nowMs()) / 1000)
    }
    return summary
  }

  /// The client, replaced if the configuration has changed.
  private func client(_ options: ServerAPIOptions) throws -> ServerAPIClient {
    if let known = service.withLock({ $0 }), known.options == options { return known.client }
    let made = try ServerAPIClient(options)
    let old = service.withLock { service in
      defer { service = (options, made) }
      return service
    }
    old?.client.shutDown()
    // A client created while the server stops would never be shut down.
    if stopFlag.isSet { made.shutDown() }
    return made
  }

  /// Reports each problem once between two whole synchronizations.
  private func report(_ problem: String, _ memory: inout Memory) {
    if memory.problems.count >= 100 { memory.problems = [] }
    if memory.problems.insert(problem).inserted {
      parts.log(.warning, "app-store sync: \(problem)")
    }
  }
}

/// The ledger of a running server.
private final class ServerSyncLedger: SyncLedger {
  private let parts: SyncWorker.Parts
  /// The number of redactions before the projections were last opened.
  private var knownRedactions: Int

  init(_ parts: SyncWorker.Parts) {
    self.parts = parts
    knownRedactions = parts.redactionCount()
  }

  var isOutdated: Bool { parts.redactionCount() != knownRedactions }

  func append(_ drafts: [EventDraft]) throws -> Range<Position> {
    do throws(LedgerError) {
      let positions = try parts.writer.positions(of: parts.writer.submit(drafts))
      parts.onAppend(nil)
      parts.metrics.count(.appendedEvents, by: positions.count)
      return positions
    } catch {
      parts.onAppend(error)
      throw error
    }
  }

  func claim(notification uuid: String) -> Bool { parts.claim(uuid) }

  func release(notification uuid: String, _ end: NotificationClaimEnd) {
    parts.release(uuid, end)
  }

  func folded() throws -> SyncQueries {
    let redactions = parts.redactionCount()
    parts.fold()
    defer { knownRedactions = redactions }
    let reader = try LogReader(parts.directory)
    return try SyncQueries(try parts.projections.readingConnection()) { position in
      if position >= reader.head.size { try reader.refresh() }
      return try reader.event(at: position)
    }
  }
}

extension ServerAPIResponse {
  /// The values are few and fixed.
  fileprivate var metricLabel: String {
    switch self {
    case .page: "page"
    case .settled: "unknown_transaction"
    case .rateLimited: "rate_limited"
    case .unauthorized: "unauthorized"
    case .failure(.transport): "unreachable"
    case .failure, .testToken, .testResult: "refused"
    }
  }
}

// MARK: - Pace of calls

/// Spreads the calls to one environment evenly. Calls missed for a moment may be made up for. Times are on a monotonic
/// clock.
struct CallPacer {
  private let intervalMicros: Int64
  private var nextMicros: Int64 = 0

  /// How much missed time may be made up for.
  private static let slackMicros: Int64 = 100_000

  init(callsPerSecond: Int) { intervalMicros = 1_000_000 / Int64(max(callsPerSecond, 1)) }

  /// When the next call may be made, in milliseconds.
  var nextMs: Int64 { (nextMicros + 999) / 1000 }

  /// Whether a call may be made now; counts it if so.
  mutating func consume(nowMs: Int64) -> Bool {
    guard nowMs >= nextMs else { return false }
    nextMicros = max(nextMicros, nowMs * 1000 - Self.slackMicros) + intervalMicros
    return true
  }

  /// Makes no call before a time.
  mutating func hold(untilMs: Int64) { nextMicros = max(nextMicros, untilMs * 1000) }
}
