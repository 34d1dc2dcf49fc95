// `promote`: lets a ledger take over its copy.
import Base
import Ledger
import Replication
import Server

let promoteCommand = Command(
  "promote", summary: "Let this ledger take over a copy",
  details: [
    "For a restored ledger, or one that another writer had cut off and whose log is the beginning of the "
      + "copy's. Fetches what the "
      + "copy holds beyond this ledger, then creates the next step of the copy with a new epoch. From then "
      + "on the former writer's "
      + "next step fails: it appends nothing more and says who took over. Make sure that clients reach this "
      + "ledger and no other.",
    "Refused if this ledger holds events that the copy has not: write them to a file with `ledgerctl "
      + "divergence`, `restore` a "
      + "ledger from the copy, promote that one, and import the file there.",
    "If the former writer had begun an erasure and not finished it, that is shown: `redact --again` finishes it, or says "
      + "which request to repeat.",
    "A copy has no keys. If data was erased and `keys/lines.hmac` is not here, that is said: bring it back from where you "
      + "keep secrets.",
    "An interrupted promotion is finished by the same command. On a ledger that writes the copy already "
      + "it does nothing.",
  ],
  options: [.copy("to", help: "the copy (default: that of config.json)")] + Option.copyAccess
    + [.json],
  examples: [
    Example("ledgerctl promote", "Take over the copy that config.json names"),
    Example("ledgerctl promote --to file:///mnt/second-disk/shop", "Take over this one"),
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
  if isKeyMissing {
    context.say(
      "promote: \(LineHMACKey.name) is missing: bring it back before you import, or imports of old files are refused, "
        + "since they may hold people who were erased")
  }
  return .done
}
