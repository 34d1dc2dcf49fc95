// The exit codes that scripts may rely on.

/// The exit code of the process. The numbers are documented and never change.
package enum ExitCode: Int32, CaseIterable, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case partlyDone = 3
  case noLedger = 10
  case locked = 11
  case newerFormat = 12
  case standby = 13
  case corrupted = 20
  case mismatch = 21
  case interrupted = 130

  /// One line for the reference.
  package var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "failed; also an import that `--strict` refused"
    case .usage: "wrong usage; nothing was read or written"
    case .partlyDone: "done, but something was refused or caused a warning"
    case .noLedger: "there is no ledger"
    case .locked: "another process is writing to the ledger"
    case .newerFormat: "a newer version of the program wrote the ledger"
    case .standby: "the ledger was restored, or another writer has taken over: nothing was written"
    case .corrupted: "corruption or tampering was found"
    case .mismatch:
      "a projection or a report does not match the log, or data that was erased is still there"
    case .interrupted: "interrupted by a signal, after cleaning up"
    }
  }
}
