// Makes a ledger from a copy.
package import Base
package import Ledger

/// Why no ledger was made.
package enum RestoreError: Error, Sendable, CustomStringConvertible {
  /// There is nothing to restore from.
  case noCopy(store: String)
  /// The copy is not whole. All faults that were found, by position.
  case faults([CopyFault])
  /// Something that was asked for is not possible.
  case refused(object: String, cause: String)
  /// Every object is what the steps say, but the log that they make is not whole.
  case audit([AuditFinding])

  package var description: String {
    switch self {
    case .noCopy(let store): "\(store): there is no copy"
    case .faults(let faults): faults.map(\.description).joined(separator: "; ")
    case .refused(let object, let cause): "\(object): \(cause)"
    case .audit(let findings): findings.first?.cause ?? "the log is not whole"
    }
  }
}

/// A signed head that was given to compare with.
package struct GivenHead: Sendable {
  package let name: String
  package let checkpoint: Checkpoint

  package init(name: String, checkpoint: Checkpoint) {
    (self.name, self.checkpoint) = (name, checkpoint)
  }
}

/// Restores a ledger into a new directory. Repeating an interrupted restore continues it, and restoring into a ledger
/// that was restored brings it up to the copy.
package struct CopyRestore {
  /// What is being done.
  package enum Phase: Sendable { case fetching, checking }

  /// How many events to restore; nil is all.
  package var size: Int?
  /// The time until which events are restored, by when they were recorded, in epoch milliseconds; nil for all.
  package var untilMs: Int64?
  /// Whether to restore the events before the first fault, rather than none.
  package var isPartial = false
  package var threadCount = 4
  package var storage: any Storage = PosixStorage()
  /// Called from time to time, by any thread.
  package var progress: @Sendable (Phase, _ doneBytes: Int, _ totalBytes: Int) -> Void = {
    _, _, _ in
  }
  /// Throws to cancel; called between objects.
  package var checkCancelled: () throws -> Void = {}
  /// The heads to compare with, given the ledger as it will be.
  package var givenHeads: (LedgerDirectory) throws -> [GivenHead] = { _ in [] }
  /// A webhook's file for a log of so many events.
  package var boundedWebhook: ([UInt8], Int) -> [UInt8] = { bytes, _ in bytes }
  /// Removes all that was derived from events, since some of them have lost their data.
  package var forgetProjections: (LedgerDirectory) throws -> Void = { _ in }
  package var nowMs: () -> Int64 = { Timestamp.now() }

  package init() {}

  /// What was restored.
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
    /// What the audit found besides.
    package var notes: [String] = []
    package var unredactedCount = 0
    /// Redacted lines whose listing is missing.
    package var unlistedCount = 0
    /// The erasures that the restored events begin and do not finish.
    package var unfinishedErasures: [UnfinishedErasure] = []
    /// How many events the ledger held before; nil for a new one.
    package var continuedFrom: Int?
  }

  /// Restores.
  ///
  /// Throws `RestoreError`, `CopyError`, `LedgerError`, and what the closures throw; the directory is no ledger then.
  package func run(from store: PatientStore, to path: String) throws -> Report {
    if let report = try followed(store, path) { return report }
    let run = try RestoreRun(self, store, path)
    return try run.finish()
  }
}
