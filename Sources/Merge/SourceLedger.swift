// A ledger that is merged: its log as it stands when it is opened, and a walk over its events in order.
import Base
package import Ledger

/// A ledger whose events are merged. Used by one thread.
package final class SourceLedger {
  package let directory: LedgerDirectory
  let reader: LogReader

  /// Throws if the log is damaged, or if the ledger is itself merged.
  package init(_ directory: LedgerDirectory) throws {
    self.directory = directory
    reader = try LogReader(directory, .durable)
    if let damage = reader.damage { throw damage }
    if try MergedLedger.isOne(directory) { throw MergeError.mergedSource(directory.path) }
  }

  package var origin: String { directory.identity.origin }
  var id: String { directory.identity.id.description }
  var size: Int { reader.head.size }

  /// When its newest event was recorded; nil if it has none.
  var newestAtMs: Int64? { size == 0 ? nil : reader.head.lastEventAtMs }

  /// The root of the tree of its first events.
  func root(of size: Int) throws(LedgerError) -> SHA256Digest {
    try reader.frontier(at: size).root
  }

  /// Passes on an event. Events that follow each other cost little.
  func event<Result>(at position: Position, _ body: (EventLine) throws -> Result) throws -> Result {
    try reader.event(at: position).withUnsafeBytes { bytes in
      guard let line = EventLine(bytes) else {
        preconditionFailure("a reader returns events")
      }
      return try body(line)
    }
  }
}

/// Walks over the events of a log in order, a few blocks at a time.
final class EventCursor {
  private static let windowByteCount = 2 << 20

  private let reader: LogReader
  private var next: Position
  private let end: Position
  private let window = ByteBuffer(capacity: 1 << 16)
  private var rest = EventLines(UnsafeRawBufferPointer(start: nil, count: 0))
  /// The event at which it stands, valid until the next call of `advance`; nil at the end.
  private(set) var current: EventLine?

  init(_ reader: LogReader, _ range: Range<Position>) throws {
    self.reader = reader
    (next, end) = (range.lowerBound, range.upperBound)
    try advance()
  }

  func advance() throws {
    current = nil
    var text = rest.next()
    if text == nil, next < end {
      try load()
      text = rest.next()
    }
    guard let text else { return }
    guard let line = EventLine(text) else { preconditionFailure("a chunk holds events") }
    current = line
  }

  private func load() throws {
    window.count = 0
    try reader.read(from: next, to: end, workers: 0) { chunk in
      window.append(chunk.bytes)
      next = chunk.endPosition
      return window.count < Self.windowByteCount
    }
    rest = EventLines(window.bytes)
  }
}

/// Walks over the events of several logs in the order of their times; events of one time in the order of the logs.
struct MergeOrder {
  private let cursors: [EventCursor]
  private let beforeMs: Int64
  private var last: Int?

  /// - Parameter beforeMs: events recorded at this time or later are left out.
  init(_ cursors: [EventCursor], before beforeMs: Int64) {
    (self.cursors, self.beforeMs) = (cursors, beforeMs)
  }

  /// The next event, valid until the next call, and the index of its log.
  mutating func next() throws -> (source: Int, line: EventLine)? {
    if let last { try cursors[last].advance() }
    var first: (source: Int, line: EventLine)?
    for (source, cursor) in cursors.enumerated() {
      guard let line = cursor.current, line.recordedAtMs < beforeMs else { continue }
      if let best = first, best.line.recordedAtMs <= line.recordedAtMs { continue }
      first = (source, line)
    }
    last = first?.source
    return first
  }
}
