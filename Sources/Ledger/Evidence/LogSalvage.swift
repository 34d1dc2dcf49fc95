// Reads past damage: delivers every intact event once, and lists exactly what was left out.
import Glibc

/// The outcome of reading past damage.
package struct SalvageReport: Sendable {
  /// The audit made at the same time: it says why events were left out.
  package let audit: AuditReport
  /// Positions of damaged or missing events, ascending; adjacent ranges are joined.
  package let leftOut: [Range<Position>]

  /// How many events were left out.
  package var leftOutCount: Int { leftOut.reduce(0) { $0 + $1.count } }
}

/// Delivers the intact events of a damaged log. Needs no lock. Not thread-safe.
package struct LogSalvage {
  private let directory: LedgerDirectory

  package init(_ directory: LedgerDirectory) { self.directory = directory }

  /// Delivers every intact event in ascending order, each position once. An event is intact if its block
  /// or frame is, and its digest matches its data; a redacted line is delivered as it is. Throws errors that
  /// prevent reading, and those of the closures.
  package func run(
    progress: LogAudit.Progress = { _, _ in }, _ body: (EventLine) throws -> Void
  ) throws -> SalvageReport {
    var next: Position = 0
    var leftOut: [Range<Position>] = []
    func skip(upTo position: Position) {
      guard position > next else { return }
      if let last = leftOut.last, last.upperBound == next {
        leftOut[leftOut.count - 1] = last.lowerBound..<position
      } else {
        leftOut.append(next..<position)
      }
      next = position
    }
    let report = try LogAudit(directory, workers: 0).run(progress: progress) { lines, bytes in
      let faulty = Set(lines.faults.map(\.position))
      var eventLines = EventLines(bytes)
      while let text = eventLines.next(), let event = EventLine(text) {
        // A block that repeats earlier events is a finding.
        guard event.position >= next, !faulty.contains(event.position) else { continue }
        skip(upTo: event.position)
        try body(event)
        next = event.position + 1
      }
    }
    skip(upTo: report.size)
    return SalvageReport(audit: report, leftOut: leftOut)
  }
}
