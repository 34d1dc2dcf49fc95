// The Huffman codes of a DEFLATE block: tables that decode them, and the codewords that encode.

/// One code of a DEFLATE block, made anew for each block (RFC 1951, section 3.2.2). Not thread-safe.
final class HuffmanCode {
  /// The longest codeword, in bits.
  static let codewordBitCountMax = 15

  /// What a table holds for bits that begin with a codeword: the codeword's length in bits 0 to 7, the number of extra
  /// bits in 8 to 15, and the symbol's base value from 16. 0 for bits that begin none.
  typealias Entry = UInt32
  /// Codewords longer than the first table's bits: the offset of their table is in bits 8 to 30.
  static let isTable: Entry = 1 << 31
  static let isLiteral: Entry = 1 << 30
  static let isEnd: Entry = 1 << 29

  /// The first table's index bits.
  let firstBitCount: Int
  let entries: UnsafeMutablePointer<Entry>
  /// How many bits after the first ones index the other tables; each of these has as many entries.
  private(set) var restBitCount = 0
  /// For each symbol its codeword in bits 0 to 14, with the first bit lowest, and the codeword's length from bit 16 on.
  /// A symbol without a codeword has 0.
  let codewords: UnsafeMutablePointer<UInt32>

  /// For each symbol its entry without the codeword's length; 0 for symbols that must not occur.
  private let values: [Entry]
  /// Of each length, how many codewords there are and where its next symbol goes; then the symbols by length.
  private let counts: UnsafeMutablePointer<Int>
  private let places: UnsafeMutablePointer<Int>
  private let sorted: UnsafeMutablePointer<Int>

  init(firstBitCount: Int, values: [Entry]) {
    self.firstBitCount = firstBitCount
    self.values = values
    counts = .allocate(capacity: Self.codewordBitCountMax + 1)
    places = .allocate(capacity: Self.codewordBitCountMax + 2)
    sorted = .allocate(capacity: values.count)
    // Each symbol may be alone in a table of its own.
    let capacity = 1 << firstBitCount + values.count << (Self.codewordBitCountMax - firstBitCount)
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: 0, count: capacity)
    codewords = .allocate(capacity: values.count)
    codewords.initialize(repeating: 0, count: values.count)
  }

  deinit {
    for memory in [counts, places, sorted] { memory.deallocate() }
    entries.deallocate()
    codewords.deallocate()
  }

  /// The entry of the codeword that these bits begin with, in a table of another kind than the first.
  func entry(_ bits: UInt64, in table: Entry) -> Entry {
    let index = Int(truncatingIfNeeded: bits >> UInt64(firstBitCount)) & (1 << restBitCount - 1)
    return entries[Int((table & ~Self.isTable) >> 8) + index]
  }

  /// Makes the tables of a code from the lengths of its codewords, 0 for symbols without one. False if no code has
  /// these lengths.
  func make(lengths: UnsafeBufferPointer<UInt8>) -> Bool {
    precondition(lengths.count <= values.count, "there are more lengths than symbols")
    counts.update(repeating: 0, count: Self.codewordBitCountMax + 1)
    for length in lengths {
      guard length <= Self.codewordBitCountMax else { return false }
      counts[Int(length)] += 1
    }
    counts[0] = 0
    var freeCount = 1
    places[1] = 0
    for length in 1...Self.codewordBitCountMax {
      freeCount = 2 * freeCount - counts[length]
      if freeCount < 0 { return false }
      places[length + 1] = places[length] + counts[length]
    }
    codewords.update(repeating: 0, count: values.count)
    for symbol in lengths.indices where lengths[symbol] > 0 {
      sorted[places[Int(lengths[symbol])]] = symbol
      places[Int(lengths[symbol])] += 1
    }
    let longest = (0...Self.codewordBitCountMax).last { counts[$0] > 0 } ?? 0
    restBitCount = max(0, longest - firstBitCount)
    // Bits that begin no codeword.
    if freeCount > 0 { entries.update(repeating: 0, count: 1 << firstBitCount) }
    fill(longest)
    return true
  }

  private func fill(_ longest: Int) {
    var codeword: UInt16 = 0
    var next = 0
    var tableEnd = 1 << firstBitCount
    var openPrefix = -1
    for length in 1...max(1, longest) {
      // The entries so far are right whatever the next bit is.
      if length <= firstBitCount {
        let half = 1 << (length - 1)
        (entries + half).update(from: entries, count: half)
      }
      for _ in 0..<counts[length] {
        let symbol = sorted[next]
        next += 1
        let bits = Int(codeword.bitSwapped &>> UInt16(16 - length))
        codeword &+= 1
        codewords[symbol] = UInt32(bits | length << 16)
        let entry = values[symbol] == 0 ? 0 : values[symbol] | Entry(length)
        if length <= firstBitCount {
          entries[bits] = entry
          continue
        }
        // Codewords with the same first bits follow each other.
        let prefix = bits & (1 << firstBitCount - 1)
        if prefix != openPrefix {
          openPrefix = prefix
          entries[prefix] = Self.isTable | Entry(tableEnd) << 8
          (entries + tableEnd).update(repeating: 0, count: 1 << restBitCount)
          tableEnd += 1 << restBitCount
        }
        let table = entries + (tableEnd - 1 << restBitCount)
        let step = 1 << (length - firstBitCount)
        for index in stride(from: bits >> firstBitCount, to: 1 << restBitCount, by: step) {
          table[index] = entry
        }
      }
      codeword <<= 1
    }
    if longest < firstBitCount {
      for bitCount in max(longest, 1)..<firstBitCount {
        (entries + 1 << bitCount).update(from: entries, count: 1 << bitCount)
      }
    }
  }
}

extension UInt16 {
  /// The same bits in the other order.
  fileprivate var bitSwapped: UInt16 {
    var value = self
    value = (value & 0x5555) << 1 | (value >> 1) & 0x5555
    value = (value & 0x3333) << 2 | (value >> 2) & 0x3333
    value = (value & 0x0F0F) << 4 | (value >> 4) & 0x0F0F
    return value.byteSwapped
  }
}
