// `rebuild`: projections from nothing.

let rebuildCommand = Command(
  "rebuild", summary: "Build the projections again from the log",
  details: [
    "Folds the whole log into a new generation of the projections beside the one in use, and puts it in use once "
      + "it is complete and on disk. Readers are not disturbed; what they opened stays as it was.",
    "There is no need for it in daily work: every command brings the projections up to date first.",
  ],
  options: [.json],
  examples: [Example("ledgerctl rebuild", "Build the projections again")]
) { invocation, context in
  try rebuild(RebuildOptions(invocation), invocation, context)
}

/// What `rebuild` was asked for.
struct RebuildOptions: Equatable, Sendable {
  let isJSON: Bool

  init(_ invocation: Invocation) {
    isJSON = invocation.has("json")
  }
}

private func rebuild(
  _ options: RebuildOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  throw Failure.notWired("rebuild")
}
