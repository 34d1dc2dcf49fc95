// The events of a partition: the ledger, position and line of each.
import Base
import Ledger
import Projections
import Revenue

/// Numbers the events of a partition from 0 and finds them again, with 20 bytes for each.
final class PartitionEvents: EventOrigins {
  /// A number holds this many bits of a position next to the ledger's index.
  static let positionBitCount = 48
  /// A number of 32 bits finds an event within its ledger.
  static let eventCountMax = 1 << 32

  private let names: [String]
  private let spool: EventSpool
  /// The ledger's index and its position, by the position in the fold.
  private let locations = ChunkedArray<UInt64>()
  /// The end of each line in the spool.
  private let lineEnds = ChunkedArray<Int>()
  /// The positions in the fold of each ledger's events, ascending like their positions in the ledger.
  private var positions: [[UInt32]]

  init(ledgerNames: [String], _ spool: EventSpool) {
    names = ledgerNames
    self.spool = spool
    positions = Array(repeating: [], count: ledgerNames.count)
  }

  var count: Int { locations.count }

  /// Adds the next event; returns its position in the fold.
  func append(
    _ key: EventKey, _ line: UnsafeRawBufferPointer
  ) throws(Failure) -> Position {
    guard count < Self.eventCountMax else {
      throw Failure(
        operation: "fold", object: "events", cause: "a partition has at most 2^32 events")
    }
    let last = positions[key.ledger].last.map { ledgerPosition(of: Int($0)) } ?? -1
    guard last < key.position else {
      throw Failure(
        operation: "fold",
        object: "event \(Self.text(ledger: key.ledger, position: key.position, names))",
        cause: "position \(last) of its ledger came before it: within a ledger time never falls")
    }
    try spool.append(line)
    let position = count
    locations.append(UInt64(key.ledger) << Self.positionBitCount | UInt64(key.position))
    lineEnds.append(spool.byteCount)
    positions[key.ledger].append(UInt32(position))
    return position
  }

  /// The line of an event.
  func line(at position: Position) throws(Failure) -> [UInt8] {
    try spool.read((position == 0 ? 0 : lineEnds[position - 1])..<lineEnds[position])
  }

  // MARK: Positions

  func ledger(of position: Position) -> Int { Int(locations[position] >> Self.positionBitCount) }

  /// The position of an event in its ledger.
  func ledgerPosition(of position: Position) -> Position {
    Int(locations[position] & (1 << Self.positionBitCount - 1))
  }

  func text(of position: Position) -> String {
    Self.text(ledger: ledger(of: position), position: ledgerPosition(of: position), names)
  }

  /// The text for display: a position of the only ledger, or of a named one.
  static func text(ledger: Int, position: Position, _ names: [String]) -> String {
    names.count == 1 ? "\(position)" : "\(names[ledger]):\(position)"
  }

  /// A text for display: in the name of an erased user, the erasure's position as above.
  func shown(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    guard names.count > 1, let number = ErasedUser.erasure(of: text),
      let first = text.firstIndex(where: { 0x30...0x39 ~= $0 })
    else { return nil }
    let erasure = ErasureNumber(number, ledgerCount: names.count)
    let name = Self.text(ledger: erasure.ledger, position: erasure.position, names)
    return Array(text[..<first]) + Array(name.utf8)
      + Array(text[first...].drop { 0x30...0x39 ~= $0 })
  }

  func position(named position: Position, by event: EventLine) -> Position? {
    self.position(named: position, inLedger: ledger(of: event.position))
  }

  func position(ofErasure number: Int, namedBy event: Position) -> Position? {
    if names.count == 1 { return self.position(named: number, inLedger: 0) }
    let erasure = ErasureNumber(number, ledgerCount: names.count)
    return position(named: erasure.position, inLedger: erasure.ledger)
  }

  private func position(named position: Position, inLedger ledger: Int) -> Position? {
    let positions = positions[ledger]
    // Most events name one just before them.
    var end = positions.count
    for _ in 0..<4 where end > 0 {
      let found = Int(positions[end - 1])
      let known = ledgerPosition(of: found)
      if known == position { return found }
      if known < position { return nil }
      end -= 1
    }
    var start = 0
    while start < end {
      let middle = (start + end) / 2
      if ledgerPosition(of: Int(positions[middle])) < position {
        start = middle + 1
      } else {
        end = middle
      }
    }
    guard start < positions.count, ledgerPosition(of: Int(positions[start])) == position
    else { return nil }
    return Int(positions[start])
  }
}
