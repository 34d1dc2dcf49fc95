// The canonical writer: no white space, keys in the given order, the shortest escapes.

/// Writes JSON texts, one after another, into a byte buffer. It adds the commas.
package struct JSONWriter: Sendable {
  /// The bytes written so far.
  package private(set) var bytes: [UInt8]
  private var needsComma = false

  /// Continues `bytes`, which must end where a value may follow.
  package init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  /// Clears the buffer and keeps its memory.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    needsComma = false
  }

  /// Reserves capacity for this many more bytes.
  package mutating func reserve(_ countBytes: Int) {
    bytes.reserveCapacity(bytes.count + countBytes)
  }

  @inline(__always)
  private mutating func separate() {
    if needsComma { bytes.append(0x2C) }
    needsComma = true
  }

  package mutating func beginObject() {
    separate()
    bytes.append(0x7B)
    needsComma = false
  }

  package mutating func endObject() {
    bytes.append(0x7D)
    needsComma = true
  }

  package mutating func beginArray() {
    separate()
    bytes.append(0x5B)
    needsComma = false
  }

  package mutating func endArray() {
    bytes.append(0x5D)
    needsComma = true
  }

  /// Writes a key that needs no escaping; its value must follow.
  package mutating func key(_ key: StaticString) {
    separate()
    bytes.append(0x22)
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
    bytes.append(0x22)
    bytes.append(0x3A)
    needsComma = false
  }

  /// Writes any text as a key; its value must follow.
  package mutating func key(_ key: String) {
    string(key)
    bytes.append(0x3A)
    needsComma = false
  }

  package mutating func string(_ value: String) {
    var value = value
    value.withUTF8 { string(JSONBytes($0)) }
  }

  /// Writes a string from its UTF-8 bytes.
  package mutating func string(_ value: JSONBytes) {
    separate()
    bytes.append(0x22)
    Self.appendEscaped(value, to: &bytes)
    bytes.append(0x22)
  }

  package mutating func integer(_ value: some FixedWidthInteger) {
    separate()
    guard value.bitWidth <= 64 else { return bytes.append(contentsOf: String(value).utf8) }
    if value < 0 { bytes.append(0x2D) }
    var rest = UInt64(value.magnitude)
    // At most 20 digits.
    var room: (UInt64, UInt64, UInt64) = (0, 0, 0)
    withUnsafeMutableBytes(of: &room) { room in
      var index = room.count
      repeat {
        index -= 1
        room[index] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[index...]))
    }
  }

  package mutating func boolean(_ value: Bool) {
    raw(value ? "true" : "false")
  }

  package mutating func null() { raw("null") }

  /// Writes a value that is already encoded: one JSON value without surrounding white space.
  package mutating func raw(_ value: JSONBytes) {
    separate()
    bytes.append(contentsOf: value)
  }

  private mutating func raw(_ value: StaticString) {
    separate()
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
  }

  // MARK: Members

  /// Writes a string member.
  package mutating func member(_ key: StaticString, _ value: String) {
    self.key(key)
    string(value)
  }

  /// Writes an integer member.
  package mutating func member(_ key: StaticString, _ value: some FixedWidthInteger) {
    self.key(key)
    integer(value)
  }

  /// Writes a string member, if the value is not nil.
  package mutating func member(_ key: StaticString, ifPresent value: String?) {
    if let value { member(key, value) }
  }

  /// Writes an integer member, if the value is not nil.
  package mutating func member(_ key: StaticString, ifPresent value: (some FixedWidthInteger)?) {
    if let value { member(key, value) }
  }

  /// Writes a member whose value is an array of strings.
  package mutating func member(_ key: StaticString, _ values: [String]) {
    self.key(key)
    beginArray()
    for value in values { string(value) }
    endArray()
  }

  /// Writes a member whose value is encoded already.
  package mutating func member(_ key: StaticString, json value: [UInt8]) {
    self.key(key)
    value.withUnsafeBytes { raw($0) }
  }

  // MARK: Escapes

  /// Appends the content of a string literal: escapes `"`, `\` and control characters, copies the rest.
  package static func appendEscaped(_ value: JSONBytes, to bytes: inout [UInt8]) {
    guard let base = value.baseAddress else { return }
    let start = base.assumingMemoryBound(to: UInt8.self)
    var index = 0
    while index < value.count {
      var stop = Scan.special(start, from: index, to: value.count)
      while stop < value.count, start[stop] >= 0x80 {
        stop = Scan.special(start, from: stop + 1, to: value.count)
      }
      bytes.append(contentsOf: UnsafeBufferPointer(start: start + index, count: stop - index))
      if stop < value.count { appendEscape(start[stop], to: &bytes) }
      index = stop + 1
    }
  }

  private static func appendEscape(_ byte: UInt8, to bytes: inout [UInt8]) {
    bytes.append(0x5C)
    switch byte {
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x0C: bytes.append(UInt8(ascii: "f"))
    case 0x0A: bytes.append(UInt8(ascii: "n"))
    case 0x0D: bytes.append(UInt8(ascii: "r"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x22, 0x5C: bytes.append(byte)
    default:
      let digits = Array("0123456789abcdef".utf8)
      bytes.append(contentsOf: Array("u00".utf8))
      bytes.append(digits[Int(byte >> 4)])
      bytes.append(digits[Int(byte & 15)])
    }
  }
}
