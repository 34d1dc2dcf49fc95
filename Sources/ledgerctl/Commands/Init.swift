// `init`: a new, empty ledger.
import Base
import Glibc
import JSON
import Ledger

let initCommand = Command(
  "init", summary: "Create a ledger",
  details: [
    "Creates an empty ledger in DIR. DIR is created if it does not exist; if it exists, it must be empty.",
    "The origin is the permanent name of the ledger, for example in checkpoints. It cannot be changed. It "
      + "looks like a web address without `https://`: a domain that you own, then a path. White space, `+`, `\"` "
      + "and `\\` are not allowed.",
    "Receipts are secrets: only their owner can read the ledger's directory and files.",
  ],
  positionals: [Positional("DIR", help: "the directory of the new ledger")],
  options: [
    Option("origin", value: .init("NAME"), isRequired: true, help: "the ledger's permanent name"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl init receipts --origin example.com/receipts",
      "Create a ledger in the directory `receipts`")
  ],
  usesLedger: false
) { invocation, context in
  try createLedger(InitOptions(invocation), context)
}

/// The options of `init`.
struct InitOptions: Equatable, Sendable {
  let path: String
  let origin: String
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    path = invocation.positionals[0]
    origin =
      try invocation.value(
        "origin",
        "must be 1 to 255 bytes without white space, control characters, `+`, `\"` and `\\`"
      ) { LedgerIdentity.isValidOrigin($0) && visible($0) == $0 ? $0 : nil } ?? ""
    isJSON = invocation.has("json")
  }
}

private func createLedger(_ options: InitOptions, _ context: Context) throws -> ExitCode {
  var status = stat()
  if stat(options.path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
    throw Failure(
      operation: "create ledger", object: options.path, cause: "it exists and is not a directory")
  }
  // Resolved before it exists.
  let path = ShownArgument.path(options.path)
  let ledger = try LedgerDirectory.create(path: options.path, origin: options.origin)
  let origin = ShownArgument.path(ledger.identity.origin)
  guard options.isJSON else {
    try context.output.writeLine("Created ledger \(origin) in \(path).")
    return .done
  }
  try context.output.writeObject { writer in
    writer.member("origin", origin)
    writer.member("id", "\(ledger.identity.id)")
    writer.member("path", path)
    writer.member("created_at", atMs: ledger.identity.createdAtMs)
  }
  return .done
}
