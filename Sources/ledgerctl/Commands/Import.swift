// `import`: uploads from files.

let importCommand = Command(
  "import", summary: "Import uploads with the App Store's recorded replies",
  details: [
    "FILE is newline-delimited JSON, one upload a line; `-` is standard input. Whether it is compressed by gzip "
      + "is seen from its content.",
    "A bad line is reported with its number and every reason, and the rest goes on; the exit code is then 3. "
      + "Importing a file again appends nothing new: a line is known by its bytes.",
  ],
  positionals: [Positional("FILE", arity: .oneOrMore, help: "a file to import, or `-`")],
  options: [
    Option("register-apps", help: "register bundle ids that no app has registered"),
    Option("strict", help: "append nothing unless every line is good"),
    Option("check-signatures", help: "check receipts too whose verification is recorded"),
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
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    files = invocation.positionals
    if files.count(where: { $0 == "-" }) > 1 {
      throw UsageError("-", "standard input can be read only once", command: "import")
    }
    registersApps = invocation.has("register-apps")
    isStrict = invocation.has("strict")
    checksSignatures = invocation.has("check-signatures")
    isJSON = invocation.has("json")
  }
}

private func importUploads(
  _ options: ImportOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  throw Failure.notWired("import")
}
