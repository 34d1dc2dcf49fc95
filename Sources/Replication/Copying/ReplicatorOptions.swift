// How replication behaves, and whom it tells.
import Base
package import Ledger
package import ObjectStore

/// The options of a replicator. The times are in milliseconds.
package struct ReplicatorOptions: Sendable {
  /// Events wait for at most this long before they are in a step, if the store answers.
  package var delayMs: Int64 = 2_000
  /// A step is made at once when this many bytes wait.
  package var waitingByteCount = 1 << 20
  /// The most bytes of frames in a step, unless a single frame is larger.
  package var stepByteCount = 8 << 20
  /// How often the log is looked at.
  package var pollMs: Int64 = 250
  /// How often segments, checkpoints and the identity are compared with what was copied.
  package var checkMs: Int64 = 5_000
  /// How often open work is stored at most, unless somebody waits for it.
  package var workMs: Int64 = 10_000
  /// How long deletions wait after one has failed.
  package var deletionPauseMs: Int64 = 60_000
  /// How often all objects are listed, to delete what no step names.
  package var sweepMs: Int64 = 24 * 3_600_000
  /// At least every step of this number after a complete one is complete.
  package var stepsBetweenComplete = CopyLayout.stepsBetweenCompleteMax
  /// How many threads store objects and delete them.
  package var workerCount = 2
  /// Whether the store does what a copy needs, tried before anything is written to it.
  package var probe: @Sendable (any ObjectStore) throws(StoreProbe.Failure) -> Void = {
    store throws(StoreProbe.Failure) in try StoreProbe.check(store)
  }
  /// Takes a message for the log: one line, when something changes.
  package var notice: @Sendable (String) -> Void = { _ in }
  /// Called when another writer has taken over, after the note about it was written: nothing may be appended any more.
  package var onFenced: @Sendable (LedgerError) -> Void = { _ in }
  /// Waits between attempts are at most this long.
  package var retryMsMax = 30_000

  package init() {}
}
