// One run of ledger-rules: parse, run the command, report what went wrong.
import Glibc

/// The commands of ledger-rules, by name.
package enum RulesProgram {
  private static let commands: [(name: String, run: @Sendable (RulesArguments) throws -> Void)] = [
    ("plan", PlanCommand.run), ("scan", ScanCommand.run), ("fold", FoldCommand.run),
    ("csv", CSVCommand.run), ("version", VersionCommand.run),
  ]

  /// Runs one command line, and gives the exit code.
  package static func run(_ arguments: [String]) -> Int32 {
    // A reader that leaves causes an error with a cause instead of a signal.
    signal(SIGPIPE, SIG_IGN)
    let name = arguments.first ?? ""
    do {
      guard let command = commands.first(where: { $0.name == name }) else {
        let names = commands.map(\.name).joined(separator: ", ")
        throw RulesFailure.usage(
          name.isEmpty ? "command" : "'\(name)'",
          name.isEmpty ? "is missing: \(names)" : "is none of \(names)")
      }
      try command.run(RulesArguments(Array(arguments.dropFirst())))
      return RulesFailure.ExitCode.done.rawValue
    } catch {
      let failure = RulesFailure(error, command: name)
      let line = Array("\(failure.line)\n".utf8)
      _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
      return failure.exitCode.rawValue
    }
  }
}
