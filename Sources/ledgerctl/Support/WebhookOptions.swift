// Where an app's webhooks go, as `app edit` changes it.
import Ledger
import Server

extension Option {
  static let webhook = Option(
    "webhook", value: .init("URL"),
    help:
      "tell the app's back end of purchases and refunds at URL, with a new secret that is printed once; the "
      + "same URL again enables a webhook that was disabled")
  static let removeWebhook = Option(
    "remove-webhook", help: "tell the app's back end nothing any more")
}

/// What `app edit` does about the webhook.
enum WebhookEdit: Equatable, Sendable {
  case none, remove
  case set(url: String)

  init(_ invocation: Invocation) throws(UsageError) {
    let url = invocation.value("webhook")
    if let url, let fault = Configuration.Webhook.fault(ofURL: url) {
      throw invocation.wrong("webhook", url, fault)
    }
    if let url, invocation.has("remove-webhook") {
      throw invocation.wrong("webhook", url, "conflicts with --remove-webhook")
    }
    self = url.map { .set(url: $0) } ?? (invocation.has("remove-webhook") ? .remove : .none)
  }

  /// Changes config.json; returns the new secret and a line that says what was done.
  func apply(
    _ appFamilyID: String, _ ledger: OpenLedger
  ) throws -> (secret: WebhookSecret?, text: String)? {
    let file = ConfigurationFile(ledger.directory)
    switch self {
    case .none: return nil
    case .remove:
      let hadWebhook = try file.setWebhook(url: nil, appFamilyID: appFamilyID).hadWebhook
      return (nil, hadWebhook ? "Removed the webhook." : "There was no webhook.")
    case .set(let url):
      let had = try file.read().apps[appFamilyID]?.webhook != nil
      // One that is new tells of what comes from now on, also if no server runs yet; another goes on where it is.
      if !had {
        try ledger.reader.refresh()
        try WebhookFiles(ledger.directory).putRequest(
          from: ledger.reader.head.size, of: appFamilyID)
      }
      let secret = try file.setWebhook(url: url, appFamilyID: appFamilyID).secret
      return (secret, "Webhooks go to \(visible(url)).")
    }
  }
}
