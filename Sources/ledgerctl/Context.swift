// What a command may use of the world around it.
import Glibc
import Ledger

/// The surroundings of one run of the program.
struct Context {
  /// Standard output. Whoever writes to it last need not flush: the program does.
  let output: Output
  /// Standard error.
  let diagnostics: Diagnostics
  let terminal: Terminal
  let errorTerminal: Terminal
  let interruption: Interruption
  let snapshotUse = SnapshotUse()
  let ledgers = OpenedLedgers()

  /// - Parameter arguments: the command line, whose secrets no message is to hold.
  init(_ arguments: [String], interruption: Interruption) {
    // These name places too, and errors quote them.
    let variables = ["LEDGER_DIR", "TMPDIR"].compactMap(environmentValue)
    output = Output(descriptor: STDOUT_FILENO, name: "standard output")
    diagnostics = Diagnostics(hidden: HiddenArguments(arguments + variables))
    terminal = Terminal(descriptor: STDOUT_FILENO)
    errorTerminal = Terminal(descriptor: STDERR_FILENO)
    self.interruption = interruption
  }

  /// The directory of the ledger that the command works on. Whether it holds one is found on opening it, but the
  /// current directory is only taken where it does.
  func ledgerPath(_ invocation: Invocation) throws(Failure) -> String {
    guard let path = ledgerPathIfAny(invocation) else {
      throw Failure(
        .noLedger, operation: "find ledger", object: "current directory",
        cause: "it is no ledger; give --ledger DIR or set LEDGER_DIR")
    }
    return path
  }

  /// Opens the ledger that the command works on.
  func openLedger(_ invocation: Invocation) throws -> LedgerDirectory {
    try openLedger(path: try ledgerPath(invocation))
  }

  func openLedger(path: String) throws(LedgerError) -> LedgerDirectory {
    let ledger = try LedgerDirectory.open(path: path)
    ledgers.opened = ledger
    return ledger
  }

  /// The same for a command that can do without a ledger: nil where none is named and the current directory is none.
  func ledgerPathIfAny(_ invocation: Invocation) -> String? {
    if let path = invocation.ledgerPath ?? environmentValue("LEDGER_DIR") { return path }
    return access("ledger.json", F_OK) == 0 ? "." : nil
  }
}

/// The ledger that this run of the program works on.
final class OpenedLedgers {
  /// Nothing may be written into its directory but by the ledger itself.
  var opened: LedgerDirectory?
}

/// The snapshots that books of an earlier moment were made of in this run of the program.
final class SnapshotUse {
  private var used: Set<Int> = []
  private var distrusted: Set<Int> = []

  func note(_ size: Int) { used.insert(size) }

  /// Why one is not to be used again; nil where it may.
  func objection(_ size: Int) -> String? {
    distrusted.contains(size) ? "the books made of it are damaged" : nil
  }

  /// From now on those that were used are not used any more; whether there are any.
  func distrustUsed() -> Bool {
    defer { used = [] }
    distrusted.formUnion(used)
    return !used.isEmpty
  }
}
