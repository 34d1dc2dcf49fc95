// The keys that hide the digests of redacted import lines, so that a repeated import still appends nothing.
package import Base
import CCrypto

/// The content of `keys/lines.hmac`: 32 random bytes in hexadecimal digits, a line for each key. The first key is in
/// use; a ledger has others only if it was without the file for a time.
package struct LineHMACKey: Sendable {
  package static let name = "\(KeyStore.directoryName)/lines.hmac"
  private static let byteCount = 32
  /// Follows the keys if lines were redacted under a key that was already missing.
  private static let partialMark = "partial"
  private static let operation = "read the key of redacted lines"

  private let keys: [[UInt8]]
  /// Whether lines were redacted under a missing key.
  package let isPartial: Bool

  private init?(_ content: [UInt8]) {
    guard content.last == 0x0A else { return nil }
    var lines = content.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)
    isPartial = lines.last?.elementsEqual(Self.partialMark.utf8) == true
    if isPartial { lines.removeLast() }
    keys = lines.compactMap { line in
      Array(line).withUnsafeBytes { SHA256Digest(hex: $0) }?.bytes
    }
    guard !keys.isEmpty, keys.count == lines.count else { return nil }
  }

  /// A ledger's key; nil if it has none.
  ///
  /// Throws `invalidInput` if anyone but the ledger's owner can read or write its file.
  package static func ifPresent(
    _ directory: LedgerDirectory
  ) throws(LedgerError) -> LineHMACKey? {
    guard let file = try directory.openFileIfPresent(name, isSecret: true) else { return nil }
    if let cause = try KeyStore.exposure(of: file, advice: "it hides whom the lines were about") {
      throw LedgerError(.invalidInput, operation: operation, object: name, cause: cause)
    }
    let content = try file.readSmall()
    guard let key = LineHMACKey(content) else {
      throw LedgerError(
        .init(verdict: .corrupt, file: name, position: nil), operation: operation,
        cause: "it does not hold 64 hexadecimal digits a line")
    }
    return key
  }

  /// Whether the ledger has redacted lines that it can't recognise because the key that hides them is missing.
  package static func isMissing(_ directory: LedgerDirectory) throws(LedgerError) -> Bool {
    guard try directory.reread().identity.formatVersion >= Format.versionWithRedactions else {
      return false
    }
    return try ifPresent(directory)?.isPartial ?? true
  }

  /// A ledger's key; creates it durably if there is none. It must exist before the ledger allows redactions: a ledger
  /// that allows them and has no key has lost it, and a new key would not replace it.
  package static func made(_ directory: LedgerDirectory) throws(LedgerError) -> LineHMACKey {
    if let key = try ifPresent(directory) { return key }
    try directory.makePrivateDirectory(KeyStore.directoryName)
    return try KeyStore(directory).withLock(waits: true) { () throws(LedgerError) in
      // Another process may have created it meanwhile.
      if let key = try ifPresent(directory) { return key }
      let key = try LedgerDirectory.randomBytes(byteCount)
      let text = key.withUnsafeBytes { Hex.text($0) } + "\n"
      let isPartial = try directory.reread().identity.formatVersion >= Format.versionWithRedactions
      let content = Array((text + (isPartial ? "\(partialMark)\n" : "")).utf8)
      try directory.replaceFile(name, with: content)
      guard let made = LineHMACKey(content) else { preconditionFailure("a key has its form") }
      return made
    }
  }

  /// HMAC-SHA-256 of a digest's 32 bytes under the current key.
  package func digest(of digest: SHA256Digest) -> SHA256Digest {
    Self.digest(of: digest, keys[0])
  }

  /// As `digest`, under each key.
  package func digests(of digest: SHA256Digest) -> [SHA256Digest] {
    keys.map { Self.digest(of: digest, $0) }
  }

  private static func digest(of digest: SHA256Digest, _ key: [UInt8]) -> SHA256Digest {
    var code = [UInt8](repeating: 0, count: SHA256Digest.byteCount)
    var byteCount = 0
    let made = digest.withUnsafeBytes { message in
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key, key.count,
        message.baseAddress?.assumingMemoryBound(to: UInt8.self), message.count, &code,
        code.count, &byteCount)
    }
    guard made != nil, let result = code.withUnsafeBytes({ SHA256Digest($0) }) else {
      fatalError("HMAC: libcrypto failed")
    }
    return result
  }
}
