// `restore`: makes a ledger from a copy.
import Base
import Ledger
import Replication
import Server

let restoreCommand = Command(
  "restore", summary: "Make a ledger from a copy",
  details: [
    "Reads the copy that replication keeps in `--from` and makes a ledger in DIR, a new or empty "
      + "directory. Every object's "
      + "SHA-256 must be the one that the steps name; then the whole log is audited, its root must be that "
      + "of the step, and "
      + "every checkpoint must be of its events. The writer of the copy may go on meanwhile. An interrupted "
      + "restore is "
      + "continued by the same command: until it is done, DIR is no ledger.",
    "The restored ledger is on standby: everything can be read, nothing can be appended until `ledgerctl "
      + "promote` lets it "
      + "take over. How far webhooks came, and requests to erase that wait, are restored too. `keys/` and `config.json` are "
      + "not in a copy; bring them back from where you keep secrets.",
    "With `--at`, only the events before that position are restored, and no checkpoint of more. If "
      + "earlier events were redacted by "
      + "an erasure that comes later, that position can't be restored, and the next one that can is named.",
    "With `--checkpoint`, the restored log must begin with the events of a checkpoint that you kept. "
      + "Trust the public key that "
      + "you were given (`--key`) rather than the one in the copy.",
    "If objects are missing or damaged, all are named, nothing is restored, and the exit code is 20. "
      + "With `--partial`, the events "
      + "before the first of them are restored, and the exit code is 3.",
  ],
  positionals: [Positional("DIR", help: "the directory of the new ledger")],
  options: [
    .copy("from", isRequired: true, help: "the copy: s3://BUCKET/PREFIX or file:///PATH")
  ] + Option.copyAccess + [
    Option("at", value: .init("POSITION"), help: "only the events before this position"),
    Option(
      "checkpoint", value: .init("FILE"), isRepeatable: true, help: "a checkpoint that you kept"),
    .verifierKeys(),
    Option("partial", help: "of a damaged copy, restore the events before the damage"),
    .json,
  ],
  examples: [
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
  var restore = CopyRestore()
  restore.size = try invocation.value("at", "is not a position", read: positionValue)
  restore.boundedWebhook = { WebhookFiles.bounded($0, by: $1) }
  restore.isPartial = invocation.has("partial")
  restore.checkCancelled = { try context.interruption.check() }
  restore.givenHeads = { directory in
    try checkpointPaths.map { path in
      GivenHead(name: path, checkpoint: try givenCheckpoint(path, directory, keys: keys))
    }
  }
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
  let path = invocation.positionals[0]
  try context.owner.assume(newLedger: path)
  let report = try context.withStore(copy) { try restore.run(from: $0, to: path) }
  fetching.erase()
  checking.erase()
  let unfinished = try UnfinishedErasures(
    report.unfinishedErasures, try LedgerDirectory.open(path: path))
  let record = record(report) + ["unfinished_erasures": unfinished.record] as Record
  try context.print(invocation, record) { sheet in
    try sheet.line("Restored \(counted(report.size, "event")) in \(visible(path))")
    try sheet.fields(fields(report, copy.target) + unfinished.fields)
    var table = TextTable(["object", "what"])
    for fault in report.missing { table.append([fault.object, fault.cause]) }
    try sheet.table("Missing", table)
    try sheet.gap()
    try sheet.line("The ledger is on standby: 'ledgerctl promote' lets it take over.")
  }
  return report.missing.isEmpty ? .done : .partlyDone
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
    "unlisted": report.unlistedCount, "unredacted": report.unredactedCount, "notes": report.notes,
  ]
}
