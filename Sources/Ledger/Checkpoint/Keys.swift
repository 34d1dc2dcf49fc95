// Keys of signed notes (C2SP signed-note): the verifier key that is published, the signing key.
import Bytes
import CCrypto

/// Names of keys.
package enum KeyName {
  /// Whether a text may name a key: not empty, no Unicode space, no `+`, no control character.
  package static func isValid(_ text: String) -> Bool {
    !text.isEmpty
      && text.unicodeScalars.allSatisfy { scalar in
        !scalar.properties.isWhitespace && scalar.value >= 0x20 && scalar != "+"
      }
  }
}

/// A public key: `name+hex(key id)+base64(0x01 ‖ 32 bytes)`.
package struct VerifierKey: Sendable, Hashable, CustomStringConvertible {
  /// The algorithm's byte: Ed25519.
  static let algorithm: UInt8 = 1

  package let name: String
  /// The first four bytes of the SHA-256 of name, line feed, algorithm and key.
  package let id: UInt32
  /// 32 bytes.
  package let publicKey: [UInt8]

  /// A key by its parts; nil unless the name is valid and the key has 32 bytes.
  package init?(name: String, publicKey: [UInt8]) {
    guard KeyName.isValid(name), publicKey.count == Ed25519.keyByteCount else { return nil }
    self.name = name
    self.publicKey = publicKey
    let digest = (Array(name.utf8) + [0x0A, Self.algorithm] + publicKey)
      .withUnsafeBytes { SHA256.hash($0) }
    id = digest.bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// Reads the written form.
  package init(_ text: String) throws(ProofError) {
    func refusal(_ cause: String) -> ProofError { ProofError("verifier key", cause) }
    // The base64 may hold `+` too; name and id may not.
    let parts = text.split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw refusal("it is not name+id+key") }
    guard let bytes = try? Base64.decode(Array(parts[2].utf8)),
      bytes.count == 1 + Ed25519.keyByteCount
    else { throw refusal("its key is not base64 of 33 bytes") }
    guard bytes[0] == Self.algorithm
    else { throw refusal("its algorithm is \(bytes[0]); this program knows 1, Ed25519") }
    guard let key = VerifierKey(name: String(parts[0]), publicKey: Array(bytes.dropFirst()))
    else { throw refusal("its name is empty or holds white space") }
    guard key.idText == parts[1] else { throw refusal("its id does not belong to name and key") }
    self = key
  }

  /// The id as eight hexadecimal digits.
  package var idText: String {
    withUnsafeBytes(of: id.bigEndian) { Hex.text($0) }
  }

  package var description: String {
    "\(name)+\(idText)+\(Base64.text([Self.algorithm] + publicKey))"
  }
}

/// A private key. Written nowhere but into its own file.
package struct SigningKey: Sendable {
  /// The public key that belongs to it.
  package let verifierKey: VerifierKey
  private let seed: [UInt8]

  /// A key by its seed; nil unless the name is valid and the seed has 32 bytes.
  package init?(name: String, seed: [UInt8]) {
    guard let publicKey = Ed25519.publicKey(seed: seed),
      let verifierKey = VerifierKey(name: name, publicKey: publicKey)
    else { return nil }
    self.seed = seed
    self.verifierKey = verifierKey
  }

  /// A new random key.
  static func random(name: String) throws(LedgerError) -> SigningKey {
    let seed = try LedgerDirectory.randomBytes(Ed25519.keyByteCount)
    guard let key = SigningKey(name: name, seed: seed) else {
      throw LedgerError(
        .inputOutput, operation: "create key", object: "libcrypto", cause: "it failed")
    }
    return key
  }

  private static let prefix = "PRIVATE+KEY+"

  /// The content of a key's file: `PRIVATE+KEY+name+id+base64(0x01 ‖ seed)` and a line feed.
  var fileText: String {
    let encoded = Base64.text([VerifierKey.algorithm] + seed)
    return "\(Self.prefix)\(verifierKey.name)+\(verifierKey.idText)+\(encoded)\n"
  }

  /// Reads a key's file; nil where it is none.
  init?(fileText: String) {
    guard fileText.hasPrefix(Self.prefix), fileText.utf8.last == 0x0A else { return nil }
    let parts = fileText.dropFirst(Self.prefix.count).dropLast()
      .split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = try? Base64.decode(Array(parts[2].utf8)),
      bytes.first == VerifierKey.algorithm,
      let key = SigningKey(name: String(parts[0]), seed: Array(bytes.dropFirst())),
      key.verifierKey.idText == parts[1]
    else { return nil }
    self = key
  }

  /// The signature of a message; nil only where libcrypto is out of memory.
  func sign(_ message: [UInt8]) -> [UInt8]? { Ed25519.sign(message, seed: seed) }
}
