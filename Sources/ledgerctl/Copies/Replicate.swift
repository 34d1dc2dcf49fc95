// `replicate`: copies the log to the store that config.json names, without a server.
import Base
import Glibc
import Ledger
import Replication
import Server

let replicateCommand = Command(
  "replicate", summary: "Copy the log to its store",
  details: [
    "Copies what the store that config.json names does not hold yet, and prints how much that was. A server and an "
      + "import do the same by themselves (docs/replication.md); this is for a ledger that none of them has open, "
      + "and for the first copy of a large one.",
    "`--follow` goes on as events are appended by other commands, until a signal arrives. If another process copies "
      + "this ledger, the exit code is 11. If another writer has taken over, the exit code is 13, and nothing may be "
      + "appended here any more.",
    "When it starts, it compares what the copy must hold with what the store lists. `--verify` also reads the contents "
      + "back, with `--sample` those of a part of all objects, chosen at random. What is missing or wrong is named and "
      + "stored again from this disk; the exit code is then 3.",
  ],
  options: [
    Option("follow", help: "continue as events are appended"),
    Option("verify", help: "read back what the copy holds"),
    Option("sample", value: .init("N%"), help: "with `--verify`: only so much of it"),
    .json,
  ],
  examples: [
    Example("ledgerctl replicate", "Bring the copy up to date"),
    Example("ledgerctl replicate --follow", "Keep a copy of a ledger that imports write to"),
    Example("ledgerctl replicate --verify --sample 5%", "Also read back a twentieth of it"),
  ]
) { invocation, context in
  try replicate(invocation, context)
}

/// A part of all, as in "5%"; nil if it is none.
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
    diagnostics.writeLine(visible("ledgerctl: \($0)"))
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
  /// Where the copy is kept.
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
