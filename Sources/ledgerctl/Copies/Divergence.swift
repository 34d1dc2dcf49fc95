// `divergence`: writes what only a fenced ledger holds as lines for an import.
import Base
import Ledger
import Replication
import Server

let divergenceCommand = Command(
  "divergence", summary: "Write what a fenced ledger holds alone as import lines",
  details: [
    "For a ledger whose copy another writer has taken over: writes what the copy does not have from it, "
      + "uploads with the App Store's replies and notifications, to a file for `ledgerctl import` at the new "
      + "ledger. Importing it again appends nothing.",
    "Other events are counted, and the exit code is then 3: declarations and apps, which you declare again "
      + "there; replies of the App Store, which the new ledger asks for itself; uploads that are invalid or "
      + "redacted.",
  ],
  options: [.copy("from", help: "the copy (default: that of config.json)")] + Option.copyAccess
    + [
      Option(
        "output", short: "o", value: .init("FILE"), isRequired: true,
        help: "write to FILE, which only its owner can read"),
      .json,
    ],
  examples: [
    Example("ledgerctl divergence -o diverged.ndjson", "Save what only this ledger holds")
  ],
  isReadOnly: true
) { invocation, context in
  let directory = try context.openLedger(invocation)
  let copy = try invocation.copy("from", of: directory)
  let found = try context.withStore(copy) { try Divergence.find(directory, $0) }
  guard let found else {
    try context.print(invocation, ["diverged": false]) {
      try $0.line("No other writer has taken over \(visible(copy.target)): nothing has diverged.")
    }
    return .done
  }
  var report = DivergedLines.Report()
  if found.start < found.size {
    let file = try OutputFile(
      path: invocation.value("output") ?? "", outside: context.ledgers.opened, isPrivate: true)
    let reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    report = try DivergedLines(reader, from: found.start).write { line in
      try context.interruption.check()
      try file.output.write(line)
    }
    // An import rejects an empty file.
    if report.lineCount > 0 { try file.commit() }
  }
  let left = report.left.sorted { ($0.key.type, $0.key.reason) < ($1.key.type, $1.key.reason) }
  let record: Record = [
    "diverged": found.start < found.size, "step": found.takeover.number,
    "epoch": found.takeover.epoch, "taken_over_at": timeText(found.takeover.atMs),
    "first_position": found.start, "size": found.size, "lines": report.lineCount,
    "receipts": report.receipts, "signed_transactions": report.signedTransactions,
    "notifications": report.notifications,
    "left": left.map {
      ["type": $0.key.type, "reason": $0.key.reason, "events": $0.value] as Record
    },
  ]
  try context.print(invocation, record) { sheet in
    try sheet.line(
      "Epoch \(found.takeover.epoch) began with step \(found.takeover.number) at "
        + "\(timeText(found.takeover.atMs)), after \(counted(found.start, "event"))")
    let alone = found.size - found.start
    if alone == 0 { return try sheet.line("This ledger holds no events of its own after that.") }
    try sheet.line(
      "Wrote \(counted(report.lineCount, "line")) of \(counted(alone, "event")) that only this ledger holds: "
        + "\(counted(report.receipts, "receipt")), \(report.signedTransactions) uploads of signed transactions, "
        + "\(counted(report.notifications, "notification"))")
    var table = TextTable(["type", "why they have no line", .number("events")])
    for (key, count) in left { table.append([key.type, key.reason, "\(count)"]) }
    try sheet.table("Left out", table)
  }
  return report.leftCount == 0 ? .done : .partlyDone
}
