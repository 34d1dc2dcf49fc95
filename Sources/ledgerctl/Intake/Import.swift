// `import`: uploads from files.
import AppStore
import Base
import Glibc
import Intake
import Ledger
import Projections
import Server

let importCommand = Command(
  "import", summary: "Import uploads with the App Store's recorded replies",
  details: [
    "FILE has one upload or notification a line, as JSON, and may be compressed with gzip; "
      + "docs/import-format.md describes it. A bad line is reported with its number and every reason, and the "
      + "import continues; the exit code is then 3. Importing a file again appends nothing new.",
    "The first 1,000 reports about lines are printed; the others are counted. The counts at the end cover "
      + "what is on disk, even if the import ended early.",
    "`--from` reads other formats, from files or folders (links are not followed): `receipts`, one a file; "
      + "`replies` of verifyReceipt; signed `transactions`; `notifications` of either version; and tables, `csv` "
      + "or `json`, whose columns `--map` names. docs/migration.md shows each.",
  ],
  positionals: [
    Positional(
      "FILE", arity: .oneOrMore,
      help: "a file to import; `-` is standard input; with `--from` also a folder")
  ],
  options: [
    Option(
      "from", value: .init("FORMAT", allowed: ArchiveFormat.allCases.map(\.rawValue)),
      help: "read FILE in this format"),
    Option(
      "map", value: .init("PART=COLUMN,..."),
      help: "with `--from` csv or json: which columns give which parts of a line"),
    Option(
      "environment", value: .init("NAME", allowed: ["Production", "Sandbox"]),
      help: "with `--from`: the environment of replies and signed transactions that name none"),
    Option("dry-run", help: "append nothing; show what would be imported and what is missing"),
    Option(
      "output", short: "o", value: .init("FILE"),
      help: "with `--from`: write the lines to FILE and import nothing"),
    Option("register-apps", help: "register bundle ids that no app has registered"),
    Option("strict", help: "append nothing unless every line is good"),
    Option(
      "errors", value: .init("FILE"),
      help: "write all reports about lines to FILE"),
    Option(
      "spool-limit", value: .init("MIB", standard: "4096"),
      help: "with `--strict`: how many MiB of standard input and pipes to store; more is refused"),
    Option(
      "check-signatures", help: "also check the signatures of receipts with a recorded verification"
    ),
    Option(
      "accept-mismatch",
      help:
        "accept recorded replies of the same app that show other transactions than their receipt"),
    Option(
      "without-erasure-key",
      help:
        "import although data was erased and `keys/lines.hmac` is missing: lines of people who were "
        + "erased are appended again"
    ),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl import --from receipts --dry-run receipts/",
      "See what a folder of receipts would bring"),
    Example(
      "ledgerctl import --strict history.ndjson.gz",
      "Import a history completely or not at all"),
  ]
) { invocation, context in
  try importUploads(ImportOptions(invocation), invocation, context)
}

/// The options of `import`.
struct ImportOptions: Equatable, Sendable {
  /// Paths; `-` is standard input.
  let files: [String]
  let registersApps: Bool
  let isStrict: Bool
  let checksSignatures: Bool
  /// The file for all reports about lines; nil if they only go to standard error.
  let errorsPath: String?
  let spoolBytesMax: Int
  let acceptsMismatch: Bool
  let forgetsErasures: Bool
  let isDryRun: Bool
  /// How `files` are read; nil for the import format.
  let archive: ArchiveOptions?
  /// The destination of an archive's lines, in place of the ledger.
  let linesPath: String?

  init(_ invocation: Invocation) throws(UsageError) {
    files = invocation.positionals
    if files.count(where: { $0 == "-" }) > 1 {
      throw UsageError("-", "standard input can be read only once")
    }
    registersApps = invocation.has("register-apps")
    isStrict = invocation.has("strict")
    checksSignatures = invocation.has("check-signatures")
    acceptsMismatch = invocation.has("accept-mismatch")
    forgetsErasures = invocation.has("without-erasure-key")
    errorsPath = invocation.value("errors")
    if errorsPath == "-" {
      throw UsageError("--errors -", "requires a file; the counts go to standard output")
    }
    if !isStrict, invocation.has("spool-limit") {
      throw UsageError("--spool-limit", "requires --strict")
    }
    let mebibytes = try invocation.value("spool-limit", "is not a number of MiB from 1 to 1048576")
    {
      positionValue($0).flatMap { (1...1 << 20).contains($0) ? $0 : nil }
    }
    spoolBytesMax = (mebibytes ?? 4096) << 20
    isDryRun = invocation.has("dry-run")
    linesPath = invocation.value("output")
    archive = try Self.archive(invocation)
    if archive == nil, linesPath != nil { throw UsageError("--output", "requires --from") }
    if linesPath != nil, isDryRun { throw UsageError("--output", "excludes --dry-run") }
    if archive != nil, files.contains("-") {
      throw UsageError("-", "cannot be read with --from, which reads files and folders")
    }
  }

  private static func archive(_ invocation: Invocation) throws(UsageError) -> ArchiveOptions? {
    guard let format = invocation.value("from").flatMap(ArchiveFormat.init) else {
      for name in ["map", "environment"] where invocation.has(name) {
        throw UsageError("--\(name)", "requires --from")
      }
      return nil
    }
    let isTable = format == .csv || format == .json
    guard let text = invocation.value("map") else {
      if isTable {
        throw UsageError("--from \(format.rawValue)", "requires --map, as in --map receipt=COLUMN")
      }
      return ArchiveOptions(format, environment: invocation.value("environment"))
    }
    if !isTable { throw UsageError("--map", "is for --from csv and --from json") }
    switch TableMap.parse(text) {
    case .failure(let error): throw invocation.wrong("map", text, error.clause)
    case .success(let map):
      return ArchiveOptions(
        format, columns: map, environment: invocation.value("environment"))
    }
  }
}

private func importUploads(
  _ options: ImportOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  if let archive = options.archive, let path = options.linesPath {
    return try writeLines(of: archive, options, to: path, context)
  }
  let ledger = try OpenLedger(invocation, context)
  if !options.forgetsErasures, try LineHMACKey.isMissing(ledger.directory) {
    throw Failure(
      operation: "import", object: LineHMACKey.name,
      cause:
        "the key that recognizes lines of people who were erased is missing; bring it back from where "
        + "you keep keys, or import with --without-erasure-key if these files hold no such line")
  }
  let interruption = context.interruption
  let stop = StopFlag { interruption.isRequested }
  let spool = options.isStrict ? ledger.directory.root : nil
  let inputs =
    if let archive = options.archive {
      [try ImportInput(archive: options.files, archive, stop: stop)]
    } else {
      try ImportInput.openAll(
        options.files, spoolFolder: spool, spoolBytesMax: options.spoolBytesMax, stop: stop)
    }
  let problems = try ImportProblemLog(options, context)
  var importOptions = Intake.ImportOptions()
  importOptions.registersApps = options.registersApps
  importOptions.isStrict = options.isStrict
  importOptions.checksSignatures = options.checksSignatures
  importOptions.acceptsMismatch = options.acceptsMismatch
  importOptions.isDryRun = options.isDryRun
  let configuration = try ConfigurationFile(ledger.directory).read()
  let verifier = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
  let trust = try TrustDeclared(configuration.appStore, configuration.trust, verifier)
  var summary = ImportSummary()
  var census = ImportCensus()
  var hasUnregistered = false
  do {
    try ledger.withWriter(replicates: true) { writer in
      // No other process can import or register now, so the known lines and apps are complete.
      let intakeLookup = try IntakeLookup(
        try ledger.projections(isFrugal: true), linesOf: ledger.directory)
      let isRecorded = try intakeLookup.newestTrust() == trust
      let lookup = Lookup(intakeLookup, stop: stop)
      let progress = Progress("Importing", unit: .bytes, context: context)
      let importer = Importer(
        inputs, into: writer, families: lookup, known: lookup, verifier: verifier,
        signedObjects: configuration.trust.signedObjectVerifier(), options: importOptions,
        trust: isRecorded ? nil : trust, stop: stop,
        onProblem: { problem in
          progress.erase()
          problems.report(problem)
          if problem.reasons.contains(where: { $0.code == .bundleNotRegistered }) {
            hasUnregistered = true
          }
        },
        onProgress: { state in
          progress.update(state.readBytes, of: state.totalBytes)
        })
      summary = importer.run()
      census = importer.census
      if let failure = lookup.failure { throw failure }
    }
  } catch {
    // A failed writer throws when it is closed. Report what was durable before; an import that read no line does not
    // replace the file of `--errors`.
    if summary.lines > 0 {
      problems.finish()
      try? report(summary, invocation, context)
    }
    throw error
  }
  problems.finish()
  if options.isDryRun {
    try report(census, summary, invocation, context)
    if let failure = summary.failure { throw failure }
    return problems.hasFailed ? .failed : summary.exitCode
  }
  if hasUnregistered {
    context.log(
      "import: to register unknown bundle ids, use --register-apps or 'ledgerctl app add'"
    )
  }
  try report(summary, invocation, context)
  try context.output.flush()
  // Fold now, so that the next export need not. After an interrupted import a later command does it.
  if !summary.isInterrupted, summary.failure == nil, summary.positions != nil {
    _ = try ledger.projections(isFrugal: true)
  }
  if let failure = summary.failure { throw failure }
  if summary.isInterrupted {
    context.log("import: interrupted; run the same import again to append the rest")
  }
  if problems.hasFailed { return .failed }
  return summary.exitCode
}

private func report(
  _ summary: ImportSummary, _ invocation: Invocation, _ context: Context
) throws {
  let record: Record = [
    "lines": summary.lines, "uploads": summary.uploads, "notifications": summary.notifications,
    "known": summary.known, "refused": summary.refused, "warnings": summary.warnings,
    "registered_apps": summary.registered, "first_position": summary.positions?.lowerBound,
    "last_position": summary.positions?.upperBound,
  ]
  try context.print(invocation, record) { try $0.line(text(summary)) }
}

private func text(_ summary: ImportSummary) -> String {
  if summary.isRefusedAsWhole {
    return "Nothing imported: \(counted(summary.refused, "bad line")) of \(summary.lines)"
  }
  var what = counted(summary.uploads, "upload")
  if summary.notifications > 0 {
    what += " and \(counted(summary.notifications, "notification"))"
  }
  var parts = ["Imported \(what) from \(counted(summary.lines, "line"))"]
  if summary.known > 0 { parts.append("\(summary.known) already known") }
  if summary.refused > 0 { parts.append("\(summary.refused) refused") }
  if summary.warnings > 0 { parts.append(counted(summary.warnings, "warning")) }
  if summary.registered > 0 { parts.append("\(counted(summary.registered, "app")) registered") }
  if let positions = summary.positions {
    parts.append("positions \(positions.lowerBound) to \(positions.upperBound)")
  }
  return parts.joined(separator: ", ")
}

// MARK: - Problems of lines

/// Reports the problems of an import's lines: a limited number on standard error, and all of them in the file of
/// `--errors`.
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
  func report(_ problem: ImportProblem) {
    // The file's name is also external text.
    let line = visible("\(problem)")
    if let file {
      attempt { try file.output.writeLine(context.diagnostics.hidden.removed(from: line)) }
    }
    if printedCount < Self.printedMax {
      printedCount += 1
      return context.log("\(line)")
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
      context.log(
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
