// `rates import`: exchange rates.
import Intake
import Ledger

let ratesImportCommand = Command(
  "rates import", summary: "Declare exchange rates",
  details: [
    "FILE is CSV with the columns `date`, `base`, `quote` and `rate` (1 base = rate quote), or the unchanged "
      + "history file of the European Central Bank: a date, then a column for each currency with its rate for 1 "
      + "EUR.",
    "Only `export … --in CURRENCY` uses rates. If any line is bad, nothing is declared.",
  ],
  positionals: [Positional("FILE", help: "a CSV file, or `-` for standard input")],
  options: [.declareAgain, .json],
  examples: [
    Example("ledgerctl rates import eurofxref-hist.csv", "Declare the ECB's reference rates")
  ]
) { invocation, context in
  try importRates(DeclarationOptions(invocation), invocation, context)
}

private func importRates(
  _ options: DeclarationOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  try declare(.ratesDeclared, options, invocation, context) { stop in
    try RateListFile.read(path: options.file, stop: stop)
  }
}
