// Tokens of the client API: how one is made, and what is kept of it.
package import Base
import Intake

/// The text of a token: a prefix that scanners for leaked secrets can know, then 32 random bytes in base64url.
package enum TokenText {
  package static let prefix = SecretText.tokenPrefix

  /// A new token.
  package static func make() -> String {
    let text = Base64.text(randomBytes(32)).prefix { $0 != "=" }
    return prefix + text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : String($0) }.joined()
  }

  /// A new public name for a token, which tells nothing about it.
  package static func makeID() -> String {
    "tk-" + randomBytes(6).withUnsafeBytes { Hex.text($0) }
  }

  /// What is kept of a token: SHA-256 of its whole text.
  package static func digest(_ token: UnsafeRawBufferPointer) -> SHA256Digest { SHA256.hash(token) }

  /// What is kept of a token.
  package static func digest(_ token: String) -> SHA256Digest {
    Array(token.utf8).withUnsafeBytes { SHA256.hash($0) }
  }

  /// Whether a text can be a token's public name.
  package static func isID(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        switch $0 {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
      }
  }

  private static func randomBytes(_ count: Int) -> [UInt8] {
    // The system's own source, fit for secrets.
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }
}
