// `projections list`: the versions and progress of the projections.
import Ledger
import Projections

let projectionsListCommand = Command(
  "projections list", summary: "List the projections, their versions and their progress",
  details: [
    "Prints for each projection its version, its position (the number of events that it has folded), the "
      + "number of rows in its tables, how many events it is behind, and since when the file is in use here: "
      + "since the last rebuild, the last restored snapshot, or the copy of the ledger, unless the copy kept its "
      + "times. Rows that follow from other rows are not stored: a view may show more, as `journal_view` does "
      + "with its Sale lines. The command changes nothing and takes no lock.",
    "If a version is not that of this program, both are shown: the next command that reads the projections "
      + "rebuilds them and says so. If the projections belong to another history than the log, or are damaged, "
      + "the exit code is 21.",
  ],
  options: [.json],
  examples: [
    Example("ledgerctl projections list", "See whether a new version still has to be built")
  ]
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let list: ProjectionList?
  do { list = try ledger.projector().list() } catch {
    guard ErrorReport.isProjectionDamage(error) else { throw error }
    throw ErrorReport.projectionDamage(operation: "projections list")
  }
  // A server may have folded further events since the log was read.
  try ledger.reader.refresh()
  let lag = list.map { max(0, ledger.reader.head.size - $0.position) }
  let records = (list?.entries ?? []).map { entry in
    [
      "name": entry.version.name, "version": entry.version.stored,
      "current_version": entry.version.current, "position": list?.position,
      "rows": entry.rowCount, "lag": lag, "in_use_since": list?.inUseSinceMs.map(timeText),
      "must_be_rebuilt": list?.mustBeRebuilt ?? true,
    ] as Record
  }
  try context.print(invocation, list: records) { try write(list, lag: lag, to: &$0) }
  if let damage = ledger.reader.damage { throw damage }
  if let list, !list.isOfThisLog { return .mismatch }
  return .done
}

private func write(_ list: ProjectionList?, lag: Int?, to sheet: inout Sheet) throws {
  guard let list else {
    return try sheet.line(
      "There are no projections yet; the next command that needs them builds them.")
  }
  var table = TextTable([
    "projection", .number("version"), .number("position"), .number("rows"), .number("lag"),
    "in use since",
  ])
  for entry in list.entries {
    table.append([
      entry.version.name, versionText(entry.version), "\(list.position)", entry.rowCount.cell,
      lag.cell, list.inUseSinceMs.map(timeText) ?? "",
    ])
  }
  try sheet.table("Projections", table)
  guard list.mustBeRebuilt else { return }
  try sheet.line()
  try sheet.line(
    list.isOfThisLog
      ? "They were built by another version of this program and will be rebuilt."
      : "They belong to another history than the log; only 'ledgerctl rebuild --accept-history' "
        + "replaces them.")
}

/// A stored version, and this program's if that differs.
func versionText(_ version: ProjectionStatus.Version) -> String {
  let stored = version.stored.map { "\($0)" } ?? "missing"
  if version.isCurrent { return stored }
  if version.stored == version.current { return "\(stored) (other definition)" }
  return "\(stored) (this program: \(version.current.map { "\($0)" } ?? "none"))"
}
