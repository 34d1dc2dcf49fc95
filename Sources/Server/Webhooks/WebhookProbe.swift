// One delivery outside of a server, to test a webhook.
import Base
package import Ledger

/// Sends a test and waits for its end.
package enum WebhookProbe {
  /// - Returns: how it ended; what it was is of type `test`.
  package static func send(
    to webhook: Configuration.Webhook, of family: String, _ settings: Configuration.Webhooks,
    _ ledger: LedgerIdentity, nowMs: Int64 = Timestamp.now()
  ) -> WebhookOutcome {
    guard let transfers = WebhookTransfers() else {
      return .failed("libcurl cannot be initialised")
    }
    let sender = WebhookSender<Void>(
      transfers, AddressRules(privateNetworks: settings.privateNetworks))
    let delivery = WebhookDelivery(testOf: family, nowMs: nowMs)
    let request = webhook.request(
      delivery, id: delivery.id(in: ledger), nowMs: nowMs,
      isForLoopback: EndpointText.isForLoopback(webhook.url))
    guard sender.start(request, ()) else { return .failed("libcurl is out of memory") }
    while true {
      if let (_, outcome) = sender.perform().first { return outcome }
      sender.wait(limitMs: 1_000)
    }
  }
}
