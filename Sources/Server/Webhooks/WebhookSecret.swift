// The secret that a webhook's receiver shares with the server, and the signature made with it (Standard Webhooks).
import Base

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
