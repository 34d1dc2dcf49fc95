// Makes a backup of a ledger that may be in use: what is copied in which order, and when it is consistent.
import Base
package import Ledger

/// Makes backups.
///
/// A backup is made in a folder of another name, synced, audited, and renamed last. What a killed run left is removed by
/// the next one.
package struct LedgerBackup {
  package enum Phase: Sendable { case copying, checking }

  package var storage: any Storage = PosixStorage()
  /// Called at intervals.
  package var progress: (Phase, _ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _, _ in }
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}
  /// Called after each part of an attempt, for tests that change the ledger meanwhile.
  package var afterPart: (Part) throws -> Void = { _ in }
  package var nowMs: () -> Int64 = { Timestamp.now() }

  /// The parts of an attempt, in their order.
  package enum Part: Sendable { case small, segments, tails }

  /// An erasure that begins while a backup is made makes it begin again: each pass at most twice.
  private static let attemptCountMax = 10

  package init() {}

  /// A backup that was made.
  package struct Report {
    package var name: String
    package var manifest: BackupManifest
    /// The backup with which it shares closed segments, and their size.
    package var sharedWith: String?
    package var sharedByteCount = 0
    /// How many events still hold data that an erasure took out, and other notes of the audit.
    package var audit: AuditReport
  }

  /// Makes a backup of all events that are durable now, and of what else a ledger needs.
  ///
  /// Throws `LedgerError`, `CopyError`, and what the closures throw; then there is no new backup.
  /// - Parameter path: the folder of backups.
  package func run(_ directory: LedgerDirectory, into path: String) throws -> Report {
    let backups = try BackupFolder(path: path, storage: storage)
    let lock = try backups.folder.openLock(BackupName.lock).file
    guard try lock.lock() else {
      throw LedgerError(
        .locked, operation: BackupFolder.operation, object: path,
        cause: "another backup is being made there")
    }
    defer { lock.unlock() }
    for name in try backups.unfinishedNames() {
      try backups.folder.removeFolder(BackupName.unfinished(name))
    }
    let (name, madeAtMs) = try freeName(backups)
    let temporary = BackupName.unfinished(name)
    _ = try backups.folder.makeFolder(temporary)
    do {
      let report = try make(directory, backups, name, madeAtMs)
      try backups.folder.renameFolder(temporary, to: name)
      return report
    } catch {
      try? backups.folder.removeFolder(temporary)
      throw error
    }
  }

  /// The name of the new backup; one of the same second takes the next.
  private func freeName(_ backups: BackupFolder) throws -> (name: String, ms: Int64) {
    let nowMs = nowMs()
    var ms = nowMs
    while try backups.folder.status(BackupName.text(ms: ms)) != nil { ms += 1_000 }
    return (BackupName.text(ms: ms), nowMs)
  }

  /// The newest backup that can be read. Throws if it is of another ledger.
  private func newest(_ backups: BackupFolder, of ledger: LedgerID) throws -> Backup? {
    for name in try backups.names().reversed() {
      guard let backup = try? backups.backup(name) else { continue }
      if backup.manifest.ledger == ledger { return backup }
      throw CopyError.refused(
        object: backups.path,
        cause:
          "it holds backups of another ledger, \(backup.manifest.origin): use a folder for each")
    }
    return nil
  }

  private func make(
    _ directory: LedgerDirectory, _ backups: BackupFolder, _ name: String, _ madeAtMs: Int64
  ) throws -> Report {
    let folder = try backups.folder.folder(BackupName.unfinished(name))
    let earlier = try newest(backups, of: directory.identity.id)
    let reader = try soundReader(directory)
    var done = 0
    var total = try reader.byteCount(from: 0)
    let staging = BackupStaging(folder, earlier: earlier, checkCancelled: checkCancelled) {
      done += $0
      total = max(total, done)
      progress(.copying, done, total)
    }
    try copy(reader, to: staging)
    try staging.sync()
    let (head, audit) = try audited(folder, staging, of: name)
    let manifest = BackupManifest(
      of: directory.identity, madeAtMs: madeAtMs, head: head, files: staging.files)
    try folder.replaceFile(BackupManifest.fileName, with: manifest.bytes)
    var report = Report(name: name, manifest: manifest, audit: audit)
    report.sharedByteCount = staging.sharedByteCount
    report.sharedWith = staging.sharedByteCount > 0 ? earlier?.name : nil
    return report
  }

  private func soundReader(_ directory: LedgerDirectory) throws -> LogReader {
    let reader = try LogReader(directory, .durable)
    if let damage = reader.damage { throw damage }
    return reader
  }

  // MARK: Copying

  /// Copies until nothing has changed meanwhile but that events were appended.
  private func copy(_ reader: LogReader, to staging: BackupStaging) throws {
    for _ in 0..<Self.attemptCountMax {
      if try attempt(reader, staging) { return }
    }
    throw LedgerError(
      .inputOutput, operation: BackupFolder.operation, object: reader.directory.path,
      cause: "it was changed during every attempt; try again")
  }

  /// Copies the ledger. False if it must be copied again: an erasure or a new key has changed what was copied.
  ///
  /// In this order: `heads` counts checkpoints; checkpoints, webhooks and requests to erase are of events that the log
  /// has. Lines of an erasure come before its segments: with them, each segment may be the old or the new one, as after
  /// a crash. The events that list what a segment lost are older than it, so the log is read after the segments.
  private func attempt(_ reader: LogReader, _ staging: BackupStaging) throws -> Bool {
    let directory = reader.directory
    staging.beginAttempt()
    let identity = try identityBytes(directory)
    try staging.put(BackupManifest.identityName, identity)
    try copySmallFiles(directory, staging)
    let lines = try copyLines(directory, staging)
    try afterPart(.small)
    try copySegments(reader, staging)
    try afterPart(.segments)
    var count = 0
    while try !copyEnd(reader, staging) {
      count += 1
      if count == Self.attemptCountMax { return false }
      try copySegments(reader, staging)
    }
    try afterPart(.tails)
    let isSame = try lines == linesStamp(directory) && identity == identityBytes(directory)
    guard isSame, try lines != nil || !isAnyRewritten(reader, staging) else { return false }
    try staging.endAttempt()
    return true
  }

  private func identityBytes(_ directory: LedgerDirectory) throws(LedgerError) -> [UInt8] {
    try directory.root.openFile(Format.identityName, .readOnly).readSmall()
  }

  private static let smallByteCountMax = 64 << 20

  private func copySmallFiles(_ directory: LedgerDirectory, _ staging: BackupStaging) throws {
    // Before the checkpoints: a new one is first kept, then counted.
    for name in BackupManifest.rootNames {
      if let bytes = try content(name, directory.root) { try staging.put(name, bytes) }
    }
    for name in BackupManifest.folderNames where name != Format.logDirectoryName {
      guard let folder = try directory.folderIfPresent(name) else { continue }
      for leaf in try folder.names().sorted() where isPart(leaf, of: name) {
        try checkCancelled()
        // One that was removed meanwhile is done.
        if let bytes = try content(leaf, folder) { try staging.put("\(name)/\(leaf)", bytes) }
      }
    }
  }

  private func content(_ name: String, _ folder: Folder) throws(LedgerError) -> [UInt8]? {
    try folder.openFileIfPresent(name)?.readSmall(byteCountMax: Self.smallByteCountMax)
  }

  /// Whether a file in a folder of a ledger is part of a backup.
  private func isPart(_ name: String, of folder: String) -> Bool {
    if name.hasSuffix(Format.temporarySuffix) { return false }
    switch folder {
    case OpenWork.webhooksFolder: return OpenWork.isWebhookFile(name)
    case OpenWork.erasuresFolder: return OpenWork.isRequestFile(name)
    case CheckpointStore.directoryName: return name.hasSuffix(".txt")
    default: return name != "lock"
    }
  }

  /// Copies the redacted lines that are not in their segments yet; returns what identifies their file.
  private func copyLines(
    _ directory: LedgerDirectory, _ staging: BackupStaging
  ) throws -> FileStamp? {
    let (folder, leaf) = (OpenWork.erasuresFolder, "lines")
    guard let file = try directory.folderIfPresent(folder)?.openFileIfPresent(leaf) else {
      return nil
    }
    let stamp = FileStamp(try file.status())
    try staging.copy("\(folder)/\(leaf)", file, byteCount: stamp.byteCount)
    return stamp
  }

  private func linesStamp(_ directory: LedgerDirectory) throws(LedgerError) -> FileStamp? {
    try directory.folderIfPresent(OpenWork.erasuresFolder)?.status("lines").map { FileStamp($0) }
  }

  private static func path(ofSegment first: Position) -> String {
    "\(Format.logDirectoryName)/\(Format.segmentName(first))"
  }

  /// Copies the closed segments, also those that are closed meanwhile.
  private func copySegments(_ reader: LogReader, _ staging: BackupStaging) throws {
    var count = 0
    repeat {
      for segment in reader.closedSegments[count...] {
        try checkCancelled()
        guard let (file, stamp) = try reader.directory.segmentFile(segment.lowerBound) else {
          throw LedgerError(
            .init(
              verdict: .missing, file: Self.path(ofSegment: segment.lowerBound),
              position: segment.lowerBound), operation: BackupFolder.operation,
            cause: "the segment is missing")
        }
        try staging.putSegment(Self.path(ofSegment: segment.lowerBound), file, stamp)
      }
      count = reader.closedSegments.count
      try refresh(reader)
    } while count < reader.closedSegments.count
  }

  private func refresh(_ reader: LogReader) throws {
    try reader.refresh()
    if let damage = reader.damage { throw damage }
    try reader.syncTails()
  }

  private static let framesByteCountMax = 8 << 20

  /// Copies the whole blocks of the newest segment, and the frames after them. False if the writer has moved on.
  private func copyEnd(_ reader: LogReader, _ staging: BackupStaging) throws -> Bool {
    guard let newest = try reader.newestSegment() else { return false }
    // What a segment lost is listed by events that were there before it: they are in the view now.
    let closed = reader.closedSegments.count
    try refresh(reader)
    guard let again = try reader.newestSegment(), again.first == newest.first,
      again.fileNumber == newest.fileNumber, reader.closedSegments.count == closed
    else { return false }
    let path = Self.path(ofSegment: again.first)
    if let last = again.parts.last {
      try staging.copy(path, again.file, byteCount: last.offsetBytes + last.byteCount)
    } else if again.first == 0 {
      try staging.put(path, CopiedLogFile.emptyLog(of: reader.directory.identity.id))
    }
    return try copyTails(reader, from: again.parts.last?.end ?? again.first, staging)
  }

  /// Copies the frames from a position on. False if they are in a block by now.
  private func copyTails(
    _ reader: LogReader, from start: Position, _ staging: BackupStaging
  ) throws -> Bool {
    let size = reader.head.size
    var position = start
    var paths: [String] = []
    var tail: (of: Position, bytes: [UInt8])?
    func putTail() throws {
      if let tail, let path = paths.last { try staging.put(path, tail.bytes) }
    }
    while position < size {
      try checkCancelled()
      guard
        let frames = try reader.frames(from: position, byteCountMax: Self.framesByteCountMax),
        frames.first == position
      else {
        for path in paths { staging.withdraw(path) }
        return false
      }
      if tail?.of == frames.tail {
        tail?.bytes += frames.bytes
      } else {
        try putTail()
        tail = (frames.tail, frames.bytes)
        paths.append("\(Format.logDirectoryName)/\(Format.tailName(position))")
      }
      position = frames.end
    }
    try putTail()
    return true
  }

  /// Whether a closed segment or the newest one is no longer the file that was copied.
  private func isAnyRewritten(
    _ reader: LogReader, _ staging: BackupStaging
  ) throws(LedgerError) -> Bool {
    for segment in reader.closedSegments {
      let stamp = try reader.directory.segmentStamp(segment.lowerBound)
      if staging.isChanged(Self.path(ofSegment: segment.lowerBound), stamp) { return true }
    }
    guard let newest = try reader.newestSegment() else { return true }
    return try reader.directory.segmentStamp(newest.first)?.fileNumber != newest.fileNumber
  }

  // MARK: Checking

  /// Audits what lies on the disk.
  private func audited(
    _ folder: Folder, _ staging: BackupStaging, of name: String
  ) throws -> (LogHead, AuditReport) {
    let files = staging.files
    guard let identity = files.first(where: { $0.path == BackupManifest.identityName }) else {
      preconditionFailure("a backup has an identity")
    }
    let bytes = try folder.openFile(identity.path, .readOnly).readSmall()
    let directory = LedgerDirectory(
      unfinished: name, try LedgerIdentity(copied: bytes, path: name), folder)
    let reader = try soundReader(directory)
    let report = try BackupAudit.run(directory, head: (reader.head.size, reader.head.root)) {
      try checkCancelled()
      progress(.checking, $0, $1)
    }
    return (reader.head, report)
  }
}
