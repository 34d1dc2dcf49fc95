// `replay --skip-corrupt`: prints the intact events of a damaged log and reports the rest.
import Ledger

/// Prints every intact event that passes the filters, then reports on standard error what is missing.
func replaySkipping(
  _ options: ReplayOptions, _ invocation: Invocation, _ context: Context
) throws -> ExitCode {
  let directory = try context.openLedger(invocation)
  let types = Set(options.types)
  let report = try LogSalvage(directory).run(progress: { _, _ in
    try context.interruption.check()
  }) { event in
    guard options.isWithinBounds(event) else { return }
    guard types.isEmpty || EventType(event.type).map(types.contains) ?? false else { return }
    try context.output.write(event.bytes)
    try context.output.writeLine()
  }
  try context.output.flush()
  for line in skippingNotes(report) { context.diagnostics.writeLine("ledgerctl: replay: \(line)") }
  return report.audit.isWhole ? .done : .corrupted
}

/// Findings and positions left out, a line each. They cover the whole log, whatever the filters.
private func skippingNotes(_ report: SalvageReport) -> [String] {
  var lines = report.audit.notes
  if report.audit.isWhole { return lines }
  for finding in report.audit.findings {
    let damage = finding.damage
    var place = damage.file
    if let block = damage.block { place += ", block \(block)" }
    let range = positions(finding)
    if !range.isEmpty { place += ", position \(range)" }
    lines.append("\(place): \(damage.verdict.rawValue): \(finding.cause)")
  }
  if report.audit.furtherFindingCount > 0 {
    lines.append("and \(counted(report.audit.furtherFindingCount, "further finding"))")
  }
  lines += report.leftOut.map { range in
    "left out \(range.count == 1 ? "position" : "positions") \(range.lowerBound)"
      + (range.count == 1 ? "" : "–\(range.upperBound - 1)")
  }
  lines.append(
    "\(counted(report.audit.size - report.leftOutCount, "event")) intact, "
      + "\(report.leftOutCount) left out of \(report.audit.size)")
  return lines
}

extension ReplayOptions {
  /// Whether an event is within the bounds.
  fileprivate func isWithinBounds(_ event: EventLine) -> Bool {
    switch from {
    case nil: break
    case .position(let position): if event.position < position { return false }
    case .recordedAtMs(let timeMs): if event.recordedAtMs < timeMs { return false }
    }
    switch until {
    case nil: return true
    case .position(let position): return event.position <= position
    case .recordedAtMs(let timeMs): return event.recordedAtMs <= timeMs
    }
  }
}
