// `rebuild`: builds the projections from the log, or shows what that would change; `projections list`.
import Base
import Ledger
import Projections

let rebuildCommand = Command(
  "rebuild", summary: "Rebuild the projections from the log",
  details: [
    "Folds the whole log into a new generation of the projections, and puts it in use when it is complete "
      + "and on disk. Readers and a server are not disturbed. Daily work does not need it. A changed event ends "
      + "the rebuild with exit code 20 and its position; the projections in use stay.",
    "Projections that belong to another history than the log are not replaced, and the exit code is 21; "
      + "docs/operations.md says what to do. `--accept-history` accepts the log as it is: it appends "
      + "`history.accepted`, which names what is given up, and rebuilds.",
    "`--compare` is for a changed fold (docs/projections.md). It and `--check` build up to the position of "
      + "the projections in use, and print the differences, never a text that may name a user; the exit code is "
      + "then 21.",
  ],
  options: [
    Option("compare", help: "show what a rebuild would change; change nothing"),
    Option(
      "check",
      help: "prove that the projections in use, caught up in steps, equal a rebuild; change nothing"
    ),
    Option(
      "rows", value: .init("COUNT", standard: "10"),
      help:
        "with `--compare` or `--check`: how many rows of each table, and sales of each figure, to show"
    ),
    Option("no-verify", help: "do not check the events"),
    Option(
      "accept-history", help: "accept the log although the projections belong to another history"),
    .json,
  ],
  examples: [
    Example("ledgerctl rebuild --compare", "See what a changed fold does before putting it in use")
  ]
) { invocation, context in
  try rebuild(RebuildOptions(invocation), invocation, context)
}

/// The options of `rebuild`.
struct RebuildOptions: Equatable, Sendable {
  enum Purpose: Equatable, Sendable { case replace, accept, compare, check }

  let purpose: Purpose
  let rowLimit: Int
  /// Whether the events are checked.
  let verifies: Bool

  init(_ invocation: Invocation) throws(UsageError) {
    switch (invocation.has("compare"), invocation.has("check")) {
    case (true, true):
      throw UsageError("--check", "cannot be used with --compare, which shows the same differences")
    case (true, false): purpose = .compare
    case (false, true): purpose = .check
    case (false, false): purpose = invocation.has("accept-history") ? .accept : .replace
    }
    if invocation.has("accept-history"), purpose != .accept {
      throw UsageError(
        "--accept-history", "cannot be used with --compare or --check, which change nothing")
    }
    if [.replace, .accept].contains(purpose), invocation.has("rows") {
      throw UsageError("--rows", "requires --compare or --check")
    }
    verifies = !invocation.has("no-verify")
    if !verifies, ![.replace, .accept].contains(purpose) {
      throw UsageError("--no-verify", "cannot be used with --compare or --check, which only fold")
    }
    rowLimit =
      try invocation.value("rows", "is not a number from 0 to 1000000") { text in
        positionValue(text).flatMap { $0 <= 1_000_000 ? $0 : nil }
      } ?? 10
  }
}

private func rebuild(
  _ options: RebuildOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  switch options.purpose {
  case .compare, .check: return try compare(options, ledger, invocation, context)
  case .accept:
    try ledger.rebuildProjections(
      acceptsHistory: try acceptHistory(ledger), verifies: options.verifies)
  case .replace: try ledger.rebuildProjections(verifies: options.verifies)
  }
  let database = try ledger.projections()
  let head = try Report.head(of: database)
  let record: Record = [
    "events": head.size, "root": head.root.base64, "verified": options.verifies,
  ]
  try context.print(invocation, record) {
    let note = options.verifies ? "" : ", which were not verified"
    try $0.line("Rebuilt the projections from \(counted(head.size, "event"))\(note)")
  }
  return .done
}

/// Records in the log what belongs to another history, and drops the signed heads; returns whether there was any.
private func acceptHistory(_ ledger: OpenLedger) throws -> Bool {
  if let damage = ledger.reader.damage { throw damage }
  let store = CheckpointStore(ledger.directory)
  let older = try? Projector.rememberedHeads(ledger.directory)
  var heads = older
  var isUnreadable = false
  do throws(LedgerError) { heads = try store.signedHeads()?.merged(with: older) ?? older } catch {
    guard error.kind == .corruption else { throw error }
    isUnreadable = true
  }
  var options = WriterOptions()
  options.acceptsShorterLog = true
  let position = try ledger.withWriter(options: options) { writer -> Position? in
    try ledger.reader.refresh()
    let conflict = try ledger.projector().historyConflict()
    let disagreeing = try heads.flatMap { heads in
      try store.disagreement(of: heads, ledger.reader).map { _ in heads }
    }
    if conflict == nil, disagreeing == nil, !isUnreadable { return nil }
    let log = ledger.reader.head
    let accepted = HistoryAccepted(
      log: .init(size: log.size, root: log.root),
      projections: conflict.map { .init(size: $0.folded.size, root: $0.folded.root) },
      heads: disagreeing)
    return try writer.append(.historyAccepted, accepted.data)
  }
  try ledger.reader.refresh()
  guard let position else {
    ledger.log("rebuild: nothing belongs to another history than the log")
    return false
  }
  try store.resetHeads(ledger.reader)
  ledger.log(
    "rebuild: accepted the log as it is; the event at position \(position) records what was given up"
  )
  return true
}

private func compare(
  _ options: RebuildOptions, _ ledger: OpenLedger, _ invocation: Invocation, _ context: Context
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
    throw Failure(operation: "rebuild", object: "projections", cause: "there are none to compare")
  }
  let printer = ComparisonPrinter(comparison: comparison)
  try context.print(invocation, printer.record) { try printer.write(to: &$0) }
  return comparison.isEmpty ? .done : .mismatch
}

// MARK: - `projections list`

let projectionsListCommand = Command(
  "projections list", summary: "List the projections, their versions and their progress",
  details: [
    "Prints for each projection its version, its position, its number of stored rows, how many events it is "
      + "behind, and since when its file is in use. It changes nothing and takes no lock.",
    "If a version is not that of this program, both are shown; the next command that reads the projections "
      + "rebuilds them. The exit code is 21 if the projections are damaged or belong to another history than the "
      + "log.",
  ],
  options: [.json]
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

private func write(_ list: ProjectionList?, lag: Int?, to sheet: inout TextSections) throws {
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
