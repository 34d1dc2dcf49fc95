// `replicate` copies the log to the store of config.json without a server; `promote` lets a ledger take over its copy.
import Base
import Glibc
import Ledger
import Replication
import Server

let replicateCommand = Command(
  "replicate", summary: "Copy the log to its store",
  details: [
    "Copies what the store that config.json names does not hold yet, and prints how much that was. A server "
      + "and an import do so by themselves (docs/replication.md); this is for a ledger that neither has open, "
      + "and for the first copy of a large one.",
    "At first it compares what the copy must hold with what the store lists. What is missing or wrong is "
      + "named and stored again; the exit code is then 3. It is 11 if another process copies this ledger, 13 if "
      + "another writer has taken over: then nothing may be appended here any more.",
  ],
  options: [
    Option("follow", help: "continue as other commands append events, until a signal arrives"),
    Option("verify", help: "also read back what the copy holds"),
    Option(
      "sample", value: .init("N%"), help: "with `--verify`: a part of all objects, chosen at random"
    ),
    .json,
  ],
  examples: [
    Example("ledgerctl replicate --follow", "Keep a copy of a ledger that imports write to"),
    Example("ledgerctl replicate --verify --sample 5%", "Also read back a twentieth of the copy"),
  ]
) { invocation, context in
  try replicate(invocation, context)
}

/// Parses a share such as "5%"; nil if it is not one.
private func part(_ text: String) -> Double? {
  guard text.hasSuffix("%"), let value = Double(text.dropLast()), value > 0, value <= 100 else {
    return nil
  }
  return value / 100
}

private func replicate(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let sample = try invocation.value("sample", "is not a part such as 5%", read: part)
  if sample != nil, !invocation.has("verify") { throw UsageError("--sample", "requires --verify") }
  let ledger = try OpenLedger(invocation, context)
  let configuration = try ledger.replicationSettings(operation: "replicate")
  // A ledger that must not be appended to must not be copied either.
  try Standby.refuse(ledger.directory, operation: "replicate")
  let diagnostics = context.diagnostics
  let progress = Progress("Copying", unit: .count("events"), context: context)
  let replication = try LedgerReplication(ledger.directory, configuration) {
    diagnostics.writeLine(visible("ledgerctl: \($1)"), $0)
  }
  let interruption = context.interruption
  try replication.start(onFenced: { _ in })
  defer { replication.stop(deadlineMs: 0) }
  let before = replication.status.confirmedSize
  do {
    let isDone = try replication.copyAll(
      verifying: invocation.has("verify") ? sample ?? 1 : nil,
      isCancelled: { interruption.isRequested },
      progress: { progress.update($0.confirmedSize, of: $0.size) })
    progress.erase()
    if !isDone { try interruption.check() }
    while invocation.has("follow"), !interruption.isRequested {
      if let ending = replication.status.ending { throw ending }
      usleep(100_000)
    }
  } catch let ending as ReplicationEnding {
    progress.erase()
    throw ending.ledgerError(operation: "replicate", object: configuration.target)
  }
  if invocation.has("follow") { replication.stop(deadlineMs: 5_000) }
  let status = replication.status
  let record: Record = [
    "target": status.target, "epoch": status.epoch, "step": status.step,
    "events": status.confirmedSize, "copied_events": status.confirmedSize - before,
    "stored_bytes": status.storedByteCount, "lost_objects": status.lostCount,
    "verified_objects": status.verifiedCount, "verified_bytes": status.verifiedByteCount,
    "whole_at": status.wholeAtMs.map(timeText),
  ]
  try context.print(invocation, record) { sheet in
    try sheet.line(
      "\(status.target) holds \(counted(status.confirmedSize, "event")), "
        + "\(status.confirmedSize - before) of them new (step \(status.step ?? 0), epoch \(status.epoch))"
    )
    if invocation.has("verify") {
      try sheet.line(
        "Read back \(counted(status.verifiedCount, "object")), \(sizeText(status.verifiedByteCount))"
      )
    }
    if status.lostCount > 0 {
      try sheet.line(
        "\(counted(status.lostCount, "object")) had been lost or damaged, and \(status.lostCount == 1 ? "was" : "were") "
          + "stored again")
    }
  }
  return status.lostCount == 0 ? .done : .partlyDone
}

extension OpenLedger {
  /// The target of the copy.
  ///
  /// Throws if config.json names no store.
  func replicationSettings(operation: String) throws -> Configuration.Replication {
    guard let found = try ConfigurationFile(directory).read().replication else {
      throw Failure(
        operation: operation, object: "config.json",
        cause: "it sets no replication; docs/configuration.md describes it")
    }
    return found
  }
}

// MARK: - `promote`

let promoteCommand = Command(
  "promote", summary: "Let this ledger take over a copy",
  details: [
    "For a restored ledger, or a fenced one whose log is the beginning of the copy's. Fetches what the copy "
      + "holds beyond this ledger, then begins a new epoch of the copy: the former writer's next step fails, and "
      + "it appends nothing more. Make sure that clients reach only this ledger. An interrupted promotion is "
      + "finished by the same command.",
    "Refused if this ledger holds events that the copy does not: write them to a file with `ledgerctl "
      + "divergence`, `restore` a ledger from the copy, promote that one, and import the file there. An erasure "
      + "that the former writer left unfinished is shown, with the command that finishes it.",
  ],
  options: [.copy("to", help: "the copy (default: that of config.json)")] + Option.copyAccess
    + [.json],
  examples: [
    Example("ledgerctl promote --to file:///mnt/second-disk/shop", "Take over this copy")
  ]
) { invocation, context in
  let directory = try context.openLedger(invocation)
  let copy = try invocation.copy("to", of: directory)
  let progress = SharedProgress("Fetching", context: context)
  var promotion = Promotion()
  promotion.boundedWebhook = { WebhookFiles.bounded($0, by: $1) }
  promotion.checkCancelled = { try context.interruption.check() }
  promotion.progress = { progress.update($0, of: $1) }
  let report = try context.withStore(copy) { try promotion.run(directory, $0) }
  progress.erase()
  let (step, previous) = (report.step, report.previous)
  let unfinished = try UnfinishedErasures(report.unfinishedErasures, directory)
  let isKeyMissing = try LineHMACKey.isMissing(directory)
  let record: Record = [
    "promoted": !report.wasOwner, "step": step.number, "epoch": step.epoch,
    "writer": step.writer.description, "size": step.size, "root": step.root.base64,
    "from_writer": previous.writer.description, "from_epoch": previous.epoch,
    "from_step": previous.number, "from_at": timeText(previous.atMs),
    "local_size": report.localSize, "fetched_objects": report.fetched.objects,
    "fetched_bytes": report.fetched.bytes, "unfinished_erasures": unfinished.record,
    "erasure_key_missing": isKeyMissing,
  ]
  try context.print(invocation, record) { sheet in
    if report.wasOwner {
      return try sheet.line(
        "This ledger writes \(visible(copy.target)) already, in epoch \(step.epoch).")
    }
    try sheet.line("This ledger has taken over \(visible(copy.target))")
    try sheet.fields(
      [
        ("step", "\(step.number), epoch \(step.epoch)"),
        ("root", "\(step.root.base64) of \(counted(step.size, "event"))"),
        (
          "from",
          "writer \(previous.writer), epoch \(previous.epoch), whose last step was made "
            + timeText(previous.atMs)
        ),
        (
          "fetched",
          "\(counted(step.size - report.localSize, "event")), "
            + "\(counted(report.fetched.objects, "object")), \(sizeText(report.fetched.bytes))"
        ),
      ] + unfinished.fields)
  }
  if invocation.has("to"), let configured = try? ConfigurationFile(directory).read().replication,
    configured.target != copy.target
  {
    context.log(
      visible(
        "promote: config.json names another copy, \(configured.target): a server of this ledger would "
          + "write to that; set replication.target to \(copy.target) before you start it"))
  }
  if isKeyMissing {
    context.log(
      "promote: \(LineHMACKey.name) is missing: bring it back before you import, or imports of old files are refused, "
        + "since they may hold people who were erased")
  }
  return .done
}
