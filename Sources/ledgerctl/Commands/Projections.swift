// `projections list`: what is folded, in which version, and how far.
import JSON
import Ledger
import Projections

let projectionsListCommand = Command(
  "projections list", summary: "List the projections, their versions and how far they have come",
  details: [
    "Prints each projection's version, the position up to which it has folded, the rows of its tables, how many "
      + "events it is behind, and since when the file is in use here: since the last rebuild, the last restored "
      + "snapshot, or the copy of the ledger, unless that kept its times. What follows from other rows is stored in "
      + "none: a view may show more, as `journal_view` does with its Sale lines. It changes nothing and needs no "
      + "lock.",
    "Where a version is not this program's, both are shown: the next command that reads projections builds them "
      + "anew, and says so. Projections that rest on another history than the log has, or are damaged, make the "
      + "exit code 21.",
  ],
  options: [.json],
  examples: [
    Example("ledgerctl projections list", "See whether a new version has yet to be built")
  ]
) { invocation, context in
  try listProjections(isJSON: invocation.has("json"), invocation, context)
}

private func listProjections(
  isJSON: Bool, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let list: ProjectionList?
  do { list = try ledger.projector().list() } catch {
    guard ErrorReport.isProjectionDamage(error) else { throw error }
    throw ErrorReport.projectionDamage(operation: "projections list")
  }
  // A server may have folded on since the log was looked at.
  try ledger.reader.refresh()
  let lag = list.map { max(0, ledger.reader.head.size - $0.position) }
  if isJSON {
    try writeJSON(list, lag: lag, context)
  } else {
    try write(list, lag: lag, context)
  }
  if let damage = ledger.reader.damage { throw damage }
  if let list, !list.isOfThisLog { return .mismatch }
  return .done
}

private func write(_ list: ProjectionList?, lag: Int?, _ context: Context) throws {
  guard let list else {
    return try context.output.writeLine(
      "There are no projections yet: the next command that needs them builds them.")
  }
  var table = TextTable([
    .init("projection"), .init("version", isNumber: true), .init("position", isNumber: true),
    .init("rows", isNumber: true), .init("lag", isNumber: true), .init("in use since"),
  ])
  for entry in list.entries {
    table.append([
      entry.version.name, versionText(entry.version), "\(list.position)",
      entry.rowCount.map { "\($0)" } ?? "", lag.map { "\($0)" } ?? "",
      list.inUseSinceMs.map(timeText) ?? "",
    ])
  }
  var sheet = Sheet(context)
  try sheet.table("Projections", table)
  guard list.mustBeRebuilt else { return }
  try context.output.writeLine()
  try context.output.writeLine(
    list.isOfThisLog
      ? "They are of another version of this program and will be built anew."
      : "They rest on another history than the log has; only 'ledgerctl rebuild --accept-history' "
        + "replaces them.")
}

/// A stored version; with this program's where that is another.
func versionText(_ version: ProjectionStatus.Version) -> String {
  let stored = version.stored.map { "\($0)" } ?? "missing"
  if version.isCurrent { return stored }
  if version.stored == version.current { return "\(stored) (defined otherwise)" }
  return "\(stored) (this program: \(version.current.map { "\($0)" } ?? "none"))"
}

private func writeJSON(_ list: ProjectionList?, lag: Int?, _ context: Context) throws {
  var writer = JSONWriter()
  writer.beginArray()
  for entry in list?.entries ?? [] {
    writer.object { writer in
      writer.member("name", entry.version.name)
      writer.member("version", entry.version.stored)
      writer.member("current_version", entry.version.current)
      writer.member("position", list?.position)
      writer.member("rows", entry.rowCount)
      writer.member("lag", lag)
      writer.member("in_use_since", list?.inUseSinceMs.map(timeText))
      writer.member("must_be_rebuilt", list?.mustBeRebuilt ?? true)
    }
  }
  writer.endArray()
  try context.output.write(writer.bytes)
  try context.output.writeLine()
}
