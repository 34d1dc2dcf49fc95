// How much of a ledger may be signed: with replication, what a copy has confirmed.
import Base
import Glibc
import Ledger
import Replication
import Server

extension OpenLedger {
  /// How long a head that is to be signed may wait for its copy.
  private static let waitMs: Int64 = 15_000
  private static let pauseMicros: UInt32 = 100_000

  /// The number of events to sign; nil if all may be signed.
  ///
  /// Throws if the copy has not confirmed them after a while.
  /// - Parameter size: the number of events wanted; nil is as many as possible.
  func confirmedSize(of size: Int?) throws -> Int? {
    // Such a ledger signs nothing, so there is nothing to wait for.
    try Standby.refuse(directory, operation: "sign checkpoint")
    guard let replication = try ConfigurationFile(directory).read().replication else { return size }
    let deadlineMs = MonotonicClock.nowMs() + Self.waitMs
    while true {
      let record = try ReplicationRecord(of: directory)
      if let record, record.step != nil, record.size >= size ?? 0 {
        guard record.size <= reader.head.size else {
          throw LedgerError(
            .init(verdict: .missing, file: "log", position: reader.head.size),
            operation: "sign checkpoint",
            cause: "the copy has confirmed \(record.size) events, but the log holds "
              + "\(reader.head.size)")
        }
        guard try reader.frontier(at: record.size).root == record.root else {
          throw LedgerError(
            .init(verdict: .tampered, file: "log", position: nil), operation: "sign checkpoint",
            cause: "its first \(record.size) events are not those that the copy confirmed")
        }
        return size ?? record.size
      }
      // Without a number, whatever is confirmed is signed: there is nothing to wait for but the first step.
      guard MonotonicClock.nowMs() < deadlineMs, !context.interruption.isRequested else {
        throw Failure(
          operation: "sign checkpoint", object: replication.target,
          cause: "the copy has confirmed \(counted(record?.size ?? 0, "event"))"
            + (size.map { " of \($0)" } ?? "") + "; 'ledgerctl status' shows how far it is behind")
      }
      usleep(Self.pauseMicros)
      try reader.refresh()
    }
  }
}
