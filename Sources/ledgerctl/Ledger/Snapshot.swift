// `snapshot create`, `list`, `verify`, `restore`, `prune`: saved states of the projections.
import Base
import Ledger
import Projections

let snapshotCreateCommand = Command(
  "snapshot create", summary: "Save the projections",
  details: [
    "Saves the projections in `snapshots`; damaged ones are rebuilt first. The event `snapshot.created` "
      + "vouches for the content; if it can't be appended, no snapshot is made. Commands with `--as-of` start "
      + "from the nearest earlier snapshot: one of each closed month makes these months fast to reach."
  ],
  options: [.asOf, .json],
  examples: [
    Example(
      "ledgerctl snapshot create --as-of 2026-03-31",
      "Save the projections as of the end of March")
  ],
  isReadOnly: true
) { invocation, context in
  let asOf = try invocation.asOf()
  let ledger = try OpenLedger(invocation, context)
  if asOf == nil, let damage = ledger.reader.damage { throw damage }
  let size = try asOf.map { try ledger.size(at: $0, "as-of") }
  let snapshot = try ledger.projector().createSnapshot(at: size) { draft in
    try ledger.withWriter { try $0.append([draft]).lowerBound }
  }
  try context.print(invocation, SnapshotLine(snapshot, state: nil).record) { sheet in
    let header = snapshot.header
    try sheet.line(
      "Saved snapshot \(snapshot.name): \(counted(header.size, "event")), "
        + sizeText(header.byteCount))
  }
  return .done
}

let snapshotListCommand = Command(
  "snapshot list", summary: "List the snapshots",
  details: [
    "Prints each snapshot by its number of events, which is its name, and whether it can be used: whether it "
      + "belongs to this ledger's history and this program's versions, and an event vouches for it. `snapshot "
      + "verify` also reads the files."
  ],
  options: [.json]
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let projector = try ledger.projector()
  let store = projector.snapshots
  let lines = store.snapshots.map { SnapshotLine($0, state: projector.unfitness(of: $0)) }
  try write(lines, store.unreadable, whole: "usable", invocation, context)
  return .done
}

let snapshotVerifyCommand = Command(
  "snapshot verify", summary: "Check snapshots",
  details: [
    "Reads the snapshot, or all of them, as a restore would: digests, position and root, versions, the event "
      + "that vouches for it, and every page and row. The exit code is 21 if any can't be used. `ledgerctl audit "
      + "--projections` proves that the rows follow from the log."
  ],
  positionals: [.snapshot],
  options: [.json]
) { invocation, context in
  let chosen = try SnapshotChoice(invocation)
  let ledger = try OpenLedger(invocation, context)
  let projector = try ledger.projector()
  let store = try chosen.store(projector.snapshots)
  let lines = try store.snapshots.map { SnapshotLine($0, state: try projector.verify($0)) }
  try write(lines, store.unreadable, whole: "intact", invocation, context)
  return lines.allSatisfy { $0.state == nil } && store.unreadable.isEmpty ? .done : .mismatch
}

let snapshotRestoreCommand = Command(
  "snapshot restore", summary: "Put a snapshot in use",
  details: [
    "Makes a new generation of the projections from the snapshot, or from the newest that can be used, folds "
      + "the events after it, and puts it in use. Readers are not disturbed. If a snapshot is not used, the "
      + "reason is printed."
  ],
  positionals: [.snapshot],
  options: [.json]
) { invocation, context in
  try restore(SnapshotChoice(invocation), invocation, context)
}

let snapshotPruneCommand = Command(
  "snapshot prune", summary: "Remove old snapshots",
  details: [
    "Keeps the newest usable snapshots and removes all others, including unusable ones and leftovers of "
      + "interrupted commands. Before it removes anything, it compares those to keep with their digests."
  ],
  options: [
    Option("keep", value: .init("N"), isRequired: true, help: "how many to keep"), .json,
  ],
  examples: [Example("ledgerctl snapshot prune --keep 12", "Keep the newest twelve snapshots")]
) { invocation, context in
  let keep = try invocation.value("keep", "is not a number", read: positionValue) ?? 0
  let ledger = try OpenLedger(invocation, context)
  // No snapshot would match a damaged log.
  if let damage = ledger.reader.damage { throw damage }
  let projector = try ledger.projector()
  let isCancelled = { context.interruption.isRequested }
  let (removed, kept) = try projector.snapshots.prune(isCancelled: isCancelled) {
    (snapshots) throws(ProjectionError) in
    // A snapshot saved while this waited may contain events that are newer than the log's view.
    do throws(LedgerError) {
      try ledger.reader.refresh()
      if let damage = ledger.reader.damage { throw damage }
    } catch { throw .ledger(error) }
    var kept: [Snapshot] = []
    for snapshot in snapshots.reversed() where kept.count < keep {
      if let cause = try projector.unfitnessOfBytes(of: snapshot) {
        ledger.log("snapshot prune: snapshot \(snapshot.name) is not kept: \(visible(cause))")
      } else {
        kept.insert(snapshot, at: 0)
      }
    }
    return kept
  }
  let record: Record = ["kept": kept.map(\.header.size), "removed": removed]
  try context.print(invocation, record) {
    try $0.line("Removed \(counted(removed.count, "snapshot")), kept \(kept.count)")
  }
  return .done
}

// MARK: Choice

extension Positional {
  fileprivate static let snapshot = Positional(
    "EVENTS", arity: .optional, help: "a snapshot, by its number of events")
}

/// The snapshot given to a command.
struct SnapshotChoice: Equatable, Sendable {
  /// Nil if none was given.
  let size: Int?

  init(_ invocation: Invocation) throws(UsageError) {
    guard let text = invocation.positionals.first else {
      size = nil
      return
    }
    guard let number = positionValue(text) else {
      throw UsageError(ShownArgument.text(text), "is not a number of events")
    }
    size = number
  }

  /// The chosen snapshots.
  func store(_ store: SnapshotStore) throws -> SnapshotStore {
    guard let size else { return store }
    let chosen = store.only(size)
    guard chosen.snapshots.isEmpty, chosen.unreadable.isEmpty else { return chosen }
    throw Failure(
      operation: "find snapshot", object: "\(size)",
      cause: "no snapshot has this number of events; 'ledgerctl snapshot list' shows all")
  }
}

private func restore(
  _ choice: SnapshotChoice, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  if let damage = ledger.reader.damage { throw damage }
  let projector = try ledger.projector()
  let store = try choice.store(projector.snapshots)
  // A snapshot given by name is not replaced by another.
  func passOver(_ name: String, _ cause: String) throws(ProjectionError) {
    if choice.size != nil { throw .snapshot(name: name, cause: cause) }
    ledger.log("snapshot restore: snapshot \(visible(name)) is not used: \(visible(cause))")
  }
  for entry in store.unreadable { try passOver(entry.name, entry.cause) }
  var used: Snapshot?
  for snapshot in store.snapshots.reversed() {
    do throws(ProjectionError) {
      try projector.restore(snapshot)
      used = snapshot
      break
    } catch {
      guard case .snapshot(let name, let cause) = error else { throw error }
      try passOver(name, cause)
    }
  }
  guard let used else {
    let isNone = store.snapshots.isEmpty && store.unreadable.isEmpty
    throw Failure(
      operation: "snapshot restore", object: "snapshots",
      cause: isNone ? "there is none" : "none can be used")
  }
  let head = try Report.head(of: try ledger.projections())
  let record: Record = [
    "snapshot": used.header.size, "events": head.size, "root": head.root.base64,
  ]
  try context.print(invocation, record) {
    let later = counted(head.size - used.header.size, "later event")
    try $0.line("Restored snapshot \(used.name) and folded \(later)")
  }
  return .done
}

// MARK: Lists

/// A snapshot, and why it can't be used.
private struct SnapshotLine {
  let snapshot: Snapshot
  /// Nil if it can be used.
  let state: String?

  init(_ snapshot: Snapshot, state: String?) { (self.snapshot, self.state) = (snapshot, state) }

  var record: Record {
    let header = snapshot.header
    return [
      "events": header.size, "root": header.root.base64,
      "last_event_at": header.lastEventAtMs.map(timeText),
      "created_at": timeText(header.createdAtMs), "file": header.file,
      "bytes": header.byteCount, "sha256": header.sha256.hex,
      "problem": state,
    ]
  }
}

private func write(
  _ lines: [SnapshotLine], _ unreadable: [SnapshotStore.Unreadable], whole: String,
  _ invocation: Invocation, _ context: Context
) throws {
  let record: Record = [
    "snapshots": lines.map(\.record),
    "unreadable": unreadable.map { ["file": $0.file, "problem": $0.cause] as Record },
  ]
  try context.print(invocation, record) { sheet in
    if lines.isEmpty, unreadable.isEmpty {
      return try sheet.line("There are no snapshots; 'ledgerctl snapshot create' makes one.")
    }
    var table = TextTable([.number("events"), "last event", "made", .number("size"), "state"])
    for line in lines {
      let header = line.snapshot.header
      table.append([
        "\(header.size)", header.lastEventAtMs.map(timeText) ?? "none",
        timeText(header.createdAtMs), sizeText(header.byteCount), line.state ?? whole,
      ])
    }
    for entry in unreadable { table.append(["", "", "", "", "\(entry.file): \(entry.cause)"]) }
    try sheet.table("Snapshots", table)
  }
}
