// `prices import` and `rates import`: declare price lists and exchange rates; and the report of undeclared products.
import Base
import Intake
import Ledger
import Projections
import Server

let pricesImportCommand = Command(
  "prices import", summary: "Declare a price list",
  details: [
    "FILE is CSV with the columns `product_id`, `country_code`, `currency`, `price` and `effective_from`, in "
      + "any order. An empty country means all countries without an entry of their own. The list also prices "
      + "earlier sales that have no price from a client. If any line is bad, or a price is 0 without `--allow-zero`, "
      + "nothing is declared."
  ],
  positionals: [Positional("FILE", help: "a CSV file; `-` is standard input")],
  options: [
    .declareAgain,
    Option("allow-zero", help: "accept prices of 0: sales count with amount 0, not as unpriced"),
  ] + Option.dryRun + [.json],
  examples: [
    Example("ledgerctl prices import prices.csv --dry-run", "Show which sales a list would price"),
    Example("ledgerctl prices import prices.csv", "Declare a price list"),
  ]
) { invocation, context in
  try declare(.pricesDeclared, invocation, context) { file, stop in
    try PriceListFile.read(path: file, stop: stop)
  }
}

let ratesImportCommand = Command(
  "rates import", summary: "Declare exchange rates",
  details: [
    "FILE is CSV with the columns `date`, `base`, `quote` and `rate` (1 base = rate quote), or the unchanged "
      + "history file of the European Central Bank: a date, then each currency's rate for 1 EUR. Only `--in` of "
      + "`export`, `diff` and `report` uses rates. If any line is bad, nothing is declared."
  ],
  positionals: [Positional("FILE", help: "a CSV file; `-` is standard input")],
  options: [.declareAgain] + Option.dryRun + [.json],
  examples: [
    Example("ledgerctl rates import eurofxref-hist.csv", "Declare the ECB's reference rates")
  ]
) { invocation, context in
  try declare(.ratesDeclared, invocation, context) { file, stop in
    try RateListFile.read(path: file, stop: stop)
  }
}

extension Option {
  static let declareAgain = Option(
    "again",
    help: "declare the file even if it was declared before; the later declaration counts")
}

/// Reads a declaration and appends it, unless the same file was declared before. If an earlier run was interrupted,
/// appends the rest.
func declare(
  _ type: EventType, _ invocation: Invocation, _ context: Context,
  _ read: (_ file: String, StopFlag) throws -> Declaration
) throws -> ExitCode {
  let file = invocation.positionals[0]
  let plan = try invocation.dryRun(type)
  let ledger = try OpenLedger(invocation, context)
  let interruption = context.interruption
  let declaration = try read(file, StopFlag { interruption.isRequested })
  for warning in declaration.warnings {
    context.log(visible("\(file): \(warning)"))
  }
  if let zero = declaration.zeroPrices {
    let place = "line \(zero.firstLine)"
    let what = zero.count == 1 ? "a price is 0" : "the first of \(zero.count) prices that are 0"
    let meaning = "sales priced by it count with amount 0, not as unpriced"
    guard invocation.has("allow-zero") else {
      throw Failure(
        operation: invocation.command.name, object: file,
        cause: "\(place): \(what): \(meaning); --allow-zero declares it")
    }
    context.diagnostics.writeLine(
      visible("ledgerctl: \(file)") + ": \(place): \(what): \(meaning)")
  }
  if let plan {
    let lookup = try IntakeLookup(try ledger.projections())
    let isKnown = try !lookup.declarations(type, sha256Hex: declaration.sourceSHA256Hex).isEmpty
    if isKnown, !invocation.has("again") {
      context.log("\(invocation.command.name): the same file is declared already")
    }
    try showPlan(
      of: isKnown && !invocation.has("again") ? [] : declaration.drafts, plan, ledger, invocation,
      context)
    return declaration.warnings.isEmpty ? .done : .partlyDone
  }
  var appended = Appended([], eventCount: declaration.drafts.count)
  do {
    try ledger.withWriter { writer in
      let lookup = try IntakeLookup(try ledger.projections())
      let earlier = try lookup.declarations(type, sha256Hex: declaration.sourceSHA256Hex)
      appended = Appended(earlier, eventCount: declaration.drafts.count)
      if appended.isComplete, !invocation.has("again") { return }
      for drafts in declaration.appends(from: appended.nextIndex) {
        appended.add(try writer.append(drafts))
      }
    }
  } catch {
    if let new = appended.new {
      context.diagnostics.writeLine(
        visible(
          "ledgerctl: \(file): \(counted(new.count, "event")) of "
            + "\(declaration.drafts.count) were appended, from position \(new.lowerBound) on; run the same "
            + "command again to append the rest"))
    }
    throw error
  }
  try report(type, declaration, appended, invocation, context)
  // Report the append before anything can fail in the projections.
  try context.output.flush()
  if appended.new != nil { _ = try ledger.projections() }
  return declaration.warnings.isEmpty ? .done : .partlyDone
}

/// Which events of a file are in the ledger.
private struct Appended {
  /// The position of the file's first event in the newest earlier run, whether that was complete or interrupted; nil
  /// if there was none.
  private(set) var known: Position?
  /// How many events of the file that run appended.
  private(set) var knownCount = 0
  private let eventCount: Int
  private(set) var new: Range<Position>?

  /// - Parameter earlier: the positions of all events of the file, which may have been declared several times.
  init(_ earlier: [Position], eventCount: Int) {
    self.eventCount = eventCount
    guard !earlier.isEmpty else { return }
    // The same file gives the same events in the same order: an interrupted run lacks the last ones.
    let rest = earlier.count % eventCount
    knownCount = rest == 0 ? eventCount : rest
    known = earlier[earlier.count - knownCount]
  }

  var isComplete: Bool { knownCount == eventCount }
  /// The index of the file's first event that remains to be appended.
  var nextIndex: Int { isComplete ? 0 : knownCount }

  mutating func add(_ positions: Range<Position>) {
    new = (new?.lowerBound ?? positions.lowerBound)..<positions.upperBound
  }
}

private func report(
  _ type: EventType, _ declaration: Declaration, _ appended: Appended,
  _ invocation: Invocation, _ context: Context
) throws {
  let isResumed = appended.new != nil && !appended.isComplete
  let first = isResumed ? appended.known : appended.new?.lowerBound
  var record: Record = ["entries": declaration.entryCount]
  if type == .pricesDeclared {
    record = record + ["zero_prices": declaration.zeroPrices?.count ?? 0]
  }
  record = record + ["first_position": first ?? appended.known, "is_known": appended.new == nil]
  try context.print(invocation, record) { try $0.line(text(type, declaration, appended)) }
}

private func text(_ type: EventType, _ declaration: Declaration, _ appended: Appended) -> String {
  guard let new = appended.new else {
    return "Nothing declared: the same file was declared at position \(appended.known ?? 0) "
      + "(--again declares it again)"
  }
  let noun = type == .pricesDeclared ? "price" : "rate"
  let place =
    new.count == 1
    ? "at position \(new.lowerBound)"
    : "at positions \(new.lowerBound) to \(new.upperBound - 1)"
  let base = declaration.base.map { " of 1 \($0)" } ?? ""
  var sentence = "Declared \(counted(declaration.entryCount, noun))\(base) \(place)"
  if let known = appended.known, !appended.isComplete {
    sentence += "; an interrupted run had appended the first of them from position \(known) on"
  }
  return sentence
}

// MARK: - Undeclared products

extension UndeclaredProduct {
  /// `coins.5000 of com.example.shop in 3 transactions: ledgerctl app edit …`.
  var sentence: String {
    "\(productID) of \(bundleID) in \(counted(transactionCount, "transaction")): \(declaringCommand)"
  }

  var record: Record {
    [
      "app_family_id": appFamilyID, "bundle_id": bundleID, "product_id": productID,
      "transactions": transactionCount, "last_position": lastPosition,
    ]
  }
}

/// How many undeclared products are listed individually.
private let undeclaredCountMax = 10

extension [UndeclaredProduct] {
  /// A sentence for each of the first ones, then the number of the others.
  var sentences: [String] {
    let shown = prefix(undeclaredCountMax).map(\.sentence)
    return count > undeclaredCountMax
      ? shown + ["\(count - undeclaredCountMax) more undeclared products"] : shown
  }
}
