// `webhook list`, `webhook test`, `webhook replay`: the webhooks of the apps' back ends.
import Base
import Ledger
import Projections
import Server

let webhookListCommand = Command(
  "webhook list", summary: "List the webhooks and how far each one came",
  details: [
    "Everything before a webhook's cursor was delivered; `behind` counts the events after it. A disabled "
      + "webhook gets nothing until `app edit --webhook` or `webhook replay` enables it. The state is what the "
      + "server wrote last, at most a second ago."
  ],
  options: [.json],
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
        ], webhooks.map(\.record)),
      leastImportant: ["app_family_id", "cursor", "waiting", "failing_since", "last_failure"])
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
    case .enable where state?.disabled != nil: return "continues when a server runs"
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
    "Sends one delivery of type `test`, signed as all are, and prints how it ended. It needs no server and "
      + "changes nothing. JSON has `app_family_id` and `delivered`; a failure is an error."
  ],
  options: [.appFamily, .json],
  examples: [
    Example(
      "ledgerctl webhook test --app 0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      "See whether the receiver accepts the signature")
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
    let record: Record = ["app_family_id": appFamilyID, "delivered": true]
    try context.print(invocation, record) { try $0.line("Delivered.") }
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
    "A running server follows within two seconds, otherwise the next one when it starts: it drops what "
      + "waits, enables the webhook if it was disabled, and delivers from the position on, with the same ids as "
      + "before. JSON has `app_family_id` and `position`."
  ],
  options: [
    .appFamily,
    Option(
      "from", value: .init("POSITION"), isRequired: true,
      help: "the position of the first event to report"),
    .json,
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
  try context.print(invocation, ["app_family_id": appFamilyID, "position": from]) {
    try $0.line("The webhook will begin again at position \(from).")
  }
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

// MARK: - Where an app's webhooks go, as `app edit` changes it

extension Option {
  static let webhook = Option(
    "webhook", value: .init("URL", isSecret: true),
    help:
      "report purchases and refunds to the app's back end at URL; a new secret is printed once; the "
      + "same URL again keeps the secret and enables a disabled webhook")
  static let webhookSecret = Option(
    "webhook-secret", value: .init("new", allowed: [WebhookEdit.newSecret], isSecret: true),
    help:
      "replace the webhook's secret and print the new one once; for 24 hours both sign each delivery"
  )
  static let removeWebhook = Option(
    "remove-webhook", help: "stop reporting to the app's back end")
}

/// What `app edit` does about the webhook.
enum WebhookEdit: Equatable, Sendable {
  case none, remove, replaceSecret
  case set(url: String)

  static let newSecret = "new"

  init(_ invocation: Invocation) throws(UsageError) {
    let url = invocation.value("webhook")
    if let url, let fault = Configuration.Webhook.fault(ofURL: url) {
      throw invocation.wrong("webhook", url, fault)
    }
    let others = ["remove-webhook", "webhook-secret"].filter { invocation.has($0) }
    if let url, let other = others.first {
      throw invocation.wrong("webhook", url, "conflicts with --\(other)")
    }
    if others.count > 1 {
      throw invocation.wrong("webhook-secret", Self.newSecret, "conflicts with --\(others[0])")
    }
    self =
      url.map { .set(url: $0) }
      ?? (others.first.map { $0 == "remove-webhook" ? .remove : .replaceSecret } ?? .none)
  }

  /// Refuses what can't be done for an app family, before anything is changed.
  func check(_ appFamilyID: String, _ configuration: Configuration) throws(Failure) {
    guard self == .replaceSecret, configuration.apps[appFamilyID]?.webhook == nil else { return }
    throw Failure(
      operation: "app edit", object: appFamilyID,
      cause: "the app family has no webhook; 'ledgerctl app edit --webhook' sets one")
  }

  /// Changes config.json; returns the new secret and a line that says what was done.
  func apply(
    _ appFamilyID: String, _ ledger: OpenLedger
  ) throws -> (secret: WebhookSecret?, text: String)? {
    let file = ConfigurationFile(ledger.directory)
    switch self {
    case .none: return nil
    case .remove:
      let before = try file.setWebhook(url: nil, appFamilyID: appFamilyID).before
      return (nil, before == nil ? "There was no webhook." : "Removed the webhook.")
    case .replaceSecret:
      let secret = try file.replaceWebhookSecret(appFamilyID: appFamilyID).secret
      return (secret, "For 24 hours, the previous secret signs too.")
    case .set(let url):
      // One that is new tells of what comes from now on, also if no server runs yet; another goes on where it is.
      if try file.read().apps[appFamilyID]?.webhook == nil {
        try ledger.reader.refresh()
        let head = ledger.reader.head.size
        let files = WebhookFiles(ledger.directory)
        try files.store(WebhookState(next: ChangePoint(head)), of: appFamilyID)
        // A running server may not have seen that an earlier one was removed.
        try files.put(.begin(from: head), of: appFamilyID)
      }
      let change = try file.setWebhook(url: url, appFamilyID: appFamilyID)
      if change.secret != nil { return (change.secret, "Webhooks go to \(visible(url)).") }
      try WebhookFiles(ledger.directory).put(.enable, of: appFamilyID)
      return (nil, "Webhooks go to \(visible(url)), with the same secret.")
    }
  }
}
