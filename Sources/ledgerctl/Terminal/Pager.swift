// The pager, which shows tables that are longer than the terminal.
import Glibc

/// The command of `PAGER`. It gets the whole text at once: no ledger is held open while somebody reads.
struct Pager {
  /// What the shell runs.
  private let script: String
  private let terminal: Terminal

  /// Nil if the command line, the environment or the terminal wants none.
  init?(_ invocation: Invocation, _ terminal: Terminal) {
    guard invocation.command.options.contains(where: { $0.name == Option.noPager.name }),
      !invocation.has(Option.noPager.name), !invocation.isJSON,
      ["table", nil].contains(invocation.value("format")),
      terminal.isTerminal, environmentValue("TERM") != "dumb"
    else { return nil }
    // A shell that catches SIGINT waits for the pager, which gets the signal too.
    let prefix =
      "trap : INT; LESS=${LESS-FRX}; export LESS; "
      // A user whom sudo allows this program alone must not get a shell from the pager.
      + "if [ -n \"$SUDO_UID\" ]; then export LESSSECURE=1; fi; "
    if let pointer = getenv("PAGER") {
      let command = String(cString: pointer)
      if command.isEmpty || command == "cat" { return nil }
      script = prefix + command
    } else {
      script = prefix + "command -v less >/dev/null || exit \(Self.notFound); less"
    }
    self.terminal = terminal
  }

  /// The exit codes with which a shell says that it could not run a command.
  private static let notExecutable: Int32 = 126
  private static let notFound: Int32 = 127

  /// Shows a text if it is longer than the terminal, and waits until the reader has quit.
  /// - Returns: whether it was shown: not if it fits, or if the pager could not be started.
  func show(_ text: UnsafeRawBufferPointer) -> Bool {
    // The last line is the shell's.
    guard let lineCount = terminal.lineCount, text.count(where: { $0 == 0x0A }) >= lineCount
    else { return false }
    // The pager decides about SIGINT and SIGQUIT from the keyboard. Caught ones have their default action in it; it
    // would inherit ignored ones.
    var (caught, interrupt, quit) = (sigaction(), sigaction(), sigaction())
    caught.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGINT, &caught, &interrupt)
    sigaction(SIGQUIT, &caught, &quit)
    defer {
      sigaction(SIGINT, &interrupt, nil)
      sigaction(SIGQUIT, &quit, nil)
    }
    // Nothing else writes to a pipe now.
    signal(SIGPIPE, SIG_DFL)
    let opened = popen(script, "we")
    signal(SIGPIPE, SIG_IGN)
    guard let pipe = opened else { return false }
    // A reader who quits early closes the pipe, which is no error.
    _ = writeAll(text, to: fileno(pipe))
    let status = pclose(pipe)
    let hasExited = status & 0x7F == 0
    return !(hasExited && [Self.notExecutable, Self.notFound].contains(status >> 8 & 0xFF))
  }
}
