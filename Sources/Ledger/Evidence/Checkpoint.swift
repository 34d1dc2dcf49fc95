// Checkpoints (C2SP tlog-checkpoint), the signed heads of a ledger, and the notes that contain them.
package import Base

/// A ledger's head, as written in a checkpoint.
package struct Checkpoint: Sendable, Equatable {
  /// The ledger's origin.
  package let origin: String
  /// The number of events.
  package let size: Int
  /// The tree's root.
  package let root: SHA256Digest
  /// The whole note, unchanged.
  package let bytes: [UInt8]

  /// Reads a checkpoint that one of these keys signed under the checkpoint's origin.
  package init(_ bytes: [UInt8], keys: [VerifierKey]) throws(ProofError) {
    let note = try SignedNote(bytes)
    // The form is checked before the signatures: a proof given by mistake is not a forged checkpoint.
    try self.init(note, bytes)
    let signers = try note.signers(among: keys)
    let origin = origin
    guard signers.contains(where: { $0.name.hasSameBytes(as: origin) })
    else { throw ProofError("checkpoint", "it is not signed by a key of its origin") }
  }

  /// Reads a checkpoint without checking its signatures.
  package init(unverified bytes: [UInt8]) throws(ProofError) {
    try self.init(try SignedNote(bytes), bytes)
  }

  private init(_ note: SignedNote, _ bytes: [UInt8]) throws(ProofError) {
    func refusal(_ cause: String) -> ProofError {
      ProofError("checkpoint", cause, lacksForm: true)
    }
    let lines = note.text.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)
    guard lines.count >= 3, lines.allSatisfy({ !$0.isEmpty })
    else { throw refusal("it does not have the lines origin, size and root") }
    origin = String(decoding: lines[0], as: UTF8.self)
    guard let size = Self.decimal(lines[1]) else { throw refusal("its size is not a number") }
    guard let root = Self.digest(lines[2])
    else { throw refusal("its root is not base64 of 32 bytes") }
    self.size = size
    self.root = root
    self.bytes = bytes
  }

  /// The text that is signed.
  static func text(origin: String, size: Int, root: SHA256Digest) -> String {
    "\(origin)\n\(size)\n\(Base64.text(root.bytes))\n"
  }

  /// A decimal number without a sign or leading zeros, within the range of positions.
  static func decimal(_ digits: ArraySlice<UInt8>) -> Int? {
    digits.withUnsafeBytes { bytes in
      var scanner = ByteScanner(bytes)
      guard let value = scanner.decimal(), scanner.offset == bytes.count else { return nil }
      return value
    }
  }

  /// 32 bytes in base64.
  static func digest(_ text: ArraySlice<UInt8>) -> SHA256Digest? {
    guard let bytes = try? Base64.decode(Array(text)) else { return nil }
    return bytes.withUnsafeBytes { SHA256Digest($0) }
  }
}

// MARK: - Signed notes

/// A signed note (C2SP signed-note), read or created: a text, an empty line, and signatures over the text. Reading it
/// does not check its signatures.
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
  /// The most signatures that are checked; notes with more are rejected.
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
