// All parts of a running server, started and stopped in the right order.
import AppStore
import Base
import Erasure
import Glibc
import Intake
package import Ledger
package import Projections
import Synchronization

/// The options of a server that config.json does not contain.
package struct LedgerServerOptions: Sendable {
  /// The address of the client API.
  package var listen = "127.0.0.1:8080"
  /// The address of the metrics; nil for none.
  package var metricsListen: String?
  /// Where access log lines go; the caller owns it.
  package var accessLogDescriptor: Int32?
  /// How long requests in progress may take during shutdown.
  package var graceMs: Int64 = 8_000
  /// The projections in the ledger's database.
  package var projections = ProjectionSet.standard
  package var log: OperatorLog = { _, _ in }

  package init() {}
}

/// A server: it runs from its creation until `stop()`, and is the ledger's writer meanwhile.
package final class LedgerServer: Sendable {
  private let options: LedgerServerOptions
  private let writer: LedgerWriter
  private let appStore: ReplaceableAppStore
  private let workflow: UploadWorkflow
  private let http: HTTPServer
  private let accessLog: AccessLog?
  private let handover: RemoteAppendServer
  private let watcher: ConfigurationWatcher
  private let webhooks: WebhookService
  private let sync: SyncWorker
  private let erasures: ErasureWorker
  private let replication: LedgerReplication?
  private let hasFailed: Latch
  private let folds = StepCount()
  private let isStopped = Atomic<Bool>(false)

  /// The pause lets concurrent uploads share commits, transactions and thread switches: without it a busy server spends
  /// a fifth of its time on these, and clients wait longer.
  private static var writerOptions: WriterOptions {
    var options = WriterOptions()
    options.groupPauseMs = 6
    options.sealingPriority = .niceness(10)
    return options
  }

  /// Opens the ledger, brings the projections up to date and starts serving.
  ///
  /// Throws what each part throws: `LedgerError` (`locked` among them), `ConfigurationError`, `ProjectionError`,
  /// `Failure`, and what is wrong with certificates or endpoints.
  package init(
    _ directory: LedgerDirectory, options: LedgerServerOptions = LedgerServerOptions(),
    observer: Projector.Observer = Projector.Observer()
  ) throws {
    try MergedLedger.refuseAppends(directory, operation: "serve")
    self.options = options
    let log = options.log
    var observer = observer
    observer.progress = { [folds, report = observer.progress] progress in
      folds.add()
      report(progress)
    }
    let failed = Latch()
    hasFailed = failed
    let replication = try ConfigurationFile(directory).read().replication.map {
      try LedgerReplication(directory, $0, log: log)
    }
    self.replication = replication
    var writerOptions = Self.writerOptions
    writerOptions.confirmation = replication?.confirmation
    let writer = try LedgerWriter.open(directory, options: writerOptions)
    self.writer = writer
    for note in writer.recovery.notes { log(.warning, note) }
    // A writer's thread keeps the writer alive until it is closed.
    func part<Part>(_ make: () throws -> Part) throws -> Part {
      do { return try make() } catch {
        replication?.stop(deadlineMs: 0)
        try? writer.close()
        throw error
      }
    }
    try part {
      try replication?.start { [weak writer] error in
        writer?.refuseAppends(error)
        failed.open()
      }
    }
    // An erasure that was begun is finished before any request is answered.
    try part {
      let eraser = Eraser(
        directory, writer, projections: options.projections, observer: observer)
      if try eraser.finishInterrupted() {
        log(.information, "an erasure that was interrupted is finished")
      }
    }
    let projections = try part {
      try LiveProjections(directory, observer: observer, projections: options.projections)
    }

    let changes = ConfigurationChanges(log: log)
    watcher = try part {
      try ConfigurationWatcher(
        directory, onChange: { changes.adopt($0) }, onProblem: { log(.error, "\($0)") },
        onRecovery: { log(.information, "config.json: valid again") })
    }
    let configuration = watcher.current
    appStore = try part { try ReplaceableAppStore(configuration.appStore) }
    let metrics = Metrics()
    var workflowOptions = WorkflowOptions()
    workflowOptions.log = log
    workflowOptions.onFatal = { failed.open() }
    workflowOptions.confirmRequests = { () throws(LedgerError) in
      try replication?.waitForRequests()
    }
    workflowOptions.setGauges = { replication?.setGauges($0) }
    let checker = try part {
      let checker = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
      let trust = try TrustDeclared(configuration.appStore, configuration.trust, checker)
      do {
        if try writer.record(trust, after: projections.newestTrust()) { try projections.catchUp() }
      } catch let error as LedgerError where error.kind == .unconfirmed {
        // The event is on disk, and no client waits for it.
        log(.warning, "\(error)")
        try projections.catchUp()
      }
      return checker
    }
    workflow = UploadWorkflow(
      writer: writer, projections: projections, appStore: appStore, configuration: configuration,
      checker: checker, metrics: metrics, options: workflowOptions)
    webhooks = WebhookService(directory, projections, metrics: metrics, log: log)
    let authenticator = TokenAuthenticator(configuration.tokens)
    accessLog = try part { try options.accessLogDescriptor.map { try AccessLog(descriptor: $0) } }
    var listening: RemoteAppendServer?
    do {
      try workflow.start()
      let handover = try RemoteAppendServer(
        writer: writer, claims: HandedOverClaims(workflow, projections),
        onAppended: { [workflow] in workflow.foldForeignAppends() },
        onOutcome: { [workflow] in workflow.recordForeignAppend($0) },
        onRetry: { [workflow] in workflow.retryNow() })
      listening = handover
      self.handover = handover
      var httpOptions = HTTPServerOptions()
      httpOptions.listen = options.listen
      httpOptions.metricsListen = options.metricsListen
      httpOptions.trustedProxies = configuration.trustedProxies
      httpOptions.notificationsPath = configuration.notifications.path
      http = try HTTPServer(
        httpOptions, service: workflow, authenticator: authenticator, metrics: metrics,
        accessLog: accessLog)
    } catch {
      watcher.stop()
      listening?.stop()
      workflow.stop(graceMs: 0) { [appStore] in appStore.shutDown() }
      appStore.shutDown()
      accessLog?.finish()
      replication?.stop(deadlineMs: 0)
      try? writer.close()
      throw error
    }
    sync = SyncWorker(
      SyncWorker.Parts(
        directory: directory, writer: writer, projections: projections,
        configuration: { [watcher] in watcher.current },
        fold: { [workflow] in workflow.foldForeignAppends() },
        redactionCount: { [workflow] in workflow.redactionCount },
        claim: { [workflow] in workflow.claim(notification: $0) },
        release: { [workflow] in workflow.release(notification: $0, $1) },
        onAppend: { [workflow] in workflow.recordForeignAppend($0) }, metrics: metrics, log: log))
    do throws(LedgerError) { try sync.start() } catch { log(.error, "app-store sync: \(error)") }
    erasures = Self.erasures(
      directory, writer, workflow, webhooks, watcher, metrics: metrics, options: options)
    do throws(LedgerError) { try erasures.start() } catch { log(.error, "erasures: \(error)") }
    if let note = http.connectionsNote { log(.warning, note) }
    webhooks.apply(configuration)
    changes.begin(
      ConfigurationTargets(
        workflow: workflow, appStore: appStore, authenticator: authenticator, http: http,
        checker: checker, webhooks: webhooks,
        recordTrust: { [writer, workflow] new, old in
          guard try writer.record(new, after: old) else { return }
          workflow.foldForeignAppends()
        }),
      from: configuration)
  }

  private static func erasures(
    _ directory: LedgerDirectory, _ writer: LedgerWriter, _ workflow: UploadWorkflow,
    _ webhooks: WebhookService, _ watcher: ConfigurationWatcher, metrics: Metrics,
    options: LedgerServerOptions
  ) -> ErasureWorker {
    let stopFlag = StopFlag()
    let log = options.log
    // Each pass has its own eraser, which one thread uses.
    @Sendable func eraser() -> Eraser {
      Eraser(
        directory, writer, projections: options.projections,
        observer: Projector.Observer(
          notice: { log(.warning, $0) }, isCancelled: { stopFlag.isSet }),
        onProjectionsReplaced: {
          // In this order: webhooks read again from the projections that the first call has replaced.
          try workflow.forgetRedacted()
          webhooks.forgetRedacted()
        })
    }
    return ErasureWorker(
      ErasureWorker.Parts(
        directory: directory, configuration: { watcher.current },
        finish: { () throws(ErasureError) in _ = try eraser().finishInterrupted() },
        run: { (retention) throws(ErasureError) in
          let eraser = eraser()
          defer { metrics.count(.redactedEvents, by: eraser.redactedEventCount) }
          let records = try eraser.run(
            retention: retention?.rules, nowMs: retention?.nowMs ?? Timestamp.now(),
            isRetentionConfirmed: retention?.isOrdered ?? false)
          return ErasureWorker.Result(records, heldRetention: eraser.heldRetention)
        },
        metrics: metrics, log: log),
      stopFlag: stopFlag)
  }

  deinit { try? stop() }

  /// The port of the client API.
  package var port: UInt16 { http.port }
  package var metricsPort: UInt16? { http.metricsPort }

  /// Waits, up to a limit, until appends are impossible; returns whether that happened.
  package func waitForFailure(limitMs: Int64) -> Bool { hasFailed.wait(limitMs: limitMs) }

  /// Begins to look whether an upload would be answered.
  package func beginProbe() -> LivenessProbe {
    workflow.beginProbe(folds: folds, loops: http.rounds)
  }

  /// How long a probe may take while appends wait for the copy: behind one batch of uploads, and with the next.
  package var probePatienceMs: Int64 { 2 * (replication?.waitLimitMs ?? 0) }

  /// Accepts nothing new, answers the requests in progress, and closes the log. Calling it again does nothing.
  ///
  /// Throws the error of closing the log, or an earlier failure.
  package func stop() throws(LedgerError) {
    guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
    watcher.stop()
    // A pass in progress uses all other parts.
    erasures.stop()
    webhooks.stop()
    sync.stop()
    handover.stop()
    workflow.beginStopping()
    // Responses reach their clients while the server waits for the last of them.
    let closing = try? WorkerThread { [http, options] in
      http.shutdown(graceMs: options.graceMs + 4_000)
    }
    workflow.stop(graceMs: options.graceMs) { [appStore] in appStore.shutDown() }
    if let closing { closing.join() } else { http.shutdown(graceMs: 0) }
    appStore.shutDown()
    accessLog?.finish()
    replication?.stop(deadlineMs: Self.replicationLimitMs)
    try writer.close()
  }

  /// How long shutdown waits for the copy.
  private static let replicationLimitMs: Int64 = 5_000
}
