// The exit codes: what a script may rely on.

/// What the process says to whoever started it. The numbers are documented and never change.
enum ExitCode: Int32, CaseIterable, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case partlyDone = 3
  case noLedger = 10
  case locked = 11
  case newerFormat = 12
  case corrupted = 20
  case mismatch = 21
  case interrupted = 130

  /// One line for the reference.
  var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "failed; also what `--strict` refused"
    case .usage: "wrong use: nothing was read or written"
    case .partlyDone: "done, with something refused or warned about"
    case .noLedger: "there is no ledger"
    case .locked: "another process is writing to the ledger"
    case .newerFormat: "the ledger was written by a newer version"
    case .corrupted: "corruption or tampering was found"
    case .mismatch: "a projection or a report does not match the log"
    case .interrupted: "interrupted by a signal, after tidying up"
    }
  }
}
