// The keys of a ledger: private keys in keys/, public keys in ledger.json.
import Base
import Glibc

/// Creates and finds the keys that sign a ledger's checkpoints.
package struct KeyStore {
  static let directoryName = "keys"
  private static let suffix = ".key"
  private let directory: LedgerDirectory

  package init(_ directory: LedgerDirectory) { self.directory = directory }

  private static func fileName(_ key: VerifierKey) -> String {
    "\(directoryName)/\(key.idText)\(suffix)"
  }

  /// The ledger's public keys, oldest first.
  package func publicKeys() throws(LedgerError) -> [VerifierKey] {
    var keys: [VerifierKey] = []
    for text in directory.identity.publicKeys {
      do throws(ProofError) {
        keys.append(try VerifierKey(text))
      } catch {
        throw LedgerError(
          .init(verdict: .corrupt, file: Format.identityName, position: nil),
          operation: "read public keys", cause: error.description)
      }
    }
    return keys
  }

  /// Creates a key that signs from now on, durably: first its file, then its entry in `ledger.json`.
  ///
  /// Throws `invalidInput` if there is already a signing key and the caller did not request another.
  package func create(isFurther: Bool) throws(LedgerError) -> VerifierKey {
    try directory.makePrivateDirectory(Self.directoryName)
    return try withLock { () throws(LedgerError) in
      // Read again under the lock: another process may have created a key meanwhile.
      let current = try directory.reread()
      if !isFurther, let existing = try KeyStore(current).signingKey()?.verifierKey {
        throw LedgerError(
          .invalidInput, operation: "create key", object: "\(existing)",
          cause: "a signing key exists; --further creates another, which signs from then on")
      }
      let key = try SigningKey.random(name: current.identity.origin)
      let name = Self.fileName(key.verifierKey)
      if try directory.statusIfPresent(name) != nil {
        throw LedgerError(
          .invalidInput, operation: "create key", object: name, cause: "the file exists")
      }
      try directory.replaceFile(name, with: Array(key.fileText.utf8))
      _ = try current.withPublicKeys(
        current.identity.publicKeys + [key.verifierKey.description])
      return key.verifierKey
    }
  }

  /// The newest key that can sign; nil if there is none.
  ///
  /// Throws `invalidInput` if anyone but the ledger's owner can read or write its file.
  package func signingKey() throws(LedgerError) -> SigningKey? {
    for key in try publicKeys().reversed() {
      let name = Self.fileName(key)
      guard let file = try directory.openFileIfPresent(name, isSecret: true) else { continue }
      if let cause = try Self.exposure(of: file) {
        throw LedgerError(
          .invalidInput, operation: "read signing key", object: name, cause: cause)
      }
      let content = try file.readSmall()
      guard let signing = SigningKey(fileText: String(decoding: content, as: UTF8.self)),
        signing.verifierKey == key
      else {
        throw LedgerError(
          .init(verdict: .corrupt, file: name, position: nil), operation: "read signing key",
          cause: "it is not the private key that belongs to its name")
      }
      return signing
    }
    return nil
  }

  /// Why other users may know or have made a secret key; nil if only the owner can access its file.
  /// - Parameter advice: what follows from that, for users.
  static func exposure(
    of file: StorageFile,
    advice: String =
      "if anyone may have read it, replace it with 'ledgerctl key create --further'"
  ) throws(LedgerError) -> String? {
    let status = try file.status()
    if status.permissions & 0o077 != 0 {
      return "other users can read or write it, and it is secret: run chmod 600; \(advice)"
    }
    // Root may sign for the owner; a key file of another user is never used.
    if geteuid() != 0, ![0, geteuid()].contains(status.owner) {
      return "it belongs to another user"
    }
    return nil
  }

  /// How long a caller waits for the lock, which is held for a few writes.
  private static let lockWaitMs: Int64 = 5000

  /// Holds the lock for creating keys, signing, and changing `ledger.json`.
  /// - Parameter waits: whether to wait for a moment if another thread or process holds it.
  func withLock<Result>(
    waits: Bool = false, _ body: () throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    let name = "\(Self.directoryName)/lock"
    let file = try directory.openFile(name, .readWriteOrCreate)
    let deadlineMs = MonotonicClock.nowMs() + (waits ? Self.lockWaitMs : 0)
    while try !file.lock() {
      guard waits, MonotonicClock.nowMs() < deadlineMs else {
        throw LedgerError(
          .locked, operation: "use keys", object: name,
          cause: "another process is creating or using a key")
      }
      usleep(5000)
    }
    defer { file.unlock() }
    return try body()
  }
}

extension LedgerDirectory {
  /// Creates a directory that only its owner may enter, durably, if there is none.
  func makePrivateDirectory(_ name: String) throws(LedgerError) {
    if try root.makeFolder(name) { try root.sync() }
  }

  /// The content of a small file; nil if there is none. A larger file counts as corruption.
  func readSmallFile(
    _ name: String, byteCountMax: Int = 1 << 20
  ) throws(LedgerError) -> [UInt8]? {
    try openFileIfPresent(name)?.readSmall(byteCountMax: byteCountMax)
  }
}
