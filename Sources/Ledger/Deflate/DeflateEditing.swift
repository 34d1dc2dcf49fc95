// One change of a deflated content: the walk along its tokens.

/// The state of a walk along the tokens of a DEFLATE stream that gets another content.
struct DeflateEditing {
  private var reader: BitReader
  private var writer: BitWriter
  private let edits: [ContentEdit]
  private let oldByteCount: Int
  private let content: UnsafeRawBufferPointer
  private let finder: MatchFinder
  private let fixed: FixedCodes

  // The block: its codes, and where its type and its codes stand in the old stream.
  private var literals: HuffmanCode
  private var distances: HuffmanCode
  private var header = 0..<0

  // In the old content: the next token's first byte.
  private var position = 0
  /// How many edits are behind the position, and whether the new bytes of the next one are in `dirty`.
  private var doneCount = 0
  private var isBegun = false
  /// Where tokens that are taken over unchanged begin, in the old stream and in the old content.
  private var kept = (bit: 0, position: 0)

  // In the new content.
  private var writtenCount = 0
  /// Bytes that are encoded anew before anything else is written.
  private var dirty = 0..<0
  private var tokens: [DeflateToken] = []

  init(
    _ reader: BitReader, _ writer: BitWriter, _ edits: [ContentEdit], _ oldByteCount: Int,
    _ content: UnsafeRawBufferPointer, _ finder: MatchFinder, _ fixed: FixedCodes
  ) {
    self.reader = reader
    self.writer = writer
    self.edits = edits
    self.oldByteCount = oldByteCount
    self.content = content
    self.finder = finder
    self.fixed = fixed
    literals = fixed.literals
    distances = fixed.distances
  }

  // MARK: Blocks

  /// Reads the header of a block; returns whether it is the last one, and nil if it can't be read or is stored.
  mutating func beginBlock(
    _ literals: HuffmanCode, _ distances: HuffmanCode, _ lengths: HuffmanCode
  ) -> Bool? {
    guard reader.refill() else { return nil }
    let isLast = reader.take(1) == 1
    // An empty block ends the new stream, so all others are not the last.
    writer.put(0, 1)
    let start = reader.position
    switch reader.take(2) {
    case 1: (self.literals, self.distances) = (fixed.literals, fixed.distances)
    case 2:
      guard readCodes(literals, distances, lengths) else { return nil }
      (self.literals, self.distances) = (literals, distances)
    default: return nil
    }
    header = start..<reader.position
    kept = (start, position)
    keep(upTo: reader.position)
    return isLast
  }

  private mutating func readCodes(
    _ literals: HuffmanCode, _ distances: HuffmanCode, _ lengths: HuffmanCode
  ) -> Bool {
    let literalCount = reader.take(5) + 257
    let distanceCount = reader.take(5) + 1
    let lengthCount = reader.take(4) + 4
    guard literalCount <= DeflateAlphabet.literalCount else { return false }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.lengthCountMax) { all in
      all.initialize(repeating: 0)
      for symbol in DeflateAlphabet.lengthOrder[..<lengthCount] {
        guard reader.refill() else { return false }
        all[symbol] = UInt8(reader.take(3))
      }
      guard lengths.make(lengths: .init(rebasing: all[..<DeflateAlphabet.lengthCount])),
        readLengths(lengths, into: .init(rebasing: all[..<(literalCount + distanceCount)]))
      else { return false }
      let (ofLiterals, ofDistances) = (
        all[..<literalCount], all[literalCount...][..<(literalCount + distanceCount)]
      )
      return all[DeflateAlphabet.endSymbol] > 0
        && literals.make(lengths: .init(rebasing: ofLiterals))
        && distances.make(lengths: .init(rebasing: ofDistances))
    }
  }

  private static let lengthCountMax =
    DeflateAlphabet.literalCount + DeflateAlphabet.distanceCount

  /// Reads the lengths of codewords (RFC 1951, section 3.2.7); false if they are not as many.
  private mutating func readLengths(
    _ code: HuffmanCode, into all: UnsafeMutableBufferPointer<UInt8>
  ) -> Bool {
    var count = 0
    while count < all.count {
      guard reader.refill() else { return false }
      let entry = code.entries[Int(reader.bits & 127)]
      if entry == 0 { return false }
      reader.drop(Int(entry & 0xFF))
      let symbol = UInt8(entry >> 16 & 31)
      var repeated = (value: symbol, count: 1)
      switch symbol {
      case 16:
        if count == 0 { return false }
        repeated = (all[count - 1], 3 + reader.take(2))
      case 17: repeated = (0, 3 + reader.take(3))
      case 18: repeated = (0, 11 + reader.take(7))
      default: break
      }
      guard repeated.count <= all.count - count else { return false }
      for index in count..<count + repeated.count { all[index] = repeated.value }
      count += repeated.count
    }
    return true
  }

  /// Goes along the tokens of a block, up to and with its end.
  mutating func walkBlock() -> Bool {
    let isWhole = walkTokens()
    if isWhole { keep(upTo: reader.position) }
    return isWhole && reader.isWithinStream && !writer.isFull
  }

  private mutating func walkTokens() -> Bool {
    // In registers, or nearly.
    var reader = reader
    var position = position
    defer { (self.reader, self.position) = (reader, position) }
    let (literals, distances) = (literals, distances)
    let (literalEntries, distanceEntries) = (literals.entries, distances.entries)
    var dirtyStart = nextEditStart
    var safeStart = lastEditEnd
    while reader.refill() {
      // Most tokens are literals in bytes that stay: five codewords are looked up before any is looked at.
      if position &+ 5 <= dirtyStart {
        var bits = reader.bits
        let first = literalEntries[Int(bits & DeflateAlphabet.literalMask)]
        bits &>>= UInt64(first)
        let second = literalEntries[Int(bits & DeflateAlphabet.literalMask)]
        bits &>>= UInt64(second)
        let third = literalEntries[Int(bits & DeflateAlphabet.literalMask)]
        bits &>>= UInt64(third)
        let fourth = literalEntries[Int(bits & DeflateAlphabet.literalMask)]
        bits &>>= UInt64(fourth)
        let fifth = literalEntries[Int(bits & DeflateAlphabet.literalMask)]
        if first & second & third & fourth & fifth & HuffmanCode.isLiteral != 0 {
          reader.drop(Int((first &+ second &+ third &+ fourth &+ fifth) & 0xFF))
          position &+= 5
          continue
        }
      }
      let start = reader.position
      var entry = literalEntries[Int(reader.bits & DeflateAlphabet.literalMask)]
      if entry & HuffmanCode.isTable != 0 { entry = literals.entry(reader.bits, in: entry) }
      reader.drop(Int(entry & 0xFF))
      var length = 1
      var distance = 0
      if entry & HuffmanCode.isLiteral == 0 {
        if entry & HuffmanCode.isEnd != 0 { return true }
        if entry == 0 { return false }
        length = Int(entry &>> 16) &+ reader.take(Int(entry &>> 8 & 0xFF))
        entry = distanceEntries[Int(reader.bits & DeflateAlphabet.distanceMask)]
        if entry & HuffmanCode.isTable != 0 { entry = distances.entry(reader.bits, in: entry) }
        reader.drop(Int(entry & 0xFF))
        distance = Int(entry &>> 16) &+ reader.take(Int(entry &>> 8 & 0xFF))
        if entry == 0 || distance > position { return false }
      }
      let end = position &+ length
      if end <= dirtyStart {
        if position &- distance >= safeStart {
          position = end
          continue
        }
      } else if isBegun, end < edits[doneCount].old.upperBound {
        position = end
        kept = (reader.position, end)
        continue
      }
      if end > oldByteCount { return false }
      self.position = position
      keep(upTo: start)
      write(upTo: end, distance: distance)
      kept = (reader.position, end)
      position = end
      (dirtyStart, safeStart) = (nextEditStart, lastEditEnd)
    }
    return false
  }

  /// Ends the stream and returns its size; nil if it holds another content or is too large.
  mutating func finish() -> Int? {
    guard position == oldByteCount, doneCount == edits.count, dirty.isEmpty,
      writtenCount == content.count
    else { return nil }
    // The last block, with the fixed codes: nothing but its end.
    writer.put(0b011, 3 + 7)
    writer.finish()
    return writer.isFull ? nil : writer.byteCount
  }

  // MARK: Edits

  private var nextEditStart: Int {
    doneCount < edits.count ? edits[doneCount].old.lowerBound : oldByteCount
  }

  private var lastEditEnd: Int { doneCount > 0 ? edits[doneCount - 1].old.upperBound : 0 }

  /// The place in the new content of a byte that stays, after a number of edits.
  private func newPosition(_ old: Int, after editCount: Int) -> Int {
    guard editCount > 0 else { return old }
    let edit = edits[editCount - 1]
    return old - edit.old.upperBound + edit.new.upperBound
  }

  /// Writes what becomes of a token that changed bytes concern.
  private mutating func write(upTo end: Int, distance: Int) {
    while position < end {
      if position >= nextEditStart, doneCount < edits.count {
        let edit = edits[doneCount]
        if !isBegun { add(edit.new) }
        isBegun = true
        position = min(end, edit.old.upperBound)
        if position == edit.old.upperBound {
          doneCount += 1
          isBegun = false
        }
      } else {
        let stop = min(end, nextEditStart)
        if !move(length: stop - position, distance: distance) {
          let start = newPosition(position, after: doneCount)
          add(start..<start + stop - position)
        }
        position = stop
      }
    }
  }

  private mutating func add(_ range: Range<Int>) {
    if range.isEmpty { return }
    precondition(
      range.lowerBound == (dirty.isEmpty ? writtenCount : dirty.upperBound),
      "an edited content has a gap")
    dirty = (dirty.isEmpty ? range.lowerBound : dirty.lowerBound)..<range.upperBound
  }

  /// Writes a match whose source stays, with the distance that it has now; false if there is none, or no code for it.
  private mutating func move(length: Int, distance: Int) -> Bool {
    guard distance > 0, DeflateAlphabet.matchByteCounts ~= length else { return false }
    let start = position - distance
    var editCount = doneCount
    while editCount > 0, edits[editCount - 1].old.upperBound > start { editCount -= 1 }
    if editCount < doneCount, start + length > edits[editCount].old.lowerBound { return false }
    let target = newPosition(position, after: doneCount)
    let newDistance = target - newPosition(start, after: editCount)
    guard 1...DeflateAlphabet.distanceMax ~= newDistance else { return false }
    let match = DeflateToken(length: length, distance: newDistance)
    guard hasCodewords(match) else { return false }
    writeDirty()
    precondition(writtenCount == target, "an edited content has a gap")
    put(match, literals, distances)
    writtenCount += length
    return true
  }

  // MARK: Output

  /// Takes over the tokens since the last one that was written.
  private mutating func keep(upTo bit: Int) {
    guard bit > kept.bit else { return }
    writeDirty()
    // Within an edit there is nothing but ends and headers of blocks.
    precondition(
      kept.position == position || writtenCount == newPosition(kept.position, after: doneCount),
      "an edited content has a gap")
    writer.copy(kept.bit..<bit, of: reader.base)
    writtenCount += position - kept.position
    kept = (bit, position)
  }

  /// Encodes the bytes that wait.
  private mutating func writeDirty() {
    if dirty.isEmpty { return }
    precondition(writtenCount == dirty.lowerBound, "an edited content has a gap")
    finder.find(dirty, in: content, &tokens)
    writtenCount = dirty.upperBound
    dirty = 0..<0
    if tokens.allSatisfy(hasCodewords) {
      for token in tokens { put(token, literals, distances) }
      return
    }
    // A block with the fixed codes, which have all symbols; then the old block goes on.
    put(literals.codewords[DeflateAlphabet.endSymbol])
    writer.put(0b010, 3)
    for token in tokens { put(token, fixed.literals, fixed.distances) }
    put(fixed.literals.codewords[DeflateAlphabet.endSymbol])
    writer.put(0, 1)
    writer.copy(header, of: reader.base)
  }

  private func hasCodewords(_ token: DeflateToken) -> Bool {
    guard token.isMatch else { return literals.codewords[token.literal] != 0 }
    return literals.codewords[DeflateAlphabet.symbol(length: token.length).symbol] != 0
      && distances.codewords[DeflateAlphabet.symbol(distance: token.distance).symbol] != 0
  }

  private mutating func put(
    _ token: DeflateToken, _ literals: HuffmanCode, _ distances: HuffmanCode
  ) {
    guard token.isMatch else { return put(literals.codewords[token.literal]) }
    let length = DeflateAlphabet.symbol(length: token.length)
    put(literals.codewords[length.symbol])
    writer.put(UInt64(length.extra), length.extraBitCount)
    let distance = DeflateAlphabet.symbol(distance: token.distance)
    put(distances.codewords[distance.symbol])
    writer.put(UInt64(distance.extra), distance.extraBitCount)
  }

  private mutating func put(_ codeword: UInt32) {
    writer.put(UInt64(codeword & 0xFFFF), Int(codeword >> 16))
  }
}
