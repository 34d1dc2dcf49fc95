// Checkpoints (C2SP tlog-checkpoint): signed heads of a ledger.
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
    let signers = try note.signers(among: keys)
    try self.init(note, bytes)
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
