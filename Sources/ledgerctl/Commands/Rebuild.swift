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
    "Projections that rest on another history than the log has are not replaced: the exit code is 21. They are what "
      + "is left of that history, as after a backup was restored over a newer ledger, or after somebody rewrote the log. "
      + "`--accept-history` takes the log as it is: it appends `history.accepted`, which names the root of the log, that "
      + "of the projections and the signed heads that were remembered, forgets those heads, and rebuilds.",
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
    Option(
      "accept-history", help: "take the log as it is where projections rest on another history"),
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
  enum Purpose: Equatable, Sendable { case replace, accept, compare, check }

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
    case (false, false): purpose = invocation.has("accept-history") ? .accept : .replace
    }
    if invocation.has("accept-history"), purpose != .accept {
      throw UsageError(
        "--accept-history", "cannot stand beside --compare and --check, which change nothing",
        command: invocation.command.name)
    }
    if [.replace, .accept].contains(purpose), invocation.has("rows") {
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
  switch options.purpose {
  case .compare, .check: return try compare(options, ledger, context)
  case .accept: try ledger.rebuildProjections(acceptsHistory: try acceptHistory(ledger))
  case .replace: try ledger.rebuildProjections()
  }
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

/// Notes in the log what remembers another history, and forgets the signed heads; returns whether anything did.
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
    let type = EventType.historyAccepted
    return try writer.append([
      EventDraft(type: type.rawValue, version: type.currentVersion, data: accepted.data)
    ]).lowerBound
  }
  try ledger.reader.refresh()
  guard let position else {
    ledger.say("rebuild: nothing remembers another history than the log has")
    return false
  }
  try store.forgetHeads(ledger.reader)
  ledger.say(
    "rebuild: the log is accepted as it is; the event at position \(position) names what was "
      + "given up")
  return true
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
  let sheet = ComparisonPrinter(comparison, context)
  if options.isJSON { try sheet.writeJSON() } else { try sheet.write() }
  return comparison.isEmpty ? .done : .mismatch
}
