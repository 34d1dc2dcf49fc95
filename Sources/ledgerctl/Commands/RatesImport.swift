// `rates import`: exchange rates.
import Intake
import Ledger

let ratesImportCommand = Command(
  "rates import", summary: "Declare exchange rates",
  details: [
    "FILE is CSV with the columns `date`, `base`, `quote` and `rate` (1 base = rate quote), or the history file "
      + "of the European Central Bank as it is: a date, then a column for each currency that 1 EUR is.",
    "Rates are used by `export … --in CURRENCY` alone. One bad line and nothing is declared.",
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
