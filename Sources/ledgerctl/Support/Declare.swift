// Appends what a price list or a rates file declares.
import Intake
import JSON
import Ledger
import Projections

/// Reads a declaration and appends it, unless the very same file was declared before. What an interrupted run has
/// left of it to append is appended.
func declare(
  _ type: EventType, _ options: DeclarationOptions, _ invocation: Invocation, _ context: Context,
  _ read: (StopFlag) throws -> Declaration
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let interruption = context.interruption
  let declaration = try read(StopFlag { interruption.isRequested })
  for warning in declaration.warnings {
    context.diagnostics.writeLine(visible("ledgerctl: \(options.file): \(warning)"))
  }
  if let zero = declaration.zeroPrices {
    context.diagnostics.writeLine(
      visible("ledgerctl: \(options.file)") + ": line \(zero.firstLine): "
        + (zero.count == 1 ? "a price is 0" : "the first of \(zero.count) prices that are 0")
        + ": sales that take it from the list are counted with amount 0, not as unpriced")
  }
  var appended = Appended([], eventCount: declaration.drafts.count)
  do {
    try ledger.withWriter { writer in
      let lookup = try IntakeLookup(try ledger.projections())
      let earlier = try lookup.declarations(type, sha256Hex: declaration.sourceSHA256Hex)
      appended = Appended(earlier, eventCount: declaration.drafts.count)
      if appended.isComplete, !options.declaresAgain { return }
      for drafts in declaration.appends(from: appended.nextIndex) {
        appended.take(try writer.append(drafts))
      }
    }
  } catch {
    if let new = appended.new {
      context.diagnostics.writeLine(
        visible(
          "ledgerctl: \(options.file): \(counted(new.count, "event")) of "
            + "\(declaration.drafts.count) appended from position \(new.lowerBound) on; the same file "
            + "again appends the rest"))
    }
    throw error
  }
  try report(type, declaration, appended, options, context)
  // What was appended is said, whatever becomes of the projections.
  try context.output.flush()
  if appended.new != nil { _ = try ledger.projections() }
  return declaration.warnings.isEmpty ? .done : .partlyDone
}

/// Which events of a file stand in the ledger.
private struct Appended {
  /// Where the first of a file's events stands whose last ones an earlier run has not appended, or which are all
  /// there; nil where there are none.
  private(set) var known: Position?
  /// How many of them there were.
  private(set) var knownCount = 0
  private let eventCount: Int
  private(set) var new: Range<Position>?

  /// - Parameter earlier: the positions of all events of the file, which may have been declared several times.
  init(_ earlier: [Position], eventCount: Int) {
    self.eventCount = eventCount
    guard !earlier.isEmpty else { return }
    // The same file makes the same events in the same order: an interrupted run has left the last ones out.
    let rest = earlier.count % eventCount
    knownCount = rest == 0 ? eventCount : rest
    known = earlier[earlier.count - knownCount]
  }

  var isComplete: Bool { knownCount == eventCount }
  /// The first of the file's events that is to be appended.
  var nextIndex: Int { isComplete ? 0 : knownCount }

  mutating func take(_ positions: Range<Position>) {
    new = (new?.lowerBound ?? positions.lowerBound)..<positions.upperBound
  }
}

private func report(
  _ type: EventType, _ declaration: Declaration, _ appended: Appended,
  _ options: DeclarationOptions, _ context: Context
) throws {
  if options.isJSON {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("entries")
    writer.integer(declaration.entryCount)
    if type == .pricesDeclared {
      writer.key("zero_prices")
      writer.integer(declaration.zeroPrices?.count ?? 0)
    }
    writer.key("first_position")
    let isResumed = appended.new != nil && !appended.isComplete
    let first = isResumed ? appended.known : appended.new?.lowerBound
    if let first = first ?? appended.known { writer.integer(first) } else { writer.null() }
    writer.key("is_known")
    writer.boolean(appended.new == nil)
    writer.endObject()
    try context.output.write(writer.bytes)
    return try context.output.writeLine()
  }
  guard let new = appended.new else {
    return try context.output.writeLine(
      "Declared nothing new: this very file was declared at position \(appended.known ?? 0) "
        + "(--again declares it once more)")
  }
  let noun = type == .pricesDeclared ? "price" : "rate"
  let place =
    new.count == 1
    ? "at position \(new.lowerBound)"
    : "at positions \(new.lowerBound) to \(new.upperBound - 1)"
  let base = declaration.base.map { " of 1 \($0)" } ?? ""
  var sentence = "Declared \(counted(declaration.entryCount, noun))\(base) \(place)"
  if let known = appended.known, !appended.isComplete {
    sentence += "; an interrupted run had declared the first of them from position \(known) on"
  }
  try context.output.writeLine(sentence)
}
