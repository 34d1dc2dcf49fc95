// `history`: what is known of one user.

let historyCommand = Command(
  "history", summary: "Show a user's history",
  details: [
    "Lists what the ledger knows of a user in the order in which it happened: uploads, verifications, sales, "
      + "returns and reversals, each with the position of its event."
  ],
  positionals: [Positional("USER", help: "the user identifier that the client sent")],
  options: [.json],
  examples: [Example("ledgerctl history 42", "Show the history of user 42")]
) { invocation, context in
  try showHistory(HistoryOptions(invocation), invocation, context)
}

/// What `history` was asked for.
struct HistoryOptions: Equatable, Sendable {
  /// Must not be shown in an error.
  let user: String
  let isJSON: Bool

  init(_ invocation: Invocation) {
    user = invocation.positionals[0]
    isJSON = invocation.has("json")
  }
}

private func showHistory(
  _ options: HistoryOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  throw Failure.notWired("history")
}
