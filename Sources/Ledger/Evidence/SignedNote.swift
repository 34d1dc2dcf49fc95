// Signed notes (C2SP signed-note): a text, an empty line, and signatures over the text.
import Base

/// A note, read or created. Reading it does not check its signatures.
package struct SignedNote: Sendable, Equatable {
  /// A signature line.
  package struct Signature: Sendable, Equatable {
    package let name: String
    /// The first four bytes, which identify the key among those with this name.
    package let keyID: UInt32
    /// The remaining bytes.
    package let bytes: [UInt8]

    /// Whether the signature names this key.
    func isOf(_ key: VerifierKey) -> Bool { keyID == key.id && name.hasSameBytes(as: key.name) }
  }

  /// Far more than any checkpoint has.
  package static let byteCountMax = 1 << 20
  /// The most signatures that are checked; notes with more are refused.
  package static let signatureCountMax = 100
  private static let dash = Array("— ".utf8)

  /// The signed text: UTF-8 that ends with a line feed.
  package let text: [UInt8]
  package private(set) var signatures: [Signature]

  /// A note without a signature; the text must end with a line feed.
  init(text: String) {
    self.text = Array(text.utf8)
    signatures = []
  }

  /// Reads a note. The text ends at the last empty line.
  package init(_ bytes: [UInt8]) throws(ProofError) {
    func refusal(_ cause: String) -> ProofError {
      ProofError("signed note", cause, lacksForm: true)
    }
    guard bytes.count <= Self.byteCountMax else { throw refusal("it is too large") }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw refusal("it is not valid UTF-8")
    }
    guard bytes.allSatisfy({ $0 >= 0x20 || $0 == 0x0A })
    else { throw refusal("it contains a control character") }
    guard bytes.last == 0x0A else { throw refusal("it does not end with a line feed") }
    var end = bytes.count - 1
    while end > 1, !(bytes[end] == 0x0A && bytes[end - 1] == 0x0A) { end -= 1 }
    guard end > 1 else { throw refusal("there is no empty line before the signatures") }
    text = Array(bytes[..<end])
    signatures = []
    let lines = bytes[(end + 1)...].split(separator: 0x0A, omittingEmptySubsequences: false)
    guard lines.count > 1 else { throw refusal("it has no signature") }
    guard lines.count - 1 <= Self.signatureCountMax
    else {
      throw ProofError("signed note", "it has more than \(Self.signatureCountMax) signatures")
    }
    for line in lines.dropLast() {
      guard let signature = Self.signature(line)
      else { throw ProofError("signed note", "a signature line is malformed") }
      signatures.append(signature)
    }
  }

  private static func signature(_ line: ArraySlice<UInt8>) -> Signature? {
    guard line.starts(with: dash) else { return nil }
    let parts = line.dropFirst(dash.count)
      .split(separator: 0x20, omittingEmptySubsequences: false)
    guard parts.count == 2, let name = String(validating: parts[0], as: UTF8.self),
      KeyName.isValid(name), let bytes = try? Base64.decode(Array(parts[1])), bytes.count > 4
    else { return nil }
    return Signature(
      name: name, keyID: bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) },
      bytes: Array(bytes[4...]))
  }

  /// The known keys that signed the note. Signatures of unknown keys are ignored.
  ///
  /// Throws unless a known key signed it, and if a known key's signature is wrong.
  @discardableResult
  package func signers(among keys: [VerifierKey]) throws(ProofError) -> [VerifierKey] {
    var signers: [VerifierKey] = []
    for signature in signatures {
      let known = keys.first { signature.isOf($0) }
      guard let known else { continue }
      guard Ed25519.verify(signature.bytes, of: text, publicKey: known.publicKey) else {
        throw ProofError("signed note", "the signature of key \(known.idText) is wrong")
      }
      if !signers.contains(known) { signers.append(known) }
    }
    if signers.isEmpty { throw ProofError("signed note", "it is not signed by a known key") }
    return signers
  }

  /// Adds a signature, unless the key has already signed.
  mutating func sign(_ key: SigningKey) throws(ProofError) {
    let verifier = key.verifierKey
    if signatures.contains(where: { $0.isOf(verifier) }) { return }
    guard let bytes = key.sign(text) else {
      throw ProofError("signed note", "libcrypto could not sign it")
    }
    signatures.append(Signature(name: verifier.name, keyID: verifier.id, bytes: bytes))
  }

  /// The whole note, as written to a file.
  package var bytes: [UInt8] {
    var result = text + [0x0A]
    for signature in signatures {
      let keyID = (0..<4).map { UInt8(truncatingIfNeeded: signature.keyID >> (24 - 8 * $0)) }
      result += Self.dash + Array(signature.name.utf8) + [0x20]
      result += Base64.encode(keyID + signature.bytes) + [0x0A]
    }
    return result
  }
}
