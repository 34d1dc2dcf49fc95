// The parts of a saved state: variable-length integers, and texts with their length.

/// Writes the parts of a state.
struct StateWriter {
  private(set) var bytes: [UInt8]

  init(_ header: [UInt8]) { bytes = header }

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

  /// Writes the currency as its code: ordinals change when the table grows.
  mutating func write(_ price: UnitPrice) {
    write(price.micros)
    price.currency.append(to: &bytes)
  }
}

/// Reads the parts of a state. Texts point into its bytes.
struct StateReader {
  private let bytes: UnsafeRawBufferPointer
  private var place = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { place == bytes.count }

  mutating func integer() throws(RevenueStateError) -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      guard place < bytes.count else { throw .inconsistent }
      let byte = bytes[place]
      place += 1
      // The tenth byte holds only one of the 64 bits.
      guard shift < 63 || byte <= 1 else { throw .inconsistent }
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
    }
    throw .inconsistent
  }

  mutating func integer(in range: ClosedRange<Int64>) throws(RevenueStateError) -> Int64 {
    let value = try integer()
    guard range.contains(value) else { throw .inconsistent }
    return value
  }

  /// The number of parts that follow, each at least one byte: never more than the bytes left.
  mutating func count() throws(RevenueStateError) -> Int {
    let value = try integer()
    guard (0...Int64(min(bytes.count - place, Int(Int32.max)))).contains(value) else {
      throw .inconsistent
    }
    return Int(value)
  }

  /// A position or −1.
  mutating func position() throws(RevenueStateError) -> Int {
    Int(try integer(in: -1...Int64.max))
  }

  mutating func text() throws(RevenueStateError) -> Text {
    let count = try count()
    defer { place += count }
    return Text(rebasing: bytes[place..<place + count])
  }

  mutating func list<Part>(
    _ part: (inout StateReader) throws(RevenueStateError) -> Part
  ) throws(RevenueStateError) -> [Part] {
    var result: [Part] = []
    for _ in 0..<(try count()) { result.append(try part(&self)) }
    return result
  }

  mutating func symbol(below count: Int) throws(RevenueStateError) -> Symbol {
    let symbol = try symbol(orNoneBelow: count)
    guard symbol != .none else { throw .inconsistent }
    return symbol
  }

  mutating func symbol(orNoneBelow count: Int) throws(RevenueStateError) -> Symbol {
    Symbol(try integer(in: -1...Int64(count) - 1))
  }

  mutating func value<Value: RawRepresentable>() throws(RevenueStateError) -> Value
  where Value.RawValue == Int8 {
    guard let raw = Int8(exactly: try integer()), let value = Value(rawValue: raw) else {
      throw .inconsistent
    }
    return value
  }

  mutating func price(microsMax: Int64) throws(RevenueStateError) -> UnitPrice {
    let micros = try integer(in: 0...microsMax)
    guard bytes.count - place >= 3,
      let currency = Currency.parse(
        UnsafeRawBufferPointer(rebasing: bytes[place..<place + 3]))
    else { throw .inconsistent }
    place += 3
    return UnitPrice(micros: micros, currency: currency)
  }
}
