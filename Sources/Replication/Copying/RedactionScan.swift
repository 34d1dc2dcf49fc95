// Finds redacted lines whose erasure lists them only later.
import Base
import Ledger

/// Follows a log: a redacted line can be vouched for once an event has listed it.
struct RedactionScan {
  /// Redacted lines that no event has listed yet, and their erasures.
  private var unlisted: [Position: Position] = [:]
  /// The next event.
  private(set) var next: Position = 0
  /// The first end from the wanted one on at which every redacted line is listed.
  private(set) var soundEnd: Position?
  private let wanted: Position

  init(wanted: Position) { self.wanted = wanted }

  var unlistedCount: Int { unlisted.count }

  /// Reads on to the end of a log, or until a sound end is found.
  mutating func read(_ reader: LogReader) throws {
    if next == wanted, unlisted.isEmpty { soundEnd = wanted }
    if soundEnd != nil || next >= reader.head.size { return }
    var scan = self
    try reader.read(from: next, to: reader.head.size) { chunk in
      try chunk.forEachEvent { scan.add($0) }
      return scan.soundEnd == nil
    }
    self = scan
  }

  private mutating func add(_ line: EventLine) {
    if soundEnd != nil { return }
    if let erasure = line.redactedBy {
      unlisted[line.position] = erasure
    } else if EventType(line.type) == .dataRedacted,
      case .listing(let listing)? = try? DataRedacted(data: line.data)
    {
      for listed in listing.lines where unlisted[listed.position] == listing.erasure {
        unlisted[listed.position] = nil
      }
    }
    next = line.position + 1
    if next >= wanted, unlisted.isEmpty { soundEnd = next }
  }
}
