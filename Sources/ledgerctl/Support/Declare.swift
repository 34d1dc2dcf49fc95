// Appends what a price list or a rates file declares.
import Intake
import JSON
import Ledger
import Projections

/// Reads a declaration and appends it, unless the same file was declared before. If an earlier run was interrupted,
/// appends the rest.
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
        + ": sales priced by it count with amount 0, not as unpriced")
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
            + "\(declaration.drafts.count) were appended, from position \(new.lowerBound) on; run the same "
            + "command again to append the rest"))
    }
    throw error
  }
  try report(type, declaration, appended, options, context)
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

  mutating func take(_ positions: Range<Position>) {
    new = (new?.lowerBound ?? positions.lowerBound)..<positions.upperBound
  }
}

private func report(
  _ type: EventType, _ declaration: Declaration, _ appended: Appended,
  _ options: DeclarationOptions, _ context: Context
) throws {
  if options.isJSON {
    let isResumed = appended.new != nil && !appended.isComplete
    let first = isResumed ? appended.known : appended.new?.lowerBound
    return try context.output.writeObject { writer in
      writer.member("entries", declaration.entryCount)
      if type == .pricesDeclared {
        writer.member("zero_prices", declaration.zeroPrices?.count ?? 0)
      }
      writer.member("first_position", first ?? appended.known)
      writer.member("is_known", appended.new == nil)
    }
  }
  guard let new = appended.new else {
    return try context.output.writeLine(
      "Nothing declared: the same file was declared at position \(appended.known ?? 0) "
        + "(--again declares it again)")
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
  try context.output.writeLine(sentence)
}
