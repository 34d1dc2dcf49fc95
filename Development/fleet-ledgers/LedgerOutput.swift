// Writes a new ledger whose events have given times.
import Base
import Ledger
import ProgramSupport
import Synchronization

/// Sizes of a new ledger's files.
struct LedgerSizes {
  private let blockByteCount: Int?
  private let segmentByteCount: Int?

  static let optionNames: Set<String> = ["--block-bytes", "--segment-bytes"]

  init(_ arguments: Arguments) throws(UsageError) {
    blockByteCount = try arguments.integer("--block-bytes", 1...15 << 20)
    segmentByteCount = try arguments.integer("--segment-bytes", 1...1 << 40)
  }

  func apply(to options: inout WriterOptions) {
    options.blockByteCount = blockByteCount ?? options.blockByteCount
    options.segmentByteCount = segmentByteCount ?? options.segmentByteCount
  }
}

/// A ledger under construction. Events that share a time share a frame, since a frame has one time.
final class LedgerOutput {
  private let writer: LedgerWriter
  private let clock: Clock
  private var drafts: [EventDraft] = []
  private var draftByteCount = 0
  private static let frameByteCountMax = 8 << 20
  private static let frameEventCountMax = 4096
  /// A closing writer makes blocks of all full tails, however long that takes.
  private static let closingLimitMs: Int64 = 3_600_000

  private final class Clock: Sendable {
    let nowMs = Atomic<Int64>(0)
  }

  init(path: String, id: LedgerID, createdAtMs: Int64, sizes: LedgerSizes) throws {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    let directory = try LedgerDirectory.create(
      path: path, origin: "\(name).example", id: id, createdAtMs: createdAtMs)
    let clock = Clock()
    var options = WriterOptions()
    sizes.apply(to: &options)
    options.closingLimitMs = Self.closingLimitMs
    options.clock = { clock.nowMs.load(ordering: .relaxed) }
    self.clock = clock
    writer = try LedgerWriter.open(directory, options: options)
  }

  /// Appends an event. `atMs` must not fall.
  func append(_ event: StoredEvent, atMs: Int64) throws {
    let isFull =
      drafts.count == Self.frameEventCountMax
      || draftByteCount + event.data.count > Self.frameByteCountMax
    if isFull || atMs != clock.nowMs.load(ordering: .relaxed) { try flush() }
    clock.nowMs.store(atMs, ordering: .relaxed)
    drafts.append(EventDraft(type: event.type, version: event.version, data: event.data))
    draftByteCount += event.data.count
  }

  private func flush() throws {
    if drafts.isEmpty { return }
    _ = try writer.append(drafts)
    drafts.removeAll(keepingCapacity: true)
    draftByteCount = 0
  }

  func finish() throws {
    try flush()
    try writer.close()
  }
}
