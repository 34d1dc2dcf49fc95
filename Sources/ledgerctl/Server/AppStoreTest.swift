// `app-store test`: asks the App Store for a TEST notification, and what became of it.
import AppStore
import Base
import Glibc
import HTTPClient
import Intake
import Server

let appStoreTestCommand = Command(
  "app-store test", summary: "Ask the App Store for a test notification",
  details: [
    "Asks the App Store Server API to send a TEST notification to the URL that App Store Connect has for the "
      + "app, then prints whether the key is accepted, whether the notification's signature is good, and how "
      + "each attempt to send it ended. The exit code is 0 if it arrived, 3 if it did not or if nothing is known "
      + "after 30 seconds."
  ],
  options: [
    .appFamily,
    Option(
      "environment",
      value: .init("NAME", allowed: ["Production", "Sandbox"], standard: "Production"),
      help: "which environment's URL is tested"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl app-store test --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      "See whether notifications arrive")
  ]
) { invocation, context in
  try testAppStore(invocation, context)
}

/// How long the App Store has to send it, and how often it is asked, in milliseconds.
private let (testLimitMs, testPauseMs): (Int64, Int64) = (30_000, 1_000)

private func testAppStore(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let appID = try invocation.appFamilyID() ?? ""
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  _ = try ledger.appName(appID, operation: "app-store test")
  let apps = try ledger.syncApps(appID, configuration, operation: "app-store test")
  let endpoint: AppStoreEndpoint =
    invocation.value("environment") == "Sandbox" ? .sandbox : .production
  let service = try ServerAPIClient(configuration.appStore.serverAPIOptions)
  defer { service.shutDown() }
  var results: [TestResult] = []
  for account in apps.flatMap(\.accounts) {
    let bundleID = account.bundleID
    let ask = { (call: ServerAPICall) throws in
      try answer(to: call, as: account, service, endpoint, context)
    }
    guard case .testToken(let token) = try required(ask(.requestTestNotification), bundleID) else {
      throw refusal(bundleID, "the reply is of another call")
    }
    var result = TestResult(bundleID: bundleID)
    let endMs = MonotonicClock.nowMs() + testLimitMs
    while result.attempts.isEmpty, MonotonicClock.nowMs() < endMs {
      try context.interruption.check()
      if case .testResult(let found) = try ask(.testNotification(token: token)) {
        result.apply(found, configuration.trust.signedObjectVerifier())
      }
      if result.attempts.isEmpty { usleep(UInt32(testPauseMs) * 1000) }
    }
    results.append(result)
  }
  try context.print(invocation, list: results.map(\.record)) { sheet in
    for result in results { try sheet.fields(result.fields) }
  }
  return results.allSatisfy(\.hasArrived) ? .done : .partlyDone
}

/// What became of a TEST notification.
private struct TestResult {
  let bundleID: String
  var attempts: [TestNotificationResult.Attempt] = []
  /// `good`, or why it is not; nil while the notification is not known.
  var signature: String?

  var hasArrived: Bool { attempts.contains { $0.result == "SUCCESS" } && signature == "good" }

  mutating func apply(_ result: TestNotificationResult, _ verifier: SignedObjectVerifier) {
    attempts = result.attempts
    do throws(SignedObjectFault) {
      let checked = CheckedNotification(
        try SignedObject(result.payload), verifier, nowMs: Timestamp.now())
      signature = checked.outer.fault.map { "\($0)" } ?? "good"
    } catch { signature = "\(error)" }
  }

  var record: Record {
    [
      "bundle_id": bundleID, "signature": signature, "has_arrived": hasArrived,
      "attempts": attempts.map { attempt -> Record in
        ["at": attempt.atMs.map(timeText), "result": attempt.result]
      },
    ]
  }

  var fields: Fields {
    let sent = attempts.map { attempt in
      ("sent \(attempt.atMs.map(timeText) ?? "at an unknown time")", attempt.result)
    }
    return [
      ("bundle id", bundleID), ("signature", signature ?? "unknown"),
    ] + (sent.isEmpty ? [("sent", "nothing is known after \(testLimitMs / 1000) s")] : sent)
  }
}

private func answer(
  to call: ServerAPICall, as account: ServerAPIAccount, _ service: ServerAPIClient,
  _ endpoint: AppStoreEndpoint, _ context: Context
) throws -> ServerAPIResponse {
  let result = Monitor<ServerAPIResponse?>(nil, conditionCount: 1)
  service.send(call, as: account, to: endpoint) { answer in
    result.withLock { $0 = answer }
    result.signal(0)
  }
  while true {
    try context.interruption.check()
    if let answer = result.wait(on: 0, limitMs: 100, until: { $0 }) { return answer }
  }
}

/// Throws what keeps the App Store from sending a test.
private func required(
  _ answer: ServerAPIResponse, _ bundleID: String
) throws(Failure) -> ServerAPIResponse {
  switch answer {
  case .unauthorized: throw refusal(bundleID, "the App Store does not accept the key")
  case .rateLimited: throw refusal(bundleID, "too many calls; try again in a minute")
  case .settled(let code): throw refusal(bundleID, "error \(code)")
  case .failure(.status(404, 4_040_007)):
    throw refusal(bundleID, "App Store Connect has no URL for notifications of this environment")
  case .failure(let failure): throw refusal(bundleID, failure.description)
  case .page, .testToken, .testResult: return answer
  }
}

private func refusal(_ bundleID: String, _ cause: String) -> Failure {
  Failure(operation: "app-store test", object: bundleID, cause: cause)
}
