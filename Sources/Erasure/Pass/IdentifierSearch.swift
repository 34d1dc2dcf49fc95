// Looks for identifiers as text in the log: in what an erasure can't know to be about a user.
import Base
import CLinux
import JSON
import Ledger

/// Finds events that contain one of some texts, also as JSON writes them. Thread-safe.
final class IdentifierSearch: Sendable {
  /// Shorter texts are found everywhere by chance.
  private static let needleByteCountMin = 6
  /// How many positions are named.
  private static let positionCountMax = 20

  private let needles: [[UInt8]]
  private let found = Monitor<(count: Int, positions: [Position])>((0, []))

  init(_ identifiers: [[UInt8]]) {
    var needles: Set<[UInt8]> = []
    for identifier in identifiers where identifier.count >= Self.needleByteCountMin {
      needles.insert(identifier)
      var escaped: [UInt8] = []
      identifier.withUnsafeBytes { JSONWriter.appendEscaped($0, to: &escaped) }
      if escaped != identifier { needles.insert(escaped) }
    }
    self.needles = Array(needles)
  }

  /// How many events were found, and the first of them.
  var result: (count: Int, positions: [Position]) {
    found.withLock { ($0.count, $0.positions.sorted()) }
  }

  /// Looks through whole lines.
  /// - Parameter excluded: positions that do not count.
  func look(
    through lines: UnsafeRawBufferPointer, first: Position, excluding excluded: Set<Position> = []
  ) {
    // Nearly every block holds none.
    guard needles.contains(where: { Self.contains(lines, $0) }) else { return }
    var positions: [Position] = []
    var position = first
    var rest = EventLines(lines)
    while let line = rest.next() {
      if !excluded.contains(position), needles.contains(where: { Self.contains(line, $0) }) {
        positions.append(position)
      }
      position += 1
    }
    found.withLock { found in
      found.count += positions.count
      found.positions = Array((found.positions + positions).sorted().prefix(Self.positionCountMax))
    }
  }

  /// Looks through all events before a position.
  func run(
    _ reader: LogReader, before end: Position, excluding excluded: Set<Position>,
    isCancelled: () -> Bool
  ) throws {
    if needles.isEmpty || end == 0 { return }
    try reader.read(
      from: 0, to: end,
      prepare: { bytes, first, _ in
        self.look(through: bytes, first: first, excluding: excluded)
        return self
      }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      if chunk.prepared == nil {
        look(through: chunk.bytes, first: chunk.firstPosition, excluding: excluded)
      }
      return true
    }
  }

  static func contains(_ bytes: UnsafeRawBufferPointer, _ needle: [UInt8]) -> Bool {
    guard let base = bytes.baseAddress, !needle.isEmpty else { return false }
    return clinux_find(base, bytes.count, needle, needle.count) != nil
  }
}
