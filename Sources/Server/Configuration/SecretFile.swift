// Files with secrets that config.json names: opened without following links, refused if others may read them.
package import AppStore
import Base
import Glibc
package import HTTPClient
import Intake
package import Ledger

/// A file that config.json names, and what was read from it. No message shows the content.
package struct NamedFile<Content: Sendable & Equatable>: Sendable, Equatable {
  /// As config.json names it.
  package let name: String
  let content: Content

  init(_ name: String, _ content: Content) { (self.name, self.content) = (name, content) }
}

/// Reads a secret file whole.
enum SecretFile {
  /// Why a file cannot be used; starts with a lower-case letter.
  struct Fault: Error { let cause: String }

  /// - Parameters:
  ///   - path: relative to the ledger's directory, or absolute.
  ///   - directoryPath: of the ledger. If root reads, the file may be its owner's.
  static func read(
    _ path: String, in directoryPath: String, byteCountMax: Int
  ) throws(Fault) -> [UInt8] {
    let descriptor = try descriptor(path, in: directoryPath)
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw unreadable(errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw Fault(cause: "the file is not a regular file")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw Fault(cause: "other users can read or write the file: run chmod 600")
    }
    guard status.st_uid == 0 || status.st_uid == user(of: directoryPath) else {
      throw Fault(cause: "the file belongs to another user")
    }
    do throws(SmallFileError) {
      return try SmallFile.read(descriptor, byteCountMax: byteCountMax)
    } catch { throw Fault(cause: "the file cannot be read: \(error.cause)") }
  }

  private static func user(of directoryPath: String) -> uid_t {
    var status = stat()
    guard geteuid() == 0, stat(directoryPath, &status) == 0 else { return geteuid() }
    return status.st_uid
  }

  /// Opens a file step by step: no part of the path below the ledger may be a link, nor the file itself.
  private static func descriptor(
    _ path: String, in directoryPath: String
  ) throws(Fault) -> Int32 {
    let flags = O_CLOEXEC | O_NOFOLLOW
    if path.hasPrefix("/") {
      let file = open(path, O_RDONLY | O_NONBLOCK | flags)
      if file < 0 { throw unreadable(errno) }
      return file
    }
    var folder = open(directoryPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if folder < 0 { throw unreadable(errno) }
    let parts = path.split(separator: "/").filter { $0 != "." }
    for (index, part) in parts.enumerated() {
      let isLast = index == parts.count - 1
      let kind = isLast ? O_NONBLOCK : O_DIRECTORY
      let next = openat(folder, String(part), O_RDONLY | kind | flags)
      let code = errno
      close(folder)
      if next < 0 { throw unreadable(code) }
      folder = next
    }
    return folder
  }

  private static func unreadable(_ code: Int32) -> Fault {
    if code == ELOOP { return Fault(cause: "the file is a symbolic link; name the file itself") }
    return Fault(
      cause: "the file cannot be read: \(SmallFileError.system(SystemError(code: code)).cause)")
  }
}

// MARK: - Whom a configuration trusts, as the event that records it

extension TrustDeclared {
  /// What is in force by a configuration.
  /// - Parameter verifier: made of the configuration's `trust`.
  /// - Throws: where no client can work with an endpoint's URL.
  package init(
    _ appStore: Configuration.AppStore, _ trust: Configuration.Trust, _ verifier: ReceiptVerifier
  ) throws(VerifyReceiptOptionsError) {
    let options = appStore.clientOptions
    let receiptRoots = trust.verifierConfiguration.pinnedRoots
    self.init(
      productionHost: try options.host(of: .production),
      sandboxHost: try options.host(of: .sandbox),
      roots: Array(receiptRoots.union(trust.signedObjectRoots)),
      intermediates: verifier.configuredCertificates
        .filter { !receiptRoots.contains($0.fingerprint) }.map {
          Certificate(name: $0.name, sha256: $0.fingerprint)
        },
      localTestingSigners: Array(Set(trust.localTestingSigners)))
  }
}

extension LedgerWriter {
  /// Appends what is in force, unless it is what was recorded last. It is durable when this returns.
  /// - Returns: whether an event was appended, which is still to be folded.
  package func record(
    _ trust: TrustDeclared, after recorded: TrustDeclared?
  ) throws(LedgerError) -> Bool {
    if trust == recorded { return false }
    _ = try positions(of: submit([trust.draft]))
    return true
  }
}
