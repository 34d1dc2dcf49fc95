// What a backup holds: its name, and the manifest with the size and SHA-256 of each file.
package import Base
package import Ledger

/// The names in a folder of backups.
package enum BackupName {
  private static let unfinishedStart = "."
  private static let unfinishedEnd = ".partial"
  static let lock = ".lock"

  /// The name of a backup made at a time: that time in UTC, to the second.
  static func text(ms: Int64) -> String {
    Timestamp.text(ms: ms - ms % 1000).replacing(".000Z", with: "Z").replacing(":", with: "")
  }

  /// Whether a backup can have this name.
  package static func isOne(_ name: String) -> Bool {
    let digits = Array(name)
    guard digits.count == 18 else { return false }
    let time = "\(String(digits[..<13])):\(String(digits[13..<15])):\(String(digits[15...]))"
    return (try? Timestamp.parse(time)).map { text(ms: $0) == name } ?? false
  }

  /// The name of a backup that is being made.
  static func unfinished(_ name: String) -> String { unfinishedStart + name + unfinishedEnd }

  /// The name that an unfinished backup would have got; nil for any other name.
  static func ofUnfinished(_ name: String) -> String? {
    guard name.hasPrefix(unfinishedStart), name.hasSuffix(unfinishedEnd) else { return nil }
    let rest = name.dropFirst(unfinishedStart.count).dropLast(unfinishedEnd.count)
    return isOne(String(rest)) ? String(rest) : nil
  }
}

/// The file `backup.json` of a backup.
package struct BackupManifest: Sendable, Equatable {
  /// One file of the backup.
  package struct File: Sendable, Equatable {
    /// The path in the backup: a name, or a folder and a name.
    package let path: String
    package let byteCount: Int
    package let sha256: SHA256Digest
  }

  package static let fileName = "backup.json"
  private static let version = 1
  static let byteCountMax = 1 << 30
  /// More than any disk holds: sums can't overflow.
  private static let totalByteCountMax = 1 << 60

  /// The content of `ledger.json`. Under this name, no command takes the backup for a ledger and writes into it.
  static let identityName = "identity.json"
  /// The other files in a backup's own folder, as in a ledger's.
  static let rootNames = ["config.json", SignedHeads.fileName, Standby.fileName]
  /// Its folders, as in a ledger.
  static let folderNames = [
    Format.logDirectoryName, CheckpointStore.directoryName, "keys", OpenWork.webhooksFolder,
    OpenWork.erasuresFolder,
  ]

  /// The ledger's id.
  package let ledger: LedgerID
  package let origin: String
  package let madeAtMs: Int64
  /// How many events the backup holds, their root, and the time of the newest; 0 if there is none.
  package let size: Int
  package let root: SHA256Digest
  package let newestEventAtMs: Int64
  /// By path.
  package let files: [File]

  package var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

  init(of identity: LedgerIdentity, madeAtMs: Int64, head: LogHead, files: [File]) {
    (ledger, origin) = (identity.id, identity.origin)
    self.madeAtMs = madeAtMs
    (size, root, newestEventAtMs) = (head.size, head.root, head.lastEventAtMs)
    self.files = files.sorted { $0.path < $1.path }
  }

  // MARK: Bytes

  /// One line of JSON. Its last member is the SHA-256 of all before that member.
  var bytes: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("version", Self.version)
    writer.member("ledger", ledger.description)
    writer.member("origin", origin)
    writer.member("made_at", Timestamp.text(ms: madeAtMs))
    writer.member("events", size)
    writer.member("root", Base64.text(root.bytes))
    writer.member("newest_event_at", Timestamp.text(ms: newestEventAtMs))
    writer.key("files")
    writer.beginArray()
    for file in files {
      writer.beginObject()
      writer.member("path", file.path)
      writer.member("bytes", file.byteCount)
      writer.member("sha256", file.sha256.hex)
      writer.endObject()
    }
    writer.endArray()
    let digest = writer.bytes.withUnsafeBytes { SHA256.hash($0) }
    writer.member("sha256", digest.hex)
    writer.endObject()
    return writer.bytes + [0x0A]
  }

  /// Nil unless this program would write exactly these bytes.
  init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(bytes), value.count("version") == Self.version,
      let ledger = value["ledger"]?.stringValue.flatMap({ LedgerID($0) }),
      let origin = value["origin"]?.stringValue,
      let madeAtMs = Self.time(value["made_at"]), let size = value.count("events"),
      let root = value.root("root"), let newestEventAtMs = Self.time(value["newest_event_at"]),
      let entries = value["files"]?.arrayValue
    else { return nil }
    var files: [File] = []
    var total = 0
    for entry in entries {
      guard let path = entry["path"]?.stringValue, Self.isPath(path),
        files.last.map({ $0.path < path }) ?? true, let byteCount = entry.count("bytes"),
        let hex = entry["sha256"]?.stringValue,
        let sha256 = Array(hex.utf8).withUnsafeBytes({ SHA256Digest(hex: $0) }),
        byteCount <= Self.totalByteCountMax - total
      else { return nil }
      total += byteCount
      files.append(File(path: path, byteCount: byteCount, sha256: sha256))
    }
    (self.ledger, self.origin, self.madeAtMs) = (ledger, origin, madeAtMs)
    (self.size, self.root, self.newestEventAtMs) = (size, root, newestEventAtMs)
    self.files = files
    guard self.bytes == bytes, files.contains(where: { $0.path == Self.identityName }) else {
      return nil
    }
  }

  private static func time(_ value: JSONValue?) -> Int64? {
    value?.stringValue.flatMap { try? Timestamp.parse($0) }
  }

  /// Whether a path leads to a place that a backup has.
  private static func isPath(_ path: String) -> Bool {
    guard let slash = path.firstIndex(of: "/") else {
      return path == identityName || rootNames.contains(path)
    }
    let leaf = path[path.index(after: slash)...]
    return folderNames.contains(String(path[..<slash])) && !leaf.isEmpty && leaf != "."
      && leaf != ".." && !leaf.utf8.contains(0x2F) && !leaf.utf8.contains(0)
  }
}
