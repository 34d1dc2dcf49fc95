// `prices import`: a price list.
import Intake
import Ledger

let pricesImportCommand = Command(
  "prices import", summary: "Declare a price list",
  details: [
    "FILE is CSV with the columns `product_id`, `country_code`, `currency`, `price` and `effective_from`, in "
      + "any order. An entry with an empty country applies to all countries without an entry of their own.",
    "A price list prices sales that have no price from a client, including earlier ones. If any line is bad, "
      + "nothing is declared.",
  ],
  positionals: [Positional("FILE", help: "a CSV file, or `-` for standard input")],
  options: [.declareAgain, .json],
  examples: [Example("ledgerctl prices import prices.csv", "Declare a price list")]
) { invocation, context in
  try importPrices(DeclarationOptions(invocation), invocation, context)
}

extension Option {
  static let declareAgain = Option(
    "again",
    help:
      "declare the file even if it was declared before; of two declarations the later one counts")
}

/// The options of `prices import` and `rates import`.
struct DeclarationOptions: Equatable, Sendable {
  /// A path; `-` is standard input.
  let file: String
  /// Whether a file that was declared before is declared again.
  let declaresAgain: Bool
  let isJSON: Bool

  init(_ invocation: Invocation) {
    file = invocation.positionals[0]
    declaresAgain = invocation.has("again")
    isJSON = invocation.has("json")
  }
}

private func importPrices(
  _ options: DeclarationOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  try declare(.pricesDeclared, options, invocation, context) { stop in
    try PriceListFile.read(path: options.file, stop: stop)
  }
}
