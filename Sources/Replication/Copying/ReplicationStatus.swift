// The state of replication, for `status`, metrics and messages.
package import Base
package import Ledger

/// The state of replication at a moment.
package struct ReplicationStatus: Sendable, Equatable {
  package enum Mode: String, Sendable {
    /// The copy has not been read yet.
    case opening
    /// Steps are being created.
    case copying
    /// Another writer has taken over.
    case fenced
    /// What the store holds can't be continued by this ledger, or the store can't be used at all.
    case refused
    case stopped
  }

  package var mode = Mode.opening
  /// The target without credentials, such as `s3://bucket/prefix`.
  package var target: String
  /// The epoch of the ledger's record; 0 before there is one.
  package var epoch = 0
  /// The newest confirmed step; nil before the first.
  package var step: Int?
  /// How many events the copy holds.
  package var confirmedSize = 0
  /// How many events are certain to be on disk.
  package var size = 0
  /// Bytes of the log that the copy does not hold yet, roughly.
  package var lagBytes = 0
  /// When the oldest event that is not confirmed was recorded, in epoch milliseconds; nil if all are.
  package var oldestUnconfirmedAtMs: Int64?
  /// The current failure; nil if there is none.
  package var error: String?
  /// Since when the store has been unavailable, in epoch milliseconds; nil if it is available.
  package var unreachableSinceMs: Int64?
  /// How many replaced objects and frames are not deleted yet.
  package var replacedCount = 0
  /// How many objects and steps the copy is known to lack now, and how many were found missing or wrong since the
  /// start.
  package var missingCount = 0
  package var lostCount = 0
  /// When the copy was last found complete, in epoch milliseconds; nil before that.
  package var wholeAtMs: Int64?
  /// How many objects were read back on request, and of how many bytes.
  package var verifiedCount = 0
  package var verifiedByteCount = 0
  /// How many steps this process has created, and how many bytes it has stored.
  package var stepCount = 0
  package var storedObjectCount = 0
  package var storedByteCount = 0
  /// Why replication has ended; nil while it runs, and after an ordinary stop.
  package var ending: ReplicationEnding?

  package init(target: String) { self.target = target }

  /// How many events the copy does not hold yet.
  package var lagCount: Int { max(0, size - confirmedSize) }

  /// How long the oldest unconfirmed event has waited, in milliseconds.
  package func lagMs(nowMs: Int64 = Timestamp.now()) -> Int64 {
    oldestUnconfirmedAtMs.map { max(0, nowMs - $0) } ?? 0
  }
}

/// Why replication ended by itself. An operator must decide what happens next.
package enum ReplicationEnding: Error, Sendable, Equatable, CustomStringConvertible {
  /// Another writer has taken over.
  case fenced(by: ForeignStep)
  /// The store can't be used. A sentence without its full stop.
  case refused(String)
  /// The copy's history differs from this disk's: appending here would create a second history. A sentence without its
  /// full stop.
  case contradicted(String)

  /// The step of another writer that was found.
  package struct ForeignStep: Sendable, Equatable {
    package let number: Int
    package let epoch: Int
    package let writer: UUID16
    /// When it was created, in epoch milliseconds.
    package let atMs: Int64

    package init(_ step: Step) {
      (number, epoch, writer, atMs) = (step.number, step.epoch, step.writer, step.atMs)
    }
  }

  package var description: String {
    switch self {
    case .fenced(let step):
      "another writer has taken over with step \(step.number), epoch \(step.epoch), at "
        + Timestamp.text(ms: step.atMs)
    case .refused(let cause), .contradicted(let cause): cause
    }
  }

  /// The error with which appends fail.
  package func ledgerError(operation: String, object: String) -> LedgerError {
    switch self {
    case .fenced:
      LedgerError(.standby, operation: operation, object: object, cause: description)
    case .refused, .contradicted:
      LedgerError(.unconfirmed, operation: operation, object: object, cause: description)
    }
  }
}
