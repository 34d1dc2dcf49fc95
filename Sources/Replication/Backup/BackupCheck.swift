// Checks a backup: every file against the manifest, then the log, its checkpoints and heads.
import Base
import Ledger

/// The audit of the log of a backup, or of a ledger restored from one.
enum BackupAudit {
  /// Throws `CopyError.audit` if anything is not as it should be.
  /// - Parameters:
  ///   - head: how many events the log must have, and their root.
  ///   - given: further heads that the log must begin with.
  static func run(
    _ directory: LedgerDirectory, head: (size: Int, root: SHA256Digest), given: [GivenHead] = [],
    progress: (Int, Int) throws -> Void
  ) throws -> AuditReport {
    let store = CheckpointStore(directory)
    let heads = try store.signedHeads()
    let sizes = try store.sizes()
    let wanted =
      sizes + [head.size] + given.map(\.checkpoint.size) + (heads.map { [$0.size] } ?? [])
    var report = try LogAudit(directory, rootsAt: wanted).run(progress: progress)
    report.check(store, sizes: sizes)
    if let heads { report.check(heads, name: SignedHeads.fileName, keptCount: sizes.count) }
    for head in given { report.check(head.checkpoint, name: head.name) }
    if report.isWhole, report.size != head.size || report.roots[head.size] != head.root {
      report.add(
        AuditFinding(
          .init(verdict: .tampered, file: Format.logDirectoryName, position: report.size),
          cause: "its events are not the \(head.size) of the manifest"))
    }
    if report.isWhole { return report }
    throw CopyError.audit(report.findings)
  }
}

/// Checks a backup.
package struct BackupCheck {
  /// Called at intervals.
  package var progress: (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in }
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}

  package init() {}

  /// What is wrong with a backup; empty if it can be restored.
  package func faults(of backup: Backup) throws -> [CopyFault] {
    var faults = try backup.faultsOfNames()
    // Each file is read, then the log once more.
    let total = 2 * backup.manifest.byteCount
    var done = 0
    var identity: [UInt8] = []
    for file in backup.manifest.files {
      let fault = try backup.read(file, checkCancelled: checkCancelled) { bytes, _ in
        done += bytes.count
        progress(done, total)
        if file.path == BackupManifest.identityName { identity += bytes }
      }
      if let fault { faults.append(fault) }
    }
    if !faults.isEmpty { return faults.sorted { $0.object < $1.object } }
    let directory = LedgerDirectory(
      unfinished: backup.name, try LedgerIdentity(copied: identity, path: backup.name),
      backup.folder)
    do {
      _ = try BackupAudit.run(directory, head: (backup.manifest.size, backup.manifest.root)) {
        read, _ in
        try checkCancelled()
        progress(done + read, total)
      }
      return []
    } catch CopyError.audit(let findings) {
      return findings.map {
        CopyFault(
          object: "\(backup.name)/\($0.damage.file)",
          cause: "\($0.damage.verdict.rawValue): \($0.cause)")
      }
    }
  }
}

// MARK: - Listing

/// What lies in a folder of backups. Files are examined, not read.
package struct BackupListing {
  package struct Entry {
    package let name: String
    /// Nil if the manifest is missing or damaged.
    package let manifest: BackupManifest?
    /// What is wrong: nil if all files are there with their sizes.
    package let fault: CopyFault?
    /// The size of files that only this backup holds: what its removal would free.
    package fileprivate(set) var ownByteCount = 0
  }

  /// Oldest first.
  package private(set) var entries: [Entry] = []
  /// The names of backups that were begun and not finished.
  package let unfinished: [String]

  package init(_ backups: BackupFolder) throws {
    unfinished = try backups.unfinishedNames()
    var users: [FileID: Int] = [:]
    var files: [[(id: FileID, byteCount: Int)]] = []
    for name in try backups.names() {
      let backup: Backup
      do { backup = try backups.backup(name) } catch {
        guard case .faults(let faults) = error else { throw error }
        entries.append(Entry(name: name, manifest: nil, fault: faults.first))
        files.append([])
        continue
      }
      let fault = backup.manifest.files.lazy.compactMap { backup.faultOfSize($0) }.first
      entries.append(Entry(name: name, manifest: backup.manifest, fault: fault))
      var found: [(id: FileID, byteCount: Int)] = []
      for file in backup.manifest.files {
        guard let status = (try? backup.status(file.path)) ?? nil else { continue }
        found.append((FileID(status), status.sizeBytes))
        users[FileID(status), default: 0] += 1
      }
      files.append(found)
    }
    for index in entries.indices {
      entries[index].ownByteCount = files[index].reduce(0) {
        $0 + (users[$1.id] == 1 ? $1.byteCount : 0)
      }
    }
  }

  /// Tells files apart, whatever their names.
  private struct FileID: Hashable {
    let device: UInt64
    let number: UInt64

    init(_ status: FileStatus) { (device, number) = (status.device, status.fileNumber) }
  }
}
