// What statements say about refunds of a sale, as bytes: the form in which projections store it.
import Base

extension RefundHistory {
  /// The statements as bytes, which `init(stored:_:)` reads.
  package var stored: [UInt8] {
    var writer = HistoryWriter()
    writer.write(statements.count)
    for statement in statements {
      writer.write(statement.source.rawValue)
      writer.write((statement.isTimed ? 1 : 0) + (statement.isUpgraded ? 2 : 0))
      writer.write(statement.timeMs)
      writer.write(statement.reversalMs)
      writer.write(statement.dateMs == nil ? 0 : 1)
      if let dateMs = statement.dateMs { writer.write(dateMs) }
      writer.write(statement.percentage ?? -1)
      writer.write(statement.reason)
      writer.write(statement.sums)
    }
    writer.write(sumsBeforeAssumed)
    return writer.bytes
  }

  /// Reads what `stored` gives; texts are kept in the arena. Nil if the bytes are damaged.
  package init?(stored bytes: UnsafeRawBufferPointer, _ arena: TextArena) {
    self.init()
    var reader = HistoryReader(bytes)
    do throws(HistoryReader.Damage) { try read(&reader, arena) } catch { return nil }
    guard reader.isAtEnd, count > 0 else { return nil }
  }

  private mutating func read(
    _ reader: inout HistoryReader, _ arena: TextArena
  ) throws(HistoryReader.Damage) {
    for _ in 0..<(try reader.count()) {
      guard let source = RefundStatement.Source(rawValue: Int8(try reader.integer(in: 0...2)))
      else { throw HistoryReader.Damage() }
      let flags = try reader.integer(in: 0...3)
      var statement = RefundStatement(
        source, timeMs: try reader.instant(), reversalMs: try reader.instant())
      statement.isTimed = flags & 1 != 0
      statement.isUpgraded = flags & 2 != 0
      statement.dateMs = try reader.integer(in: 0...1) == 1 ? try reader.instant() : nil
      let percentage = try reader.integer(in: -1...Int64(RefundShare.all.thousandths))
      statement.percentage = percentage < 0 ? nil : Int32(percentage)
      statement.reason = arena.keep(try reader.text())
      statement.sums = try reader.sums()
      guard append(statement) else { throw HistoryReader.Damage() }
    }
    sumsBeforeAssumed = try reader.sums()
  }
}

/// Writes variable-length integers, and texts with their length.
private struct HistoryWriter {
  private(set) var bytes: [UInt8] = []

  /// Writes an integer in zigzag encoding, seven bits per byte, lowest first. A set top bit means that more bytes follow.
  mutating func write(_ value: some BinaryInteger) {
    let value = Int64(value)
    var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func write(_ text: Text) {
    write(text.count)
    bytes.append(contentsOf: text)
  }

  mutating func write(_ sums: [RefundSum]) {
    write(sums.count)
    for sum in sums {
      write(sum.dateMs)
      write(sum.micros)
    }
  }
}

/// Reads them. Texts point into its bytes.
private struct HistoryReader {
  struct Damage: Error {}

  /// The dates that receipts and replies may contain: the years 0001 to 9999.
  private static let instantsMs: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

  private let bytes: UnsafeRawBufferPointer
  private var place = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { place == bytes.count }

  private mutating func integer() throws(Damage) -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard place < bytes.count else { throw Damage() }
      let byte = bytes[place]
      place += 1
      // The tenth byte holds only one of the 64 bits.
      guard shift < 63 || byte <= 1 else { throw Damage() }
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
    }
    throw Damage()
  }

  mutating func integer(in range: ClosedRange<Int64>) throws(Damage) -> Int64 {
    let value = try integer()
    guard range.contains(value) else { throw Damage() }
    return value
  }

  mutating func instant() throws(Damage) -> Int64 { try integer(in: Self.instantsMs) }

  /// The number of parts that follow, each at least one byte: never more than the bytes left.
  mutating func count() throws(Damage) -> Int {
    let count = try integer()
    guard count >= 0, count <= bytes.count - place else { throw Damage() }
    return Int(count)
  }

  mutating func text() throws(Damage) -> Text {
    let count = try count()
    defer { place += count }
    return Text(rebasing: bytes[place..<place + count])
  }

  mutating func sums() throws(Damage) -> [RefundSum] {
    var sums: [RefundSum] = []
    for _ in 0..<(try count()) {
      let sum = RefundSum(dateMs: try instant(), micros: try integer(in: 0...Int64.max))
      if let last = sums.last, sum.dateMs <= last.dateMs { throw Damage() }
      sums.append(sum)
    }
    return sums
  }
}
