// Looks for identifiers as text in the whole log: in what an erasure can't know to be about a user.
import CLinux
import JSON
import Ledger

/// Finds events that contain one of some texts, also as JSON writes them.
struct IdentifierSearch: Sendable {
  /// Shorter texts are found everywhere by chance.
  private static let needleByteCountMin = 6
  /// How many positions are named.
  private static let positionCountMax = 20

  private let needles: [[UInt8]]

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

  /// The positions before `end` of events that contain one of the texts: how many there are, and the first of them.
  /// - Parameter excluded: positions that do not count.
  func run(
    _ reader: LogReader, before end: Position, excluding excluded: Set<Position> = [],
    isCancelled: () -> Bool
  ) throws -> (count: Int, first: [Position]) {
    var found: (count: Int, first: [Position]) = (0, [])
    if needles.isEmpty || end == 0 { return found }
    try reader.read(
      from: 0, to: end,
      prepare: { bytes, first, _ in Hits(positions: positions(in: bytes, first: first)) }
    ) { chunk in
      if isCancelled() { throw ErasureError.interrupted }
      let hits =
        (chunk.prepared as? Hits)?.positions
        ?? positions(in: chunk.bytes, first: chunk.firstPosition)
      let positions = hits.filter { !excluded.contains($0) }
      found.count += positions.count
      found.first += positions.prefix(max(0, Self.positionCountMax - found.first.count))
      return true
    }
    return found
  }

  /// What one block holds.
  private final class Hits: Sendable {
    let positions: [Position]
    init(positions: [Position]) { self.positions = positions }
  }

  private func positions(in bytes: UnsafeRawBufferPointer, first: Position) -> [Position] {
    // Nearly every block holds none.
    guard needles.contains(where: { Self.contains(bytes, $0) }) else { return [] }
    var positions: [Position] = []
    var position = first
    var lines = EventLines(bytes)
    while let line = lines.next() {
      if needles.contains(where: { Self.contains(line, $0) }) { positions.append(position) }
      position += 1
    }
    return positions
  }

  static func contains(_ bytes: UnsafeRawBufferPointer, _ needle: [UInt8]) -> Bool {
    guard let base = bytes.baseAddress, !needle.isEmpty else { return false }
    return clinux_find(base, bytes.count, needle, needle.count) != nil
  }
}
