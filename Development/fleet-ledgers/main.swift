// Makes fleets of ledgers for tests: splits one ledger into several, merges several into one.
import Glibc
import ProgramSupport

let help = """
  Usage: fleet-ledgers split LEDGER --into K --seed S -o DIR [options]
         fleet-ledgers merge LEDGER … -o MERGED --map FILE [options]

  split deals the events of a ledger out to K new ledgers, DIR/shop-1 to DIR/shop-K, and writes
  DIR/fleet.json, which names them. Every event keeps its type, version, data and time, and the order
  stays. An upload goes to any of the ledgers, so that a customer and a receipt are in several. Its
  verifications follow it, but for a few. A verification that reuses the reply of another ledger gets
  the reply itself. Positions in the data are those of the new ledger.

    --into K               1 to 64 ledgers
    --seed S               how the events are dealt out, and the ledgers' ids
    --spread-ms N          gives the events times that rise in steps of up to N ms, for a source whose
                           events were recorded together
    --stray-percent P      verifications that go to a ledger without their upload, and so name none;
                           default 1

  merge writes one ledger with the events of all, in the order of time, ledger id and position, with
  the positions in their data mapped. FILE is CSV: of each event its position in the merged ledger,
  its ledger's name (that of its folder) and its position there.

  Both take:

    --block-bytes N        the size of a block before compression; default 1048576
    --segment-bytes N      the size of a segment; default 268435456

  Exit codes: 0 done, 1 failed, 2 wrong usage.

  """

func run(_ arguments: [String]) throws {
  let rest = arguments.dropFirst()
  let paths = Array(rest.prefix { !$0.hasPrefix("-") })
  let options = Array(rest.dropFirst(paths.count))
  switch arguments.first {
  case "split": try SplitCommand(paths, options).run()
  case "merge": try MergeCommand(paths, options).run()
  case let command?: throw UsageError(message: "unknown command '\(command)'")
  case nil: throw UsageError(message: "split or merge is missing")
  }
}

exit(Program.run("fleet-ledgers", help: help, run))
