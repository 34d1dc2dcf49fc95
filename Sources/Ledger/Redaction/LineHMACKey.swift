// The key that hides the digests of redacted import lines, so that a repeated import still appends nothing.
package import Base
import CCrypto

/// The content of `keys/lines.hmac`: 32 random bytes in hexadecimal digits.
package struct LineHMACKey: Sendable {
  package static let name = "\(KeyStore.directoryName)/lines.hmac"
  private static let byteCount = 32
  private static let operation = "read the key of redacted lines"

  private let key: [UInt8]

  /// A ledger's key; nil if it has none.
  ///
  /// Throws `invalidInput` if anyone but the ledger's owner can read or write its file.
  package static func ifPresent(
    _ directory: LedgerDirectory
  ) throws(LedgerError) -> LineHMACKey? {
    guard let file = try directory.openFileIfPresent(name, isSecret: true) else { return nil }
    if let cause = try KeyStore.exposure(of: file, advice: "it hides who the lines were about") {
      throw LedgerError(.invalidInput, operation: operation, object: name, cause: cause)
    }
    let content = try file.readSmall()
    guard content.count == 2 * byteCount + 1, content.last == 0x0A,
      let key = content.withUnsafeBytes({
        SHA256Digest(hex: UnsafeRawBufferPointer(rebasing: $0.dropLast()))
      })
    else {
      throw LedgerError(
        .init(verdict: .corrupt, file: name, position: nil), operation: operation,
        cause: "it does not hold 64 hexadecimal digits")
    }
    return LineHMACKey(key: key.bytes)
  }

  /// A ledger's key; creates it durably if there is none.
  package static func made(_ directory: LedgerDirectory) throws(LedgerError) -> LineHMACKey {
    if let key = try ifPresent(directory) { return key }
    try directory.makePrivateDirectory(KeyStore.directoryName)
    return try KeyStore(directory).withLock(waits: true) { () throws(LedgerError) in
      // Another process may have created it meanwhile.
      if let key = try ifPresent(directory) { return key }
      let key = try LedgerDirectory.randomBytes(byteCount)
      let text = key.withUnsafeBytes { Hex.text($0) } + "\n"
      try directory.replaceFile(name, with: Array(text.utf8))
      return LineHMACKey(key: key)
    }
  }

  /// HMAC-SHA-256 of a digest's 32 bytes.
  package func digest(of digest: SHA256Digest) -> SHA256Digest {
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
