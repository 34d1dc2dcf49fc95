// Readers and audits during erasures: each sees a whole log, and nothing that was erased before it began.
import Base
import Ledger
import TestSupport
import Testing

@Suite("Reading while lines are redacted", .bounded)
struct RedactionConcurrencyTests {
  private struct State {
    /// The positions that are erased for everyone by now.
    var erased: Set<Position> = []
    var isOver = false
    var faults: [String] = []
    var roundCount = 0
  }

  private let monitor = Monitor(State())

  /// Runs a closure on a thread until all erasures are done. It receives what was erased before, and returns faults.
  private func start(_ body: @escaping @Sendable (Set<Position>) throws -> [String]) throws
    -> WorkerThread
  {
    try WorkerThread { [monitor] in
      while true {
        let (erased, isOver) = monitor.withLock { ($0.erased, $0.isOver) }
        if isOver { return }
        var faults: [String]
        do { faults = try body(erased) } catch { faults = ["\(error)"] }
        monitor.withLock { state in
          state.faults += faults
          state.roundCount += 1
        }
      }
    }
  }

  /// Reads everything, and compares each chunk's tree with the lines.
  private static func read(
    _ reader: LogReader, _ erased: Set<Position>, workers: Int
  ) throws -> [String] {
    var faults: [String] = []
    let hasher = SHA256()
    var frontier = Frontier()
    try reader.read(from: 0, workers: workers) { chunk in
      try chunk.forEachEvent { line in
        frontier.append(leafHash: line.leafHash(hasher), hasher)
        if erased.contains(line.position), !line.isRedacted {
          faults.append("\(line.position) is shown")
        }
      }
      if frontier != chunk.frontierAfter { faults.append("another tree at \(chunk.endPosition)") }
      return true
    }
    return faults
  }

  @Test("Readers, new ones and old ones, audits, and appends")
  func allAtOnce() throws {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(
      fixture.directory, options: LedgerFixture.smallOptions(block: 2000, segment: 8000))
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    for index in 0..<300 { _ = try writer.append([RedactionRig.draft(index)]) }
    let directory = fixture.directory
    let threads = [
      try start { erased in try Self.read(LogReader(directory), erased, workers: 2) },
      try start { [path = fixture.path] erased in
        try Self.read(
          LogReader(LedgerDirectory.open(path: path), .durable), erased, workers: 0)
      },
      try start { [path = fixture.path] erased in
        let reader = try LogReader(try LedgerDirectory.open(path: path), keptTailCount: 0)
        var faults: [String] = []
        for position in erased.sorted().prefix(40) {
          let line = try reader.event(at: position)
          if !line.withUnsafeBytes({ EventLine($0)?.isRedacted == true }) {
            faults.append("\(position) is shown alone")
          }
        }
        try reader.refresh()
        return faults + (try Self.read(reader, erased, workers: 0))
      },
      try start { _ in
        let report = try LogAudit(directory, workers: 1).run()
        var faults = report.findings.map { "\($0)" }
        if report.unredactedCount > 0 { faults.append("\(report.notes)") }
        return faults
      },
      try start { _ in
        _ = try writer.append([RedactionRig.draft(7)])
        return []
      },
    ]
    // A reader that is not scheduled for long sees more change during one refresh.
    let busy = try (0..<6).map { _ in
      try WorkerThread { [monitor] in
        var number: UInt64 = 1
        while number != 0, !monitor.withLock({ $0.isOver }) {
          for _ in 0..<1_000_000 { number = number &* 6_364_136_223_846_793_005 | 1 }
        }
      }
    }
    var random = SeededRandom(seed: 21)
    for _ in 0..<50 {
      let positions = Set((0..<6).map { _ in Int.random(in: 0..<300, using: &random) })
      try rig.erase(positions.sorted(), with: writer) {
        monitor.withLock { $0.erased.formUnion(positions) }
      }
    }
    monitor.withLock { $0.isOver = true }
    for thread in threads + busy { thread.join() }
    let (faults, roundCount) = monitor.withLock { ($0.faults, $0.roundCount) }
    #expect(faults.isEmpty, "\(faults.prefix(5)) of \(faults.count)")
    #expect(roundCount > 5)
    try writer.close()
    let report = try rig.audit()
    #expect(report.isWhole && report.redactedCount == monitor.withLock { $0.erased.count })
  }
}
