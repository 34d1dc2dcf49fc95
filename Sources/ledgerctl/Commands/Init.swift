// `init`: a new, empty ledger.

let initCommand = Command(
  "init", summary: "Create a ledger",
  details: [
    "Makes DIR a ledger without events. DIR is created where it does not exist; one that exists must be empty.",
    "The origin names the ledger wherever it is spoken of, in checkpoints above all, and can never be changed. "
      + "It looks like a web address without `https://`: a domain that is yours, then a path. It holds no white "
      + "space and no `+`.",
    "A ledger holds receipts, which are secrets: its directory and files can be read by their owner alone.",
  ],
  positionals: [Positional("DIR", help: "the directory to become a ledger")],
  options: [
    Option("origin", value: .init("NAME"), isRequired: true, help: "the ledger's lasting name"),
    .json,
  ],
  examples: [
    Example("ledgerctl init receipts --origin example.com/receipts", "Create the ledger `receipts`")
  ],
  usesLedger: false
) { invocation, context in
  try createLedger(InitOptions(invocation), context)
}

/// What `init` was asked for.
struct InitOptions: Equatable, Sendable {
  let path: String
  let origin: String
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    path = invocation.positionals[0]
    origin =
      try invocation.value(
        "origin", "must be 1 to 255 characters without white space, control characters and `+`"
      ) { Self.isOrigin($0) ? $0 : nil } ?? ""
    isJSON = invocation.has("json")
  }

  /// Source: the C2SP checkpoint format, where the origin is a line and a key name.
  private static func isOrigin(_ text: String) -> Bool {
    guard (1...255).contains(text.utf8.count) else { return false }
    return text.unicodeScalars.allSatisfy {
      $0 != "+" && !$0.properties.isWhitespace && visible(String($0)) == String($0)
    }
  }
}

private func createLedger(_ options: InitOptions, _ context: Context) throws -> ExitCode {
  throw Failure.notWired("init")
}
