// One run of the program: parse, run the command, report what went wrong.
import Base
import Glibc
import Ledger
import Server

/// Runs one command line and handles every error.
/// - Parameter arguments: those after the program's name.
/// - Returns: the exit code.
package func runProgram(_ arguments: [String]) -> Int32 {
  OpenFileLimit.raise()
  return run(arguments).rawValue
}

private func run(_ arguments: [String]) -> ExitCode {
  occupyStandardDescriptors()
  let context = Context(arguments, interruption: .install())
  if arguments.first == "__complete" {
    complete(Array(arguments.dropFirst()), context)
    return .done
  }
  var command = ""
  do {
    let exitCode: ExitCode
    if arguments.isEmpty { try writeOverviewAsError(context) }
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
      context.output.pager = Pager(invocation, context.terminal)
      exitCode = try run(invocation, context)
    }
    // A reader that closed the pipe does not change the result.
    do { try context.output.flush() } catch OutputError.closedPipe {}
    return exitCode
  } catch {
    return report(error, command: command, context)
  }
}

/// Runs a command. If a command that only reads finds damaged projections, they are rebuilt from the log and the
/// command runs again. If historical projections were built from a snapshot, the damage is in the snapshot: the
/// snapshot is not used again, and the projections in use stay.
private func run(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  do {
    return try invocation.command.run(invocation, context)
  } catch {
    guard invocation.command.isReadOnly, ErrorReport.isProjectionDamage(error) else { throw error }
    let isRepeated = !context.output.hasWritten
    let isOfSnapshot = context.snapshotUse.distrustUsed()
    context.log(
      "\(invocation.command.name): "
        + (isOfSnapshot
          ? "the historical projections are damaged; building them again without the snapshot"
          : "the projections are damaged; rebuilding them")
        + (isRepeated ? "" : "; the output so far is incomplete"))
    context.output.discard()
    if isOfSnapshot, isRepeated { return try run(invocation, context) }
    if !isOfSnapshot { try OpenLedger(invocation, context).rebuildProjections() }
    guard isRepeated else { throw error }
    return try invocation.command.run(invocation, context)
  }
}

/// Shows someone who typed nothing what there is. Standard output stays empty, as after all wrong usage.
private func writeOverviewAsError(_ context: Context) throws {
  let errors = Output(descriptor: STDERR_FILENO, name: "standard error")
  try writeHelp([], to: errors, terminal: context.errorTerminal)
  try? errors.flush()
}

private func report(_ error: any Error, command: String, _ context: Context) -> ExitCode {
  let report = ErrorReport(error, command: command)
  // Output written before the error is kept; a second error would add nothing.
  if !(error is OutputError) { try? context.output.flush() }
  for line in report.lines { context.diagnostics.writeLine(line, .error) }
  if report.exitCode == .failed, let user = context.owner.actsAs {
    context.log("the command acted as \(user), the ledger's owner")
  }
  return report.exitCode
}

/// Opens `/dev/null` for closed standard descriptors, so that no file opened later gets one of their numbers. It is
/// opened in the wrong direction, so that using it remains an error.
private func occupyStandardDescriptors() {
  for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
    _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
  }
}
