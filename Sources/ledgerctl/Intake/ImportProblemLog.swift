// Reports about lines of an import: the first ones on standard error, all of them in the file of `--errors`.
import Glibc
import Intake

/// Prints a limited number of reports, and writes all of them to the file of `--errors`.
final class ImportProblemLog {
  /// The number of reports that are printed; further ones are counted.
  static let printedMax = 1000

  private struct Kind: Hashable {
    let severity: ImportProblem.Severity
    let code: FieldProblem.Code
  }

  private let context: Context
  private let path: String?
  private var file: OutputFile?
  private var printedCount = 0
  private var furtherCount = 0
  private var furtherReasons: [Kind: Int] = [:]
  /// Whether the file could not be written.
  private(set) var hasFailed = false

  /// Opens the file, if one was given.
  init(_ options: ImportOptions, _ context: Context) throws {
    self.context = context
    path = options.errorsPath
    guard let path else { return }
    if options.files.contains(where: { Self.areSame($0, path) }) {
      throw UsageError("--errors", "would replace a file that is being imported")
    }
    file = try OutputFile(path: path, outside: context.ledgers.opened, mode: 0o600)
  }

  private static func areSame(_ path: String, _ other: String) -> Bool {
    var (left, right) = (stat(), stat())
    guard stat(path, &left) == 0, stat(other, &right) == 0, left.st_mode & S_IFMT == S_IFREG
    else { return false }
    return left.st_dev == right.st_dev && left.st_ino == right.st_ino
  }

  /// Prints or counts a report.
  func take(_ problem: ImportProblem) {
    // The name of the file is external text too.
    let line = visible("\(problem)")
    if let file {
      attempt { try file.output.writeLine(context.diagnostics.hidden.removed(from: line)) }
    }
    if printedCount < Self.printedMax {
      printedCount += 1
      return context.say("\(line)")
    }
    furtherCount += 1
    for reason in problem.reasons {
      furtherReasons[Kind(severity: problem.severity, code: reason.code), default: 0] += 1
    }
  }

  /// Prints the counts of reports that were not printed, and commits the file.
  func finish() {
    if furtherCount > 0 {
      let hint = path == nil ? "; --errors FILE keeps all" : ""
      let verb = furtherCount == 1 ? "is" : "are"
      context.say(
        "import: \(counted(furtherCount, "more line")) \(verb) not printed: \(furtherText)\(hint)"
      )
    }
    if let file { attempt { try file.commit() } }
    file = nil
  }

  /// `not_json 12, missing 3, warning: unknown_property 1`.
  private var furtherText: String {
    furtherReasons.map { kind, count in
      (kind.severity == .warning ? "warning: " : "", kind.code.rawValue, count)
    }.sorted { ($0.0, -$0.2, $0.1) < ($1.0, -$1.2, $1.1) }
      .map { "\($0)\($1) \($2)" }.joined(separator: ", ")
  }

  /// After an error the import continues without the file; the error is reported once.
  private func attempt(_ body: () throws -> Void) {
    do { try body() } catch {
      hasFailed = true
      file = nil
      for line in ErrorReport(error, command: "import").lines {
        context.diagnostics.writeLine(line)
      }
    }
  }
}
