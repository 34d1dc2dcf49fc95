// `--dry-run` of prices and rates: which sales and months a declaration or a withdrawal would change.
import Base
import Ledger
import Projections
import Revenue

extension Option {
  /// The options of a dry run.
  static let dryRun = [
    Option(
      "dry-run",
      help: "append nothing; show which sales and months would change, as `diff` does"),
    Option(
      "in", value: .init("CURRENCY"),
      help: "with `--dry-run`: convert both sides to this currency; rates need it"),
  ]
}

extension Invocation {
  /// Which lines a dry run compares; nil if events are to be appended.
  func dryRun(_ type: EventType) throws(UsageError) -> ComparedLines? {
    guard has("dry-run") else {
      if has("in") { throw UsageError("--in", "requires --dry-run") }
      return nil
    }
    var lines = ComparedLines()
    lines.currency = try reportingCurrency()
    if type == .ratesDeclared, lines.currency == nil {
      throw UsageError("--dry-run", "requires --in: rates change nothing but converted figures")
    }
    return lines
  }
}

/// Shows what events would change.
func showPlan(
  of drafts: [EventDraft], _ lines: ComparedLines, _ ledger: OpenLedger,
  _ invocation: Invocation, _ context: Context
) throws {
  let difference = try BooksDifference(adding: drafts, to: ledger, lines, context)
  for warning in difference.warnings { context.log("\(invocation.command.name): \(warning)") }
  if invocation.isJSON {
    try context.output.writeJSON(difference.record)
  } else {
    var sheet = TextSections(context)
    try difference.write(to: &sheet, .minor)
  }
}
