// `checkpoint`: the ledger's head, signed.
import Ledger

let checkpointCommand = Command(
  "checkpoint", summary: "Sign the ledger's head",
  details: [
    "Prints a C2SP checkpoint: the origin, how many events there are, their root, and a signature. Whoever keeps "
      + "it can later have it proven that not one of these events was changed (`ledgerctl audit --checkpoint`).",
    "What it rests on is forced to disk first. Every checkpoint is kept in `checkpoints/`; a new one must extend "
      + "the last. Where the log does not, nothing is signed and the exit code is 20.",
  ],
  options: [Option("output", short: "o", value: .init("FILE"), help: "write to FILE")],
  examples: [Example("ledgerctl checkpoint -o head.txt", "Sign the head, for an auditor to keep")]
) { invocation, context in
  let ledger = try OpenLedger(invocation, context)
  let checkpoint = try CheckpointStore(ledger.directory).sign(ledger.reader)
  try withDestination(invocation.value("output"), context) { try $0.write(checkpoint.bytes) }
  return .done
}
