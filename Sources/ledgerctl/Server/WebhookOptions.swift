// Where an app's webhooks go, as `app edit` changes it.
import Ledger
import Projections
import Server

extension Option {
  static let webhook = Option(
    "webhook", value: .init("URL", isSecret: true),
    help:
      "tell the app's back end of purchases and refunds at URL, with a new secret that is printed once; the "
      + "same URL again keeps the secret and enables a webhook that was disabled")
  static let webhookSecret = Option(
    "webhook-secret", value: .init("new", allowed: [WebhookEdit.newSecret], isSecret: true),
    help:
      "replace the webhook's secret by a new one, which is printed once; for 24 hours both sign each delivery"
  )
  static let removeWebhook = Option(
    "remove-webhook", help: "tell the app's back end nothing any more")
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
      return (secret, "For 24 hours, the secret before signs too.")
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
      return (nil, "Webhooks go to \(visible(url)), with the secret that they have.")
    }
  }
}
