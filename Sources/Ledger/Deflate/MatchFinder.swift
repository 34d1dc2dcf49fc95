// Finds what repeats earlier content, for the parts of a DEFLATE stream that are made anew.

/// A literal, or a match in bits: 31 is set, 16 to 23 are the length less 3, 0 to 14 the distance less 1.
struct DeflateToken {
  private static let isMatchBit: UInt32 = 1 << 31
  private let bits: UInt32

  init(literal: UInt8) { bits = UInt32(literal) }

  init(length: Int, distance: Int) {
    bits = Self.isMatchBit | UInt32(length - 3) << 16 | UInt32(distance - 1)
  }

  var isMatch: Bool { bits & Self.isMatchBit != 0 }
  var literal: Int { Int(bits & 0xFF) }
  var length: Int { Int(bits >> 16 & 0xFF) + 3 }
  var distance: Int { Int(bits & 0x7FFF) + 1 }
}

/// Turns parts of a content into tokens, from front to back. Quick rather than thorough. Not thread-safe.
final class MatchFinder {
  private static let tableBitCount = 14
  /// How far before a part its content is looked at, and how many of its bytes begin a match.
  private static let windowByteCount = 16_384
  private static let step = 8
  private static let lengthMin = 4

  /// By a hash of four bytes, one more than where they stood last.
  private let table: UnsafeMutablePointer<Int32>
  private var enteredEnd = 0

  init() {
    table = .allocate(capacity: 1 << Self.tableBitCount)
    table.initialize(repeating: 0, count: 1 << Self.tableBitCount)
  }

  deinit { table.deallocate() }

  /// Begins another content.
  func reset() {
    table.update(repeating: 0, count: 1 << Self.tableBitCount)
    enteredEnd = 0
  }

  /// Finds the tokens of a part, which is after all parts before.
  func find(
    _ part: Range<Int>, in content: UnsafeRawBufferPointer, _ tokens: inout [DeflateToken]
  ) {
    precondition(part.lowerBound >= enteredEnd && part.upperBound <= content.count)
    guard let base = content.baseAddress else { return }
    tokens.removeAll(keepingCapacity: true)
    enter(upTo: part.lowerBound, base)
    var next = part.lowerBound
    var literalStart = next
    while next + Self.lengthMin <= part.upperBound {
      let candidate = exchange(next, base)
      guard candidate >= 0, next - candidate <= DeflateAlphabet.distanceMax,
        Self.word(base, candidate) == Self.word(base, next)
      else {
        next += 1
        continue
      }
      let distance = next - candidate
      // It may begin before, but must hold the four bytes.
      let lengthMax = DeflateAlphabet.matchByteCounts.upperBound
      let startMin = max(literalStart, distance, next + Self.lengthMin - lengthMax)
      var end = next + Self.lengthMin
      while next > startMin, base.byte(next - 1) == base.byte(next - 1 - distance) { next -= 1 }
      addLiterals(literalStart..<next, base, &tokens)
      let limit = min(part.upperBound, next + lengthMax)
      while end + 8 <= limit, base.equalWords(end, end - distance) { end += 8 }
      while end < limit, base.byte(end) == base.byte(end - distance) { end += 1 }
      tokens.append(DeflateToken(length: end - next, distance: distance))
      next = end
      literalStart = end
    }
    addLiterals(literalStart..<part.upperBound, base, &tokens)
    enteredEnd = part.upperBound
  }

  private func addLiterals(
    _ range: Range<Int>, _ base: UnsafeRawPointer, _ tokens: inout [DeflateToken]
  ) {
    for index in range { tokens.append(DeflateToken(literal: base.byte(index))) }
  }

  private func enter(upTo end: Int, _ base: UnsafeRawPointer) {
    var next = max(enteredEnd, end - Self.windowByteCount)
    while next + Self.lengthMin <= end {
      _ = exchange(next, base)
      next += Self.step
    }
  }

  private static func word(_ base: UnsafeRawPointer, _ offset: Int) -> UInt32 {
    base.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
  }

  /// Where the four bytes at an offset stood last, as far as is known; -1 if they did not.
  private func exchange(_ offset: Int, _ base: UnsafeRawPointer) -> Int {
    let hash = Int((Self.word(base, offset) &* 0x9E37_79B1) >> UInt32(32 - Self.tableBitCount))
    let last = Int(table[hash]) - 1
    table[hash] = Int32(offset + 1)
    return last
  }
}

extension UnsafeRawPointer {
  fileprivate func equalWords(_ first: Int, _ second: Int) -> Bool {
    loadUnaligned(fromByteOffset: first, as: UInt64.self)
      == loadUnaligned(fromByteOffset: second, as: UInt64.self)
  }

  fileprivate func byte(_ offset: Int) -> UInt8 { load(fromByteOffset: offset, as: UInt8.self) }
}
