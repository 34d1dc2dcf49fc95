// Appends what a price list or a rates file declares.
import Intake
import JSON
import Ledger
import Projections

/// Reads a declaration and appends it, unless the very same file was declared before.
func declare(
  _ type: EventType, _ options: DeclarationOptions, _ invocation: Invocation, _ context: Context,
  _ read: (StopFlag) throws -> Declaration
) throws -> ExitCode {
  let ledger = try OpenLedger(invocation, context)
  let interruption = context.interruption
  let declaration = try read(StopFlag { interruption.isRequested })
  for warning in declaration.warnings {
    context.diagnostics.writeLine("ledgerctl: \(options.file): \(warning)")
  }
  var positions: ClosedRange<Position>?
  let known: Position? = try ledger.withWriter { writer in
    let lookup = try IntakeLookup(try ledger.projections())
    if let known = try lookup.declaration(type, sha256Hex: declaration.sourceSHA256Hex) {
      return known
    }
    for drafts in declaration.appends {
      let new = try writer.append(drafts)
      positions = (positions?.lowerBound ?? new.lowerBound)...(new.upperBound - 1)
    }
    return nil
  }
  try report(type, declaration, positions, known: known, options, context)
  // What was appended is said, whatever becomes of the projections.
  try context.output.flush()
  if positions != nil { _ = try ledger.projections() }
  return declaration.warnings.isEmpty ? .done : .partlyDone
}

private func report(
  _ type: EventType, _ declaration: Declaration, _ positions: ClosedRange<Position>?,
  known: Position?, _ options: DeclarationOptions, _ context: Context
) throws {
  let noun = type == .pricesDeclared ? "price" : "rate"
  if options.isJSON {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("entries")
    writer.integer(declaration.entryCount)
    writer.key("first_position")
    if let first = positions?.lowerBound ?? known { writer.integer(first) } else { writer.null() }
    writer.key("is_known")
    writer.boolean(known != nil)
    writer.endObject()
    try context.output.write(writer.bytes)
    return try context.output.writeLine()
  }
  if let known {
    return try context.output.writeLine(
      "Declared nothing new: this very file was declared at position \(known)")
  }
  let place = positions.map { range in
    range.count == 1
      ? " at position \(range.lowerBound)"
      : " at positions \(range.lowerBound) to \(range.upperBound)"
  }
  try context.output.writeLine(
    "Declared \(counted(declaration.entryCount, noun))\(place ?? "")")
}
