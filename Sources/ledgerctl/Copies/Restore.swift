// `restore`: restores a ledger from a copy.
import Base
import Ledger
import Projections
import Replication
import Server

let restoreCommand = Command(
  "restore", summary: "Make a ledger from a backup or a copy",
  details: [
    "From a backup, a directory that `ledgerctl backup` made, or the newest in a directory of backups: "
      + "checks every file, and audits the whole log. The ledger in DIR is complete, with keys and "
      + "`config.json`, and can be served at once. Never serve it and the ledger that was backed up: they are "
      + "two histories. `--at`, `--list` and `--partial` are for copies.",
    "From a copy: makes a ledger in DIR, a new or empty directory, and checks every object, the whole log, its "
      + "root and every checkpoint. The writer of the copy may continue meanwhile. The same command continues "
      + "an interrupted restore and, run again later, fetches what is new. docs/replication.md has the details.",
    "A ledger restored from a copy is on standby: nothing can be appended until `ledgerctl promote` lets it take over. "
      + "`keys/` and `config.json` are not in a copy; bring them back from where you keep secrets.",
    "If objects are missing or damaged, all are named, nothing is restored, and the exit code is 20; with "
      + "`--partial` it is 3.",
  ],
  positionals: [Positional("DIR", arity: .optional, help: "the directory of the new ledger")],
  options: [
    .copy(
      "from", isRequired: true,
      help: "the copy, s3://BUCKET/PREFIX or file:///PATH; or the directory of a backup or backups")
  ] + Option.copyAccess + [
    Option(
      "at", value: .init("POINT"),
      help:
        "only the events before this position, or recorded until the end of this day (UTC) or this RFC "
        + "3339 time"),
    Option(
      "list",
      help: "show which states can be restored; DIR is not given"),
    Option(
      "checkpoint", value: .init("FILE"), isRepeatable: true,
      help: "a checkpoint that you kept; the log must begin with its events"),
    .verifierKeys(),
    Option("partial", help: "restore the events before the damage"),
    .json,
  ],
  examples: [
    Example(
      "ledgerctl restore --from /mnt/backup/shop restored", "Restore the newest backup"),
    Example(
      "ledgerctl restore --from file:///mnt/second-disk/shop restored", "Restore from another disk"),
    Example(
      "ledgerctl restore --from s3://receipts-copy/shop --region eu-central-1 --credentials-file "
        + "s3-credentials restored",
      "Restore from a bucket"),
  ],
  usesLedger: false
) { invocation, context in
  let keys = try invocation.verifierKeys()
  let checkpointPaths = invocation.values("checkpoint")
  if !keys.isEmpty, checkpointPaths.isEmpty {
    throw UsageError("--key", "requires --checkpoint")
  }
  let givenHeads = { (directory: LedgerDirectory) in
    try checkpointPaths.map { path in
      GivenHead(name: path, checkpoint: try givenCheckpoint(path, directory, keys: keys))
    }
  }
  if let source = invocation.value("from"), !source.contains("://") {
    return try restoreBackup(source, givenHeads, invocation, context)
  }
  var restore = CopyRestore()
  switch try invocation.value("at", Option.restoredPointProblem, read: PointInTime.init) {
  case .position(let position): restore.size = position
  case .recordedAtMs(let timeMs): restore.untilMs = timeMs
  case .manifest:
    throw UsageError("--at", Option.restoredPointProblem, command: invocation.command.name)
  case nil: break
  }
  restore.forgetProjections = { try Projector.forgetAll($0) }
  restore.boundedWebhook = { WebhookFiles.bounded($0, by: $1) }
  restore.isPartial = invocation.has("partial")
  restore.checkCancelled = { try context.interruption.check() }
  restore.givenHeads = givenHeads
  let (fetching, checking) = (
    SharedProgress("Fetching", context: context), SharedProgress("Checking", context: context)
  )
  restore.progress = { phase, done, total in
    switch phase {
    case .fetching: fetching.update(done, of: total)
    case .checking: checking.update(done, of: total)
    }
  }
  guard let copy = try invocation.givenCopy("from") else {
    throw UsageError("--from", "is missing", command: invocation.command.name)
  }
  if invocation.has("list") { return try list(copy, invocation, context) }
  guard let path = invocation.positionals.first else {
    throw UsageError("DIR", "is missing", command: invocation.command.name)
  }
  try context.owner.assume(newLedger: path)
  let report = try context.withStore(copy) { try restore.run(from: $0, to: path) }
  fetching.erase()
  checking.erase()
  let unfinished = try UnfinishedErasures(
    report.unfinishedErasures, try LedgerDirectory.open(path: path))
  let record = record(report) + ["unfinished_erasures": unfinished.record] as Record
  try context.print(invocation, record) { sheet in
    if let known = report.continuedFrom {
      let count = report.size - known
      try sheet.line(
        count == 0
          ? "Nothing new for \(visible(path))"
          : "Continued \(visible(path)) by \(counted(count, "event"))")
    } else {
      try sheet.line("Restored \(counted(report.size, "event")) in \(visible(path))")
    }
    try sheet.fields(fields(report, copy.target) + unfinished.fields)
    var table = TextTable(["object", "what"])
    for fault in report.missing { table.append([fault.object, fault.cause]) }
    try sheet.table("Missing", table)
    try sheet.gap()
    try sheet.line("The ledger is on standby: 'ledgerctl promote' lets it take over.")
  }
  return report.missing.isEmpty ? .done : .partlyDone
}

extension Option {
  fileprivate static let restoredPointProblem = "is not a position, a day or an RFC 3339 time"
}

/// `--list`.
private func list(
  _ copy: Configuration.Replication, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  for name in ["at", "checkpoint", "partial"] where invocation.has(name) {
    throw UsageError("--\(name)", "cannot be used with --list", command: invocation.command.name)
  }
  guard invocation.positionals.isEmpty else {
    throw UsageError("DIR", "cannot be used with --list", command: invocation.command.name)
  }
  let found = try context.withStore(copy) { store in
    try CopyListing(store, checkCancelled: { try context.interruption.check() })
  }
  guard let found else { throw CopyError.noCopy(store: copy.target) }
  let record: Record = [
    "ledger": found.newest.ledger.description,
    "points": found.points.map {
      [
        "at": timeText($0.atMs), "size": $0.size, "step": $0.step, "epoch": $0.epoch,
      ] as Record
    },
    "checkpoints": found.checkpointSizes,
  ]
  try context.print(invocation, record) { sheet in
    try sheet.fields([
      ("copy", copy.target), ("ledger", found.newest.ledger.description),
      ("root", "\(found.newest.root.base64) of \(counted(found.newest.size, "event"))"),
    ])
    var table = TextTable(["copied", .number("events"), .number("step"), .number("epoch")])
    for point in found.points {
      table.append([timeText(point.atMs), "\(point.size)", "\(point.step)", "\(point.epoch)"])
    }
    try sheet.table("States", table)
    if let last = found.checkpointSizes.last {
      try sheet.line(
        "\(counted(found.checkpointSizes.count, "signed head")), the newest of \(counted(last, "event"))"
      )
    }
    try sheet.line("'restore --at' takes a number of events, a day or a time; also any in between.")
  }
  return .done
}

private func fields(_ report: CopyRestore.Report, _ target: String) -> Fields {
  let fetched = report.fetched
  var fields: Fields = [
    ("copy", "\(target), step \(report.step.number), epoch \(report.step.epoch)"),
    ("made", timeText(report.step.atMs)),
    ("root", "\(report.root.base64) of \(counted(report.size, "event"))"),
    ("checkpoints", "\(report.checkpointCount)"),
    ("fetched", "\(counted(fetched.objects, "object")), \(sizeText(fetched.bytes))"),
  ]
  if fetched.kept > 0 { fields.append(("kept", counted(fetched.kept, "object"))) }
  if report.unlistedCount > 0 {
    let count = counted(report.unlistedCount, "redacted event")
    fields.append(("note", "the proof of \(count) is missing: audits will name them"))
  }
  return fields + report.notes.map { ("note", $0) }
}

private func record(_ report: CopyRestore.Report) -> Record {
  [
    "size": report.size, "root": report.root.base64, "step": report.step.number,
    "epoch": report.step.epoch, "step_at": timeText(report.step.atMs),
    "copied": report.step.size, "checkpoints": report.checkpointCount,
    "fetched_objects": report.fetched.objects, "fetched_bytes": report.fetched.bytes,
    "kept_objects": report.fetched.kept, "missing": report.missing.map { record(of: $0) },
    "continued_from": report.continuedFrom, "unlisted": report.unlistedCount,
    "unredacted": report.unredactedCount, "notes": report.notes,
  ]
}

// MARK: - From a backup

private func restoreBackup(
  _ source: String, _ givenHeads: @escaping (LedgerDirectory) throws -> [GivenHead],
  _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let forCopies = ["at", "list", "partial", "endpoint", "region", "credentials-file"]
  for name in forCopies where invocation.has(name) {
    throw UsageError(
      "--\(name)",
      "cannot be used with a backup"
        + (name == "list" ? ": use 'ledgerctl backup DIR --list'" : ""))
  }
  guard let path = invocation.positionals.first else { throw UsageError("DIR", "is missing") }
  try context.owner.assume(newLedger: path)
  var restore = BackupRestore()
  let (copying, checking) = backupProgress(context)
  restore.progress = { phase, done, total in
    (phase == .copying ? copying : checking).update(done, of: total)
  }
  restore.checkCancelled = { try context.interruption.check() }
  restore.givenHeads = givenHeads
  let backup = try restore.backup(at: source)
  if isInside(path, try backup.status()) {
    throw Failure(operation: "restore", object: path, cause: "it is inside the backup")
  }
  let report = try restore.run(backup, to: path)
  copying.erase()
  checking.erase()
  let (manifest, audit) = (report.manifest, report.audit)
  let unfinished = try UnfinishedErasures(
    audit.unfinishedErasures, try LedgerDirectory.open(path: path))
  let record: Record = [
    "backup": report.backup, "made_at": timeText(manifest.madeAtMs), "size": manifest.size,
    "root": manifest.root.base64, "checkpoints": audit.checkpointCount,
    "files": manifest.files.count, "bytes": manifest.byteCount,
    "unredacted": audit.unredactedCount, "notes": audit.notes,
    "unfinished_erasures": unfinished.record,
  ]
  try context.print(invocation, record) { sheet in
    try sheet.line("Restored \(counted(manifest.size, "event")) in \(visible(path))")
    try sheet.fields(
      [
        ("backup", "\(report.backup), made \(timeText(manifest.madeAtMs))"),
        ("root", "\(manifest.root.base64) of \(counted(manifest.size, "event"))"),
        ("checkpoints", "\(audit.checkpointCount)"),
        ("read", "\(counted(manifest.files.count, "file")), \(sizeText(manifest.byteCount))"),
      ] + unfinished.fields + audit.notes.map { ("note", $0) })
    try sheet.gap()
    try sheet.line(
      "Never serve this ledger and the one that was backed up: they are two histories.")
  }
  return .done
}
