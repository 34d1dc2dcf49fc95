// `rebuild`: projections from nothing.
import JSON
import Ledger
import Projections

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
  let ledger = try OpenLedger(invocation, context)
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
