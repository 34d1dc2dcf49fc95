// Transcripts: command lines and their expected output.
import Base
import Foundation
import Testing

/// One file of `Transcripts/`. Its lines:
/// `# …` explains the next command · `$ …` is a command, `> …` continues it · `1| …` and `2| …` are lines
/// of standard output and standard error (`1\ …`, `2\ …`: the last one, without a line end) · `= …` is the
/// exit code.
struct Transcript: Sendable, CustomTestStringConvertible {
  struct Step: Sendable {
    /// Comments and empty lines before the command, unchanged.
    var preamble: [String] = []
    var command: [String] = []
    var expected: [String] = []
  }

  let name: String
  private let path: String
  private(set) var steps: [Step] = []
  private var ending: [String] = []
  var testDescription: String { name }

  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Transcripts").path

  /// All transcripts, by name.
  static func all() throws -> [Transcript] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter {
      $0.hasSuffix(".txt")
    }.sorted().map { try Transcript(name: $0, path: "\(folder)/\($0)") }
  }

  private init(name: String, path: String) throws {
    self.name = name
    self.path = path
    var step = Step()
    let text = try String(contentsOfFile: path, encoding: .utf8)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      let mark = line.prefix(2)
      if ["1|", "2|", "1\\", "2\\", "= "].contains(mark) {
        step.expected.append(line)
        continue
      }
      if mark == "> " {
        step.command.append(line)
        continue
      }
      // Other lines after a command belong to the next one.
      if !step.command.isEmpty {
        steps.append(step)
        step = Step()
      }
      if mark == "$ " { step.command = [line] } else { step.preamble.append(line) }
    }
    if step.command.isEmpty { ending = step.preamble } else { steps.append(step) }
  }

  /// Runs all commands, one after the other, in a new directory; returns what each printed.
  func run() throws -> [[String]] {
    let sandbox = try Sandbox()
    return try steps.map { step in
      let command = step.command.map { $0.dropFirst(2) }.joined(separator: "\n")
      let outcome = try sandbox.run(command)
      return Self.lines(outcome.output, "1", sandbox)
        + Self.lines(outcome.diagnostics, "2", sandbox)
        + ["= \(outcome.exitCode)"]
    }
  }

  /// Rewrites the file with the actual output.
  func rewrite(_ actual: [[String]]) throws {
    var lines: [String] = []
    for (step, printed) in zip(steps, actual) { lines += step.preamble + step.command + printed }
    try (lines + (ending.isEmpty ? [""] : ending)).joined(separator: "\n")
      .write(toFile: path, atomically: true, encoding: .utf8)
  }

  private static func lines(_ text: String, _ mark: String, _ sandbox: Sandbox) -> [String] {
    var lines = steady(text, sandbox).split(separator: "\n", omittingEmptySubsequences: false)
    let rest = lines.removeLast()
    return lines.map { $0.isEmpty ? "\(mark)|" : "\(mark)| \($0)" }
      + (rest.isEmpty ? [] : ["\(mark)\\ \(rest)"])
  }

  /// Replaces what differs from run to run by its kind.
  private static func steady(_ text: String, _ sandbox: Sandbox) -> String {
    let hex = "[0-9a-f]"
    let kinds = [
      (NSRegularExpression.escapedPattern(for: sandbox.path), "DIRECTORY"),
      ("\(hex){8}-\(hex){4}-\(hex){4}-\(hex){4}-\(hex){12}", "UUID"),
      ("\\b\(hex){64}\\b", "SHA256"),
      ("rlt_[A-Za-z0-9_-]{43}", "TOKEN"),
      ("\\btk-\(hex){12}\\b", "TOKEN-ID"),
      ("(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{43}=", "ROOT"),
      ("(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{22}==", "SALT"),
      ("\\+\(hex){8}\\+[A-Za-z0-9+/]{44}", "+ID+KEY"),
      ("(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{91}=", "SIGNATURE"),
      ("key \(hex){8}\\b", "key ID"),
      ("(?m)^(1. )?(extra|old) [A-Za-z0-9+/=]+$", "$1$2 BASE64"),
      ("process [0-9]+", "process NUMBER"),
      // How many steps a copy takes depends on how fast it is made.
      ("\\bstep( +)[0-9]+, epoch", "step$1N, epoch"),
      ("with step [0-9]+ at", "with step N at"),
      ("from step [0-9]+ of a copy", "from step N of a copy"),
      ("\\b20[2-9][0-9]-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z", "NOW"),
      ("\\b20[2-9][0-9]-[0-9]{2}-[0-9]{2}T[0-9]{6}Z", "BACKUP"),
    ]
    return kinds.reduce(text) { text, kind in
      text.replacingOccurrences(of: kind.0, with: kind.1, options: .regularExpression)
    }
  }
}
