// A temporary ledger of events built in code: the same steps make the same bytes.
import Foundation
package import Ledger
package import Projections
private import Synchronization

/// A ledger in a temporary directory, removed with the value. Its clock advances by a second a step, from 1 February
/// 2026, and all salts are the same.
package final class LedgerFixture {
  private let temporary: TemporaryDirectory
  package let path: String
  package let directory: LedgerDirectory
  /// The projector's notices.
  package private(set) var notices: [String] = []
  /// How many events the ledger holds.
  package private(set) var eventCount = 0
  /// The projections that its projectors maintain.
  package var projections = ProjectionSet.standard
  private let options: WriterOptions
  private let clockMs = Counter(ms("2026-02-01"))

  /// - Parameter id: the byte that fills the ledger's id.
  package init(
    id: UInt8 = 1, origin: String = "receipts.example/test", blockByteCount: Int = 16 << 10,
    segmentByteCount: Int = 256 << 20
  ) throws {
    temporary = try TemporaryDirectory()
    path = temporary.path("ledger")
    directory = try LedgerDirectory.create(
      path: path, origin: origin,
      id: LedgerID(random: Array(repeating: id, count: 16)), createdAtMs: ms("2026-02-01"))
    var options = WriterOptions()
    options.blockByteCount = blockByteCount
    options.segmentByteCount = segmentByteCount
    options.closingLimitMs = 3_600_000
    options.closingInheritedLimitMs = 3_600_000
    options.clock = { [clockMs] in clockMs.value }
    // One salt for all: a writer draws salts in advance, so random ones would depend on how often it is opened.
    options.random = { buffer in
      buffer.initializeMemory(as: UInt8.self, repeating: 0x5A)
      return true
    }
    self.options = options
  }

  /// Reads a ledger that another fixture's folder holds; nothing is appended.
  package init(opening path: String, in temporary: TemporaryDirectory) throws {
    self.temporary = temporary
    self.path = path
    directory = try LedgerDirectory.open(path: path)
    options = WriterOptions()
  }

  /// A number that closures share.
  private final class Counter: Sendable {
    private let number: Atomic<Int64>
    init(_ first: Int64) { number = Atomic(first) }
    var value: Int64 { number.load(ordering: .relaxed) }
    func advance(by step: Int64) { number.add(step, ordering: .relaxed) }
    func set(_ value: Int64) { number.store(value, ordering: .relaxed) }
  }

  // MARK: Events

  /// Appends steps, each in a frame of its own.
  package func append(_ steps: [TestEvent]) throws {
    let writer = try LedgerWriter.open(directory, options: options)
    for step in steps {
      _ = try writer.append(step.drafts)
      eventCount += step.count
      clockMs.advance(by: 1000)
    }
    try writer.close()
  }

  /// Appends drafts in one frame, as a command does; returns the first one's position.
  package func append(drafts: [EventDraft]) throws -> Position {
    let writer = try LedgerWriter.open(directory, options: options)
    let position = try writer.append(drafts).firstPosition
    try writer.close()
    eventCount += drafts.count
    return position
  }

  /// Opens the ledger for writing, with a clock that shows this time from now on.
  package func writer(atMs: Int64) throws -> LedgerWriter {
    clockMs.set(atMs)
    return try LedgerWriter.open(directory, options: options)
  }

  /// Saves a snapshot, and appends the event that vouches for it.
  package func createSnapshot(at size: Int? = nil) throws -> Snapshot {
    try projector().createSnapshot(at: size) { try append(drafts: [$0]) }
  }

  // MARK: Projections

  /// A projector on the current log; its notices are kept in `notices`.
  package func projector() throws -> Projector {
    Projector(
      try LogReader(directory),
      observer: Projector.Observer(notice: { [unowned self] in notices.append($0) }),
      projections: projections)
  }

  /// The projections, caught up with the log.
  package func current() throws -> Database { try projector().current() }

  /// The projections, built from nothing.
  package func rebuilt() throws -> Database {
    let projector = try projector()
    try projector.rebuild()
    return try projector.current()
  }

  /// The names in the folder of the projections, sorted.
  package var projectionNames: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path + "/projections")) ?? []).sorted()
  }

  // MARK: Reports

  /// A report as CSV.
  package func csv(_ request: ReportRequest, from database: Database) throws -> String {
    try written(request, database) {
      CSVReportWriter(form: request.layout.csv, zone: request.zone, $0)
    }
  }

  /// A report as one JSON text.
  package func json(_ request: ReportRequest, from database: Database) throws -> String {
    let head = try Report.head(of: database)
    let heading = ReportHeading(
      request: request, ledger: directory.identity, size: head.size, root: head.root)
    return try written(request, database) { JSONReportWriter(heading: .report(heading), $0) }
  }

  /// A report as a JSON line for each row.
  package func ndjson(_ request: ReportRequest, from database: Database) throws -> String {
    try written(request, database) { JSONReportWriter(heading: nil, $0) }
  }

  private func written(
    _ request: ReportRequest, _ database: Database,
    _ make: (@escaping (UnsafeRawBufferPointer) throws -> Void) -> any ReportWriter
  ) throws -> String {
    var bytes: [UInt8] = []
    try withoutActuallyEscaping({ (piece: UnsafeRawBufferPointer) in
      bytes.append(contentsOf: piece)
    }) { sink in
      _ = try Report.write(
        request, from: database, to: request.layout.applied(to: make(sink)))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
