// TimeZoneFile: a parsed TZif file (RFC 9636): the changes it lists and the rule in its footer.

/// The content of a zone's TZif file.
struct TimeZoneFile: Sendable {
  /// The offset before the first change.
  var firstOffsetSeconds: Int
  /// Strictly ascending.
  var transitions: [TimeZoneRule.Transition]
  /// Applies after the last change, or to all time if there is no change.
  var rule: TimeZoneRule?

  static let magic: [UInt8] = Array("TZif".utf8)
  private static let headerSize = 44
  /// RFC 9636 section 3.2: a little over a day either way.
  private static let offsets = -89_999...93_599

  private struct Header {
    let version: UInt8
    let utcIndicatorCount: Int
    let standardIndicatorCount: Int
    let leapCount: Int
    let transitionCount: Int
    let typeCount: Int
    let nameSize: Int

    init?(_ bytes: UnsafeRawBufferPointer, at place: Int) {
      guard place + headerSize <= bytes.count,
        bytes[place..<place + 4].elementsEqual(magic)
      else { return nil }
      func count(_ index: Int) -> Int {
        Int(bytes.bigEndian(UInt32.self, at: place + 20 + index * 4))
      }
      version = bytes[place + 4]
      utcIndicatorCount = count(0)
      standardIndicatorCount = count(1)
      leapCount = count(2)
      transitionCount = count(3)
      typeCount = count(4)
      nameSize = count(5)
    }

    /// Bytes of the block after the header. Six 32-bit counts cannot overflow 64 bits.
    func blockSize(timeSize: Int) -> Int {
      transitionCount * (timeSize + 1) + typeCount * 6 + nameSize + leapCount * (timeSize + 4)
        + standardIndicatorCount + utcIndicatorCount
    }
  }

  /// Parses a file's bytes. Memory use is at most a small multiple of their size.
  init(parsing bytes: UnsafeRawBufferPointer) throws(TimeZoneError.Cause) {
    guard let first = Header(bytes, at: 0) else { throw .notTimeZoneFile }
    guard first.version >= UInt8(ascii: "2") else {
      try self.init(block: bytes, at: Self.headerSize, header: first, timeSize: 4)
      return
    }
    let secondPlace = Self.headerSize + first.blockSize(timeSize: 4)
    guard let second = Header(bytes, at: secondPlace) else { throw .malformed }
    let blockPlace = secondPlace + Self.headerSize
    try self.init(block: bytes, at: blockPlace, header: second, timeSize: 8)

    let footer = UnsafeRawBufferPointer(
      rebasing: bytes[(blockPlace + second.blockSize(timeSize: 8))...])
    guard footer.count >= 2, footer[0] == UInt8(ascii: "\n"),
      let length = footer[1...].firstIndex(of: UInt8(ascii: "\n"))
    else { throw .malformed }
    if length == 1 { return }
    guard let rule = TimeZoneRule(parsing: UnsafeRawBufferPointer(rebasing: footer[1..<length]))
    else { throw .malformed }
    self.rule = rule
  }

  private init(
    block bytes: UnsafeRawBufferPointer, at place: Int, header: Header, timeSize: Int
  ) throws(TimeZoneError.Cause) {
    guard place + header.blockSize(timeSize: timeSize) <= bytes.count, header.typeCount > 0
    else { throw .malformed }
    // With leap seconds, the same number would mean a different instant.
    guard header.leapCount == 0 else { throw .leapSeconds }
    let typeIndexes = place + header.transitionCount * timeSize
    let types = typeIndexes + header.transitionCount
    var typeOffsets: [Int] = []
    for type in 0..<header.typeCount {
      let offset = Int(bytes.bigEndian(Int32.self, at: types + type * 6))
      guard Self.offsets.contains(offset) else { throw .malformed }
      typeOffsets.append(offset)
    }
    transitions = []
    transitions.reserveCapacity(header.transitionCount)
    for index in 0..<header.transitionCount {
      let at =
        timeSize == 8
        ? bytes.bigEndian(Int64.self, at: place + index * 8)
        : Int64(bytes.bigEndian(Int32.self, at: place + index * 4))
      let type = Int(bytes[typeIndexes + index])
      guard type < typeOffsets.count, (transitions.last?.atSeconds ?? Int64.min) < at || index == 0
      else { throw .malformed }
      transitions.append(.init(atSeconds: at, offsetSeconds: typeOffsets[type]))
    }
    firstOffsetSeconds = typeOffsets[0]
  }
}

extension UnsafeRawBufferPointer {
  /// An integer in network byte order at an offset that need not be aligned.
  fileprivate func bigEndian<Value: FixedWidthInteger>(_ type: Value.Type, at place: Int) -> Value {
    Value(bigEndian: loadUnaligned(fromByteOffset: place, as: type))
  }
}
