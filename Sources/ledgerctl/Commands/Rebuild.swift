// `rebuild`: projections from nothing, and what that would change.
import JSON
import Ledger
import Projections

let rebuildCommand = Command(
  "rebuild", summary: "Build the projections again from the log",
  details: [
    "Folds the whole log into a new generation of the projections beside the one in use, and puts it in use once "
      + "it is complete, has taken in what was appended meanwhile, and is on disk. Readers and a server are not "
      + "disturbed; what they opened stays as it was. A rebuild that is interrupted changes nothing.",
    "There is no need for it in daily work: every command brings the projections up to date first, and builds "
      + "those of another version anew.",
    "`--compare` and `--check` build too, up to the position of the projections in use, but put nothing in use: "
      + "they print what differs, and the exit code is then 21. `--compare` is for a changed fold: rows added, "
      + "removed and changed in each table and view, and the revenue of production by month, country and currency, "
      + "with the sales behind it. `--check` proves that projections that were caught up bit by bit equal those "
      + "built from nothing, and names the tables and rows where they don't. Of a row, its key and the values of "
      + "integers are shown, never a text that may name a user.",
  ],
  options: [
    Option("compare", help: "show what a rebuild would change, and change nothing"),
    Option("check", help: "prove that the projections in use equal a rebuild, and change nothing"),
    Option(
      "rows", value: .init("COUNT", standard: "10"),
      help: "with --compare or --check: so many rows of each table, and sales of each figure"),
    .json,
  ],
  examples: [
    Example("ledgerctl rebuild", "Build the projections again"),
    Example("ledgerctl rebuild --compare", "See what a changed fold does before it is put in use"),
  ]
) { invocation, context in
  try rebuild(RebuildOptions(invocation), invocation, context)
}

/// What `rebuild` was asked for.
struct RebuildOptions: Equatable, Sendable {
  enum Purpose: Equatable, Sendable { case replace, compare, check }

  let purpose: Purpose
  let rowLimit: Int
  let isJSON: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    switch (invocation.has("compare"), invocation.has("check")) {
    case (true, true):
      throw UsageError(
        "--check", "cannot stand beside --compare, which finds what it finds",
        command: invocation.command.name)
    case (true, false): purpose = .compare
    case (false, true): purpose = .check
    case (false, false): purpose = .replace
    }
    if purpose == .replace, invocation.has("rows") {
      throw UsageError(
        "--rows", "goes with --compare or --check", command: invocation.command.name)
    }
    rowLimit =
      try invocation.value("rows", "is no count from 0 to 1000000") { text in
        positionValue(text).flatMap { $0 <= 1_000_000 ? $0 : nil }
      } ?? 10
    isJSON = invocation.has("json")
  }
}

private func rebuild(
  _ options: RebuildOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  if options.purpose != .replace { return try compare(options, ledger, context) }
  try ledger.rebuildProjections()
  let database = try ledger.projections()
  let head = try Report.head(of: database)
  if options.isJSON {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("events")
    writer.integer(head.size)
    writer.key("root")
    writer.string(head.root.base64)
    writer.endObject()
    try context.output.write(writer.bytes)
    try context.output.writeLine()
  } else {
    try context.output.writeLine("Rebuilt the projections from \(counted(head.size, "event"))")
  }
  return .done
}

private func compare(
  _ options: RebuildOptions, _ ledger: OpenLedger, _ context: Context
) throws -> ExitCode {
  if let damage = ledger.reader.damage { throw damage }
  let found: ProjectionComparison?
  do {
    found = try ledger.projector().compare(
      options.purpose == .compare ? .everything : .tables, rowLimit: options.rowLimit)
  } catch {
    guard ErrorReport.isProjectionDamage(error) else { throw error }
    throw ErrorReport.projectionDamage(operation: "rebuild")
  }
  guard let comparison = found else {
    throw Failure(
      operation: "rebuild", object: "projections", cause: "there are none to compare with")
  }
  let sheet = ComparisonSheet(comparison, context)
  if options.isJSON { try sheet.writeJSON() } else { try sheet.write() }
  return comparison.isEmpty ? .done : .mismatch
}
