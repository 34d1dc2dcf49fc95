// Reads the events of a ledger, all of them in turn or each when it is asked for.
import Base
import Ledger

/// The events of one ledger, as they stand when it is opened.
final class EventSource {
  let directory: LedgerDirectory
  /// How many there are.
  let count: Int
  private let reader: LogReader
  private var batch: [StoredEvent] = []
  private var batchEnd: Position = 0
  private static let batchCount = 1024

  init(path: String) throws {
    directory = try LedgerDirectory.open(path: path)
    reader = try LogReader(directory)
    if let damage = reader.damage { throw damage }
    count = reader.head.size
  }

  /// The ledger's id, by which ledgers are ordered.
  var id: String { directory.identity.id.description }

  /// The name of the ledger's folder.
  var name: String {
    let parts = directory.path.split(separator: "/").filter { $0 != "." }
    return parts.last.map(String.init) ?? directory.path
  }

  /// Gives every event to `body`, in order.
  func forEach(_ body: (Position, EventLine) throws -> Void) throws {
    try reader.read(from: 0, to: count) { chunk in
      try chunk.forEachEvent { try body($0.position, $0) }
      return true
    }
  }

  /// The event at a position; positions must not fall.
  func event(at position: Position) throws -> StoredEvent {
    if position >= batchEnd {
      batch.removeAll(keepingCapacity: true)
      batchEnd = min(position + Self.batchCount, count)
      try reader.read(from: position, to: batchEnd, workers: 0) { chunk in
        try chunk.forEachEvent { batch.append(StoredEvent($0)) }
        return true
      }
    }
    return batch[position - (batchEnd - batch.count)]
  }

  /// An event out of turn.
  func earlierEvent(at position: Position) throws -> StoredEvent? {
    try reader.event(at: position).withUnsafeBytes { EventLine($0).map(StoredEvent.init) }
  }
}
