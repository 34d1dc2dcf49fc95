// Keys of signed notes (C2SP signed-note): the public verifier key and the signing key.
import Base
import CCrypto

/// Key names.
package enum KeyName {
  /// Whether a text is a valid key name: not empty, no Unicode space, no `+`, no control character.
  package static func isValid(_ text: String) -> Bool {
    !text.isEmpty
      && text.unicodeScalars.allSatisfy { scalar in
        !scalar.properties.isWhitespace && scalar.value >= 0x20 && scalar != "+"
      }
  }
}

/// The parts of a written key, split by bytes: a character may consist of `+` and a combining accent.
private struct KeyParts {
  let name: String
  let id: String
  let key: [UInt8]

  init?(_ text: some Collection<UInt8>) {
    // The base64 may also contain `+`; name and id may not.
    let parts = text.split(separator: 0x2B, maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    name = String(decoding: parts[0], as: UTF8.self)
    id = String(decoding: parts[1], as: UTF8.self)
    key = Array(parts[2])
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

  /// A key from its parts; nil unless the name is valid and the key has 32 bytes.
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
    guard let parts = KeyParts(text.utf8) else { throw refusal("it is not name+id+key") }
    guard let bytes = try? Base64.decode(parts.key), bytes.count == 1 + Ed25519.keyByteCount
    else { throw refusal("its key is not base64 of 33 bytes") }
    guard bytes[0] == Self.algorithm
    else { throw refusal("its algorithm is \(bytes[0]); this program knows 1, Ed25519") }
    guard let key = VerifierKey(name: parts.name, publicKey: Array(bytes.dropFirst()))
    else { throw refusal("its name is empty or holds white space") }
    guard key.idText.hasSameBytes(as: parts.id) else {
      throw refusal("its id does not match its name and key")
    }
    self = key
  }

  /// The id as eight hexadecimal digits.
  package var idText: String {
    withUnsafeBytes(of: id.bigEndian) { Hex.text($0) }
  }

  package static func == (left: VerifierKey, right: VerifierKey) -> Bool {
    left.id == right.id && left.publicKey == right.publicKey
      && left.name.hasSameBytes(as: right.name)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(id)
    hasher.combine(publicKey)
  }

  package var description: String {
    "\(name)+\(idText)+\(Base64.text([Self.algorithm] + publicKey))"
  }
}

/// A private key. It is written only to its own file.
package struct SigningKey: Sendable {
  /// The matching public key.
  package let verifierKey: VerifierKey
  private let seed: [UInt8]

  /// A key from its seed; nil unless the name is valid and the seed has 32 bytes.
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

  /// The content of a key file: `PRIVATE+KEY+name+id+base64(0x01 ‖ seed)` and a line feed.
  var fileText: String {
    let encoded = Base64.text([VerifierKey.algorithm] + seed)
    return "\(Self.prefix)\(verifierKey.name)+\(verifierKey.idText)+\(encoded)\n"
  }

  /// Reads a key file; nil if it is not one.
  init?(fileText: String) {
    let text = fileText.utf8
    guard text.starts(with: Self.prefix.utf8), text.last == 0x0A,
      let parts = KeyParts(text.dropFirst(Self.prefix.utf8.count).dropLast()),
      let bytes = try? Base64.decode(parts.key), bytes.first == VerifierKey.algorithm,
      let key = SigningKey(name: parts.name, seed: Array(bytes.dropFirst())),
      key.verifierKey.idText.hasSameBytes(as: parts.id)
    else { return nil }
    self = key
  }

  /// The signature of a message; nil only if libcrypto is out of memory.
  func sign(_ message: [UInt8]) -> [UInt8]? { Ed25519.sign(message, seed: seed) }
}

// MARK: - Ed25519

/// Ed25519 signatures (RFC 8032) over whole messages, through libcrypto.
enum Ed25519 {
  static let keyByteCount = 32
  static let signatureByteCount = 64

  /// The public key of a 32-byte seed; nil for any other size.
  static func publicKey(seed: [UInt8]) -> [UInt8]? {
    guard let key = privateKey(seed) else { return nil }
    defer { EVP_PKEY_free(key) }
    var bytes = [UInt8](repeating: 0, count: keyByteCount)
    var count = bytes.count
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == keyByteCount
    else { return nil }
    return bytes
  }

  /// The 64-byte signature; nil if the seed has another size or libcrypto is out of memory.
  static func sign(_ message: [UInt8], seed: [UInt8]) -> [UInt8]? {
    guard let key = privateKey(seed) else { return nil }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: signatureByteCount)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1,
      count == signatureByteCount
    else { return nil }
    return signature
  }

  /// Whether the key signed the message; false if anything has the wrong size.
  static func verify(_ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]) -> Bool {
    guard signature.count == signatureByteCount, publicKey.count == keyByteCount,
      let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
    else { return false }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    // libcrypto puts the reason for a rejected signature into its error queue, which is not read.
    defer { ERR_clear_error() }
    return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  private static func privateKey(_ seed: [UInt8]) -> OpaquePointer? {
    guard seed.count == keyByteCount else { return nil }
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)
  }
}
