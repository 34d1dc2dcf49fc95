// A ledger's identity, the content of ledger.json, parsed strictly; and a ledger that is being restored.
import Base
import Glibc

/// A ledger's id: a random UUID (version 4).
package struct LedgerID: Sendable, Hashable, CustomStringConvertible {
  static let byteCount = UUID16.byteCount
  private let uuid: UUID16

  /// Copies an id; nil unless there are exactly 16 bytes.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard let uuid = UUID16(bytes) else { return nil }
    self.uuid = uuid
  }

  /// Makes a version 4 UUID from 16 random bytes; nil unless there are 16.
  package init?(random bytes: [UInt8]) {
    guard let uuid = UUID16(random: bytes) else { return nil }
    self.uuid = uuid
  }

  /// Reads the written form: 8-4-4-4-12 lower-case hexadecimal digits.
  package init?(_ text: String) {
    guard let uuid = UUID16(text), uuid.description == text else { return nil }
    self.uuid = uuid
  }

  func withUnsafeBytes(_ body: (UnsafeRawBufferPointer) -> Void) { uuid.withUnsafeBytes(body) }

  package var description: String { uuid.description }
}

/// The content of `ledger.json`.
package struct LedgerIdentity: Sendable, Equatable {
  /// The ledger's public name, which is also the name of its checkpoint keys.
  package let origin: String
  /// The id that every segment repeats.
  package let id: LedgerID
  /// When the ledger was created, in milliseconds since 1970.
  package let createdAtMs: Int64
  /// Verifier keys in the C2SP form `name+hash+base64`.
  package var publicKeys: [String]
  /// 2 if lines of the log may be redacted.
  package var formatVersion: Int

  package init(
    origin: String, id: LedgerID, createdAtMs: Int64, publicKeys: [String] = [],
    formatVersion: Int = Format.version
  ) {
    self.formatVersion = formatVersion
    self.origin = origin
    self.id = id
    self.createdAtMs = createdAtMs
    self.publicKeys = publicKeys
  }

  /// Whether a text is a valid origin: a C2SP key name (no white space, no `+`) that needs no escaping, of at most
  /// 255 bytes.
  package static func isValidOrigin(_ text: String) -> Bool {
    guard 1...255 ~= text.utf8.count else { return false }
    return text.unicodeScalars.allSatisfy { scalar in
      !scalar.properties.isWhitespace && scalar.properties.generalCategory != .control
        && !["+", "\"", "\\"].contains(scalar)
    }
  }

  /// Whether a new ledger may have this origin: a name without a scheme and without slashes at its ends, as C2SP
  /// requires. Ledgers created before this check keep theirs.
  package static func isNewOrigin(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return isValidOrigin(text) && bytes.first != UInt8(ascii: "/")
      && bytes.last != UInt8(ascii: "/")
      && bytes.firstRange(of: "://".utf8) == nil
  }

  /// The file's content: one line of JSON.
  var text: String {
    let keys = publicKeys.map { "\"\($0)\"" }.joined(separator: ",")
    return "{\"format_version\":\(formatVersion),\"origin\":\"\(origin)\",\"id\":\"\(id)\","
      + "\"created_at\":\"\(Timestamp.fixedText(ms: createdAtMs))\",\"public_keys\":[\(keys)]}\n"
  }

  /// Why a `ledger.json` cannot be used.
  enum Fault: Error, Equatable {
    /// A newer program wrote it, in this format version.
    case newer(Int)
    /// It does not have the form of versions 1 and 2.
    case invalid(String)
  }

  /// Reads a file's content. White space between tokens is allowed, because people edit such files. The version comes
  /// first, so that a newer file of any form is recognised as newer, not as broken.
  init(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    var scanner = IdentityScanner(bytes)
    guard scanner.consume(0x7B), scanner.string() == "format_version", scanner.consume(0x3A),
      let version = scanner.number()
    else { throw .invalid("it does not begin with a format_version") }
    if version > Format.versionWithRedactions { throw .newer(version) }
    if version < 1 { throw .invalid("there is no format version \(version)") }
    guard let origin = scanner.member("origin"), LedgerIdentity.isValidOrigin(origin)
    else { throw .invalid("origin is missing or not a valid name") }
    guard let idText = scanner.member("id"), let id = LedgerID(idText)
    else { throw .invalid("id is missing or not a UUID") }
    guard let time = scanner.member("created_at"), let createdAtMs = LedgerIdentity.time(time)
    else { throw .invalid("created_at is missing or not a time") }
    guard let publicKeys = scanner.listMember("public_keys")
    else { throw .invalid("public_keys is missing or not a list of strings") }
    guard scanner.consume(0x7D), scanner.isAtEnd else {
      throw .invalid("unexpected bytes follow it")
    }
    self.init(
      origin: origin, id: id, createdAtMs: createdAtMs, publicKeys: publicKeys,
      formatVersion: version)
  }

  private static func time(_ text: String) -> Int64? {
    Array(text.utf8).withUnsafeBytes { Timestamp.parseFixed($0) }
  }
}

/// Scans the tokens of `ledger.json`: strings without escapes, a number, punctuation.
private struct IdentityScanner {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  private mutating func skipSpace() {
    while offset < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[offset]) { offset += 1 }
  }

  mutating func consume(_ byte: UInt8) -> Bool {
    skipSpace()
    guard offset < bytes.count, bytes[offset] == byte else { return false }
    offset += 1
    return true
  }

  mutating func string() -> String? {
    guard consume(0x22) else { return nil }
    let start = offset
    while offset < bytes.count, bytes[offset] != 0x22 {
      if bytes[offset] < 0x20 || bytes[offset] == 0x5C { return nil }
      offset += 1
    }
    guard offset < bytes.count else { return nil }
    defer { offset += 1 }
    return String(validating: bytes[start..<offset], as: UTF8.self)
  }

  mutating func number() -> Int? {
    skipSpace()
    let start = offset
    while offset < bytes.count, 0x30...0x39 ~= bytes[offset] { offset += 1 }
    return Int(String(decoding: bytes[start..<offset], as: UTF8.self))
  }

  mutating func member(_ name: String) -> String? {
    guard consume(0x2C), string() == name, consume(0x3A) else { return nil }
    return string()
  }

  mutating func listMember(_ name: String) -> [String]? {
    guard consume(0x2C), string() == name, consume(0x3A), consume(0x5B) else { return nil }
    if consume(0x5D) { return [] }
    var values: [String] = []
    repeat {
      guard let value = string() else { return nil }
      values.append(value)
    } while consume(0x2C)
    return consume(0x5D) ? values : nil
  }

  var isAtEnd: Bool {
    mutating get {
      skipSpace()
      return offset == bytes.count
    }
  }
}

// MARK: - A ledger being restored

/// A directory that becomes a ledger when `finish` is called: everything else is in place before `ledger.json`. Until
/// then no command accepts it as a ledger. A file marks it from the start, so that the remains of an interrupted restore
/// can be told from anything else: the note (`Standby`) of a ledger from a copy, the manifest of one from a backup.
package struct UnfinishedLedger {
  package static let operation = "restore"

  package let path: String
  /// The content of the coming `ledger.json`.
  package let identityBytes: [UInt8]
  /// The ledger as it will be.
  package let directory: LedgerDirectory
  package let log: Folder

  /// Makes or opens the directory of a ledger that is restored from a copy. It must be new, empty, or left by an
  /// interrupted restore.
  ///
  /// Throws `invalidInput` for any other directory, `corruption` if the identity is not one, and `newerFormat`.
  package init(
    path: String, identity bytes: [UInt8], note: Standby,
    storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    try self.init(path: path, identity: bytes, storage, mark: Standby.fileName) {
      directory throws(LedgerError) in
      if try Standby(of: directory) != nil { return false }
      try note.write(to: directory)
      return true
    }
  }

  /// As above, for a ledger that is restored from a backup.
  /// - Parameters:
  ///   - mark: the name of the file that marks the directory.
  ///   - content: its content.
  package init(
    path: String, identity bytes: [UInt8], mark: String, content: [UInt8],
    storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    try self.init(path: path, identity: bytes, storage, mark: mark) {
      directory throws(LedgerError) in
      try directory.replaceFile(mark, with: content)
      return true
    }
  }

  /// - Parameter setMark: marks the directory; returns whether it was not marked before.
  private init(
    path: String, identity bytes: [UInt8], _ storage: any Storage, mark: String,
    _ setMark: (LedgerDirectory) throws(LedgerError) -> Bool
  ) throws(LedgerError) {
    let identity = try LedgerIdentity(copied: bytes, path: path)
    let root = try Self.makeRoot(path, storage)
    try Self.refuseUnlessOurs(root, path, mark: mark)
    let directory = LedgerDirectory(unfinished: path, identity, root)
    if try setMark(directory) { try root.parent().sync() }
    (self.path, identityBytes, self.directory) = (path, bytes, directory)
    log = try Self.folder(Format.logDirectoryName, in: root)
  }

  /// A folder of the ledger; created if there is none.
  package func folder(_ name: String) throws(LedgerError) -> Folder {
    name == Format.logDirectoryName ? log : try Self.folder(name, in: directory.root)
  }

  private static func folder(_ name: String, in root: Folder) throws(LedgerError) -> Folder {
    let isNew = try root.makeFolder(name)
    let folder = try root.folder(name)
    if isNew {
      try root.giveNewFolderToOwner(folder)
      try root.sync()
    }
    return folder
  }

  /// Makes the directory a ledger, durably.
  package func finish(note: Standby) throws(LedgerError) -> LedgerDirectory {
    try log.sync()
    try note.write(to: directory)
    return try finish()
  }

  /// As above, for a ledger that is restored from a backup; removes the mark, which changes nothing in a ledger.
  package func finish(removing mark: String) throws(LedgerError) -> LedgerDirectory {
    try log.sync()
    let ledger = try finish()
    try directory.root.unlink(mark)
    try directory.root.sync()
    return ledger
  }

  private func finish() throws(LedgerError) -> LedgerDirectory {
    if try directory.root.status(Format.lockName) == nil {
      try directory.root.replaceFile(Format.lockName, with: [])
    }
    try directory.root.replaceFile(Format.identityName, with: identityBytes)
    try directory.root.parent().sync()
    return try directory.reread()
  }

  // MARK: Directory

  private static func makeRoot(
    _ path: String, _ storage: any Storage
  ) throws(LedgerError) -> Folder {
    _ = try retrying("create directory", path) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.makeDirectory(path, permissions: Format.directoryPermissions)
      } catch { if error.code != EEXIST { throw error } }
    }
    let root = try Folder(path: path, storage: storage)
    try root.refuseIfWritableByOthers(operation)
    return root
  }

  private static func refuseUnlessOurs(
    _ root: Folder, _ path: String, mark: String
  ) throws(LedgerError) {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(.invalidInput, operation: operation, object: path, cause: cause)
    }
    let names = try root.names()
    if names.contains(Format.identityName) { throw refusal("it is a ledger already") }
    let known: Set<String> =
      names.contains(mark)
      ? [
        Format.logDirectoryName, CheckpointStore.directoryName, Format.lockName,
        SignedHeads.fileName, Standby.fileName, Format.identityName, "webhooks",
        RedactionFile.directoryName, mark, KeyStore.directoryName, "config.json",
      ] : [mark]
    let isKnown = names.allSatisfy { name in
      known.contains(name)
        || name.hasSuffix(Format.temporarySuffix)
          && known.contains(String(name.dropLast(Format.temporarySuffix.count)))
    }
    guard isKnown else { throw refusal("the directory is not empty") }
    try root.changePermissions(Format.directoryPermissions)
  }
}

extension LedgerIdentity {
  /// Reads a copy of a `ledger.json`.
  /// - Parameter path: for errors.
  package init(copied bytes: [UInt8], path: String) throws(LedgerError) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(Fault) in try LedgerIdentity(bytes) }
    }
    do throws(Fault) { self = try result.get() } catch {
      switch error {
      case .newer(let version):
        throw LedgerError(
          .newerFormat, operation: UnfinishedLedger.operation, object: path,
          cause: "the copy has format version \(version); this program knows up to "
            + "\(Format.versionWithRedactions)")
      case .invalid(let cause):
        throw LedgerError(
          .init(verdict: .corrupt, file: Format.identityName, position: nil),
          operation: UnfinishedLedger.operation, cause: cause)
      }
    }
  }
}
