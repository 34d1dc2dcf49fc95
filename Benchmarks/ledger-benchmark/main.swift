// One measurement a run, in this process; script/bench takes turns and compares.
import Glibc
import Ledger

let usage = """
  Usage: ledger-benchmark append --way ledger|bare|sqlite --events FILE --directory DIR
                                 [--group N] [--threads N] (--count N | --seconds S)
         ledger-benchmark deflate --events FILE [--seconds S]
         ledger-benchmark catch-up --ledger DIR --events FILE [--count N]
         ledger-benchmark open --ledger DIR [--count N]
         ledger-benchmark signed-objects [--seconds S]

  Prints one JSON object. FILE holds event lines as `ledgerctl replay` prints them. `catch-up` appends to
  its ledger: give it a copy.

  """

func fail(_ message: String, status: Int32) -> Never {
  let bytes = Array(message.utf8)
  _ = bytes.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
  exit(status)
}

OpenFileLimit.raise()
let arguments = CommandLine.arguments.dropFirst()
do {
  let rest = arguments.dropFirst()
  switch arguments.first {
  case "append":
    try Append.run(
      Options(
        rest,
        known: ["way", "events", "directory", "group", "threads", "in-flight", "count", "seconds"]))
  case "deflate": try Deflate.run(Options(rest, known: ["events", "seconds"]))
  case "catch-up": try CatchUp.run(Options(rest, known: ["ledger", "events", "count"]))
  case "open": try Opening.run(Options(rest, known: ["ledger", "count"]))
  case "signed-objects": try SignedObjects.run(Options(rest, known: ["seconds"]))
  case "--help": print(usage, terminator: "")
  default: fail(usage, status: 2)
  }
} catch {
  fail("ledger-benchmark: \(error)\n", status: 1)
}
