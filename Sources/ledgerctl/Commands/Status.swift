// `status`: how the ledger stands.

let statusCommand = Command(
  "status", summary: "Show how the ledger and its projections stand",
  details: [
    "Prints the ledger's origin and id, how many events it holds and its root, and how far the projections have "
      + "come. It appends nothing and needs no lock."
  ],
  options: [.json],
  examples: [Example("ledgerctl status --json", "Give the figures to a program")]
) { invocation, context in
  try showStatus(StatusOptions(invocation), invocation, context)
}

/// What `status` was asked for.
struct StatusOptions: Equatable, Sendable {
  let isJSON: Bool

  init(_ invocation: Invocation) {
    isJSON = invocation.has("json")
  }
}

private func showStatus(
  _ options: StatusOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  throw Failure.notWired("status")
}
