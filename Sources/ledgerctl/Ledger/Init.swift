// `init`: a new, empty ledger.
import Base
import Glibc
import Ledger

let initCommand = Command(
  "init", summary: "Create a ledger",
  details: [
    "Creates an empty ledger in DIR. DIR is created if it does not exist; if it exists, it must be empty.",
    "The origin is the permanent name of the ledger, for example in checkpoints. It cannot be changed. It "
      + "looks like a web address without `https://`: a domain that you own, then a path without a slash at its "
      + "end. White space, `+`, `\"` and `\\` are not allowed.",
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
  let givenPath = invocation.positionals[0]
  let givenOrigin = try invocation.value(
    "origin", "must be 1 to 255 bytes without white space, control characters, `+`, `\"` and `\\`"
  ) { LedgerIdentity.isValidOrigin($0) && visible($0) == $0 ? $0 : nil }
  if let givenOrigin, !LedgerIdentity.isNewOrigin(givenOrigin) {
    throw invocation.wrong(
      "origin", givenOrigin, "must be written without `https://` and without `/` at its ends")
  }
  var status = stat()
  if stat(givenPath, &status) == 0, status.st_mode & S_IFMT != S_IFDIR {
    throw Failure(
      operation: "create ledger", object: givenPath, cause: "it exists and is not a directory")
  }
  try context.owner.assume(newLedger: givenPath)
  // Resolved before it exists.
  let path = ShownArgument.path(givenPath)
  let identity = try LedgerDirectory.create(path: givenPath, origin: givenOrigin ?? "").identity
  let origin = ShownArgument.path(identity.origin)
  let record: Record = [
    "origin": origin, "id": "\(identity.id)", "path": path,
    "created_at": timeText(identity.createdAtMs),
  ]
  try context.print(invocation, record) { try $0.line("Created ledger \(origin) in \(path).") }
  return .done
}
