// `webhook list`, `webhook test`, `webhook replay`: the webhooks of the apps' back ends.
import Ledger
import Projections
import Server

let webhookListCommand = Command(
  "webhook list", summary: "List the webhooks and how far each one came",
  details: [
    "`app edit --webhook` sets a webhook. Everything before its cursor was delivered; `behind` counts the events "
      + "after it. A webhook that is disabled gets nothing until `app edit --webhook` or `webhook replay` enables it. "
      + "The state is what the server wrote last, at most a second ago."
  ],
  options: [.json],
  examples: [Example("ledgerctl webhook list", "See which webhooks fail, and why")],
  isReadOnly: true
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let lookup = try IntakeLookup(try ledger.projections())
  let configuration = try ConfigurationFile(ledger.directory).read()
  let files = WebhookFiles(ledger.directory)
  let webhooks = try configuration.apps.sorted { $0.key < $1.key }.compactMap { id, app in
    try app.webhook.map { webhook in
      ListedWebhook(
        appFamilyID: id, name: try lookup.appName(ofFamily: id) ?? "", webhook: webhook,
        state: try files.state(of: id), request: try files.request(of: id),
        head: ledger.reader.head.size)
    }
  }
  try context.print(invocation, ["webhooks": webhooks.map(\.record)]) { sheet in
    if webhooks.isEmpty { return try sheet.line("No webhooks.") }
    try sheet.table(
      TextTable(
        [
          "app_family_id", "app", "url", "state", "cursor", .number("behind"), .number("waiting"),
          "failing_since", "last_failure",
        ], webhooks.map(\.record)))
  }
  return .done
}

/// One row of `webhook list`.
private struct ListedWebhook {
  let appFamilyID: String
  let name: String
  let webhook: Configuration.Webhook
  let state: WebhookState?
  /// What an operator wants of it.
  let request: WebhookFiles.Request?
  let head: Position

  private var stateText: String {
    switch request {
    case .begin: return "begins when a server runs"
    case .enable where state?.disabled != nil: return "goes on when a server runs"
    case .enable, nil: break
    }
    guard let state else { return "stopped: it has no cursor" }
    if let disabled = state.disabled, disabled.webhookSHA256Hex == webhook.sha256Hex {
      return "disabled: \(disabled.cause.rawValue)"
    }
    return state.failingSinceMs == nil ? "active" : "failing"
  }

  var record: Record {
    var cursor = state?.cursor
    if case .begin(let position) = request { cursor = ChangePoint(position) }
    return [
      "app_family_id": appFamilyID, "app": name, "url": webhook.url, "state": stateText,
      "cursor": cursor?.description, "behind": cursor.map { max(0, head - $0.position) },
      "waiting": state?.waiting.count, "failing_since": state?.failingSinceMs.map(timeText),
      "last_failure": state?.lastFailure, "last_success_at": state?.lastSuccessMs.map(timeText),
    ]
  }
}

let webhookTestCommand = Command(
  "webhook test", summary: "Send a test delivery to a webhook",
  details: [
    "Sends one delivery of type `test` from this program, signed as all are, and prints how it ended. It needs "
      + "no server and changes nothing."
  ],
  options: [.appFamily],
  examples: [
    Example(
      "ledgerctl webhook test --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      "See whether the receiver answers and takes the signature")
  ]
) { invocation, context in
  let appFamilyID = try invocation.appFamilyID() ?? ""
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  let webhook = try configuredWebhook(appFamilyID, configuration, "webhook test")
  let outcome = WebhookProbe.send(
    to: webhook, of: appFamilyID, configuration.webhooks, ledger.directory.identity)
  switch outcome {
  case .delivered:
    try context.output.writeLine("Delivered.")
    return .done
  case .gone:
    throw Failure(
      operation: "webhook test", object: appFamilyID, cause: "the receiver answered 410")
  case .failed(let cause):
    throw Failure(operation: "webhook test", object: appFamilyID, cause: cause)
  }
}

let webhookReplayCommand = Command(
  "webhook replay", summary: "Deliver again what events from a position on changed",
  details: [
    "A running server follows within two seconds, another one when it starts: it forgets what waits, enables the "
      + "webhook if it was disabled, and delivers from the position on, with the same ids as before."
  ],
  options: [
    .appFamily,
    Option(
      "from", value: .init("POSITION"), isRequired: true,
      help: "the position of the first event to tell of"),
  ],
  examples: [
    Example(
      "ledgerctl webhook replay --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566 --from 1200",
      "Deliver again from position 1200 on")
  ]
) { invocation, context in
  let appFamilyID = try invocation.appFamilyID() ?? ""
  let cause = "is not a position"
  let from = try invocation.value("from", cause) { text in
    Position(text).flatMap { $0 >= 0 && !text.hasPrefix("+") ? $0 : nil }
  }
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ConfigurationFile(ledger.directory).read()
  _ = try configuredWebhook(appFamilyID, configuration, "webhook replay")
  let size = ledger.reader.head.size
  guard let from, from <= size else {
    throw Failure(
      operation: "webhook replay", object: "--from \(from ?? 0)",
      cause: "the log has \(counted(size, "event"))")
  }
  try WebhookFiles(ledger.directory).put(.begin(from: from), of: appFamilyID)
  try context.output.writeLine("The webhook will begin again at position \(from).")
  return .done
}

private func configuredWebhook(
  _ appFamilyID: String, _ configuration: Configuration, _ operation: String
) throws -> Configuration.Webhook {
  if let webhook = configuration.apps[appFamilyID]?.webhook { return webhook }
  throw Failure(
    operation: operation, object: appFamilyID,
    cause: "the app family has no webhook; 'ledgerctl app edit --webhook' sets one")
}
