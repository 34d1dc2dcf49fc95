// One run of ledger-rules: options, commands, errors.
package import Base
import Glibc
import Ledger

/// The commands of ledger-rules, by name.
package enum RulesProgram {
  private static let commands: [(name: String, run: @Sendable (RulesArguments) throws -> Void)] = [
    ("plan", PlanCommand.run), ("scan", ScanCommand.run), ("fold", FoldCommand.run),
    ("csv", CSVCommand.run), ("version", VersionCommand.run),
  ]

  /// Runs one command line, and returns the exit code.
  package static func run(_ arguments: [String]) -> Int32 {
    // A reader that disappears causes an error with a cause instead of a signal.
    signal(SIGPIPE, SIG_IGN)
    let name = arguments.first ?? ""
    do {
      guard let command = commands.first(where: { $0.name == name }) else {
        let names = commands.map(\.name).joined(separator: ", ")
        throw Failure.usage(
          name.isEmpty ? "command" : "'\(name)'",
          name.isEmpty ? "is missing: \(names)" : "must be one of \(names)")
      }
      try command.run(RulesArguments(Array(arguments.dropFirst())))
      return ExitCode.done.rawValue
    } catch {
      let failure = Failure(error, command: name)
      let line = Array("\(failure.line)\n".utf8)
      _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
      return failure.exitCode.rawValue
    }
  }
}

// MARK: - Options

/// The arguments of a command, `--name value` pairs and flags, each at most once. The command reads them one by one;
/// `finish` rejects the rest.
package struct RulesArguments {
  private var rest: [String]

  package init(_ arguments: [String]) { rest = arguments }

  /// The value of an option; nil if it is not given.
  package mutating func text(_ name: String) throws(Failure) -> String? {
    guard let index = rest.firstIndex(of: name) else { return nil }
    guard index + 1 < rest.count, !rest[index + 1].isEmpty else {
      throw .usage(name, "needs a value")
    }
    let value = rest[index + 1]
    rest.removeSubrange(index...index + 1)
    if rest.contains(name) { throw .usage(name, "is given twice") }
    return value
  }

  package mutating func required(_ name: String) throws(Failure) -> String {
    guard let value = try text(name) else { throw .usage(name, "is missing") }
    return value
  }

  package mutating func integer(
    _ name: String, _ range: ClosedRange<Int64>
  ) throws(Failure) -> Int64? {
    guard let text = try text(name) else { return nil }
    guard let number = Int64(text), range.contains(number) else {
      throw .usage(name, "must be an integer from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Whether a flag is given.
  package mutating func flag(_ name: String) throws(Failure) -> Bool {
    guard let index = rest.firstIndex(of: name) else { return false }
    rest.remove(at: index)
    if rest.contains(name) { throw .usage(name, "is given twice") }
    return true
  }

  /// Rejects what the command did not read.
  package func finish() throws(Failure) {
    if let unknown = rest.first { throw .usage("'\(unknown)'", "is not an option of this command") }
  }
}

// MARK: - Errors

extension Failure {
  /// Wrong usage of the command line, found before any data is touched.
  package static func usage(_ object: String, _ cause: String) -> Failure {
    Failure(.usage, operation: "parse arguments", object: object, cause: cause)
  }

  /// The failure of an operation on a stream.
  package init(_ error: StreamError, operation: String, object: String) {
    switch error {
    case .system(let code):
      self.init(operation: operation, object: object, systemError: code)
    case .cutShort:
      self.init(operation: operation, object: object, cause: "it is cut short")
    case .invalid(let cause):
      self.init(operation: operation, object: object, cause: cause)
    }
  }

  init(_ error: LedgerError) {
    self.init(
      error.exitCode, operation: error.operation, object: error.object,
      cause: error.damage.map { "\($0.verdict.rawValue): \(error.cause)" } ?? error.cause)
  }

  /// - Parameter command: the name of the command that failed.
  package init(_ error: any Error, command: String) {
    switch error {
    case let error as Failure: self = error
    case let error as LedgerError: self.init(error)
    case let error as StreamError:
      self.init(error, operation: "write", object: "standard output")
    default:
      // The error's own text is unknown here and might contain a secret.
      self.init(operation: command, object: "input", cause: "failed: \(type(of: error))")
    }
  }

  /// The line for standard error, without control characters.
  package var line: String {
    let text = "ledger-rules: \(operation): \(object): \(cause)"
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map {
          $0.properties.generalCategory == .control ? "?" : $0
        }))
  }
}

// MARK: - `version`

enum VersionCommand {
  static func run(_ arguments: RulesArguments) throws {
    try arguments.finish()
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("version", programVersion)
    writer.member("streams", RowOutput.version)
    writer.member("format_version", Format.versionWithRedactions)
    writer.endObject()
    try StandardOutput.write(line: writer.bytes)
  }
}

/// Text on standard output.
enum StandardOutput {
  static func write(line: [UInt8]) throws(StreamError) {
    let output = DescriptorOutput(1)
    try output.write(line)
    try output.write([0x0A])
    try output.flush()
  }
}
