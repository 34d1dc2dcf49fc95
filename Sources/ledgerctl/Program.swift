// One run of the program: parse, run the command, report what went wrong.
import Glibc

/// The version of the program, as `--version` prints it.
let programVersion = "0.1.0"

/// Runs one command line. Everything that goes wrong ends here.
func runProgram(_ arguments: [String]) -> ExitCode {
  occupyStandardDescriptors()
  let context = Context(arguments, interruption: .install())
  var command = ""
  do {
    let exitCode: ExitCode
    switch try Parser.parse(arguments) {
    case .version:
      try context.output.writeLine("ledgerctl \(programVersion)")
      exitCode = .done
    case .help(let words):
      command = "help"
      try writeHelp(words, to: context.output, terminal: context.terminal)
      exitCode = .done
    case .run(let invocation):
      command = invocation.command.name
      exitCode = try run(invocation, context)
    }
    // Whoever read along and has heard enough changes nothing about how it went.
    do { try context.output.flush() } catch OutputError.closedPipe {}
    return exitCode
  } catch {
    return report(error, command: command, context)
  }
}

/// Runs a command. One that only reads, and meets damage in the projections, runs once more after they have
/// been built again: they are nothing but the log's content in another shape. Where the books were made of a
/// snapshot, the damage is in that: it is left out, and the projections in use are left alone.
private func run(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  do {
    return try invocation.command.run(invocation, context)
  } catch {
    guard invocation.command.isReadOnly, ErrorReport.isProjectionDamage(error) else { throw error }
    let isRepeated = !context.output.hasWritten
    let isOfSnapshot = context.snapshotUse.distrustUsed()
    context.diagnostics.writeLine(
      "ledgerctl: \(invocation.command.name): "
        + (isOfSnapshot
          ? "the books of that moment are damaged: making them anew"
          : "the projections are damaged: rebuilding")
        + (isRepeated ? "" : "; what was printed is not whole"))
    context.output.discard()
    if isOfSnapshot, isRepeated { return try run(invocation, context) }
    if !isOfSnapshot { try OpenLedger(invocation, context).rebuildProjections() }
    guard isRepeated else { throw error }
    return try invocation.command.run(invocation, context)
  }
}

private func report(_ error: any Error, command: String, _ context: Context) -> ExitCode {
  let report = ErrorReport(error, command: command)
  // What was written before the failure belongs to the user; a second failure would say nothing new.
  if !(error is OutputError) { try? context.output.flush() }
  for line in report.lines { context.diagnostics.writeLine(line) }
  return report.exitCode
}

/// Gives closed standard descriptors a place, so that no file that is opened later becomes one of them. It is
/// opened the wrong way round: using it stays an error.
private func occupyStandardDescriptors() {
  for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
    _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
  }
}
