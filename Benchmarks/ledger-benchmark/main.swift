// One measurement a run, in this process; script/bench takes turns and compares.
import Glibc
import Ledger
import ProgramSupport

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

func run(_ words: [String]) throws {
  OpenFileLimit.raise()
  func arguments(_ known: String...) throws(UsageError) -> Arguments {
    try Arguments(words.dropFirst(), valued: Set(known))
  }
  switch words.first {
  case "append":
    try Append.run(
      arguments(
        "--way", "--events", "--directory", "--group", "--threads", "--in-flight", "--count",
        "--seconds"))
  case "deflate": try Deflate.run(arguments("--events", "--seconds"))
  case "catch-up": try CatchUp.run(arguments("--ledger", "--events", "--count"))
  case "open": try Opening.run(arguments("--ledger", "--count"))
  case "signed-objects": try SignedObjects.run(arguments("--seconds"))
  default: throw UsageError(message: "the first argument names no measurement")
  }
}

exit(Program.run("ledger-benchmark", help: usage, run))
