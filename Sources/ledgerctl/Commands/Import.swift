// `import`: uploads from files.
import AppStore
import Intake
import JSON
import Ledger
import Projections
import Server

let importCommand = Command(
  "import", summary: "Import uploads with the App Store's recorded replies",
  details: [
    "FILE is newline-delimited JSON, one upload a line; `-` is standard input. Whether it is compressed by gzip "
      + "is seen from its content. The format is described in docs/import-format.md.",
    "A bad line is reported with its number and every reason, and the rest goes on; the exit code is then 3. "
      + "Importing a file again appends nothing new: a line is known by its bytes.",
    "Of the lines that are reported the first 1,000 are printed, and the others counted by what is wrong with them; "
      + "`--errors` keeps all. The counts in the end are of what is on disk, also where the import ended early.",
    "A recorded reply that calls its receipt valid must be about it: of the same app and, where both show purchases, "
      + "with one in common. Otherwise the line is bad. `--accept-mismatch` takes replies with other transactions, "
      + "never one of another app; `export exceptions` lists them as `reply_mismatch`.",
  ],
  positionals: [Positional("FILE", arity: .oneOrMore, help: "a file to import, or `-`")],
  options: [
    Option("register-apps", help: "register bundle ids that no app has registered"),
    Option("strict", help: "append nothing unless every line is good"),
    Option(
      "errors", value: .init("FILE"),
      help: "write every report of a line to FILE, which is replaced when the import has ended"),
    Option(
      "spool-limit", value: .init("MIB", standard: "4096"),
      help: "with --strict: keep so many MiB of standard input and pipes, and refuse more"),
    Option("check-signatures", help: "check receipts too whose verification is recorded"),
    Option(
      "accept-mismatch",
      help: "take recorded replies that show other transactions than their receipt"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl import --strict history.ndjson.gz", "Import a history, whole or not at all"),
    Example("zstdcat history.ndjson.zst | ledgerctl import -", "Import from another program"),
  ]
) { invocation, context in
  try importUploads(ImportOptions(invocation), invocation, context)
}

/// What `import` was asked for.
struct ImportOptions: Equatable, Sendable {
  /// Paths; `-` is standard input.
  let files: [String]
  let registersApps: Bool
  let isStrict: Bool
  let checksSignatures: Bool
  /// Where every report of a line goes; nil where only standard error has them.
  let errorsPath: String?
  let spoolBytesMax: Int
  let acceptsMismatch: Bool
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    files = invocation.positionals
    if files.count(where: { $0 == "-" }) > 1 {
      throw UsageError("-", "standard input can be read only once", command: "import")
    }
    registersApps = invocation.has("register-apps")
    isStrict = invocation.has("strict")
    checksSignatures = invocation.has("check-signatures")
    acceptsMismatch = invocation.has("accept-mismatch")
    isJSON = invocation.has("json")
    errorsPath = invocation.value("errors")
    if errorsPath == "-" {
      throw UsageError(
        "--errors -", "needs a file: standard output has the counts", command: "import")
    }
    if !isStrict, invocation.has("spool-limit") {
      throw UsageError("--spool-limit", "goes with --strict", command: "import")
    }
    let mebibytes = try invocation.value("spool-limit", "is no number of MiB from 1 to 1048576") {
      positionValue($0).flatMap { (1...1 << 20).contains($0) ? $0 : nil }
    }
    spoolBytesMax = (mebibytes ?? 4096) << 20
  }
}

private func importUploads(
  _ options: ImportOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let interruption = context.interruption
  let stop = StopFlag { interruption.isRequested }
  let spool = options.isStrict ? ledger.directory.root : nil
  let inputs = try ImportInput.openAll(
    options.files,
    spoolFolder: spool, spoolBytesMax: options.spoolBytesMax, stop: stop)
  let problems = try ImportProblemLog(options, context)
  var importOptions = Intake.ImportOptions()
  importOptions.registersApps = options.registersApps
  importOptions.isStrict = options.isStrict
  importOptions.checksSignatures = options.checksSignatures
  importOptions.acceptsMismatch = options.acceptsMismatch
  let configuration = try ConfigurationFile(ledger.directory).read()
  let verifier = try ReceiptVerifier(configuration: configuration.trust.verifierConfiguration)
  let trust = try TrustDeclared(configuration.appStore, configuration.trust, verifier)
  var summary = ImportSummary()
  var hasUnregistered = false
  do {
    try ledger.withWriter { writer in
      // Nobody else imports or registers beside, so that what is known stays all that is known.
      let intakeLookup = try IntakeLookup(try ledger.projections(isFrugal: true))
      let isRecorded = try intakeLookup.newestTrust() == trust
      let lookup = Lookup(intakeLookup, stop: stop)
      let progress = Progress("Importing", unit: .bytes, context: context)
      let importer = Importer(
        inputs, into: writer, families: lookup, known: lookup, verifier: verifier,
        options: importOptions, trust: isRecorded ? nil : trust, stop: stop,
        onProblem: { problem in
          progress.erase()
          problems.take(problem)
          if problem.reasons.contains(where: { $0.code == .bundleNotRegistered }) {
            hasUnregistered = true
          }
        },
        onProgress: { state in
          progress.update(state.readBytes, of: state.totalBytes)
        })
      summary = importer.run()
      if let failure = lookup.failure { throw failure }
    }
  } catch {
    // A writer that failed fails again when it is closed; what was durable before that is said all the same.
    // An import that never began replaces no file.
    if summary.lines > 0 {
      problems.finish()
      try? report(summary, options, context)
    }
    throw error
  }
  problems.finish()
  if hasUnregistered {
    context.diagnostics.writeLine(
      "ledgerctl: import: --register-apps registers unknown bundle ids; so does 'ledgerctl app add'"
    )
  }
  try report(summary, options, context)
  try context.output.flush()
  // Whoever exports next finds the projections ready; an import that was cut short leaves that to later.
  if !summary.isInterrupted, summary.failure == nil, summary.positions != nil {
    _ = try ledger.projections(isFrugal: true)
  }
  if let failure = summary.failure { throw failure }
  if summary.isInterrupted {
    context.diagnostics.writeLine(
      "ledgerctl: import: interrupted; the same import again brings what is missing")
  }
  if problems.hasFailed { return .failed }
  return ExitCode(rawValue: summary.exitCode) ?? .failed
}

private func report(
  _ summary: ImportSummary, _ options: ImportOptions, _ context: Context
) throws {
  if options.isJSON {
    var writer = JSONWriter()
    writer.beginObject()
    for (key, count): (StaticString, Int) in [
      ("lines", summary.lines), ("uploads", summary.uploads), ("known", summary.known),
      ("refused", summary.refused), ("warnings", summary.warnings),
      ("registered_apps", summary.registered),
    ] {
      writer.key(key)
      writer.integer(count)
    }
    writer.key("first_position")
    if let first = summary.positions?.lowerBound { writer.integer(first) } else { writer.null() }
    writer.key("last_position")
    if let last = summary.positions?.upperBound { writer.integer(last) } else { writer.null() }
    writer.endObject()
    try context.output.write(writer.bytes)
    return try context.output.writeLine()
  }
  if summary.isRefusedAsWhole {
    return try context.output.writeLine(
      "Imported nothing: \(counted(summary.refused, "bad line")) of \(summary.lines)")
  }
  var parts = [
    "Imported \(counted(summary.uploads, "upload")) from \(counted(summary.lines, "line"))"
  ]
  if summary.known > 0 { parts.append("\(summary.known) known already") }
  if summary.refused > 0 { parts.append("\(summary.refused) refused") }
  if summary.warnings > 0 { parts.append(counted(summary.warnings, "warning")) }
  if summary.registered > 0 { parts.append("\(counted(summary.registered, "app")) registered") }
  if let positions = summary.positions {
    parts.append("positions \(positions.lowerBound) to \(positions.upperBound)")
  }
  try context.output.writeLine(parts.joined(separator: ", "))
}
