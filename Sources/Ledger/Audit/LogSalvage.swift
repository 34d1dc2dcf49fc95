// Reading past damage: every whole event once, and an exact account of what was left out.
import Glibc

/// The outcome of reading past damage.
package struct SalvageReport: Sendable {
  /// The audit that was made on the way: why things were left out.
  package let audit: AuditReport
  /// Positions up to the log's end whose events are not whole or not there, ascending, none touching the next.
  package let leftOut: [Range<Position>]

  /// How many events were left out.
  package var leftOutCount: Int { leftOut.reduce(0) { $0 + $1.count } }
}

/// Hands out what is whole in a log that is not. Needs no lock; used by one thread.
package struct LogSalvage {
  private let directory: LedgerDirectory

  package init(_ directory: LedgerDirectory) { self.directory = directory }

  /// Hands out every whole event in ascending order, each position once: an event counts as whole when its
  /// block or frame is, and its digest is that of its data. Throws what keeps it from looking at all, and
  /// what the closures throw.
  package func run(
    progress: LogAudit.Progress = { _, _ in }, _ body: (EventLine) throws -> Void
  ) throws -> SalvageReport {
    var next: Position = 0
    var leftOut: [Range<Position>] = []
    func leave(upTo position: Position) {
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
        // A block that repeats what was handed out is in the findings.
        guard event.position >= next, !faulty.contains(event.position) else { continue }
        leave(upTo: event.position)
        try body(event)
        next = event.position + 1
      }
    }
    leave(upTo: report.size)
    return SalvageReport(audit: report, leftOut: leftOut)
  }
}
