// Lets a ledger take over a copy: it holds all that the copy holds, and the next step is its own.
package import Base
package import Ledger
import ObjectStore

/// Why a ledger can't take over.
package enum PromotionError: Error, Sendable, Equatable, CustomStringConvertible {
  case noCopy(store: String)
  /// The copy is of another ledger.
  case otherLedger(store: String)
  /// The ledger holds events that the copy has not.
  case diverged(store: String, local: Int, copied: Int)
  /// Another ledger has taken over meanwhile.
  case overtaken(step: Int, epoch: Int)

  package var description: String {
    switch self {
    case .noCopy(let store): "\(store): there is no copy"
    case .otherLedger(let store): "\(store): the copy is of another ledger"
    case .diverged(let store, let local, let copied):
      local > copied
        ? "this ledger holds \(local) events, but the copy in \(store) holds \(copied): this ledger holds "
          + "events that the copy has not"
        : "this ledger holds events that the copy in \(store) has not"
    case .overtaken(let step, let epoch):
      "another ledger has taken over meanwhile, with step \(step), epoch \(epoch)"
    }
  }
}

/// Takes over a copy for a ledger. Interrupted at any place, it can be repeated.
package struct Promotion {
  package var threadCount = 4
  package var progress: @Sendable (_ doneBytes: Int, _ totalBytes: Int) -> Void = { _, _ in }
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}
  /// A webhook's file for a log of so many events.
  package var boundedWebhook: ([UInt8], Int) -> [UInt8] = { bytes, _ in bytes }
  package var newWriter: () -> UUID16 = { .random() }
  package var nowMs: () -> Int64 = { Timestamp.now() }

  package init() {}

  /// What was taken over.
  package struct Report: Sendable {
    /// Whether this ledger wrote the copy before; nothing was done.
    package var wasOwner = false
    /// The step that began the epoch.
    package var step: Step
    /// The last step before it.
    package var previous: Step
    /// How many events the ledger held before.
    package var localSize: Int
    package var fetched = FetchCounts()
    /// The erasures that the former writer began and did not finish.
    package var unfinishedErasures: [UnfinishedErasure] = []
  }

  /// Takes over.
  ///
  /// Throws `PromotionError`, `RestoreError` if the copy is not whole, `CopyError` and `LedgerError`; the ledger then
  /// stays as it was, or on standby.
  package func run(_ directory: LedgerDirectory, _ store: PatientStore) throws -> Report {
    let turn = try ReplicationTurn(directory)
    defer { turn.end() }
    return try PromotionRun(self, directory, store).run()
  }
}

/// The right to replicate a ledger: one process at a time has it.
struct ReplicationTurn {
  private static let fileName = "lock"
  private let file: StorageFile

  init(_ directory: LedgerDirectory) throws(LedgerError) {
    let isNew = try directory.folderIfPresent(ReplicationRecord.folderName) == nil
    let folder = try directory.root.madeFolder(ReplicationRecord.folderName)
    if isNew {
      try directory.root.giveNewFolderToOwner(folder)
      try directory.root.sync()
    }
    let (file, isNewFile) = try folder.openLock(Self.fileName)
    if isNewFile { try folder.giveNewFileToOwner(file) }
    guard try file.lock() else {
      throw LedgerError(
        .locked, operation: "replicate", object: directory.path,
        cause: "another process replicates this ledger")
    }
    self.file = file
  }

  func end() { file.unlock() }
}
