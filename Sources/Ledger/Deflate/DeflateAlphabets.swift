// The symbols of DEFLATE, and their values (RFC 1951, section 3.2.5).

/// The symbols for literals and lengths, for distances, and for the lengths of codewords.
enum DeflateAlphabet {
  static let matchByteCounts = 3...258
  static let distanceMax = 32_768
  static let endSymbol = 256

  static let literalCount = 288
  static let distanceCount = 32
  static let lengthCount = 19

  /// The bits that index the first tables of literals and of distances. Five of the former are looked up with one
  /// refill of a reader.
  @inline(__always) static var literalBitCount: Int { 10 }
  @inline(__always) static var distanceBitCount: Int { 8 }
  @inline(__always) static var literalMask: UInt64 { 1 << UInt64(literalBitCount) - 1 }
  @inline(__always) static var distanceMask: UInt64 { 1 << UInt64(distanceBitCount) - 1 }

  /// The order in which the lengths of the code for lengths are written.
  static let lengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

  /// What tables hold for literals, the end and lengths.
  static let literalValues: [HuffmanCode.Entry] = (0..<literalCount).map { symbol in
    switch symbol {
    case ..<endSymbol: HuffmanCode.isLiteral | HuffmanCode.Entry(symbol) << 16
    case endSymbol: HuffmanCode.isEnd
    case 257..<265: value(base: symbol - 254, extraBitCount: 0)
    case 265..<285:
      value(
        base: 3 + (4 + (symbol - 265) % 4) << ((symbol - 261) / 4),
        extraBitCount: (symbol - 261) / 4)
    case 285: value(base: 258, extraBitCount: 0)
    default: 0
    }
  }

  /// What tables hold for distances.
  static let distanceValues: [HuffmanCode.Entry] = (0..<distanceCount).map { symbol in
    switch symbol {
    case ..<4: value(base: symbol + 1, extraBitCount: 0)
    case ..<30:
      value(base: 1 + (2 + symbol % 2) << (symbol / 2 - 1), extraBitCount: symbol / 2 - 1)
    default: 0
    }
  }

  /// What tables hold for the lengths of codewords: the symbol itself.
  static let lengthValues: [HuffmanCode.Entry] = (0..<lengthCount).map { symbol in
    HuffmanCode.isLiteral | HuffmanCode.Entry(symbol) << 16
  }

  private static func value(base: Int, extraBitCount: Int) -> HuffmanCode.Entry {
    HuffmanCode.Entry(base << 16 | extraBitCount << 8)
  }

  /// The symbol of a match's length, the number of its extra bits and their value.
  @inline(__always)
  static func symbol(length: Int) -> (symbol: Int, extraBitCount: Int, extra: Int) {
    let rest = length &- 3
    if length == 258 { return (285, 0, 0) }
    if rest < 8 { return (257 &+ rest, 0, 0) }
    let top = 63 &- rest.leadingZeroBitCount
    let extraBitCount = top &- 2
    let extra = rest & (1 &<< extraBitCount &- 1)
    return (257 &+ 4 &* (top &- 1) &+ (rest &>> extraBitCount) & 3, extraBitCount, extra)
  }

  /// The symbol of a match's distance, the number of its extra bits and their value.
  @inline(__always)
  static func symbol(distance: Int) -> (symbol: Int, extraBitCount: Int, extra: Int) {
    let rest = distance &- 1
    if rest < 4 { return (rest, 0, 0) }
    let top = 63 &- rest.leadingZeroBitCount
    let extraBitCount = top &- 1
    let extra = rest & (1 &<< extraBitCount &- 1)
    return (2 &* top &+ (rest &>> extraBitCount) & 1, extraBitCount, extra)
  }
}
