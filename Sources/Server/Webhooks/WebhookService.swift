// Webhooks of a running server: starts their thread when the first is configured, and ends it.
import Base
import HTTPClient
package import Ledger

/// Tells apps' back ends of sales, refunds and frauds. The owner stops it.
package final class WebhookService: Sendable {
  private let orders = Monitor(WebhookOrders())
  /// The loop's thread and what wakes it; nil while no webhook was ever configured.
  private let running = Monitor<(thread: WorkerThread, transfers: HTTPTransfers)?>(nil)
  private let start: @Sendable (HTTPTransfers) throws(SystemError) -> WorkerThread
  private let notes: OperatorNotes

  /// - Parameters:
  ///   - source: what is told; it must stay up to date.
  ///   - log: told what an operator should know; one line, without a secret.
  package init(
    _ directory: LedgerDirectory, _ source: any WebhookSource, metrics: Metrics,
    clock: WorkflowClock = WorkflowClock(), log: @escaping OperatorLog
  ) {
    let notes = OperatorNotes(clock, metrics, write: log)
    self.notes = notes
    start = { [orders] (transfers) throws(SystemError) in
      try WorkerThread(.niceness(5)) {
        WebhookLoop(orders, transfers, source, directory, clock, metrics, notes).run()
      }
    }
  }

  /// Applies a configuration.
  package func apply(_ configuration: Configuration) {
    let isStopping = orders.withLock { orders in
      orders.configuration = configuration
      return orders.isStopping
    }
    let hasWebhook = configuration.apps.values.contains { $0.webhook != nil }
    running.withLock { running in
      if running == nil, hasWebhook, !isStopping {
        do {
          let transfers = try HTTPTransfers()
          running = (try start(transfers), transfers)
        } catch {
          let cause = (error as? HTTPClientError)?.cause ?? "the system starts no more threads"
          notes.fault("send webhooks", WebhookFault(cause))
        }
      }
      running?.transfers.wake()
    }
  }

  /// Forgets what waits to be delivered and reads it again, as stored events may have lost data. Returns when nothing
  /// is left of what was read before, or after ten seconds.
  package func forgetRedacted() {
    let latch = Latch()
    let isRunning = running.withLock { running in
      guard let running else { return false }
      orders.withLock { $0.forgetting.append(latch) }
      running.transfers.wake()
      return true
    }
    if isRunning { latch.wait(limitMs: 10_000) }
  }

  /// Gives up the deliveries under way, which will be sent again, and keeps how far it came. Calling it again does
  /// nothing.
  package func stop() {
    orders.withLock { $0.isStopping = true }
    let ended = running.withLock { running in
      defer { running = nil }
      return running
    }
    ended?.transfers.wake()
    ended?.thread.join()
  }
}

// MARK: - The secret that a webhook's receiver shares with the server, and the signature made with it (Standard Webhooks)

/// A webhook's secret: `whsec_` and the base64 of the key.
package struct WebhookSecret: Sendable, Equatable {
  package static let prefix = "whsec_"
  package static let requirement = "must be whsec_ and the base64 of 24 to 64 bytes"
  private static let newKeyByteCount = 24
  private static let keyByteCounts = 24...64

  /// As config.json holds it. No message contains it.
  package let text: String
  private let key: [UInt8]

  /// Nil for a text that is no secret.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.prefix),
      let key = try? Base64.decode(Array(text.utf8.dropFirst(Self.prefix.utf8.count))),
      Self.keyByteCounts.contains(key.count)
    else { return nil }
    self.text = text
    self.key = key
  }

  /// A new secret, of the system's randomness.
  package static func make() -> WebhookSecret {
    var generator = SystemRandomNumberGenerator()
    let key = (0..<newKeyByteCount).map { _ in
      UInt8.random(in: .min ... .max, using: &generator)
    }
    guard let secret = WebhookSecret(prefix + Base64.text(key)) else {
      preconditionFailure("a new secret is a secret")
    }
    return secret
  }

  /// The header `webhook-signature` of one delivery.
  /// - Parameters:
  ///   - id: the header `webhook-id`.
  ///   - timestampSeconds: the header `webhook-timestamp`.
  package func signature(id: String, timestampSeconds: Int64, body: [UInt8]) -> String {
    let digest = Self.hmac(key, Array("\(id).\(timestampSeconds).".utf8) + body)
    return "v1," + Base64.text(digest.withUnsafeBytes { Array($0) })
  }

  /// HMAC-SHA256 (RFC 2104) by a key that is no longer than a block of the hash.
  private static func hmac(_ key: [UInt8], _ message: [UInt8]) -> SHA256Digest {
    let blockByteCount = 64
    precondition(key.count <= blockByteCount, "a longer key would have to be hashed first")
    let block = key + [UInt8](repeating: 0, count: blockByteCount - key.count)
    let inner = (block.map { $0 ^ 0x36 } + message).withUnsafeBytes { SHA256.hash($0) }
    let outer = block.map { $0 ^ 0x5C } + inner.withUnsafeBytes { Array($0) }
    return outer.withUnsafeBytes { SHA256.hash($0) }
  }
}
