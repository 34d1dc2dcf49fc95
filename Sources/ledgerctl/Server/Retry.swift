// `retry`: asks the App Store once about each pending receipt.
import AppStore
import Base
import HTTPClient
import Ledger
import Projections
import Server

let retryCommand = Command(
  "retry", summary: "Retry pending verifications",
  details: [
    "Asks the App Store once about each pending receipt, and prints how many have a final reply now. It "
      + "stops early if the App Store does not reply at all. The exit code is 3 if receipts are still pending. "
      + "If a server runs, this command makes it try all of them now, and does not wait for the outcome."
  ],
  options: [.json]
) { invocation, context in
  try retry(invocation, context)
}

/// The result of a run.
private struct RetrySummary {
  var waitingBefore: Int
  var attempted = 0
  var settled = 0
  var waiting: Int
  /// Whether a server does the work.
  var isHandedOver = false

  var record: Record {
    [
      "waiting_before": waitingBefore, "attempted": attempted, "settled": settled,
      "waiting": waiting, "is_handed_over": isHandedOver,
    ]
  }

  var text: String {
    if isHandedOver {
      "The running server now tries \(counted(waitingBefore, "pending receipt"))"
    } else if waitingBefore == 0 {
      "No receipts are pending"
    } else {
      "Tried \(counted(attempted, "receipt")): \(settled) with a final reply, "
        + "\(waiting) still pending"
    }
  }
}

private func retry(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  let projections = try ledger.liveProjections()
  let before = try projections.waitingSummary().receipts
  var summary = RetrySummary(waitingBefore: before, waiting: before)
  if before > 0 {
    try ledger.withWriter(replicates: true) { appender in
      switch appender {
      case .server(let server):
        try server.requestRetry()
        summary.isHandedOver = true
      case .own(let writer):
        // Another process may have verified receipts before this one got the lock.
        try projections.catchUp()
        summary.waitingBefore = try projections.waitingSummary().receipts
        try run(writer, projections, configuration, &summary, context)
      }
    }
  }
  try context.print(invocation, summary.record) { try $0.line(summary.text) }
  if context.interruption.isRequested { throw Interrupted() }
  return summary.waiting == 0 || summary.isHandedOver ? .done : .partlyDone
}

private func run(
  _ writer: LedgerWriter, _ projections: LiveProjections, _ configuration: Configuration,
  _ summary: inout RetrySummary, _ context: Context
) throws {
  let appStore = try VerifyReceiptClient(configuration.appStore.clientOptions)
  defer { appStore.shutDown() }
  let diagnostics = context.diagnostics
  let progress = Progress("Asking the App Store", unit: .count("receipts"), context: context)
  var options = WorkflowOptions()
  options.workerCount = 1
  options.log = { diagnostics.writeLine(visible("ledgerctl: retry: \($1)"), $0) }
  let checker = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
  let trust = try TrustDeclared(configuration.appStore, configuration.trust, checker)
  if try writer.record(trust, after: projections.newestTrust()) { try projections.catchUp() }
  let workflow = UploadWorkflow(
    writer: writer, projections: projections, appStore: appStore, configuration: configuration,
    checker: checker,
    metrics: Metrics(), options: options, isSingleRun: true)
  do {
    try workflow.start()
    while !workflow.waitForEnd(limitMs: 100), !context.interruption.isRequested {
      progress.update(workflow.runFigures.attempted, of: summary.waitingBefore)
    }
  } catch {
    workflow.stop(graceMs: 0) { appStore.shutDown() }
    throw error
  }
  // Cancels calls under way; there are any only after an interruption.
  workflow.stop(graceMs: 0) { appStore.shutDown() }
  progress.erase()
  try projections.catchUp()
  summary.attempted = workflow.runFigures.attempted
  summary.settled = workflow.runFigures.settled
  summary.waiting = try projections.waitingSummary().receipts
}
