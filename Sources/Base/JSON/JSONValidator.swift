// The strict reader: checks that bytes are one JSON text, and copies them without white space.

/// Checks texts against RFC 8259, with stricter rules where the RFC leaves a choice: UTF-8 only, no lone
/// surrogates, no duplicate key in an object (compared unescaped), limited nesting.
package struct JSONValidator {
  /// The default limit on nested arrays and objects.
  package static let defaultDepthLimit = 64
  /// The highest limit that a caller may set: the check is recursive.
  package static let greatestDepthLimit = 512

  private let start: UnsafePointer<UInt8>
  private let end: Int
  private var offset = 0
  private let depthLimit: Int
  private var keys: [Key] = []
  private var compactEnd = 0
  private let compacts: Bool
  private var output: [UInt8]

  private struct Key {
    var offset: Int
    var count: Int
    var hash: UInt64
    var hasEscapes: Bool
  }

  private init(_ bytes: JSONBytes, depthLimit: Int, output: [UInt8]?) {
    precondition(depthLimit <= Self.greatestDepthLimit)
    // An empty buffer has no address; nothing is read through this pointer.
    start = bytes.baseAddress.map { $0.assumingMemoryBound(to: UInt8.self) } ?? Self.nothing
    end = bytes.count
    self.depthLimit = depthLimit
    compacts = output != nil
    self.output = output ?? []
  }

  nonisolated(unsafe) private static let nothing = UnsafePointer(
    UnsafeMutablePointer<UInt8>.allocate(capacity: 1))

  /// Throws unless `bytes` are exactly one JSON value, optionally surrounded by white space.
  package static func validate(
    _ bytes: JSONBytes, depthLimit: Int = defaultDepthLimit
  ) throws(JSONError) {
    var validator = JSONValidator(bytes, depthLimit: depthLimit, output: nil)
    try validator.text()
  }

  /// Validates `bytes` and appends them to `output` without the white space between tokens. Tokens and their
  /// order do not change. On error, `output` is left as it was.
  package static func compact(
    _ bytes: JSONBytes, depthLimit: Int = defaultDepthLimit, to output: inout [UInt8]
  ) throws(JSONError) {
    let before = output.count
    var validator = JSONValidator(bytes, depthLimit: depthLimit, output: output)
    output = []
    do {
      try validator.text()
      output = validator.output
    } catch {
      output = validator.output
      output.removeSubrange(before...)
      throw error
    }
  }

  private mutating func text() throws(JSONError) {
    skipSpace()
    try value(depth: 0)
    flush(to: offset)
    skipSpace()
    if offset < end { throw JSONError(.trailingBytes, at: offset) }
  }

  // MARK: White space

  @inline(__always)
  private mutating func skipSpace() {
    guard offset < end, start[offset] <= 0x20 else { return }
    flush(to: offset)
    while offset < end,
      start[offset] == 0x20 || start[offset] == 0x0A || start[offset] == 0x0D
        || start[offset] == 0x09
    {
      offset &+= 1
    }
    compactEnd = offset
  }

  private mutating func flush(to limit: Int) {
    if compacts, limit > compactEnd {
      output.append(
        contentsOf: UnsafeBufferPointer(start: start + compactEnd, count: limit - compactEnd))
    }
    compactEnd = limit
  }

  // MARK: Values

  private mutating func value(depth: Int) throws(JSONError) {
    guard offset < end else { throw JSONError(.unexpectedEnd, at: offset) }
    switch start[offset] {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"): try object(depth: depth + 1)
    case UInt8(ascii: "["): try array(depth: depth + 1)
    case UInt8(ascii: "t"): try word("true")
    case UInt8(ascii: "f"): try word("false")
    case UInt8(ascii: "n"): try word("null")
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
    default: throw JSONError(.unexpectedByte, at: offset)
    }
  }

  private mutating func word(_ word: StaticString) throws(JSONError) {
    for index in 0..<word.utf8CodeUnitCount {
      guard offset + index < end else { throw JSONError(.unexpectedEnd, at: end) }
      guard start[offset + index] == word.utf8Start[index] else {
        throw JSONError(.unexpectedByte, at: offset + index)
      }
    }
    offset += word.utf8CodeUnitCount
  }

  private mutating func number() throws(JSONError) {
    let first = offset
    if start[offset] == UInt8(ascii: "-") { offset += 1 }
    if offset < end, start[offset] == UInt8(ascii: "0") {
      offset += 1
    } else if digits() == 0 {
      throw JSONError(.invalidNumber, at: first)
    }
    if offset < end, start[offset] == UInt8(ascii: ".") {
      offset += 1
      if digits() == 0 { throw JSONError(.invalidNumber, at: first) }
    }
    if offset < end, start[offset] | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if offset < end, start[offset] == UInt8(ascii: "+") || start[offset] == UInt8(ascii: "-") {
        offset += 1
      }
      if digits() == 0 { throw JSONError(.invalidNumber, at: first) }
    }
    // Otherwise "01" and "1x" would be found later, with a less exact cause.
    if offset < end, (0x30...0x39).contains(start[offset]) {
      throw JSONError(.invalidNumber, at: first)
    }
  }

  private mutating func digits() -> Int {
    let first = offset
    while offset < end, (0x30...0x39).contains(start[offset]) { offset &+= 1 }
    return offset - first
  }

  /// Reads a string; returns whether it has escapes.
  @inline(__always)
  private mutating func string() throws(JSONError) -> Bool {
    let first = offset
    offset &+= 1
    var hasEscapes = false
    while true {
      offset = Scan.special(start, from: offset, to: end)
      guard offset < end else { throw JSONError(.unexpectedEnd, at: first) }
      let byte = start[offset]
      if byte == 0x22 {
        offset &+= 1
        return hasEscapes
      }
      if byte == 0x5C {
        hasEscapes = true
        try escape()
      } else if byte < 0x20 {
        throw JSONError(.controlCharacter, at: offset)
      } else {
        let length = Scan.sequenceLength(start, at: offset, to: end)
        guard length > 0 else { throw JSONError(.invalidUTF8, at: offset) }
        offset &+= length
      }
    }
  }

  private mutating func escape() throws(JSONError) {
    let first = offset
    guard offset + 1 < end else { throw JSONError(.unexpectedEnd, at: first) }
    switch start[offset + 1] {
    case 0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74: offset += 2
    case UInt8(ascii: "u"):
      let unit = try hexUnit(at: offset + 2)
      offset += 6
      if (0xDC00...0xDFFF).contains(unit) { throw JSONError(.loneSurrogate, at: first) }
      guard (0xD800...0xDBFF).contains(unit) else { return }
      guard offset + 1 < end, start[offset] == 0x5C, start[offset + 1] == UInt8(ascii: "u"),
        (0xDC00...0xDFFF).contains(try hexUnit(at: offset + 2))
      else { throw JSONError(.loneSurrogate, at: first) }
      offset += 6
    default: throw JSONError(.invalidEscape, at: first)
    }
  }

  private func hexUnit(at first: Int) throws(JSONError) -> UInt32 {
    guard first + 4 <= end else { throw JSONError(.unexpectedEnd, at: end) }
    var unit: UInt32 = 0
    for index in first..<first + 4 {
      guard let digit = Scan.hexValue(start[index]) else {
        throw JSONError(.invalidEscape, at: index)
      }
      unit = unit << 4 | digit
    }
    return unit
  }

  // MARK: Containers

  private mutating func array(depth: Int) throws(JSONError) {
    guard depth <= depthLimit else { throw JSONError(.tooDeep, at: offset) }
    offset += 1
    skipSpace()
    if try consume(UInt8(ascii: "]")) { return }
    while true {
      try value(depth: depth)
      skipSpace()
      if try consume(UInt8(ascii: "]")) { return }
      try expect(UInt8(ascii: ","))
      skipSpace()
    }
  }

  private mutating func object(depth: Int) throws(JSONError) {
    guard depth <= depthLimit else { throw JSONError(.tooDeep, at: offset) }
    offset += 1
    let firstKey = keys.count
    skipSpace()
    if try consume(UInt8(ascii: "}")) { return }
    while true {
      guard offset < end, start[offset] == 0x22 else {
        throw JSONError(offset < end ? .unexpectedByte : .unexpectedEnd, at: offset)
      }
      let keyStart = offset + 1
      let hasEscapes = try string()
      addKey(keyStart, offset - 1, hasEscapes: hasEscapes)
      skipSpace()
      try expect(UInt8(ascii: ":"))
      skipSpace()
      try value(depth: depth)
      skipSpace()
      if try consume(UInt8(ascii: "}")) { break }
      try expect(UInt8(ascii: ","))
      skipSpace()
    }
    try refuseDuplicates(from: firstKey)
    keys.removeSubrange(firstKey...)
  }

  @inline(__always)
  private mutating func consume(_ byte: UInt8) throws(JSONError) -> Bool {
    guard offset < end else { throw JSONError(.unexpectedEnd, at: offset) }
    guard start[offset] == byte else { return false }
    offset &+= 1
    return true
  }

  @inline(__always)
  private mutating func expect(_ byte: UInt8) throws(JSONError) {
    guard try consume(byte) else { throw JSONError(.unexpectedByte, at: offset) }
  }

  // MARK: Keys

  /// Up to this many keys are compared in pairs. More are sorted, so no object takes quadratic time.
  private static let pairwiseLimit = 48

  @inline(__always)
  private mutating func addKey(_ from: Int, _ to: Int, hasEscapes: Bool) {
    let raw = UnsafeRawPointer(start)
    var hash = UInt64(to - from)
    if to - from >= 8 {
      hash ^= raw.loadUnaligned(fromByteOffset: from, as: UInt64.self) &* 0x9E37_79B9_7F4A_7C15
      hash ^= raw.loadUnaligned(fromByteOffset: to - 8, as: UInt64.self) &* 0xC2B2_AE3D_27D4_EB4F
    } else {
      for index in from..<to { hash = hash &* 257 &+ UInt64(start[index]) }
    }
    keys.append(Key(offset: from, count: to - from, hash: hash, hasEscapes: hasEscapes))
  }

  private func refuseDuplicates(from firstKey: Int) throws(JSONError) {
    let mine = keys[firstKey...]
    if mine.contains(where: \.hasEscapes) { return try refuseEscapedDuplicates(mine) }
    if mine.count <= Self.pairwiseLimit {
      for later in mine.indices.dropFirst() {
        for earlier in mine.startIndex..<later
        where mine[earlier].hash == mine[later].hash && order(mine[earlier], mine[later]) == 0 {
          throw JSONError(.duplicateKey, at: mine[later].offset)
        }
      }
      return
    }
    let sorted = mine.sorted { order($0, $1) < 0 }
    for index in sorted.indices.dropFirst() where order(sorted[index - 1], sorted[index]) == 0 {
      throw JSONError(.duplicateKey, at: max(sorted[index - 1].offset, sorted[index].offset))
    }
  }

  private func refuseEscapedDuplicates(_ mine: ArraySlice<Key>) throws(JSONError) {
    var seen = Set<[UInt8]>()
    for key in mine {
      let raw = JSONBytes(start: start + key.offset, count: key.count)
      if !seen.insert(JSONString(raw: raw, hasEscapes: key.hasEscapes).bytes).inserted {
        throw JSONError(.duplicateKey, at: key.offset)
      }
    }
  }

  private func order(_ left: Key, _ right: Key) -> Int {
    if left.count != right.count { return left.count < right.count ? -1 : 1 }
    for index in 0..<left.count {
      let (one, other) = (start[left.offset + index], start[right.offset + index])
      if one != other { return one < other ? -1 : 1 }
    }
    return 0
  }
}
