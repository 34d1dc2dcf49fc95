// `backup`: makes, lists and checks backups of a ledger.
import Base
import Ledger
import Replication

let backupCommand = Command(
  "backup", summary: "Make a backup, list or check backups",
  details: [
    "Makes a backup in DIR, a directory on any disk, also while a server runs: every event acknowledged before "
      + "the command began, checkpoints, keys, `config.json`, and the state of webhooks and erasures. It is "
      + "named by its time in UTC, synced, and audited before it gets its name; what an interrupted run left "
      + "is removed by the next.",
    "A closed segment that the newest backup in DIR holds with the same bytes is shared with it by a hard "
      + "link, so a backup takes the space of what is new. To remove a backup, remove its directory.",
    "Backups hold secrets and personal data: protect them like the ledger, and let those expire that are older "
      + "than an erasure. `ledgerctl restore --from DIR` makes a ledger of one.",
  ],
  positionals: [
    Positional("DIR", help: "the directory of the backups, which exists"),
    Positional("NAME", arity: .optional, help: "with `--verify`: only this backup"),
  ],
  options: [
    Option("list", help: "list the backups: events, newest event, size; files are not read"),
    Option(
      "verify",
      help:
        "read every file of the backups and audit their logs; the exit code is 20 if any is damaged"
    ),
    .json,
  ],
  examples: [
    Example("ledgerctl backup /mnt/backup/shop", "Make a backup"),
    Example("ledgerctl backup /mnt/backup/shop --list", "List the backups"),
    Example(
      "ledgerctl backup /mnt/backup/shop 2026-11-28T001502Z --verify", "Check one of them"),
  ]
) { invocation, context in
  let path = invocation.positionals[0]
  let name = invocation.positionals.dropFirst().first
  if invocation.has("list"), invocation.has("verify") {
    throw UsageError("--list", "cannot be used with --verify")
  }
  if let name, !invocation.has("verify") {
    throw UsageError(ShownArgument.text(name), "requires --verify")
  }
  if let name, !BackupName.isOne(name) {
    throw UsageError(
      ShownArgument.text(name), "is not the name of a backup, as in 2026-11-28T001502Z")
  }
  if invocation.has("list") || invocation.has("verify") {
    try context.owner.assume(newLedger: path)
    let backups = try BackupFolder(path: path)
    return invocation.has("list")
      ? try list(backups, invocation, context) : try verify(backups, name, invocation, context)
  }
  return try make(path, invocation, context)
}

// MARK: Making

private func make(
  _ path: String, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let directory = try context.openLedger(invocation)
  try refuseNested(path, directory)
  var backup = LedgerBackup()
  let (copying, checking) = backupProgress(context)
  backup.progress = { phase, done, total in
    (phase == .copying ? copying : checking).update(done, of: total)
  }
  backup.checkCancelled = { try context.interruption.check() }
  let report = try backup.run(directory, into: path)
  copying.erase()
  checking.erase()
  let manifest = report.manifest
  let unfinished = try UnfinishedErasures(report.audit.unfinishedErasures, directory)
  let record =
    record(manifest, name: report.name)
    + [
      "shared_bytes": report.sharedByteCount, "shared_with": report.sharedWith,
      "unredacted": report.audit.unredactedCount, "unfinished_erasures": unfinished.record,
      "notes": report.audit.notes,
    ] as Record
  try context.print(invocation, record) { sheet in
    try sheet.line("Made backup \(report.name) in \(visible(path))")
    var size = "\(sizeText(manifest.byteCount)) in \(counted(manifest.files.count, "file"))"
    if let other = report.sharedWith {
      size += ", \(sizeText(report.sharedByteCount)) of it shared with \(other)"
    }
    try sheet.fields(
      [
        ("root", "\(manifest.root.base64) of \(counted(manifest.size, "event"))"), ("size", size),
      ] + unfinished.fields + report.audit.notes.map { ("note", $0) })
  }
  return .done
}

/// A folder of backups in the ledger would be a part of it; a ledger in the folder could be taken for a part of that.
private func refuseNested(_ path: String, _ directory: LedgerDirectory) throws {
  func refusal(_ cause: String) -> Failure {
    Failure(operation: "backup", object: path, cause: cause)
  }
  if try isInsideLedger(path, directory) {
    throw refusal("it is inside a ledger's directory; keep backups elsewhere, best on another disk")
  }
  let status = try BackupFolder(path: path).status()
  if isInside(directory.root.path, status) {
    throw refusal("the ledger is inside it; keep backups elsewhere, best on another disk")
  }
}

/// Whether a path is a folder or leads into it.
func isInside(_ path: String, _ folder: FileStatus) -> Bool {
  var path = resolvedPath(path)
  while true {
    if let status = try? Folder(path: path).ownStatus(), status.isOfSameFile(as: folder) {
      return true
    }
    guard path != "/", let slash = path.lastIndex(of: "/") else { return false }
    path = slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

func backupProgress(_ context: Context) -> (copying: Progress, checking: Progress) {
  (
    Progress("Copying", unit: .bytes, context: context),
    Progress("Checking", unit: .bytes, context: context)
  )
}

private func record(_ manifest: BackupManifest, name: String) -> Record {
  [
    "name": name, "ledger": manifest.ledger.description, "origin": manifest.origin,
    "made_at": timeText(manifest.madeAtMs), "events": manifest.size,
    "root": manifest.root.base64,
    "newest_event_at": manifest.size > 0 ? timeText(manifest.newestEventAtMs) : nil,
    "files": manifest.files.count, "bytes": manifest.byteCount,
  ]
}

// MARK: Listing

private func list(
  _ backups: BackupFolder, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let listing = try BackupListing(backups)
  let all: Record = [
    "backups": listing.entries.map { entry -> Record in
      let known: Record =
        entry.manifest.map { record($0, name: entry.name) } ?? ["name": entry.name]
      return known
        + [
          "own_bytes": entry.ownByteCount,
          "fault": entry.fault.map { record(of: $0) },
        ] as Record
    },
    "unfinished": listing.unfinished,
  ]
  try context.print(invocation, all) { sheet in
    if listing.entries.isEmpty { try sheet.line("No backups.") }
    var table = TextTable([
      "backup", .number("events"), "newest event", .number("size"), .number("alone"), "state",
    ])
    for entry in listing.entries {
      let manifest = entry.manifest
      table.append([
        entry.name, manifest.map { "\($0.size)" } ?? "",
        manifest.flatMap { $0.size > 0 ? timeText($0.newestEventAtMs) : nil } ?? "",
        manifest.map { sizeText($0.byteCount) } ?? "", sizeText(entry.ownByteCount),
        entry.fault.map { "damaged: \($0.description)" } ?? "complete",
      ])
    }
    if !table.isEmpty { try sheet.table(table) }
    for name in listing.unfinished {
      try sheet.line("\(name) is not finished: it is being made, or the next backup removes it")
    }
  }
  return .done
}

// MARK: Verifying

private func verify(
  _ backups: BackupFolder, _ chosen: String?, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let names = try chosen.map { [$0] } ?? backups.names()
  var faults: [CopyFault] = []
  var records: [Record] = []
  var table = TextTable(["backup", .number("events"), "state"])
  let checking = backupProgress(context).checking
  var check = BackupCheck()
  check.progress = { checking.update($0, of: $1) }
  check.checkCancelled = { try context.interruption.check() }
  for name in names {
    var found: [CopyFault]
    var manifest: BackupManifest?
    do {
      let backup = try backups.backup(name)
      manifest = backup.manifest
      found = try check.faults(of: backup)
    } catch CopyError.faults(let others) { found = others }
    faults += found
    records.append(
      (manifest.map { record($0, name: name) } ?? ["name": name])
        + ["faults": found.map { record(of: $0) }] as Record)
    table.append([
      name, manifest.map { "\($0.size)" } ?? "", found.isEmpty ? "intact" : "damaged",
    ])
  }
  checking.erase()
  try context.print(invocation, ["backups": records] as Record) { sheet in
    if names.isEmpty { try sheet.line("No backups.") } else { try sheet.table(table) }
    var list = TextTable(["file", "what"])
    for fault in faults { list.append([fault.object, fault.cause]) }
    try sheet.table("Damaged", list)
  }
  return faults.isEmpty ? .done : .corrupted
}
