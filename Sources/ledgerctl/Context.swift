// What a command uses of its process: output, terminal, signals, environment; its ledger and its snapshots.
import Base
import Glibc
import Ledger

/// The surroundings of one run of the program.
struct Context {
  /// Standard output. A command need not flush it: the program does so at the end.
  let output: Output
  /// Standard error.
  let diagnostics: Diagnostics
  let terminal: Terminal
  let errorTerminal: Terminal
  let interruption: Interruption
  let snapshotUse = SnapshotUse()
  let ledgers = OpenedLedgers()
  let owner = LedgerOwner()

  /// - Parameter arguments: the command line, whose secrets must not appear in any message.
  init(_ arguments: [String], interruption: Interruption) {
    // These also hold paths, which errors quote.
    let variables = ["LEDGER_DIR", "TMPDIR"].compactMap(environmentValue)
    output = Output(descriptor: STDOUT_FILENO, name: "standard output")
    diagnostics = Diagnostics(hidden: HiddenArguments(arguments + variables))
    terminal = Terminal(descriptor: STDOUT_FILENO)
    errorTerminal = Terminal(descriptor: STDERR_FILENO)
    self.interruption = interruption
  }

  /// The directory of the ledger that the command works on. Opening it shows whether it is a ledger; the current
  /// directory is used only if it is one.
  func ledgerPath(_ invocation: Invocation) throws(Failure) -> String {
    guard let path = ledgerPathIfAny(given: invocation.ledgerPath) else {
      throw Failure(
        .noLedger, operation: "find ledger", object: "current directory",
        cause: "it is not a ledger; give --ledger DIR or set LEDGER_DIR")
    }
    return path
  }

  /// Opens the ledger that the command works on.
  func openLedger(_ invocation: Invocation) throws -> LedgerDirectory {
    try openLedger(path: try ledgerPath(invocation))
  }

  func openLedger(path: String) throws -> LedgerDirectory {
    let ledger = try LedgerDirectory.open(path: path)
    // Of the open directory: its path may lead to another one by now.
    let status = try ledger.root.ownStatus()
    try owner.assume(ledger.path, owner: status.owner, group: status.group)
    ledgers.opened = ledger
    return ledger
  }

  /// As `ledgerPath`, for a command that does not need a ledger: nil if none is named and the current directory is not
  /// one.
  /// - Parameter path: the value of `--ledger`, if given.
  func ledgerPathIfAny(given path: String?) -> String? {
    if let path = path ?? environmentValue("LEDGER_DIR") { return path }
    return access("ledger.json", F_OK) == 0 ? "." : nil
  }
}

/// The ledger that this run of the program works on.
final class OpenedLedgers {
  /// Nil until one is opened. Output files inside its directory are rejected.
  var opened: LedgerDirectory?
}

/// The snapshots from which this run of the program built historical projections.
final class SnapshotUse {
  private var used: Set<Int> = []
  private var distrusted: Set<Int> = []

  func record(_ size: Int) { used.insert(size) }

  /// Why a snapshot must not be used again; nil if it may.
  func objection(_ size: Int) -> String? {
    distrusted.contains(size) ? "the projections built from it are damaged" : nil
  }

  /// Excludes the used snapshots from further use; returns whether there were any.
  func distrustUsed() -> Bool {
    defer { used = [] }
    distrusted.formUnion(used)
    return !used.isEmpty
  }
}
