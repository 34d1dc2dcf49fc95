// `app-store sync`: fetches from the App Store Server API what the ledger does not have.
import AppStore
import Base
import HTTPClient
import Intake
import Ledger
import Projections
import Server

let appStoreSyncCommand = Command(
  "app-store sync", summary: "Fetch notifications and histories that the ledger does not have",
  details: [
    "For each app with a key in config.json, asks the App Store Server API for the notifications since the "
      + "last fetched moment (at first 180 days, in the Sandbox 30), then for the whole history of each customer "
      + "whose history was not fetched yet. What is new is checked and appended page by page.",
    "What is refused is named with the reason and requested again: a history from that page on by the next "
      + "run, notifications from before the first refused one, once a day. An interrupted run keeps what it "
      + "appended, and the next one continues. The exit code is 3 if something could not be fetched.",
  ],
  options: [
    Option("app", value: .init("ID"), help: "only this app family"),
    Option(
      "since", value: .init("MOMENT"),
      help:
        "also ask for what is new in histories last fetched before this, and for notifications since "
        + "then: a day (UTC) or an RFC 3339 time"
    ),
    Option(
      "again",
      help:
        "accept what was refused in the log and is good now, and ask for all notifications and whole "
        + "histories again"
    ),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl app-store sync --since 2026-11-01",
      "Ask again about customers whose history was last fetched before November")
  ]
) { invocation, context in
  try synchronize(invocation, context)
}

/// A ledger that a command appends to, by its own writer or through a server.
private final class CommandSyncLedger: SyncLedger {
  private let ledger: OpenLedger
  private let appender: LedgerAppender

  init(_ ledger: OpenLedger, _ appender: LedgerAppender) {
    (self.ledger, self.appender) = (ledger, appender)
  }

  func append(_ drafts: [EventDraft]) throws -> Range<Position> { try appender.append(drafts) }

  func folded() throws -> SyncQueries {
    let reader = ledger.reader
    return try SyncQueries(try ledger.projections(isFrugal: true)) { position in
      if position >= reader.head.size { try reader.refresh() }
      return try reader.event(at: position)
    }
  }
}

extension OpenLedger {
  /// The apps that have a key of the App Store Server API.
  /// - Parameter id: only this one, which must have a key.
  func syncApps(
    _ id: String?, _ configuration: Configuration, operation: String
  ) throws -> [SyncApp] {
    let apps = try AppQueries(try projections()).apps().compactMap { app -> SyncApp? in
      let registration = app.registration
      guard id == nil || registration.appFamilyID == id,
        let family = UUID16(registration.appFamilyID),
        let keys = configuration.apps[registration.appFamilyID]?.serverAPI
      else { return nil }
      return SyncApp(
        family: family,
        accounts: registration.bundleIDs.map { keys.account(bundleID: $0) },
        appAppleID: registration.appAppleID)
    }
    if apps.isEmpty {
      let place = id.map { "apps.\($0).server_api" } ?? "apps.ID.server_api"
      throw Failure(
        operation: operation, object: id ?? "config.json",
        cause: "no key of the App Store Server API is set; docs/configuration.md describes \(place)"
      )
    }
    return apps
  }
}

private func sinceMs(_ text: String) -> Int64? {
  if let day = try? CivilDate(parsing: text) { return Int64(day.dayNumber) * Timestamp.dayMs }
  return try? Timestamp.parse(text, cutsDecimals: true)
}

private func synchronize(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let appID = try invocation.appFamilyID()
  var options = SyncOptions()
  options.sinceMs = try invocation.value(
    "since", "is not a day or an RFC 3339 time", read: sinceMs)
  options.isAgain = invocation.has("again")
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  if let appID { _ = try ledger.appName(appID, operation: "app-store sync") }
  let apps = try ledger.syncApps(appID, configuration, operation: "app-store sync")
  options.callsPerSecond = configuration.appStore.serverAPICallsPerSecond
  let service = try ServerAPIClient(configuration.appStore.serverAPIOptions)
  defer { service.shutDown() }
  let verifier = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
  let trust = try TrustDeclared(configuration.appStore, configuration.trust, verifier)
  let interruption = context.interruption
  var summary = SyncSummary()
  var saidAtMs = MonotonicClock.nowMs()
  try ledger.withWriter(replicates: true) { appender in
    let recorded = try IntakeLookup(try ledger.projections(isFrugal: true)).newestTrust()
    if recorded != trust { _ = try appender.append([trust.draft]) }
    let progress = Progress("Asking the App Store", unit: .count("pages"), context: context)
    let sync = try AppStoreSync(
      apps, service: service, ledger: CommandSyncLedger(ledger, appender),
      verifier: configuration.trust.signedObjectVerifier(), options: options,
      stop: StopFlag { interruption.isRequested },
      onProgress: { summary in
        progress.update(summary.pages, of: nil)
        guard !context.errorTerminal.isTerminal, MonotonicClock.nowMs() - saidAtMs >= 60_000 else {
          return
        }
        saidAtMs = MonotonicClock.nowMs()
        context.log("app-store sync: \(counted(summary.pages, "page")) so far", .information)
      },
      onPause: { host, pauseMs in
        progress.erase()
        context.log(
          "app-store sync: \(host) accepts no more calls: waiting \((pauseMs + 999) / 1000) s"
        )
      })
    summary = try sync.run()
    progress.erase()
  }
  for problem in summary.problems { context.log("app-store sync: \(visible(problem))") }
  try context.print(invocation, summary.record) { try summary.write(to: &$0) }
  if summary.isInterrupted {
    try context.output.flush()
    context.log("app-store sync: interrupted; run it again to fetch the rest")
    return .interrupted
  }
  return summary.isWhole ? .done : .partlyDone
}

extension SyncSummary {
  fileprivate var record: Record {
    [
      "calls": calls, "pages": pages, "new_notifications": newNotifications,
      "known_notifications": knownNotifications, "refused_notifications": refusedNotifications,
      "refused_transactions": refusedTransactions, "accepted_objects": acceptedObjects,
      "histories": histories, "known_histories": knownHistories,
      "unknown_transactions": unknownTransactions, "failures": failures, "new_sales": newSales,
      "gaps": gaps.map(\.record), "problems": problems,
      "first_position": positions?.lowerBound, "last_position": positions?.upperBound,
    ]
  }

  fileprivate func write(to sheet: inout TextSections) throws {
    let positions = positions.map { ", positions \($0.lowerBound) to \($0.upperBound)" } ?? ""
    try sheet.line("Fetched \(counted(pages, "page")) with \(counted(calls, "call"))\(positions)")
    try sheet.fields([
      ("missing notifications", "\(newNotifications)"),
      ("known notifications", "\(knownNotifications)"),
      ("histories fetched", "\(histories)"), ("histories known", "\(knownHistories)"),
      ("new sales", "\(newSales)"), ("unknown transactions", "\(unknownTransactions)"),
    ])
    if refusedNotifications > 0 {
      try sheet.fields([("refused notifications", "\(refusedNotifications)")])
    }
    if refusedTransactions > 0 {
      try sheet.fields([("refused transactions", "\(refusedTransactions)")])
    }
    if acceptedObjects > 0 {
      try sheet.fields([("accepted from the log", "\(acceptedObjects)")])
    }
    if failures > 0 { try sheet.fields([("not fetched", "\(failures)")]) }
    try sheet.table(
      "Missing notifications",
      TextTable(
        ["bundle_id", "environment", .number("notifications"), "first_signed", "last_signed"],
        gaps.map(\.record)))
  }
}

extension SyncGap {
  fileprivate var record: Record {
    [
      "bundle_id": bundleID, "environment": environment, "notifications": notifications,
      "first_signed": timeText(firstMs), "last_signed": timeText(lastMs),
    ]
  }
}
