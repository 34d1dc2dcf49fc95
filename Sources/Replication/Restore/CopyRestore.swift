// Restores a ledger from a copy.
package import Base
package import Ledger

/// A signed head to compare the restored ledger with.
package struct GivenHead: Sendable {
  package let name: String
  package let checkpoint: Checkpoint

  package init(name: String, checkpoint: Checkpoint) {
    (self.name, self.checkpoint) = (name, checkpoint)
  }
}

/// Restores a ledger into a new directory. Running it again continues an interrupted restore, and brings a restored
/// ledger up to date with the copy.
package struct CopyRestore {
  /// The current phase.
  package enum Phase: Sendable { case fetching, checking }

  /// How many events to restore; nil for all.
  package var size: Int?
  /// Restores events recorded until this time, in epoch milliseconds; nil for all.
  package var untilMs: Int64?
  /// Whether to restore the events before the first fault instead of failing.
  package var isPartial = false
  package var threadCount = 4
  package var storage: any Storage = PosixStorage()
  /// Called at intervals, by any thread.
  package var progress: @Sendable (Phase, _ doneBytes: Int, _ totalBytes: Int) -> Void = {
    _, _, _ in
  }
  /// Throws to cancel; called between objects.
  package var checkCancelled: () throws -> Void = {}
  /// The heads to compare with, for the restored ledger.
  package var givenHeads: (LedgerDirectory) throws -> [GivenHead] = { _ in [] }
  /// Adjusts a webhook's file to a log of this many events.
  package var boundedWebhook: ([UInt8], Int) -> [UInt8] = { bytes, _ in bytes }
  /// Removes all that was derived from events, because some of them have lost their data.
  package var forgetProjections: (LedgerDirectory) throws -> Void = { _ in }
  package var nowMs: () -> Int64 = { Timestamp.now() }

  package init() {}

  /// The result of a restore.
  package struct Report: Sendable {
    /// The step whose state was restored.
    package var step: Step
    /// How many events the ledger holds, and their root.
    package var size: Int
    package var root: SHA256Digest
    package var checkpointCount = 0
    package var fetched = FetchCounts()
    /// What was missing or damaged.
    package var missing: [CopyFault] = []
    /// Further notes of the audit.
    package var notes: [String] = []
    package var unredactedCount = 0
    /// How many redacted lines are not listed by any event.
    package var unlistedCount = 0
    /// The erasures that the restored events begin and do not finish.
    package var unfinishedErasures: [UnfinishedErasure] = []
    /// How many events the ledger held before; nil for a new one.
    package var continuedFrom: Int?
  }

  /// Restores.
  ///
  /// Throws `CopyError`, `LedgerError`, and what the closures throw; the directory is then not a
  /// ledger.
  package func run(from store: RetryingStore, to path: String) throws -> Report {
    if let report = try followed(store, path) { return report }
    let run = try RestoreRun(self, store, path)
    return try run.finish()
  }
}

// MARK: - Installing fetched files

/// Gives fetched files their names in a ledger's folders, and cuts the last one at the end of the history.
struct CopyInstall {
  let log: Folder
  let checkpoints: Folder?
  let ledger: LedgerID

  /// Puts the files of a plan in place, by position; files that are in place already stay. Afterwards the log has no
  /// other segments or tails.
  /// - Parameter without: sizes of checkpoints that were not fetched.
  func install(_ plan: CopyPlan, without excluded: Set<Int> = []) throws(LedgerError) {
    var names: Set<String> = []
    let cutFile = plan.cutFile
    for file in plan.logFiles where file != cutFile {
      try putInPlace(file, in: log)
      names.insert(file.name)
    }
    if let cutFile { names.formUnion(try cut(cutFile, at: plan.size)) }
    if !names.contains(where: { Format.segmentFirst($0) != nil }) {
      let name = Format.segmentName(0)
      try log.replaceFile(name, with: CopiedLogFile.emptyLog(of: ledger))
      names.insert(name)
    }
    try removeOthers(than: names)
    for file in plan.files where file.kind == .checkpoint && !excluded.contains(file.first) {
      if let checkpoints { try putInPlace(file, in: checkpoints) }
    }
    // Fetched files that turned out not to be needed.
    for name in try checkpoints?.names() ?? [] where name.hasSuffix(Format.temporarySuffix) {
      try checkpoints?.unlink(name)
    }
    try log.sync()
    try checkpoints?.sync()
  }

  private func putInPlace(_ file: CopyFile, in folder: Folder) throws(LedgerError) {
    let temporary = file.name + Format.temporarySuffix
    // Without it, the file itself was found to be complete.
    guard try folder.status(temporary) != nil else { return }
    let handle = try folder.openFile(temporary, .readOnly)
    try handle.changePermissions(file.permissions)
    // It was synced when its last piece arrived.
    try folder.rename(temporary, to: file.name, of: handle)
  }

  private func removeOthers(than names: Set<String>) throws(LedgerError) {
    for name in try log.names() where !names.contains(name) {
      let isOfLog =
        Format.segmentFirst(name) != nil || Format.tailFirst(name) != nil
        || name.hasSuffix(Format.temporarySuffix)
      if isOfLog { try log.unlink(name) }
    }
  }

  /// Cuts the last file; returns the names of the files that are then in place.
  private func cut(_ file: CopyFile, at size: Position) throws(LedgerError) -> [String] {
    let temporary = file.name + Format.temporarySuffix
    if try log.status(temporary) == nil {
      // An earlier run installed the whole file; a closed segment is read-only.
      let whole = try log.openFile(file.name, .readOnly)
      try whole.changePermissions(Format.filePermissions)
      try log.rename(file.name, to: temporary, of: whole)
    }
    let handle = try log.openFile(temporary, .readWrite)
    let isSegment = file.kind != .tail
    let copied = CopiedLogFile(
      isSegment ? .segment : .tail, handle, first: file.first, of: ledger)
    let rest = try copied.cut(before: size)
    var names: [String] = []
    if let rest {
      let name = Format.tailName(rest.first)
      try log.replaceFile(name, with: rest.frames)
      names.append(name)
    }
    if isSegment, rest?.first == file.first, file.first > 0 {
      // No block remains, and the log begins in another segment.
      try log.unlink(temporary)
    } else {
      try handle.changePermissions(Format.filePermissions)
      try log.putInPlace(handle, temporary, as: file.name)
      names.append(file.name)
    }
    return names
  }
}
