// How a delivery is sent, and to which addresses: public ones, and private ones that the configuration names.
import Base
import HTTPClient
package import Ledger

/// The requests of webhooks, and what came of them.
enum WebhookRequests {
  static let options = HTTPOptions(connectTimeoutMs: 5_000, timeoutMs: 10_000)

  /// What a receiver answers is not looked at; beyond this it is not even read.
  private static let answerBytesMax = 64 << 10

  /// A delivery with the headers of Standard Webhooks.
  static func request(
    _ webhook: Configuration.Webhook, _ delivery: WebhookDelivery, id: String, nowMs: Int64,
    _ rules: AddressRules
  ) -> HTTPRequest {
    let seconds = nowMs / 1000
    var secrets = [webhook.secret]
    if let previous = webhook.previous, nowMs < previous.untilMs { secrets.append(previous.secret) }
    let signatures = secrets.map {
      $0.signature(id: id, timestampSeconds: seconds, body: delivery.body)
    }
    var request = HTTPRequest(
      .post, webhook.url,
      headers: [
        HTTPRequest.jsonContent, "webhook-id: \(id)", "webhook-timestamp: \(seconds)",
        "webhook-signature: \(signatures.joined(separator: " "))",
      ],
      body: HTTPBody(delivery.body), bodyBytesMax: answerBytesMax)
    // A proxy would look the name up itself, and nobody would check what it connects to.
    request.avoidsProxy = true
    let isForLoopback = EndpointText.isForLoopback(webhook.url)
    request.isAllowed = { address in
      NetworkAddress(address).map { rules.allow($0, isForLoopback: isForLoopback) } ?? false
    }
    return request
  }
}

extension WebhookOutcome {
  init(_ outcome: HTTPOutcome) {
    let status = outcome.status ?? 0
    switch (outcome.failure, status) {
    // An answer that is cut off, because it is long or by the receiver, has a status all the same.
    case (nil, _), (.bodyTooLarge, _), (.incompleteHeader, 1...):
      switch status {
      case 200...299: self = .delivered
      case 410: self = .gone
      case 300...399: self = .failed("HTTP status \(status): redirects are not followed")
      default: self = .failed("HTTP status \(status)")
      }
    case (let failure?, _): self = .failed(Self.cause(failure))
    }
  }

  private static func cause(_ failure: HTTPFailure) -> String {
    switch failure {
    case .refusedAddress: "the host has an address that is not public"
    case .unknownHost: "the host's name cannot be looked up"
    case .cannotConnect: "cannot connect"
    case .connectTimeout, .timeout: "timed out"
    case .untrustedCertificate, .tlsFailed: "no trusted TLS connection could be made"
    case .outOfMemory: "libcurl is out of memory"
    case .libraryFailed: "libcurl failed"
    default: "the connection was lost"
    }
  }
}

// MARK: - One delivery outside of a server, to test a webhook

/// Sends a test and waits for its end.
package enum WebhookProbe {
  /// - Returns: how it ended; what it was is of type `test`.
  package static func send(
    to webhook: Configuration.Webhook, of family: String, _ settings: Configuration.Webhooks,
    _ ledger: LedgerIdentity, nowMs: Int64 = Timestamp.now()
  ) -> WebhookOutcome {
    guard let transfer = HTTPTransfer(WebhookRequests.options) else {
      return .failed("libcurl cannot be initialised")
    }
    let delivery = WebhookDelivery(testOf: family, nowMs: nowMs)
    return WebhookOutcome(
      transfer.perform(
        WebhookRequests.request(
          webhook, delivery, id: delivery.id(in: ledger), nowMs: nowMs,
          AddressRules(privateNetworks: settings.privateNetworks))))
  }
}

// MARK: - To which addresses webhooks may be sent

/// Decides about each address that is connected to, after its name was looked up: a name may change its address.
package struct AddressRules: Sendable, Equatable {
  private let privateNetworks: [NetworkRange]

  /// What no host of the public Internet has: RFC 6890 and its registry, and multicast.
  private static let reservedIPv4 = ranges([
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
  ])
  /// All that is given out for hosts; loopback, link-local, unique local and multicast addresses lie outside.
  private static let globalIPv6 = ranges(["2000::/3"])
  /// Of these: tunnels, which hide an IPv4 address, and what is for documents.
  private static let reservedIPv6 = ranges([
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
  ])
  /// An IPv4 address in the last 4 bytes, for networks without IPv4 (RFC 6052).
  private static let translated = ranges(["64:ff9b::/96"])
  private static let loopback = ranges(["127.0.0.0/8", "::1"])

  /// - Parameter privateNetworks: addresses and networks as config.json has them; what is neither is left out.
  package init(privateNetworks: [String] = []) {
    self.privateNetworks = Self.ranges(privateNetworks)
  }

  private static func ranges(_ texts: [String]) -> [NetworkRange] {
    texts.compactMap { NetworkRange($0) }
  }

  /// Whether a delivery may go to an address.
  /// - Parameter isForLoopback: whether the URL names this machine itself, which only it may then be.
  package func allow(_ address: NetworkAddress, isForLoopback: Bool) -> Bool {
    if isForLoopback { return Self.loopback.contains { $0.contains(address) } }
    return Self.isPublic(address) || privateNetworks.contains { $0.contains(address) }
  }

  private static func isPublic(_ address: NetworkAddress) -> Bool {
    func lies(in ranges: [NetworkRange]) -> Bool { ranges.contains { $0.contains(address) } }
    if address.isIPv4 { return !lies(in: reservedIPv4) }
    if lies(in: translated) {
      return isPublic(NetworkAddress(ipv4: Array(address.bytes.suffix(4))))
    }
    return lies(in: globalIPv6) && !lies(in: reservedIPv6)
  }
}
